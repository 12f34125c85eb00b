"""What a model is built on: parents, relatives, errors paid over all models searched."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

import kinprint
from benchmarks.redteam.checkpoint import load, write_folder
from kinprint.atlas.fingerprint import fingerprint
from kinprint.atlas.identify import FAMILY, Deep, Identified, identify_model
from kinprint.atlas.store import Atlas
from kinprint.lineage.compare import compare_models
from kinprint.lineage.power import seen_from, seen_from_everywhere
from kinprint.lineage.results import Settings
from kinprint.reader.fetch import Fetcher
from kinprint.records import ALPHA, Component, DeclaredState, Level, PartState, Relation, Standing
from tests.conftest import ZOO
from tests.fewer_layers import short_zoo
from tests.lineage.stored_models import llama, stored

Array = NDArray[Any]


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Atlas:
    """The demo models."""
    place = tmp_path_factory.mktemp("atlas")
    kinprint.Atlas(place).build([short_zoo()])
    return Atlas(str(place))


@cache
def identified(model: Path | str, atlas: Atlas, **asked: Any) -> Identified:
    with Fetcher() as fetcher:
        return identify_model(fingerprint(str(model), fetcher, **asked), atlas)


def parents(found: Identified) -> list[str]:
    return [Path(one.entry.ref.name).name for one in found.parents]


def tuned(tensors: Mapping[str, Array]) -> dict[str, Array]:
    """Numbers that training has moved a little."""
    chance = np.random.default_rng(3)
    return {
        name: (one + 0.1 * chance.normal(size=one.shape)).astype(np.float32)
        for name, one in tensors.items()
    }


def merged(folder: Path, tensors: Mapping[str, Array]) -> Path:
    """A model like the demo's, with other numbers."""
    like = load(short_zoo() / "base-a")
    write_folder(replace(like, tensors={**like.tensors, **tensors}), folder)
    return folder


def test_what_fingerprints_leave_open_is_read_from_files(tmp_path: Path) -> None:
    """A model without a link is compared at the deep level; one that is gone keeps its verdict."""
    shutil.copytree(short_zoo() / "base-b", tmp_path / "gone")
    place = Atlas(str(tmp_path / "atlas"))
    kinprint.Atlas(place.place).build(
        [short_zoo() / "base-a", short_zoo() / "base-b", tmp_path / "gone"]
    )
    shutil.rmtree(tmp_path / "gone")
    with Fetcher() as fetcher:
        found = identify_model(
            fingerprint(str(short_zoo() / "a-cpt"), fetcher), place, deep=Deep(2, fetcher)
        )
        settings = Settings(Level.DEEP, found.alpha)
        a, b = (str(short_zoo() / name) for name in ("a-cpt", "base-b"))
        alone = compare_models(a, b, fetcher, settings)
    unlinked = {Path(entry.ref.name).name: (entry.id, said) for entry, said in found.unlinked}
    read = {name: said for name, (one, said) in unlinked.items() if one in found.read_deep}
    assert read == {"base-b": alone.verdict}
    assert [Path(entry.ref.name).name for entry, _ in found.not_deep] == ["gone"]
    assert not found.failed
    assert unlinked.keys() == {"base-b", "gone"}
    assert found.alpha == min(ALPHA, FAMILY / (2 * found.searched))
    (parent,) = found.parents
    assert parent.log10_p == pytest.approx(parent.verdict.log10_p + math.log10(2 * found.searched))


