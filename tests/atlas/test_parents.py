"""Which of near relatives is the parent: copies with fewer digits, and models on the way."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16, float8_e4m3fn
from numpy.typing import NDArray

import kinprint
from kinprint.atlas.fingerprint import Fingerprint, fingerprint
from kinprint.atlas.store import Atlas
from kinprint.reader.fetch import Fetcher
from tests.lineage.stored_models import LLAMA, llama, stored

Array = NDArray[Any]
Tensors = dict[str, Array]
LAYERS = 2


def store(folder: Path, tensors: Tensors, layers: int = LAYERS) -> None:
    stored(folder, tensors, {**LLAMA, "num_hidden_layers": layers})


def tuned(tensors: Mapping[str, Array], seed: int, much: float) -> Tensors:
    chance = np.random.default_rng(seed)
    return {
        name: (one.astype(np.float32) + much * chance.normal(size=one.shape)).astype(np.float32)
        for name, one in tensors.items()
    }


def cast(tensors: Mapping[str, Array]) -> Tensors:
    return {name: one.astype(float8_e4m3fn).astype(np.float32) for name, one in tensors.items()}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base, a tune of it and a tune of that, the first two in fewer digits too, and a model that
    was trained on from the base's fewer digits."""
    folder = tmp_path_factory.mktemp("models")
    base = llama(1, layers=LAYERS)
    tune = tuned(base, 11, 0.2)
    for name, tensors in {
        "base": base,
        "base-cast": cast(base),
        "tune": tune,
        "tune-cast": cast(tune),
        "tune-tuned": tuned(tune, 12, 0.1),
        "from-cast": tuned(cast(base), 13, 0.001),
    }.items():
        store(folder / name, tensors)
    grown = cast({**llama(2, layers=LAYERS + 2), **base})
    for name, tensors in {"grown": grown, "grown-tuned": tuned(grown, 14, 0.1)}.items():
        store(folder / name, tensors, LAYERS + 2)
    store(folder / "base-again", base)
    (folder / "base-again" / "README.md").write_text("Somebody saved it again.")
    return folder


@cache
def printed(model: Path) -> Fingerprint:
    """What is kept of a model, taken once for all atlases that hold it."""
    with Fetcher() as fetcher:
        return fingerprint(str(model), fetcher)


def parents(models: Path, own: str, others: str, place: Path) -> list[str]:
    for one in others.split():
        Atlas(str(place)).add(printed(models / one))
    found = kinprint.identify(models / own, atlas=place)
    return [one.title for one in found.parents]


@pytest.mark.parametrize(
    ("own", "others", "first"),
    [
        ("tune", "base base-cast", "base"),
        pytest.param("tune", "base tune-cast", "base", marks=pytest.mark.slow),
        ("tune", "base base-cast tune-cast tune-tuned", "tune-tuned"),
        ("tune", "tune-cast", "tune-cast"),
        pytest.param("base", "tune tune-tuned", "tune", marks=pytest.mark.slow),
        ("tune-tuned", "base tune tune-cast", "tune"),
        pytest.param("base-cast", "base tune", "base", marks=pytest.mark.slow),
        ("from-cast", "base base-cast tune", "base-cast"),
        pytest.param("base", "base-cast from-cast", "base-cast", marks=pytest.mark.slow),
        ("base", "base-again tune tune-cast", "base-again"),
        ("grown-tuned", "base grown", "grown"),
    ],
)
def test_the_first_is_the_nearest_that_is_no_copy_in_fewer_digits(
    models: Path, tmp_path: Path, own: str, others: str, first: str
) -> None:
    assert parents(models, own, others, tmp_path) == [first]


def test_a_cast_is_the_parent_only_where_that_is_more_than_chance(tmp_path: Path) -> None:
    """Half of all tunes of a model are nearer to its cast, where rounding is fine beside them."""
    base = llama(1, layers=LAYERS)
    half = {name: one.astype(np.float16).astype(np.float32) for name, one in base.items()}
    tunes = {f"tune-{seed}": tuned(base, seed, 0.2) for seed in range(31, 35)}
    for name, tensors in {"base": base, "half": half, **tunes}.items():
        store(tmp_path / name, tensors)
    store(tmp_path / "from-half", tuned(half, 35, 0.0005))
    kinprint.Atlas(tmp_path / "atlas").build([tmp_path / "base", tmp_path / "half"])
    found = {
        name: [
            one.title
            for one in kinprint.identify(tmp_path / name, atlas=tmp_path / "atlas").parents
        ]
        for name in (*tunes, "from-half")
    }
    assert found == {name: ["base"] for name in tunes} | {"from-half": ["half"]}


