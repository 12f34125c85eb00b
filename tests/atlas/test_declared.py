"""A table of what a whole hub declares, in the form of the dataset hub-stats."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import kinprint
from kinprint.atlas import declared as reading
from kinprint.atlas.declared import declared_in
from kinprint.cli.root import run
from kinprint.errors import BadOption
from kinprint.lineage.about.claims import Claim
from kinprint.mirror import MirrorServer
from kinprint.records import ClaimedEdge
from tests.lineage.stored_models import llama, stored
from tools.starter_atlas import PLACE

# Columns and types of hub-stats, as far as anything here might meet them.
BASES = pa.struct(
    [
        ("models", pa.list_(pa.struct([("_id", pa.string()), ("id", pa.string())]))),
        ("relation", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        ("_id", pa.string()), ("id", pa.string()), ("author", pa.string()),
        ("tags", pa.list_(pa.string())), ("downloads", pa.int64()), ("likes", pa.int64()),
        ("createdAt", pa.timestamp("us", "UTC")), ("baseModels", BASES),
    ]
)  # fmt: skip
Bases = tuple[str | None, list[str | None]] | None


def stored_table(file: Path, rows: dict[str, Bases]) -> str:
    """Write a table with what models declare, a few rows in each group."""
    made = [
        {
            "_id": "6" * 24, "id": name, "author": name.partition("/")[0], "tags": ["safetensors"],
            "downloads": 1, "likes": 0, "createdAt": datetime(2026, 1, 1, tzinfo=UTC),
            "baseModels": None if bases is None else {
                "relation": bases[0], "models": [{"_id": "7" * 24, "id": one} for one in bases[1]]
            },
        }
        for name, bases in rows.items()
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(made, SCHEMA), file, row_group_size=3)
    return str(file)


def test_claims_of_the_models_asked_for_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "_BATCH", 2)
    rows: dict[str, Bases] = {f"org/other-{number}": ("finetune", ["a/b"]) for number in range(9)}
    rows |= {
        "org/tune": ("finetune", ["org/base"]),
        "org/merge": ("merge", ["org/base", "org/tune", "org/base"]),
        "org/odd": ("stolen", ["x" * 500, None, " org/base "]),
        "org/base": None,
        "org/none": (None, []),
    }
    file = stored_table(tmp_path / "models.parquet", rows)
    where = "models.parquet: baseModels"
    assert declared_in(file, {"org/tune", "org/merge", "org/odd", "org/base", "org/none"}) == {
        "org/tune": (Claim(where, "org/base", "finetune"),),
        "org/merge": (Claim(where, "org/base", "merge"), Claim(where, "org/tune", "merge")),
        "org/odd": (Claim(where, "org/base"),),
    }
    assert declared_in(f"file://{file}", {"org/nobody"}) == {}


def test_it_stands_beside_what_was_measured(tmp_path: Path, mirror: MirrorServer) -> None:
    table: dict[str, Bases] = {"zoo/a-cpt": ("finetune", ["zoo/base-b"])}
    file = stored_table(tmp_path / "models.parquet", table)
    own = kinprint.Atlas(tmp_path / "own")
    own.pull(PLACE)
    found = kinprint.identify("zoo/a-cpt", atlas=own.place, declared=file)
    assert [one.name for one in found.parents] == ["zoo/base-a"]
    (told,) = found.document.declared
    assert (told.claim.model, told.claim.where) == ("zoo/base-b", "models.parquet: baseModels")
    assert told.state is kinprint.DeclaredState.UNLINKED


def test_edges_of_a_tree_know_what_a_table_declares(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    base = llama()
    tuned = {name: one + 0.01 * chance.normal(size=one.shape) for name, one in base.items()}
    names = [stored(tmp_path / "base", base), stored(tmp_path / "tune", tuned)]
    table: dict[str, Bases] = {names[1]: ("finetune", [names[0]])}
    file = stored_table(tmp_path / "models.parquet", table)
    own = kinprint.Atlas(tmp_path / "own")
    own.build(names)
    assert [one.declared for one in own.tree().edges] == [ClaimedEdge.SILENT]
    (edge,) = own.tree(declared=file).edges
    assert edge.declared is not ClaimedEdge.SILENT


def test_models_of_an_atlas_that_declare_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table: dict[str, Bases] = {"zoo/base-a": ("quantized", ["org/secret"]), "zoo/base-b": None}
    file = stored_table(tmp_path / "models.parquet", table)
    own = kinprint.Atlas(tmp_path / "own")
    own.pull(PLACE)
    assert own.contents().declared == 0
    assert own.contents(declared=file).declared == 1
    assert run(["atlas", "stats", "--atlas", own.place, "--declared", file]) == 0
    assert "Of these 1 declare" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("names", "bases", "column"),
    [
        ([1], [None], "id"),
        (["a/b"], ["x"], "baseModels"),
        (["a/b"], [["x"]], "baseModels"),
        (["a/b"], [{"relation": "merge"}], "baseModels"),
        (["a/b"], [{"models": "x"}], "baseModels"),
        (["a/b"], [{"models": ["x"]}], "baseModels"),
        (["a/b"], [{"models": [{"id": 1}]}], "baseModels"),
    ],
)
def test_columns_of_other_types_are_told(
    tmp_path: Path, names: list[object], bases: list[object], column: str
) -> None:
    file = tmp_path / "types.parquet"
    pq.write_table(pa.table({"id": names, "baseModels": bases}), file)
    with pytest.raises(BadOption, match=f"its column {column} holds "):
        declared_in(str(file), {"a/b"})


def test_types_that_hold_the_same_are_read(tmp_path: Path) -> None:
    models = pa.large_list(pa.struct([("id", pa.large_string())]))
    columns = {
        "id": pa.array(["a/b"]).dictionary_encode(),
        "baseModels": pa.array([{"models": [{"id": "a/c"}]}], pa.struct([("models", models)])),
    }
    pq.write_table(pa.table(columns), tmp_path / "large.parquet")
    found = declared_in(str(tmp_path / "large.parquet"), {"a/b"})
    assert [claim.model for claim in found["a/b"]] == ["a/c"]
    pq.write_table(pa.table({"id": ["a/b"], "baseModels": [None]}), tmp_path / "nulls.parquet")
    assert declared_in(str(tmp_path / "nulls.parquet"), {"a/b"}) == {}


def test_what_is_no_such_table_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "no.parquet").write_bytes(b"PAR1 no table PAR1")
    pq.write_table(pa.table({"id": ["a/b"], "tags": [["x"]]}), tmp_path / "other.parquet")
    with pytest.raises(BadOption, match="no Parquet file"):
        declared_in(str(tmp_path / "no.parquet"), {"a/b"})
    with pytest.raises(BadOption, match="lacks the column baseModels"):
        declared_in(str(tmp_path / "other.parquet"), {"a/b"})
    missing = str(tmp_path / "missing.parquet")
    assert run(["identify", "nowhere", "--atlas", str(PLACE), "--declared", missing]) == 2
    capsys.readouterr()
    assert run(["atlas", "stats", "--atlas", str(PLACE), "--declared", missing]) == 2
    assert "--declared" in capsys.readouterr().err