def test_no_other_model_is_read_under_the_name_of_an_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder is found from any other; what lies there now must be what was read of it."""
    monkeypatch.setattr("kinprint.source.hub.open_hub", lambda _: pytest.fail("asked the Hub"))
    for folder, seed in (("one", 2), ("other", 1)):
        stored(tmp_path / folder / "org" / "model", llama(seed))
    atlas, child = tmp_path / "atlas", stored(tmp_path / "child", tuned(llama(1)))

    def deep() -> kinprint.Identification:
        return kinprint.identify(child, atlas=atlas, deep=1)

    monkeypatch.chdir(tmp_path / "one")
    kinprint.Atlas(atlas).build(["org/model"])
    monkeypatch.chdir(tmp_path / "other")
    found = deep()
    assert [one.relation for one in found.unlinked] == [Relation.NO_EVIDENCE]
    assert found.unlinked[0].level is Level.DEEP and found.unlinked[0].given == "org/model"
    shutil.rmtree(tmp_path / "one" / "org")
    assert [one.level for one in deep().unlinked] == [Level.STANDARD]
    stored(tmp_path / "one" / "org" / "model", llama(1))
    changed = deep()
    assert [one.relation for one in changed.unlinked] == [Relation.NO_EVIDENCE]
    assert changed.unlinked[0].level is Level.STANDARD
    assert [one.name for one in changed.document.not_deep] == ["org/model"]
    assert [one.standing for one in kinprint.Atlas(atlas).verify()] == [Standing.CHANGED]


def test_an_entry_with_a_relative_path_is_no_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As older versions wrote them: another folder of that name is not what was read."""
    monkeypatch.setattr("kinprint.source.hub.open_hub", lambda _: pytest.fail("asked the Hub"))
    stored(tmp_path / "one" / "org" / "model", llama(2))
    stored(tmp_path / "other" / "org" / "model", llama(1))
    child = stored(tmp_path / "child", tuned(llama(1)))
    atlas = Atlas(str(tmp_path / "atlas"))
    monkeypatch.chdir(tmp_path / "one")
    with Fetcher() as fetcher:
        atlas.add(fingerprint("org/model", fetcher))
    standings = []
    for folder in ("one", "other", "."):
        monkeypatch.chdir(tmp_path / folder)
        found = kinprint.identify(child, atlas=atlas.place, deep=1)
        assert [one.relation for one in found.unlinked] == [Relation.NO_EVIDENCE]
        standings += [one.standing for one in kinprint.Atlas(atlas.place).verify()]
    assert standings == [Standing.RIGHT, Standing.CHANGED, Standing.GONE]


def test_a_descendant_has_its_parent(atlas: Atlas) -> None:
    found = identified(short_zoo() / "a-cpt", atlas)
    assert parents(found) == ["base-a"]
    assert found.parents[0].verdict.relation is Relation.DERIVED
    assert [Path(entry.ref.name).name for entry in found.same] == ["a-cpt"]
    assert found.searched == 3
    assert [Path(entry.ref.name).name for entry, _ in found.unlinked] == ["base-b"]


@pytest.mark.slow
def test_a_turned_one_too(atlas: Atlas) -> None:
    assert parents(identified(short_zoo() / "a-rotated", atlas))[0] == "base-a"


def test_p_values_are_paid_for_all_models_searched(atlas: Atlas) -> None:
    found = identified(short_zoo() / "a-cpt", atlas)
    one = found.parents[0]
    assert one.log10_p == pytest.approx(one.verdict.log10_p + math.log10(3))
    assert found.alpha == ALPHA  # three models at this level stay far below the family's
    assert found.alpha * found.searched <= FAMILY