@pytest.mark.parametrize("trimmed", [pytest.param(True, marks=pytest.mark.slow), False])
def test_merges_that_keep_changes_in_part_have_all_their_parents(
    tmp_path: Path, trimmed: bool
) -> None:
    base = llama(1)
    parents_of_it = [tuned(base, seed, 0.3) for seed in (21, 22)]
    chance = np.random.default_rng(23)
    merge = dict(base)
    for name in base:
        for tune in parents_of_it:
            change = tune[name] - base[name]
            large = np.abs(change) > np.median(np.abs(change))
            kept = large if trimmed else chance.random(change.shape) < 0.5
            merge[name] = merge[name] + np.where(kept, change, np.float32(0))
    made = {"base": base, "one": parents_of_it[0], "other": parents_of_it[1],
            "sibling": tuned(base, 24, 0.3), "merge": merge}  # fmt: skip
    for name, tensors in made.items():
        stored(tmp_path / name, tensors)
    found = parents(tmp_path, "merge", "base one other sibling", tmp_path / "atlas")
    assert sorted(found) == ["base", "one", "other"]
    assert len(parents(tmp_path, "sibling", "base one other merge", tmp_path / "again")) == 1


def test_states_of_one_training_run_are_no_mixtures(tmp_path: Path) -> None:
    chance, cosine = np.random.default_rng(31), 0.8
    state = llama(1)
    way = {name: chance.normal(size=one.shape) for name, one in state.items()}
    names = [f"step-{number}" for number in range(4)]
    for name in names:
        stored(tmp_path / name, {key: one.astype(np.float32) for key, one in state.items()})
        state = {key: one + 0.15 * way[key] for key, one in state.items()}
        way = {
            key: cosine * one + np.sqrt(1 - cosine**2) * chance.normal(size=one.shape)
            for key, one in way.items()
        }
    assert len(parents(tmp_path, "step-1", "step-0 step-2 step-3", tmp_path / "one")) == 1
    atlas = kinprint.Atlas(tmp_path / "all")
    atlas.build([tmp_path / name for name in names])
    tree = atlas.tree()
    titles = [one.title for one in tree.models]
    shown = {tuple(sorted((titles[one.a], titles[one.b]))) for one in tree.edges}
    assert shown == set(pairwise(names))


def test_merges_of_light_tunes_are_found_in_few_digits(tmp_path: Path) -> None:
    def short(tensors: Mapping[str, Array]) -> Tensors:
        return {name: one.astype(bfloat16).astype(np.float32) for name, one in tensors.items()}

    base = short(llama(1))
    one, other = (short(tuned(base, seed, 0.005)) for seed in (41, 42))
    merge = short({name: 0.4 * one[name] + 0.6 * other[name] for name in one})
    for name, tensors in {"base": base, "one": one, "other": other, "merge": merge}.items():
        stored(tmp_path / name, tensors)
    assert parents(tmp_path, "merge", "base one other", tmp_path / "atlas") == ["other", "one"]


def test_sums_of_many_parts_have_all_of_them(tmp_path: Path) -> None:
    base = llama(1)
    parts = {f"part-{seed}": tuned(base, seed, 0.1) for seed in range(51, 57)}
    soup = {name: np.mean([one[name] for one in parts.values()], axis=0) for name in base}
    for name, tensors in {"base": base, "soup": soup, **parts}.items():
        stored(tmp_path / name, tensors)
    found = parents(tmp_path, "soup", f"base {' '.join(parts)}", tmp_path / "atlas")
    assert sorted(found) == sorted(parts)


def with_one_number_changed(tensors: Tensors) -> Tensors:
    name = "model.layers.1.mlp.down_proj.weight"
    changed = tensors[name].copy()
    changed[3, 5] *= 1.5
    return {**tensors, name: changed}


def with_layer(tensors: Tensors, layer: int, change: Callable[[Array], Array]) -> Tensors:
    return {
        name: change(one) if f"layers.{layer}." in name else one for name, one in tensors.items()
    }


