"""Filling an atlas over the network, and holding it against the models."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

import kinprint
from kinprint.atlas.building import models_in
from kinprint.atlas.encoding import encoded
from kinprint.atlas.store import Atlas
from kinprint.mirror import MirrorServer
from kinprint.records import Standing
from kinprint.source.recorded import Piece
from kinprint.source.repository import find_models
from tests.conftest import DEMO
from tests.lineage.stored_models import llama, stored


def standings(place: Path) -> list[Standing]:
    return [one.standing for one in kinprint.Atlas(place).verify()]


def test_lists_and_folders_stand_for_models(tmp_path: Path) -> None:
    for name in ("one", "org/other"):
        stored(tmp_path / "zoo" / name, llama())
    (tmp_path / "zoo" / "notes").mkdir()
    names = tmp_path / "names.txt"
    names.write_text("org/a\n\n# no model\n org/b \n")
    given = [str(names), str(tmp_path / "zoo"), str(tmp_path / "zoo" / "one"), "org/c"]
    zoo = [str(tmp_path / "zoo" / name) for name in ("one", "org/other")]
    assert list(models_in(given)) == ["org/a", "org/b", *zoo, zoo[0], "org/c"]


def test_a_model_that_stayed_is_right(tmp_path: Path) -> None:
    model = stored(tmp_path / "model", llama())
    kinprint.Atlas(tmp_path / "atlas").build([model])
    assert standings(tmp_path / "atlas") == [Standing.RIGHT]


def test_a_model_that_changed_is_told(tmp_path: Path) -> None:
    model = stored(tmp_path / "model", llama(0))
    kinprint.Atlas(tmp_path / "atlas").build([model])
    stored(tmp_path / "model", llama(1))
    assert standings(tmp_path / "atlas") == [Standing.CHANGED]
    kinprint.Atlas(tmp_path / "atlas").build([model])
    assert standings(tmp_path / "atlas") == [Standing.RIGHT]


def test_a_model_that_is_gone_is_told(tmp_path: Path) -> None:
    model = stored(tmp_path / "model", llama())
    kinprint.Atlas(tmp_path / "atlas").build([model])
    shutil.rmtree(model)
    (found,) = kinprint.Atlas(tmp_path / "atlas").verify()
    assert found.standing is Standing.GONE and found.error is not None


def poisoned(atlas: Atlas, name: str) -> None:
    """Put a fingerprint that is whole, and of other bytes, in place of one."""
    one = atlas.read(name)
    main = one.sources[0]
    pieces = {
        path: tuple(Piece(piece.start, bytes(len(piece.data))) for piece in some)
        for path, some in main.pieces.items()
    }
    Path(atlas.place, "fingerprints", f"{name}.parquet").unlink()
    atlas.add(replace(one, sources=(replace(main, pieces=pieces), *one.sources[1:])))


def test_a_poisoned_entry_of_a_repository_is_told(tmp_path: Path, mirror: MirrorServer) -> None:
    atlas = Atlas(str(tmp_path))
    (added,) = kinprint.Atlas(tmp_path).build(["zoo/base-a"])
    assert standings(tmp_path) == [Standing.RIGHT]
    poisoned(atlas, added.id)
    assert standings(tmp_path) == [Standing.FORGED]
    assert encoded(atlas.read(atlas.index()[0].entry(0).id))[0] != added.id


def test_a_state_that_is_there_is_not_read_again(tmp_path: Path, mirror: MirrorServer) -> None:
    place = kinprint.Atlas(tmp_path)
    assert not place.build(["zoo/base-a"])[0].there
    with kinprint.Reader(cache=False) as reader:
        (again,) = place.build(["zoo/base-a"], reader=reader)
        assert again.there and again.bytes == 0 and reader.cost.bytes == 0
    assert place.contents().models == 1


def test_a_folder_that_changed_has_one_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its earlier state is found nowhere; models of other folders, seeds and atlases stay."""
    monkeypatch.chdir(tmp_path)
    place = kinprint.Atlas(tmp_path / "atlas")
    stored(tmp_path / "model", llama(0))
    stored(tmp_path / "elsewhere", llama(0))
    place.build(["model", "elsewhere"])
    place.build(["model"], seed=1)
    (again,) = place.build(["model"])
    assert again.there and not again.replaced
    stored(tmp_path / "model", llama(1))
    (changed,) = place.build(["./model"])
    assert changed.replaced and not changed.there
    assert sorted((one.name, one.seed) for one in place.entries()) == [
        ("elsewhere", 0), ("model", 0), ("model", 1),
    ]  # fmt: skip
    assert changed.id in {one.id for one in place.entries()}
    other = kinprint.Atlas(tmp_path / "other")
    other.pull(tmp_path / "atlas")
    assert other.contents().models == 3


def test_what_the_hub_finds_is_added(tmp_path: Path, mirror: MirrorServer) -> None:
    place = kinprint.Atlas(tmp_path)
    found = place.build(search="base", limit=2)
    assert [one.given for one in found] == ["zoo/base-a", "zoo/base-b"]
    assert [one.given for one in place.build(search="base", limit=1)] == ["zoo/base-a"]
    assert place.build(search="nothing is called so") == []


def test_lists_of_the_hub_have_pages(tmp_path: Path, make_mirror: Callable[..., Any]) -> None:
    make_mirror(DEMO, page_size=1)
    assert find_models("zoo/base", 10) == ["zoo/base-a", "zoo/base-b"]


def test_an_index_that_names_another_model_is_told(tmp_path: Path) -> None:
    kinprint.Atlas(tmp_path).build([DEMO / "zoo" / "base-a"])
    assert standings(tmp_path) == [Standing.RIGHT]
    for part in (tmp_path / "index").iterdir():
        table = pq.read_table(part)
        at = table.schema.get_field_index("name")
        names = pa.array(["meta-llama/Llama-9"] * len(table))
        pq.write_table(table.set_column(at, "name", names), part)
    assert standings(tmp_path) == [Standing.FORGED]
