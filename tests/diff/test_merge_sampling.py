"""Merges told from some rows: what is said holds as far as was read, and no farther."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import kinprint
from kinprint import MergeDoubt, MergeMethod, MergeOutcome, MergeStatus
from kinprint.demo import FOLDER
from kinprint.mirror import MirrorServer
from tests.diff.merged_models import Family, drawn, largest, summed, tuned

PARENTS = ("zoo/base-a", "zoo/a-cpt")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models, their average, and the second one again."""
    folder = tmp_path_factory.mktemp("hub")
    shutil.copytree(FOLDER / "zoo", folder / "zoo")
    one, other = (load_file(folder / name / "model.safetensors") for name in PARENTS)
    made = {
        name: (0.3 * one[name].astype(np.float32) + 0.7 * other[name].astype(np.float32))
        for name in one
    }
    shutil.copytree(folder / PARENTS[1], folder / "zoo" / "again")
    shutil.copytree(folder / PARENTS[0], folder / "zoo" / "child")
    save_file(
        {name: values.astype(ml_dtypes.bfloat16) for name, values in made.items()},
        folder / "zoo" / "child" / "model.safetensors",
    )
    return folder


def test_an_average_is_told_within_a_budget(
    hub: Path, make_mirror: Callable[[Path], MirrorServer]
) -> None:
    make_mirror(hub)
    budget = 2_000_000
    plan = kinprint.plan_unmerge("zoo/child", PARENTS, sample=True, budget=budget, cache=False)
    found = kinprint.unmerge("zoo/child", PARENTS, sample=True, budget=budget, cache=False)
    assert found.document.sampled and "--sample" in found.document.made.command
    assert found.cost.bytes - plan.spent.bytes <= plan.cost.bytes
    assert 0 < found.cost.bytes <= budget
    read = sum(one.read for one in found.tensors)
    assert 0 < read < sum(one.numbers for one in found.tensors) / 2
    assert MergeStatus.NOT_READ in {one.status for one in found.tensors}
    assert found.methods[0] is MergeMethod.LINEAR and found.share == 1.0
    assert found.document.compared == read
    assert found.summary.startswith("As far as was read")
    assert [one.value for one in found.weights] == pytest.approx([0.3, 0.7], abs=0.01)
    for one, truth in zip(found.weights, (0.3, 0.7), strict=True):
        assert one.low < one.value < one.high and abs(truth - one.value) < 0.01


def test_a_copy_is_one_as_far_as_was_read(hub: Path) -> None:
    found = kinprint.unmerge(
        hub / "zoo" / "again", [hub / one for one in PARENTS], sample=True, seed=3
    )
    assert found.outcome is MergeOutcome.COPY
    assert found.summary == "Every number of again that was read is that of a-cpt."
    assert "--seed 3" in found.document.made.command
    assert "nothing is known of the others" in found._repr_html_()


def test_intervals_hold_the_weights_of_whole_tensors(hub: Path) -> None:
    """The child has noise on it, of another size in every row: rows differ in what they tell."""
    tensors = load_file(hub / "zoo" / "child" / "model.safetensors")
    draws = np.random.default_rng(5)
    for name, values in tensors.items():
        if values.ndim > 1:
            sizes = 0.3 * float(values.astype(np.float32).std()) * draws.normal(size=len(values))
            noise = (sizes**2 / np.abs(sizes).max())[:, None] * draws.normal(size=values.shape)
            tensors[name] = (values + noise).astype(values.dtype)
    noisy = hub / "zoo" / "noisy"
    shutil.copytree(hub / "zoo" / "child", noisy)
    save_file(tensors, noisy / "model.safetensors")
    parents = [hub / one for one in PARENTS]
    whole = {one.name: one.weights for one in kinprint.unmerge(noisy, parents).tensors}
    held = []
    for seed in range(6):
        found = kinprint.unmerge(noisy, parents, sample=True, seed=seed)
        assert found.outcome is MergeOutcome.UNDECIDED
        for one in found.tensors:
            if one.read < one.numbers:
                for told, truth in zip(one.weights, whole[one.name], strict=True):
                    held.append(told.low <= truth.value <= told.high)
    assert len(held) > 400 and sum(held) > 0.92 * len(held)


@pytest.mark.parametrize(("second", "slices"), [(".layers.3.", True), ("mlp", False)])
def test_tensors_taken_as_they_are_may_be_layers_of_two_models(
    second: str, slices: bool, tmp_path: Path
) -> None:
    models = drawn(1), drawn(2)
    tensors = {name: models[second in name][name] for name in models[0]}
    family = Family(tmp_path, *models, tensors)
    parents = [family.write(name, one) for name, one in zip("ab", models, strict=True)]
    found = kinprint.unmerge(family.write("child", tensors), parents, sample=True)
    assert found.outcome is MergeOutcome.RECIPE and found.share == 1.0
    assert (MergeMethod.PASSTHROUGH in found.methods) == slices
    assert found.methods[:2] == (MergeMethod.LINEAR, MergeMethod.SLERP)


@pytest.mark.parametrize("density", [0.5, 1.0])
def test_what_needs_whole_tensors_is_not_told(tmp_path: Path, density: float) -> None:
    """Trimming keeps the largest numbers of a whole tensor; task arithmetic keeps all of them."""
    base = drawn(1)
    family = Family(tmp_path, base, tuned(base, 2), tuned(base, 3, 0.02))
    for name, tensors in (("base", base), ("first", family.first), ("second", family.second)):
        family.write(name, tensors)

    def merged(a: np.ndarray, b: np.ndarray, under: np.ndarray) -> np.ndarray:
        first, second = (under + largest(one - under, density) for one in (a, b))
        return summed(first, second, under, (0.5, 0.9))

    child = family.write("child", family.each(merged))
    parents = [tmp_path / "first", tmp_path / "second"]
    found = kinprint.unmerge(child, parents, base=tmp_path / "base", sample=True)
    if density < 1:
        assert (found.outcome, found.doubt) == (MergeOutcome.UNDECIDED, MergeDoubt.SAMPLED)
    else:
        assert found.methods[0] is MergeMethod.TASK_ARITHMETIC
