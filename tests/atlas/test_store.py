"""Atlases: written by several at once, half written, of another form, full, elsewhere."""

from __future__ import annotations

import errno
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

import kinprint
from kinprint.atlas import encoding
from kinprint.atlas.encoding import encoded
from kinprint.atlas.fingerprint import Fingerprint, fingerprint
from kinprint.atlas.store import Atlas
from kinprint.errors import AtlasBroken, AtlasFull, EntryBroken
from kinprint.reader.fetch import Fetcher
from tests.lineage.stored_models import llama, stored


@pytest.fixture(scope="module")
def prints(tmp_path_factory: pytest.TempPathFactory) -> list[Fingerprint]:
    folder = tmp_path_factory.mktemp("models")
    with Fetcher() as fetcher:
        return [
            fingerprint(stored(folder / f"model-{seed}", llama(seed)), fetcher) for seed in range(3)
        ]


def names(atlas: Atlas) -> list[str]:
    index, faults = atlas.index()
    assert not faults
    return [Path(entry.ref.name).name for entry in index.entries()]


def test_what_was_added_comes_back(tmp_path: Path, prints: list[Fingerprint]) -> None:
    atlas = Atlas(str(tmp_path / "new" / "atlas"))
    ids = [atlas.add(one) for one in prints]
    index, faults = Atlas(atlas.place).index()
    assert not faults and names(atlas) == ["model-0", "model-1", "model-2"]
    assert [entry.id for entry in index.entries()] == ids
    again = atlas.read(ids[1])
    assert encoded(again)[0] == ids[1] and again.ref == prints[1].ref
    assert np.array_equal(index.keys[1], prints[1].towers[0].first)


def test_a_model_is_there_once(tmp_path: Path, prints: list[Fingerprint]) -> None:
    atlas = Atlas(str(tmp_path))
    assert atlas.add(prints[0]) == atlas.add(prints[0])
    assert names(atlas) == ["model-0"]


def test_two_writers_lose_nothing(tmp_path: Path, prints: list[Fingerprint]) -> None:
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda one: Atlas(str(tmp_path)).add(one), prints * 2))
    assert names(Atlas(str(tmp_path))) == ["model-0", "model-1", "model-2"]


def test_a_half_written_file_is_told_and_left_out(
    tmp_path: Path, prints: list[Fingerprint]
) -> None:
    atlas = Atlas(str(tmp_path))
    good, broken = (atlas.add(one) for one in prints[:2])
    file = tmp_path / "fingerprints" / f"{broken}.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    for part in (tmp_path / "index").iterdir():
        part.unlink()
    (tmp_path / "fingerprints" / f"{broken}.parquet.0123").write_bytes(b"being written")
    index, faults = atlas.index()
    assert [entry.id for entry in index.entries()] == [good]
    assert [error.fields["entry"] for error in faults] == [broken]
    assert atlas.add(prints[1]) == broken
    assert names(atlas) == ["model-0", "model-1"]


def test_an_index_that_is_lost_is_made_again(tmp_path: Path, prints: list[Fingerprint]) -> None:
    atlas = Atlas(str(tmp_path))
    for one in prints:
        atlas.add(one)
    for part in (tmp_path / "index").iterdir():
        part.write_bytes(b"no Parquet")
    assert names(atlas) == ["model-0", "model-1", "model-2"]
    for file in (tmp_path / "fingerprints").iterdir():  # the index alone knows them now
        file.write_bytes(b"")
    assert names(atlas) == ["model-0", "model-1", "model-2"]