@pytest.mark.parametrize("swapped", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_names_do_not_tell_who_is_the_parent(tmp_path: Path, swapped: bool) -> None:
    """Of a model and a copy with one number changed the one is named whose parts are equal; a model
    without a layer is no parent of one that has it."""
    base = llama(1, layers=3)
    original, changed = ("z", "a") if swapped else ("a", "z")
    cut = with_layer(base, 2, np.zeros_like)
    half = {name: one.astype(np.float16).astype(np.float32) for name, one in base.items()}
    made = {original: base, changed: with_one_number_changed(base), "cut": cut, "half": half}
    for name, tensors in made.items():
        store(tmp_path / name, tensors, 3)
    place = tmp_path / "atlas"
    assert parents(tmp_path, "cut", f"{changed} {original} half", place) == [original]
    kinprint.Atlas(place).build([tmp_path / "cut"])
    tree = kinprint.Atlas(place).tree()
    edges = [{tree.models[at].title for at in (one.a, one.b)} for one in tree.edges]
    assert all(original in one for one in edges) and len(edges) == 3
    found = kinprint.identify(tmp_path / original, atlas=place)
    assert [one.title for one in found.parents] == [changed]


def test_models_that_nothing_tells_apart_are_named_together(tmp_path: Path) -> None:
    """Where a model has another layer, one with that layer and one without are as near."""
    base, other = llama(1, layers=LAYERS), llama(2, layers=LAYERS)
    child = {name: other[name] if "layers.1." in name else one for name, one in base.items()}
    made = {"base": base, "cut": with_layer(base, 1, np.zeros_like), "child": child}
    for name, tensors in made.items():
        store(tmp_path / name, tensors)
    place = tmp_path / "atlas"
    kinprint.Atlas(place).build([tmp_path / "base", tmp_path / "cut"])
    found = kinprint.identify(tmp_path / "child", atlas=place)
    (parent,), (tied,) = found.parents, found.relatives
    assert {parent.title, tied.title} == {"base", "cut"} and tied.tied and not parent.tied
    assert "base" in found.summary and "cut" in found.summary
    kinprint.Atlas(place).build([tmp_path / "child"])
    tree = kinprint.Atlas(place).tree()
    edges = {frozenset(tree.models[at].title for at in (one.a, one.b)) for one in tree.edges}
    assert {frozenset(("child", "base")), frozenset(("child", "cut"))} <= edges
    assert all(one.basis is None for one in tree.edges)


def saved_again(folder: Path, names: list[str], tensors: Tensors) -> None:
    """The same numbers under several names, each with settings of its own."""
    for at, name in enumerate(names):
        settings = {**LLAMA, "num_hidden_layers": LAYERS, "note": "again" * at}
        stored(folder / name, tensors, settings)


def test_it_does_not_matter_how_many_copies_of_a_model_there_are(tmp_path: Path) -> None:
    base = llama(1, layers=LAYERS)
    sibling = tuned(base, 71, 0.1)
    copies = [f"sibling-{at}" for at in range(4)]
    store(tmp_path / "base", base)
    store(tmp_path / "own", tuned(base, 72, 0.2))
    saved_again(tmp_path, copies, sibling)
    assert parents(tmp_path, "own", "base sibling-0", tmp_path / "one") == ["base"]
    assert parents(tmp_path, "own", f"base {' '.join(copies)}", tmp_path / "many") == ["base"]
    found = kinprint.identify(tmp_path / "own", atlas=tmp_path / "many", shortlist=2)
    assert [one.title for one in found.parents] == ["base"] and len(found.relatives) == 1


def test_copies_of_one_tune_are_not_several_parts_of_a_merge(tmp_path: Path) -> None:
    base = llama(1, layers=LAYERS)
    tune, chance = tuned(base, 73, 0.3), np.random.default_rng(74)
    dropped = {
        name: np.where(chance.random(one.shape) < 0.3, tune[name], one)
        for name, one in base.items()
    }
    copies = ["tune-0", "tune-1"]
    store(tmp_path / "base", base)
    store(tmp_path / "dropped", dropped)
    saved_again(tmp_path, copies, tune)
    one = parents(tmp_path, "dropped", "base tune-0", tmp_path / "one")
    assert parents(tmp_path, "dropped", "base tune-0 tune-1", tmp_path / "two") == one
