"""Which merge made a child: the method and its recipe where they show, and no word more."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import yaml
from markupsafe import escape
from safetensors.numpy import save_file

import kinprint
from kinprint import MergeDoubt, MergeMethod, MergeOutcome, MergeStatus
from kinprint.measure.merging import (
    Precision,
    add_task_vectors,
    linear,
    rounded,
    slerp,
    slerp_coefficients,
    task_vectors,
)
from kinprint.report.merging import sentences, summary
from tests.diff.merged_models import (
    BF16,
    LAYERS,
    Family,
    Floats,
    drawn,
    largest,
    summed,
    tuned,
)

F32 = Precision.FLOAT32
TABLE = "model.layers.0.extra"


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Family:
    base = drawn(1)
    found = Family(tmp_path_factory.mktemp("merges"), base, tuned(base, 2), tuned(base, 3, 0.02))
    for name, tensors in (
        ("base", base), ("first", found.first), ("second", found.second), ("stranger", drawn(9)),
    ):  # fmt: skip
        found.write(name, tensors)
    return found


def unmerge(
    family: Family, child: Path, *parents: str, base: str | None = None
) -> kinprint.Unmerged:
    names = parents or ("first", "second")
    under = None if base is None else family.folder / base
    return kinprint.unmerge(child, [family.folder / name for name in names], base=under)


def test_what_all_changes_are_multiplied_by_is_said(family: Family) -> None:
    tasks = family.each(lambda a, b, base: summed(a, b, base, (0.6, 0.8)))
    found = unmerge(family, family.write("twice", tasks), base="base").document
    assert found.recipe is not None and "all times" not in summary(found, "en")
    further = msgspec.structs.replace(found.recipe, scale=1.5)
    said = summary(msgspec.structs.replace(found, recipe=further), "en")
    assert ", all times 1.5, over base" in said


def test_a_linear_average_is_told_with_its_weights(family: Family) -> None:
    child = family.write("linear", family.average())
    found = unmerge(family, child, "first", "second", "stranger")
    assert found.methods == (MergeMethod.LINEAR,) and found.share == 1.0
    assert found.recipe is not None and found.recipe.settings is not None
    assert found.recipe.settings.weights == (0.3, 0.7)
    stranger = found.weights[2]
    assert stranger.sources == (2,) and -0.01 < stranger.low <= 0 <= stranger.high < 0.01
    for one in found.weights:
        assert one.low <= one.value <= one.high
    told = yaml.safe_load(found.recipe.yaml)
    assert told["merge_method"] == "linear" and told["dtype"] == "bfloat16"
    assert [one["parameters"]["weight"] for one in told["models"]] == [0.3, 0.7]


@pytest.mark.parametrize("sample", [False, True])
def test_a_copy_has_all_digits_that_numbers_are_stored_with(family: Family, sample: bool) -> None:
    """Single precision would make these doubles equal, and whole numbers too."""
    draws = np.random.default_rng(0)

    def doubles() -> dict[str, Any]:
        first = family.first.items()
        return {key: one * (1 + 1e-9 * draws.standard_normal(one.shape)) for key, one in first}

    double, table = doubles(), draws.integers(2**40, 2**41, (64, 64))
    cast = {key: one.astype(np.float32) for key, one in double.items()}
    family.write("doubles", double | {TABLE: table})
    parents = [family.folder / name for name in ("doubles", "stranger")]
    for name, tensors, outcome, rounds in (
        ("equal-doubles", double | {TABLE: table}, MergeOutcome.COPY, False),
        ("other-doubles", doubles() | {TABLE: table}, MergeOutcome.UNDECIDED, False),
        ("other-table", double | {TABLE: table + 1}, MergeOutcome.UNDECIDED, False),
        ("cast-doubles", cast | {TABLE: table}, MergeOutcome.COPY, True),
    ):
        found = kinprint.unmerge(family.write(name, tensors), parents, sample=sample)
        assert (found.outcome, found.document.rounded) == (outcome, rounds), name


def test_older_arithmetic_that_rounds_every_step_is_known(family: Family) -> None:
    made = family.each(lambda a, b, _: linear([a, b], (0.3, 0.7), True, BF16, fused=False))
    found = unmerge(family, family.write("stepwise", made))
    assert found.methods == (MergeMethod.LINEAR,) and found.share == 1.0


def test_weights_that_do_not_sum_to_one_are_not_normalised(family: Family) -> None:
    made = family.each(lambda a, b, _: linear([a, b], (0.6, 0.6), False, BF16))
    found = unmerge(family, family.write("unnormalised", made))
    assert found.recipe is not None and found.recipe.settings is not None
    assert found.recipe.settings.weights == (0.6, 0.6) and not found.recipe.normalize
    assert yaml.safe_load(found.recipe.yaml)["parameters"] == {"normalize": False}


def cosine(a: Floats, b: Floats) -> float:
    x, y = a.astype(np.float64).ravel(), b.astype(np.float64).ravel()
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


def test_slerp_is_told_from_an_average(family: Family) -> None:
    made = family.each(lambda a, b, _: slerp(a, b, slerp_coefficients(0.4, cosine(a, b))))
    found = unmerge(family, family.write("slerp", made))
    assert found.methods == (MergeMethod.SLERP,) and found.share is not None
    assert found.share > 0.999
    assert found.recipe is not None and found.recipe.settings is not None
    assert found.recipe.settings.t == 0.4
    assert yaml.safe_load(found.recipe.yaml)["parameters"] == {"t": 0.4}


def test_a_way_that_differs_by_layer_is_a_slice_a_layer(family: Family) -> None:
    def way(name: str) -> float:
        return 0.2 if ".0." in name or ".1." in name else 0.6

    made = {
        name: slerp(a, b, slerp_coefficients(way(name), cosine(a, b)))
        for (name, a), b in zip(family.first.items(), family.second.values(), strict=True)
    }
    found = unmerge(family, family.write("gradient", made))
    assert found.methods == (MergeMethod.SLERP,)
    assert found.recipe is not None and found.recipe.settings is None
    slices = yaml.safe_load(found.recipe.yaml)["slices"]
    assert len(slices) == LAYERS and slices[1]["parameters"]["t"] == 0.2
    assert slices[2]["parameters"]["t"] == 0.6


def test_rounding_that_moves_weights_beyond_their_errors_hides_no_filter(family: Family) -> None:
    """In a large tensor chance leaves less than rounding does, whose errors do not all cancel."""
    name, draws = "model.embed_tokens.weight", np.random.default_rng(1)
    base = draws.normal(0, 0.02, (1 << 14, 64)).astype(np.float32)
    moved = base + draws.normal(0, 0.006, base.shape).astype(np.float32)
    pair = [
        {**tensors, name: rounded(table, BF16)}
        for tensors, table in ((family.first, base), (family.second, moved))
    ]
    one, other = (family.write(f"wide-{at}", tensors) for at, tensors in enumerate(pair))
    made = {
        name: linear(
            [pair[0][name], values], (0.1, 0.9) if "mlp" in name else (0.9, 0.1), True, BF16
        )
        for name, values in pair[1].items()
    }
    found = kinprint.unmerge(family.write("wide", made), [one, other])
    assert found.methods == (MergeMethod.LINEAR,) and found.share == 1.0


def test_task_arithmetic_is_told_even_where_the_base_is_only_among_the_parents(
    family: Family,
) -> None:
    made = family.each(lambda a, b, base: summed(a, b, base, (0.8, 0.6)))
    child = family.write("task", made)
    given = unmerge(family, child, base="base")
    assert given.methods == (MergeMethod.TASK_ARITHMETIC,) and given.share == 1.0
    among = unmerge(family, child, "first", "second", "base")
    assert among.methods == (MergeMethod.TASK_ARITHMETIC,)
    assert among.recipe is not None and among.recipe.base == 2
    assert among.weights[2].value == pytest.approx(-0.4, abs=0.01)


def test_an_average_with_a_base_given_stays_an_average(family: Family) -> None:
    child = family.write("average", family.average((0.5, 0.5)))
    found = unmerge(family, child, base="base")
    assert found.methods[0] is MergeMethod.LINEAR or set(found.methods) == {
        MergeMethod.LINEAR,
        MergeMethod.TASK_ARITHMETIC,
    }


@pytest.mark.parametrize("normalize", [pytest.param(True, marks=pytest.mark.slow), False])
def test_ties_is_told_with_density_and_weights(family: Family, normalize: bool) -> None:
    def merged(a: Floats, b: Floats, base: Floats) -> Floats:
        first, second = task_vectors(base, [a, b], F32)
        kept = [largest(first, 0.5), largest(second, 0.7)]
        return add_task_vectors(
            base, kept, (0.5, 0.25), F32, normalize=normalize, consensus=True, scale=1.0
        )

    child = family.write(f"ties-{normalize}", family.each(merged))
    found = unmerge(family, child, base="base")
    assert found.methods == (MergeMethod.TIES,) and found.share == 1.0
    assert found.recipe is not None and found.recipe.settings is not None
    assert found.recipe.settings.densities == (0.5, 0.7)
    first, second = found.recipe.settings.weights
    assert first / second == pytest.approx(2.0, abs=0.01)
    assert found.recipe.normalize is normalize
    if not normalize:
        assert (first, second) == (0.5, 0.25)


@pytest.mark.parametrize("consensus", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_dare_is_told_by_what_was_dropped_at_random(family: Family, consensus: bool) -> None:
    draws = np.random.default_rng(4)

    def merged(a: Floats, b: Floats, base: Floats) -> Floats:
        kept = []
        for vector, density in zip(task_vectors(base, [a, b], F32), (0.5, 0.6), strict=True):
            mask = draws.random(vector.shape) < density
            left = np.abs(vector * mask).sum()
            kept.append(vector * mask * np.float32(np.abs(vector).sum() / left))
        return add_task_vectors(base, kept, (0.5, 0.4), F32, consensus=consensus)

    child = family.write(f"dare-{consensus}", family.each(merged))
    found = unmerge(family, child, base="base")
    method = MergeMethod.DARE_TIES if consensus else MergeMethod.DARE_LINEAR
    assert found.methods == (method,) and found.share is not None and found.share > 0.995
    assert found.recipe is not None and found.recipe.settings is not None
    assert found.recipe.settings.weights == pytest.approx((0.5, 0.4), abs=0.011)
    assert found.recipe.settings.densities == pytest.approx((0.5, 0.6), abs=0.021)
    assert "rescaled beside its weight" in " ".join(sentences(found.document, "en"))


def test_dare_that_was_not_rescaled_is_said_to_be_so(family: Family) -> None:
    draws = np.random.default_rng(4)

    def merged(a: Floats, b: Floats, base: Floats) -> Floats:
        kept = [one * (draws.random(one.shape) < 0.5) for one in task_vectors(base, [a, b], F32)]
        return add_task_vectors(base, kept, (0.6, 0.4), F32)

    found = unmerge(family, family.write("dare-as-it-is", family.each(merged)), base="base")
    assert found.methods == (MergeMethod.DARE_LINEAR,) and found.recipe is not None
    assert found.recipe.settings is not None and found.recipe.settings.weights == (0.6, 0.4)
    assert "was not rescaled beside its weight" in " ".join(sentences(found.document, "en"))


def test_what_is_dropped_by_magnitude_at_random_is_another_merge(family: Family) -> None:
    draws = np.random.default_rng(5)

    def merged(a: Floats, b: Floats, base: Floats) -> Floats:
        kept = []
        for vector in task_vectors(base, [a, b], F32):
            order = np.abs(vector).ravel().argsort().argsort().reshape(vector.shape)
            chance = 0.3 + 0.4 * order / vector.size
            kept.append(vector * (draws.random(vector.shape) < chance) * np.float32(2))
        return add_task_vectors(base, kept, (0.5, 0.5), F32)

    found = unmerge(family, family.write("della", family.each(merged)), base="base")
    assert found.outcome is MergeOutcome.OTHER and not found.methods


def stacked(family: Family, order: list[tuple[str, int]]) -> dict[str, Floats]:
    models = {"first": family.first, "second": family.second}
    found = {name: one for name, one in family.first.items() if ".layers." not in name} | {
        name: family.second[name] for name in ("model.norm.weight", "lm_head.weight")
    }
    for at, (model, layer) in enumerate(order):
        for name, one in models[model].items():
            if f".layers.{layer}." in name:
                found[name.replace(f".layers.{layer}.", f".layers.{at}.")] = one
    return found


def test_layers_taken_as_they_are_are_mapped(family: Family) -> None:
    order = [("first", 0), ("first", 1), ("first", 2), ("second", 1), ("second", 2), ("second", 3)]
    child = family.write("stacked", stacked(family, order), layers=len(order))
    found = unmerge(family, child)
    assert found.methods == (MergeMethod.PASSTHROUGH,) and found.share == 1.0
    assert found.recipe is not None
    told = yaml.safe_load(found.recipe.yaml)["slices"]
    assert [one["sources"][0]["layer_range"] for one in told] == [[0, 3], [1, 4]]
    assert [Path(one["sources"][0]["model"]).name for one in told] == ["first", "second"]
    moved = next(one for one in found.tensors if one.layer == 4 and one.role == "q")
    assert (moved.source, moved.source_layer) == (1, 2)


def carried_out(recipe: str, models: dict[str, dict[str, Floats]]) -> dict[str, Floats]:
    """What mergekit makes of slices: the first one's model opens the child, the last one's closes
    it."""
    parts = [one["sources"][0] for one in yaml.safe_load(recipe)["slices"]]
    named = [models[Path(one["model"]).name] for one in parts]
    found = {"model.embed_tokens.weight": named[0]["model.embed_tokens.weight"]}
    found |= {name: named[-1][name] for name in ("model.norm.weight", "lm_head.weight")}
    layers = [
        (model, layer)
        for model, part in zip(named, parts, strict=True)
        for layer in range(*part["layer_range"])
    ]
    for at, (model, layer) in enumerate(layers):
        for name, one in model.items():
            if f".layers.{layer}." in name:
                found[name.replace(f".layers.{layer}.", f".layers.{at}.")] = one
    return found


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(["model.embed_tokens.weight"], marks=pytest.mark.slow),
        pytest.param(["model.norm.weight", "lm_head.weight"], marks=pytest.mark.slow),
        ["model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"],
    ],
)
def test_a_recipe_of_layers_gives_what_is_outside_them(family: Family, foreign: list[str]) -> None:
    tensors = {**family.first, **{name: family.second[name] for name in foreign}}
    found = unmerge(family, family.write("outside", tensors))
    assert found.methods == (MergeMethod.PASSTHROUGH,) and found.share == 1.0
    assert found.recipe is not None
    made = carried_out(found.recipe.yaml, {"first": family.first, "second": family.second})
    assert all(np.array_equal(tensors[name], made[name]) for name in tensors)


def test_a_norm_and_a_head_of_two_models_are_no_slices(family: Family) -> None:
    tensors = {**family.first, "lm_head.weight": family.second["lm_head.weight"]}
    found = unmerge(family, family.write("two-ends", tensors))
    assert MergeMethod.PASSTHROUGH not in found.methods


@pytest.mark.parametrize(
    "filtered",
    [
        "mlp",
        "norm",
        *(pytest.param(one, marks=pytest.mark.slow) for one in ("self_attn", "up_proj")),
    ],
)
def test_tensors_taken_as_they_are_by_filter_are_told(family: Family, filtered: str) -> None:
    models = {"first": family.first, "second": family.second}
    tensors = {
        name: models["second" if filtered in name else "first"][name] for name in family.base
    }
    child = family.write(f"filtered-{filtered}", tensors)
    found = unmerge(family, child, "first", "second", "stranger", base="base")
    assert found.methods == (MergeMethod.LINEAR, MergeMethod.SLERP) and found.share == 1.0
    assert found.recipe is not None
    slices = yaml.safe_load(found.recipe.yaml)["slices"]
    for name, values in tensors.items():
        layer = int(name.split(".")[2]) if ".layers." in name else LAYERS - 1
        weights = {
            Path(one["model"]).name: _weight(one["parameters"]["weight"], name)
            for one in slices[layer]["sources"]
        }
        assert sorted(weights.values()) == [0.0, 1.0]
        assert np.array_equal(values, models[max(weights, key=weights.__getitem__)][name])


def _weight(given: float | list[dict[str, Any]], name: str) -> float:
    """What mergekit takes for a tensor: of values by filter the first that its name holds."""
    if not isinstance(given, list):
        return given
    return next(float(one["value"]) for one in given if one.get("filter", "") in name)


def test_of_one_parent_layers_are_repeated_and_left_out(family: Family) -> None:
    for name, layers in (("deeper", [0, 1, 2, 1, 2, 3]), ("shallow", [0, 1])):
        tensors = stacked(family, [("first", layer) for layer in layers])
        tensors |= {end: family.first[end] for end in ("model.norm.weight", "lm_head.weight")}
        found = unmerge(family, family.write(name, tensors, layers=len(layers)), "first")
        assert found.methods == (MergeMethod.PASSTHROUGH,) and found.recipe is not None
        made = carried_out(found.recipe.yaml, {"first": family.first})
        assert all(np.array_equal(tensors[one], made[one]) for one in tensors)


@pytest.mark.parametrize("fused", [True, False])
def test_weights_that_sum_to_zero_give_no_numbers(family: Family, fused: bool) -> None:
    parents = [one["model.norm.weight"] for one in (family.first, family.second)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for weights in ((0.0, 0.0), (1.0, -1.0)):
            assert not np.isfinite(linear(parents, weights, True, BF16, fused=fused)).any()


def test_one_number_that_differs_is_no_passthrough(family: Family) -> None:
    order = [("first", 0), ("first", 1), ("second", 2), ("second", 3)]
    tensors = stacked(family, order)
    changed = tensors["model.layers.2.mlp.up_proj.weight"].copy()
    changed[-1, -1] *= 2
    child = family.write("changed", {**tensors, "model.layers.2.mlp.up_proj.weight": changed})
    assert unmerge(family, child).outcome is not MergeOutcome.RECIPE


# What is no merge of the given models, or no more one, is not called one.


@pytest.mark.parametrize("base", [None, "base"])
def test_a_tune_of_one_parent_is_undecided(family: Family, base: str | None) -> None:
    child = family.write("tune", tuned(family.first, 11, 0.001))
    found = unmerge(family, child, base=base)
    assert found.outcome is MergeOutcome.UNDECIDED and not found.methods
    assert found.weights[0].value == pytest.approx(1, abs=0.05)


def test_a_parent_of_which_few_numbers_were_changed_is_undecided(family: Family) -> None:
    draws = np.random.default_rng(8)
    made = {
        name: np.where(draws.random(one.shape) < 0.005, one * np.float32(1.01), one)
        for name, one in family.first.items()
    }
    found = unmerge(family, family.write("slight", made), base="base")
    assert found.outcome is MergeOutcome.UNDECIDED


@pytest.mark.parametrize(
    ("size", "base"),
    [
        (1e-5, "base"),
        (1e-3, None),
        pytest.param(1e-5, None, marks=pytest.mark.slow),
        pytest.param(1e-3, "base", marks=pytest.mark.slow),
    ],
)
def test_a_merge_that_was_trained_afterwards_is_undecided(
    family: Family, size: float, base: str | None
) -> None:
    child = family.write("trained", tuned(family.average(), 12, size))
    found = unmerge(family, child, base=base)
    assert found.outcome is MergeOutcome.UNDECIDED and found.recipe is None
    assert found.weights[0].value == pytest.approx(0.3, abs=0.05)


def test_a_merge_of_which_few_numbers_were_changed_is_undecided(family: Family) -> None:
    draws = np.random.default_rng(6)
    made = {
        name: np.where(draws.random(one.shape) < 0.005, one * np.float32(1.02), one)
        for name, one in family.average().items()
    }
    assert unmerge(family, family.write("touched", made)).outcome is MergeOutcome.UNDECIDED


def test_strangers_have_no_child(family: Family) -> None:
    child = family.write("other", drawn(21))
    found = unmerge(family, child, "first", "second", base="base")
    assert found.outcome is MergeOutcome.UNDECIDED and found.doubt is MergeDoubt.NO_RECIPE


def test_gains_near_one_give_a_stranger_no_weight(family: Family) -> None:
    """Their cosine is nearly one between any two models."""
    found = unmerge(family, family.write("other", drawn(21)), "stranger")
    gains = [one for one in found.roles if one.role is not None and "norm" in one.role]
    assert len(gains) == 3
    groups = (*found.layers, *gains)
    for (weight,) in (found.weights, *(one.weights for one in groups)):
        assert weight.value < 0.5 and weight.low <= 0.01


def test_a_parent_that_is_not_given_leaves_it_undecided(family: Family) -> None:
    child = family.write("partial", family.average())
    found = unmerge(family, child, "first", "stranger")
    assert found.outcome is MergeOutcome.UNDECIDED and found.doubt is MergeDoubt.NO_BASE


def test_a_copy_is_no_merge(family: Family) -> None:
    found = unmerge(family, family.write("copy", family.second))
    assert found.outcome is MergeOutcome.COPY and found.document.copied == 1
    assert found.recipe is None and found.share is None


def test_equal_parents_are_one_group(family: Family) -> None:
    family.write("twin", family.first)
    child = family.write("of-twins", family.average())
    found = unmerge(family, child, "first", "twin", "second")
    assert [one.sources for one in found.weights] == [(0, 1), (2,)]
    assert found.weights[0].value == pytest.approx(0.3, abs=0.001)


# Bad input: rows with a status, and nothing lost.


def test_a_tensor_of_another_shape_is_a_row_with_its_reason(family: Family) -> None:
    longer = np.vstack([family.second["lm_head.weight"]] * 2)
    family.write("longer", {**family.second, "lm_head.weight": longer})
    child = family.write("short", family.average())
    found = unmerge(family, child, "first", "longer")
    row = next(one for one in found.tensors if one.name == "lm_head.weight")
    assert row.status is MergeStatus.PARTLY and "192×32" in row.reason
    assert found.methods == (MergeMethod.LINEAR,), "the other tensors tell"


def test_a_tensor_that_a_parent_lacks_is_a_row_with_its_reason(family: Family) -> None:
    rest = {name: one for name, one in family.second.items() if name != "lm_head.weight"}
    family.write("headless", rest)
    found = unmerge(family, family.write("whole", family.average()), "first", "headless")
    row = next(one for one in found.tensors if one.name == "lm_head.weight")
    assert row.status is MergeStatus.PARTLY and "headless" in row.reason


def test_numbers_that_are_not_finite_are_a_row_with_its_reason(family: Family) -> None:
    tensors = family.average()
    broken = tensors["model.norm.weight"].copy()
    broken[3] = np.nan
    child = family.write("broken", {**tensors, "model.norm.weight": broken})
    found = unmerge(family, child)
    row = next(one for one in found.tensors if one.name == "model.norm.weight")
    assert row.status is MergeStatus.NOT_FINITE and "finite" in row.reason
    assert found.methods == (MergeMethod.LINEAR,)
    assert found.document.compared == sum(one.numbers for one in found.tensors) - row.numbers


def test_without_a_parent_there_is_no_merge(family: Family) -> None:
    with pytest.raises(kinprint.BadOption, match="parent"):
        kinprint.unmerge(family.folder / "base", [])


def test_of_one_parent_alone_a_tune_is_undecided(family: Family) -> None:
    found = unmerge(family, family.folder / "first", "base")
    assert found.outcome is MergeOutcome.UNDECIDED and found.recipe is None


def test_results_come_back_from_their_files(family: Family, tmp_path: Path) -> None:
    found = unmerge(family, family.write("kept", family.average()))
    files = found.save(tmp_path / "a.json", tmp_path / "a.csv", tmp_path / "a.yaml")
    assert kinprint.Unmerged.load(files[0]) == found
    assert files[1].read_text().startswith("tensor,") and "first" in files[1].read_text()
    assert found.recipe is not None and files[2].read_text() == found.recipe.yaml
    assert len(found.to_frame("roles")) == len(found.roles) > 5
    assert [one.layer for one in found.layers] == list(range(LAYERS))
    with pytest.raises(kinprint.BadOption, match="png"):
        found.save(tmp_path / "a.png")


def test_a_page_has_the_proof_the_recipe_and_all_weights(family: Family, tmp_path: Path) -> None:
    found = unmerge(family, family.write("shown", family.average()))
    page, data = found.save(tmp_path / "a.html", tmp_path / "a.json")
    said = page.read_text("utf-8")
    assert str(escape(found.summary)) in said and "bit by bit (100 %)" in said
    assert found.recipe is not None
    recipe = found.recipe.yaml.rstrip().replace(f"{family.folder}/", "./")
    assert str(escape(recipe)) in said and str(family.folder) not in said
    found.language = "ko"
    assert str(escape(found.summary)) in said
    whole, value = found.weights[0], found.roles[0].weights[0].value
    assert f"{whole.value:.4f} ({whole.low:.4f} – {whole.high:.4f})" in said
    assert f"{value:.4f} (" in said
    (again,) = kinprint.Unmerged.load(data).save(tmp_path / "b.html")
    assert again.read_bytes() == page.read_bytes()


def test_names_from_strangers_stay_text_on_a_page(family: Family, tmp_path: Path) -> None:
    found = unmerge(family, family.write("none", drawn(22)), "first", "second", "stranger")
    nasty = "<script>alert(1)</script>\x1b[31m"
    first, *rest = found.document.tensors
    row = msgspec.structs.replace(first, name=nasty, role=nasty, status=MergeStatus.MISSING)
    source = msgspec.structs.replace(found.document.sources[0], title=nasty)
    document = msgspec.structs.replace(
        found.document,
        child=source,
        sources=[source, *found.document.sources[1:]],
        tensors=[row, *rest],
        roles=[msgspec.structs.replace(found.roles[0], role=nasty)],
    )
    (page,) = kinprint.Unmerged(document).save(tmp_path / "a.html")
    said = page.read_text("utf-8")
    assert "<script>alert" not in said and "\x1b" not in said


def test_a_recipe_that_was_not_found_is_not_written(family: Family, tmp_path: Path) -> None:
    found = unmerge(family, family.write("none", drawn(22)))
    with pytest.raises(kinprint.BadOption, match="recipe"):
        found.save(tmp_path / "a.yaml")
    assert not list(tmp_path.iterdir())


def test_the_sentence_is_in_both_languages(family: Family) -> None:
    found = unmerge(family, family.write("said", family.average()))
    assert "first (weight 0.3)" in found.summary
    found.language = "ko"
    assert "병합" in found.summary and "<div" in found._repr_html_()


@pytest.mark.parametrize(
    "broken",
    [
        {"copied": 7},
        {"outcome": "copy"},
        {"recipe": None},
        {"weights": [{"sources": [0, 9], "value": 1, "low": 0, "high": 1}]},
    ],
)
def test_a_file_that_names_models_that_are_not_there_is_refused(
    family: Family, broken: dict[str, object]
) -> None:
    told = unmerge(family, family.write("told", family.average())).to_dict()
    assert isinstance(kinprint.report(told), kinprint.Unmerged)
    with pytest.raises(kinprint.FormatError, match="not there"):
        kinprint.report({**told, **broken})


def test_the_command_of_a_recipe_names_the_base_that_was_typed(family: Family) -> None:
    made = family.each(lambda a, b, _: slerp(a, b, slerp_coefficients(0.4, cosine(a, b))))
    found = unmerge(family, family.write("slerp again", made), base="base")
    assert found.methods == (MergeMethod.SLERP,) and not found.document.base_given
    told = found.document.made.command.split()
    assert told[-2:] == ["--base", "./base"] and told[-4:-2] == ["./first", "./second"]


def test_an_adapter_is_called_by_its_own_name_and_is_its_own_copy(family: Family) -> None:
    folder = family.folder / "adapter"
    folder.mkdir()
    base = family.folder / "base"
    told = {"peft_type": "LORA", "base_model_name_or_path": str(base), "r": 2, "lora_alpha": 2}
    told["target_modules"] = ["q_proj"]
    (folder / "adapter_config.json").write_text(json.dumps(told))
    name = next(one for one in family.base if "q_proj" in one)
    rows, columns = family.base[name].shape
    root = f"base_model.model.{name.removesuffix('.weight')}"
    chance = np.random.default_rng(5)
    tensors = {
        f"{root}.lora_A.weight": chance.normal(size=(2, columns)).astype(np.float32),
        f"{root}.lora_B.weight": chance.normal(size=(rows, 2)).astype(np.float32),
    }
    save_file(tensors, folder / "adapter_model.safetensors")
    found = unmerge(family, folder)
    assert found.document.child.title == "adapter"
    found = unmerge(family, base, "adapter", "second")
    assert [one.title for one in found.document.sources] == ["adapter", "second"]
    found = unmerge(family, folder, "adapter", "second")
    assert (found.outcome, found.document.copied, found.document.rounded) == (
        MergeOutcome.COPY, 0, False,
    )  # fmt: skip