def test_of_many_models_each_has_its_part_of_the_error(
    atlas: Atlas, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kinprint.atlas.identify.FAMILY", 3e-9)
    assert identified.__wrapped__(short_zoo() / "a-cpt", atlas).alpha == pytest.approx(1e-9)


def test_a_stranger_has_no_parent_and_power_is_told(atlas: Atlas) -> None:
    found = identified(short_zoo() / "base-b", atlas)
    assert not found.parents and not found.relatives and not found.descendants
    assert len(found.unlinked) == 3
    for _, verdict in found.unlinked:
        sizes = seen_from(verdict)
        size, _ = sizes[Component.FEED_FORWARD]  # where most is seen
        assert 0 < 2 * size < (seen_from_everywhere(verdict)[0] or 0.0) < 1


def test_a_copy_elsewhere_is_the_same_model(atlas: Atlas, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for file in (short_zoo() / "base-b").iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    found = identified(copy, atlas)
    assert parents(found) == ["base-b"]
    assert found.parents[0].verdict.relation is Relation.IDENTICAL


def test_a_merge_has_both_parents_with_their_weights(atlas: Atlas, tmp_path: Path) -> None:
    share = 0.7
    one, other = (load(short_zoo() / name).tensors for name in ("a-cpt", "base-b"))
    mixed = {name: share * one[name] + (1 - share) * other[name] for name in one}
    found = identified(merged(tmp_path, mixed), atlas)
    assert set(parents(found)) == {"a-cpt", "base-b"}
    weights = {Path(each.entry.ref.name).name: each.weight for each in found.parents}
    assert weights["a-cpt"] == pytest.approx(share, abs=0.01)


def test_layers_of_two_models_have_both_by_part(atlas: Atlas, tmp_path: Path) -> None:
    one, other = (load(short_zoo() / name).tensors for name in ("base-a", "base-b"))
    mixed = {
        name: other[name] if any(f"layers.{at}." in name for at in (1,)) else one[name]
        for name in one
    }
    found = identified(merged(tmp_path, mixed), atlas)
    assert set(parents(found)) == {"base-a", "base-b"}
    equal = {
        Path(each.entry.ref.name).name: {
            part.part.layer for part in each.verdict.parts if part.state is PartState.EQUAL
        }
        for each in found.parents
    }
    assert 0 in equal["base-a"] and 1 in equal["base-b"]


def test_models_of_other_seeds_are_no_candidates(atlas: Atlas) -> None:
    found = identified(short_zoo() / "a-cpt", atlas, seed=1)
    assert (found.searched, found.other_seeds, found.parents) == (0, 4, ())


def test_what_is_declared_is_set_against_what_is_found(atlas: Atlas, tmp_path: Path) -> None:
    folder = merged(tmp_path, {})
    card = "---\nbase_model:\n- demo/base-a\n- zoo/base-b\n- other/base-b\n---\n"
    (folder / "README.md").write_text(card)
    states = {claim.model: state for claim, state in identified(folder, atlas).declared}
    assert states["demo/base-a"] is DeclaredState.LINKED
    assert states["zoo/base-b"] is DeclaredState.UNLINKED
    assert states["other/base-b"] is DeclaredState.NOT_IN_ATLAS


def test_a_broken_fingerprint_takes_no_other_with_it(tmp_path: Path) -> None:
    place = tmp_path / "atlas"
    added = kinprint.Atlas(place).build([short_zoo() / "base-a", short_zoo() / "base-b"])
    broken = place / "fingerprints" / f"{added[1].id}.parquet"
    broken.write_bytes(broken.read_bytes()[:-9])
    found = identified(short_zoo() / "a-cpt", Atlas(str(place)))
    assert parents(found) == ["base-a"]
    assert [error.fields["entry"] for error in found.broken] == [added[1].id]
    whole = place / "fingerprints" / f"{added[0].id}.parquet"
    whole.write_bytes(whole.read_bytes()[:-9])
    none = kinprint.identify(short_zoo() / "a-cpt", atlas=place)
    assert none.compared == 0 and "compared with none" in none.summary


def test_an_empty_atlas_is_told(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    found = kinprint.identify(stored(tmp_path / "model", llama()), atlas=tmp_path / "nothing")
    assert found.searched == 0 and not found.parents
    assert "no model" in found.summary


def test_a_result_comes_back_from_its_file(atlas: Atlas, tmp_path: Path) -> None:
    found = kinprint.identify(short_zoo() / "a-cpt", atlas=atlas.place)
    (file,) = found.save(tmp_path / "found.json")
    again = kinprint.Identification.load(file, "ko")
    assert again.to_json() == found.to_json()
    assert [one.title for one in again.parents] == ["base-a"]
    assert again.to_frame().shape[0] == len(found.parents) + len(found.relatives)
    assert "base-a" in again.summary and "base-a" in again._repr_html_()
    told = json.loads(file.read_text())
    assert told["schema"] == "kinprint.identify/1"
    assert [one["name"] for one in told["parents"]] == [str(short_zoo() / "base-a")]


@pytest.fixture(scope="module")
def atlas_of_the_zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("zoo") / "atlas"
    kinprint.Atlas(place).build([ZOO])
    return place


@pytest.mark.zoo
@pytest.mark.parametrize("part", range(4))
def test_parents_of_the_zoo_and_no_stranger(atlas_of_the_zoo: Path, part: int) -> None:
    truth = json.loads((ZOO / "zoo.json").read_text())

    def ancestors(name: str) -> set[str]:
        return {name, *(one for each in truth[name]["parents"] for one in ancestors(each))}

    for name in list(truth)[part::4]:
        found = kinprint.identify(ZOO / name, atlas=atlas_of_the_zoo)
        told = [Path(one.name).name for one in found.parents]
        assert all(ancestors(name) & ancestors(one) for one in told), name
        if truth[name]["parents"]:
            assert told, name


def test_replicas_are_told_from_the_models_that_they_imitate(tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    shutil.copytree(short_zoo() / "base-a", tmp_path / "base-a")
    (weights,) = (tmp_path / "base-a").glob("*.safetensors")
    save_file(load_file(weights), weights, {"format": "pt", "replica": "NOT the real model"})
    place = kinprint.Atlas(tmp_path / "atlas")
    place.build([tmp_path / "base-a", short_zoo() / "base-b"])
    for found in (kinprint.identify(short_zoo() / "a-cpt", atlas=place.place), place.tree()):
        assert found.document.labels == ["base-a: NOT the real model"]
