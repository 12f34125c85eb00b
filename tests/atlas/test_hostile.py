"""Fingerprints of strangers that are whole, rightly named, and wrong: left out, and no other is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kinprint.atlas import encoding
from kinprint.atlas.store import Atlas
from kinprint.errors import EntryBroken
from tools.starter_atlas import PLACE

About = dict[str, Any]
Rows = list[encoding.Row]


def forged(folder: Path, change: Callable[[About, Rows], object]) -> str:
    """Put a changed fingerprint into an atlas, under the name that it should have; its name."""
    atlas = Atlas(str(PLACE))
    one = atlas.read(min(atlas.names()))
    about, rows = json.loads(encoding._about(one)), list(encoding._rows(one))
    change(about, rows)
    raw = json.dumps(about).encode()
    name = encoding._digest(raw, rows)
    table = encoding._table(rows).replace_schema_metadata({b"kinprint": raw})
    (folder / "fingerprints").mkdir(parents=True, exist_ok=True)
    (folder / "fingerprints" / f"{name}.parquet").write_bytes(encoding.written(table))
    return name


def no_sources(about: About, rows: Rows) -> None:
    about["sources"].clear()
    rows.clear()


def deep(about: About, rows: Rows) -> None:
    inner: list[Any] = []
    about["claims"] = inner
    for _ in range(500):
        inner.append(inner := [])


WRONG: dict[str, Callable[[About, Rows], object]] = {
    "no source": no_sources,
    "a seed that no table holds": lambda about, rows: about.update(seed=1 << 63),
    "a negative size": lambda about, rows: about["sources"][0]["files"][0].update(size=-1),
    "a short key": lambda about, rows: about["towers"][0].update(first="AAAA"),
    "a piece of no source": lambda about, rows: rows.append((-1, rows[0][1], 0, b"x")),
    "a piece of no file": lambda about, rows: rows.append((0, "../secret", 0, b"x")),
    "a piece beyond its file": lambda about, rows: rows.append((0, rows[-1][1], 1 << 40, b"x")),
    "pieces that overlap": lambda about, rows: rows.append(rows[-1]),
    "claims that are none": deep,
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_one_is_left_out_and_the_others_are_taken(tmp_path: Path, wrong: str) -> None:
    theirs, own = Atlas(str(tmp_path / "theirs")), Atlas(str(tmp_path / "own"))
    good = forged(tmp_path / "theirs", lambda about, rows: None)
    bad = forged(tmp_path / "theirs", WRONG[wrong])
    with pytest.raises(EntryBroken, match="no whole fingerprint"):
        theirs.read(bad)
    taken, faults = own.take_from(theirs)
    assert taken == 1 and [one.fields["entry"] for one in faults] == [bad]
    index, _ = theirs.index()
    assert [entry.id for entry in index.entries()] == [good]


def test_what_is_larger_than_any_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = forged(tmp_path, lambda about, rows: None)
    Atlas(str(tmp_path)).read(name)
    monkeypatch.setattr(encoding, "_LARGEST", 1 << 20)
    with pytest.raises(EntryBroken, match="no whole fingerprint"):
        Atlas(str(tmp_path)).read(name)


@pytest.mark.parametrize("claims", ["[" * 100_000, "no JSON", None])
def test_an_index_of_strangers_may_say_anything(tmp_path: Path, claims: str | None) -> None:
    own = Atlas(str(tmp_path))
    own.take_from(Atlas(str(PLACE)))
    for part in (tmp_path / "index").iterdir():
        table = pq.read_table(part)
        at = table.column_names.index("claims")
        said = pa.array([claims] * len(table), pa.string())
        pq.write_table(table.set_column(at, "claims", said), part)
    index, faults = own.index()
    assert [entry.claims for entry in index.entries()] == [(), ()] and not faults