def test_many_files_of_an_index_become_one(
    tmp_path: Path, prints: list[Fingerprint], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kinprint.atlas.store._MANY", 1)
    atlas = Atlas(str(tmp_path))
    for one in prints:
        atlas.add(one)
    assert names(atlas) == ["model-0", "model-1", "model-2"]
    assert len(list((tmp_path / "index").iterdir())) == 1
    assert names(atlas) == ["model-0", "model-1", "model-2"]


def test_what_is_not_what_its_name_says_is_refused(
    tmp_path: Path, prints: list[Fingerprint]
) -> None:
    atlas = Atlas(str(tmp_path))
    one, other = (atlas.add(each) for each in prints[:2])
    folder = tmp_path / "fingerprints"
    (folder / f"{one}.parquet").write_bytes((folder / f"{other}.parquet").read_bytes())
    with pytest.raises(EntryBroken, match="not what its name says"):
        atlas.read(one)


@pytest.mark.parametrize(("form", "advice"), [("9", "a newer one reads it"), ("x", "knows")])
def test_another_form_is_told_and_the_others_are_used(
    tmp_path: Path,
    prints: list[Fingerprint],
    monkeypatch: pytest.MonkeyPatch,
    form: str,
    advice: str,
) -> None:
    atlas = Atlas(str(tmp_path))
    with monkeypatch.context() as other:
        other.setattr(encoding, "SCHEMA", f"kinprint.fingerprint/{form}")
        name = atlas.add(prints[0])
    good = atlas.add(prints[1])
    for part in (tmp_path / "index").iterdir():
        part.unlink()
    with pytest.raises(EntryBroken, match=f"fingerprint/{form}.*{advice}"):
        atlas.read(name)
    index, faults = atlas.index()
    assert [entry.id for entry in index.entries()] == [good]
    assert [error.fields["entry"] for error in faults] == [name]


def test_an_index_of_another_form_is_made_again(tmp_path: Path, prints: list[Fingerprint]) -> None:
    atlas = Atlas(str(tmp_path))
    for one in prints:
        atlas.add(one)
    for part in (tmp_path / "index").iterdir():
        table = pq.read_table(part)
        pq.write_table(table.drop_columns(["seed"]).append_column("sown", table["seed"]), part)
    others = set((tmp_path / "index").iterdir())
    assert not atlas.states()
    assert names(atlas) == ["model-0", "model-1", "model-2"]
    (made,) = set((tmp_path / "index").iterdir()) - others  # those of the other form stay
    assert pq.read_table(made).num_rows == 3


def test_a_full_disk_is_told_and_nothing_is_lost(
    tmp_path: Path, prints: list[Fingerprint], monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.local import LocalFileSystem

    atlas = Atlas(str(tmp_path))
    atlas.add(prints[0])

    def full(self: Any, place: str, raw: bytes) -> None:
        Path(place).write_bytes(raw[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(LocalFileSystem, "pipe_file", full)
        with pytest.raises(AtlasFull, match="no room"):
            atlas.add(prints[1])
    assert names(atlas) == ["model-0"]
    assert {file.suffix for file in tmp_path.rglob("*.*")} == {".parquet"}
    atlas.add(prints[1])
    assert names(atlas) == ["model-0", "model-1"]


def test_a_full_disk_ends_building_and_keeps_what_was_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.local import LocalFileSystem

    models = [stored(tmp_path / str(at), llama(at)) for at in range(2)]
    place = kinprint.Atlas(tmp_path / "atlas")
    place.build(models[:1])

    def full(self: Any, place: str, raw: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(LocalFileSystem, "pipe_file", full)
    with pytest.raises(AtlasFull):
        place.build(models)
    assert place.contents().models == 1


def test_a_place_that_cannot_be_is_told(tmp_path: Path, prints: list[Fingerprint]) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AtlasBroken, match="file"):
        Atlas(str(tmp_path / "file")).add(prints[0])


def test_an_object_store_is_a_place(prints: list[Fingerprint]) -> None:
    atlas = Atlas("memory://atlas-of-tests")
    ids = [atlas.add(one) for one in prints]
    assert names(Atlas("memory://atlas-of-tests")) == ["model-0", "model-1", "model-2"]
    assert Atlas("memory://atlas-of-tests").read(ids[2]).ref == prints[2].ref


def test_other_tools_read_the_files(tmp_path: Path, prints: list[Fingerprint]) -> None:
    atlas = Atlas(str(tmp_path))
    name = atlas.add(prints[0])
    table = pq.read_table(tmp_path / "fingerprints" / f"{name}.parquet")
    assert table.column_names == ["source", "file", "start", "data"]
    about = msgspec.json.decode((table.schema.metadata or {})[b"kinprint"])
    assert about["schema"] == "kinprint.fingerprint/1"
    assert about["sources"][0]["ref"]["name"] == prints[0].ref.name


def test_seeds_are_told_apart(prints: list[Fingerprint]) -> None:
    assert encoded(replace(prints[0], seed=1))[0] != encoded(prints[0])[0]


def test_a_place_without_fingerprints_is_told(tmp_path: Path) -> None:
    empty = kinprint.Atlas(tmp_path / "nowhere")
    for action in (lambda: kinprint.Atlas(tmp_path / "own").pull(empty.place), empty.verify):
        with pytest.raises(AtlasBroken, match="no fingerprints"):
            action()
