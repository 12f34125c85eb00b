"""What is said of a merge is true of crafted children that are none, or none of those models."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import kinprint
from benchmarks.redteam.checkpoint import Checkpoint
from kinprint import MergeDoubt, MergeMethod, MergeOutcome
from kinprint.measure.merging import Precision, linear, rounded
from kinprint.report.merging import sentences, summary, weight_words
from kinprint.report.schema import MergeWeight
from tests.diff.merged_models import (
    BF16,
    TOKENS,
    WIDTH,
    Family,
    Tensors,
    config,
    drawn,
    largest,
    tuned,
)

STRANGER = drawn(9)


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> Family:
    base = drawn(1)
    found = Family(tmp_path_factory.mktemp("merges"), base, tuned(base, 2), tuned(base, 3, 0.02))
    for name, tensors in (("base", base), ("first", found.first), ("second", found.second)):
        found.write(name, tensors)
    pruned = {
        name: one[:40] if "gate" in name or "up" in name else one[:, :40] if "down" in name else one
        for name, one in STRANGER.items()
    }
    found.write("narrower", pruned)
    return found


def write(folder: Path, name: str, tensors: Tensors, kind: type = ml_dtypes.bfloat16) -> Path:
    return Checkpoint(dict(tensors), config(), dtype=kind).write(folder / name)


def told(family: Family, child: Path, *parents: str) -> tuple[kinprint.Unmerged, str]:
    found = kinprint.unmerge(child, [family.folder / name for name in parents])
    document = found.document
    return found, " ".join((summary(document, "en"), *sentences(document, "en")))


def test_a_weight_of_zero_has_no_sign() -> None:
    weight = MergeWeight(sources=(0,), value=-1e-9, low=-3e-5, high=3e-5)
    assert weight_words(weight) == ("0.0000", "0.0000 – 0.0000")


def test_a_model_that_lacks_tensors_takes_none_away_from_the_proof(family: Family) -> None:
    """Attention is averaged, feed-forwards are a stranger's: with a third model of another width
    only the averages would be compared."""
    mixed = family.average()
    child = {name: STRANGER[name] if "mlp" in name else one for name, one in mixed.items()}
    found, said = told(family, family.write("half-merged", child), "first", "second", "narrower")
    assert found.outcome is MergeOutcome.UNDECIDED
    assert "Left aside" in said and "narrower" in said
    assert [one.title for one in found.document.aside] == ["narrower"]
    whole, said = told(family, family.write("merged", mixed), "first", "second", "narrower")
    assert whole.methods == (MergeMethod.LINEAR,) and whole.share == 1.0
    assert whole.document.compared == sum(one.size for one in mixed.values())
    assert "Left aside" in said


def test_a_parent_that_lacks_tensors_is_found_on_what_it_has(family: Family) -> None:
    longer = family.second | {
        "model.embed_tokens.weight": np.vstack([family.second["model.embed_tokens.weight"]] * 2)
    }
    family.write("longer", longer)
    child = {
        name: one
        if "embed" in name
        else rounded(np.float32(0.5) * (one + family.second[name]), BF16)
        for name, one in family.first.items()
    }
    found, said = told(family, family.write("cropped", child), "first", "base", "longer")
    assert found.recipe is not None and set(found.recipe.parents) == {0, 2}
    assert "of the numbers of cropped are those of a merge" in said and "Left aside" not in said


def test_a_recipe_is_said_to_be_of_a_part(family: Family) -> None:
    child = family.average()
    child["model.embed_tokens.weight"] = np.vstack([STRANGER["model.embed_tokens.weight"]] * 2)
    found, said = told(family, family.write("padded", child), "first", "second")
    assert found.outcome is MergeOutcome.RECIPE
    held = 1 - 2 * TOKENS * WIDTH / sum(one.size for one in child.values())
    assert said.startswith(f"{int(100 * held)} % of the numbers of padded are those of a merge by ")
    assert "nothing is said about them" in said
    assert "every number" not in said


def test_a_descendant_may_be_among_the_models(family: Family) -> None:
    """What is twice as far from the base gives, averaged with it, the model it was made from."""
    further = {
        name: 2 * own - base for (name, own), base in zip(
            family.first.items(), family.base.values(), strict=True
        )
    }  # fmt: skip
    write(family.folder, "further", further, np.float32)
    found, said = told(family, family.folder / "first", "base", "further")
    assert found.outcome is MergeOutcome.RECIPE and found.share == 1.0
    assert " is a merge" not in said
    assert "one of the others may have been made from first" in said


def test_a_copy_is_called_what_it_is(family: Family) -> None:
    more = family.base | {
        name.replace("weight", "bias"): np.ones(len(one), np.float32)
        for name, one in family.base.items()
        if "proj" in name
    }
    write(family.folder, "more", more)
    found, said = told(family, family.folder / "base", "more", "first")
    assert found.outcome is MergeOutcome.COPY
    assert said.startswith("Every number of base is that of more at the same place: ")
    fine = {name: one + np.float32(1e-5) for name, one in family.base.items()}
    write(family.folder, "fine", fine, np.float32)
    cast = family.write("cast", {name: rounded(one, BF16) for name, one in fine.items()})
    found, said = told(family, cast, "fine", "second")
    assert found.outcome is MergeOutcome.COPY and "rounded to the format of cast" in said


@pytest.mark.parametrize(
    "order",
    [(2, 0, 1), *(pytest.param(one, marks=pytest.mark.slow) for one in ((0, 1, 2), (1, 2, 0)))],
)
@pytest.mark.parametrize("between", [False, True])
def test_models_that_are_sums_of_others_have_no_weight_of_their_own(
    family: Family, order: tuple[int, ...], between: bool
) -> None:
    """One is there twice, or the exact average of two."""
    third = {
        name: np.float32(0.5) * (own + other) if between else own
        for (name, own), other in zip(family.first.items(), family.second.values(), strict=True)
    }
    write(family.folder, "third", third, np.float32)
    child = family.write("merged", family.each(lambda a, b, _: 0.3 * a + 0.7 * b))
    names = [("first", "second", "third")[at] for at in order]
    found, said = told(family, child, *names)
    assert found.methods == (MergeMethod.LINEAR,) and found.share == 1.0
    assert found.recipe is not None and found.recipe.settings is not None
    assert len(found.recipe.parents) == 2 and sum(found.recipe.settings.weights) == 1
    assert "other weights of these give the same numbers" in said
    together = next(one for one in found.weights if len(one.sources) > 1)
    assert len(together.sources) == (3 if between else 2)
    assert together.low - 1e-3 <= (1.0 if between else 0.3) <= together.high + 1e-3


def test_which_model_a_sum_started_from_does_not_show(family: Family) -> None:
    child = family.each(lambda a, b, base: base + 0.8 * (a - base) - 0.3 * (b - base))
    found, said = told(family, family.write("less", child), "first", "second", "base")
    assert found.methods == (MergeMethod.TASK_ARITHMETIC,)
    assert "shows as the base" not in said and "which one was the base does not show" in said
    weights = {one.sources: one for one in found.weights}
    assert weights[1,].low == pytest.approx(-0.3, abs=0.01)
    assert weights[1,].value == pytest.approx(-0.3, abs=0.01)


def test_tensors_that_a_recipe_does_not_give_are_named(family: Family) -> None:
    child = family.average()
    child["model.norm.weight"] = child["model.norm.weight"].copy()
    child["model.norm.weight"][::2] *= 5  # sixteen numbers of forty thousand
    found, said = told(family, family.write("louder", child), "first", "second")
    assert found.outcome is MergeOutcome.RECIPE and found.share is not None and found.share < 1
    assert "It does not give model.norm.weight:" in said


@pytest.mark.parametrize(
    "order", [(0, 1, 2), (2, 1, 0), pytest.param((1, 2, 0), marks=pytest.mark.slow)]
)
def test_three_parents_have_their_weights_in_any_order(
    family: Family, order: tuple[int, ...]
) -> None:
    names, weights = ("first", "second", "base"), (0.2, 0.3, 0.5)
    child = family.each(lambda a, b, base: 0.2 * a + 0.3 * b + 0.5 * base)
    found, _ = told(family, family.write("three", child), *(names[at] for at in order))
    assert found.methods == (MergeMethod.LINEAR,) and found.share == 1.0
    assert found.recipe is not None and found.recipe.settings is not None
    told_weights = zip(found.recipe.parents, found.recipe.settings.weights, strict=True)
    assert {order[at]: weight for at, weight in told_weights} == dict(enumerate(weights))


def test_task_arithmetic_with_a_few_other_bits_is_still_told(family: Family) -> None:
    """An average of three in another order does not take its place."""
    child = family.each(lambda a, b, base: base + 0.6 * (a - base) + 0.4 * (b - base))
    for at, one in enumerate(child.values()):
        bits = one.astype(ml_dtypes.bfloat16).view(np.uint16).ravel()
        bits[at % 500 :: 500] ^= 1
        one[...] = bits.view(ml_dtypes.bfloat16).astype(np.float32).reshape(one.shape)
    parents = [family.folder / name for name in ("first", "second")]
    found = kinprint.unmerge(family.write("flipped", child), parents, base=family.folder / "base")
    assert found.methods[0] is MergeMethod.TASK_ARITHMETIC


def test_a_parent_that_is_called_the_base_is_summed_in_any_order_too(family: Family) -> None:
    child = family.each(lambda a, b, base: 0.2 * base + 0.3 * a + 0.5 * b)
    parents = [family.folder / name for name in ("first", "second")]
    found = kinprint.unmerge(family.write("based", child), parents, base=family.folder / "base")
    assert found.methods[0] is MergeMethod.LINEAR and found.share == 1.0
    assert found.recipe is not None and found.recipe.settings is not None
    told_weights = zip(found.recipe.parents, found.recipe.settings.weights, strict=True)
    assert dict(told_weights) == {0: 0.3, 1: 0.5, 2: 0.2}


@pytest.mark.parametrize(
    "precision", [pytest.param(Precision.FLOAT32, marks=pytest.mark.slow), Precision.BFLOAT16]
)
@pytest.mark.parametrize(
    "order",
    [
        (0, 1, 2, 3),
        pytest.param((3, 1, 2, 0), marks=pytest.mark.slow),
        pytest.param((2, 3, 0, 1), marks=pytest.mark.slow),
        (4, 2, 0, 3, 1),
    ],
)
def test_more_parents_have_their_weights_in_any_order(
    family: Family, order: tuple[int, ...], precision: Precision
) -> None:
    """Sums are rounded on the way."""
    weights = {4: (0.1, 0.2, 0.3, 0.4), 5: (0.1, 0.2, 0.3, 0.25, 0.15)}[len(order)]
    parents = [tuned(family.base, 70 + at) for at in range(len(order))]
    for at, tensors in enumerate(parents):
        family.write(f"p{at}", tensors)
    child = {
        name: rounded(
            linear([one[name] for one in parents], weights, True, precision, fused=False), BF16
        )
        for name in family.base
    }
    found, _ = told(family, family.write("many", child), *(f"p{at}" for at in order))
    assert found.methods == (MergeMethod.LINEAR,) and found.share == 1.0
    assert found.recipe is not None and found.recipe.settings is not None
    given = np.array(found.recipe.settings.weights)  # any multiple of them gives the same sums
    told_weights = zip(found.recipe.parents, (given / given.sum()).tolist(), strict=True)
    assert {order[at]: weight for at, weight in told_weights} == pytest.approx(
        dict(enumerate(weights))
    )


def test_a_light_tune_is_averaged_with_its_base(family: Family) -> None:
    """Its changes are a step or two of bfloat16, so that measured weights are far off."""
    draws = np.random.default_rng(5)
    light = {
        name: rounded(one * (1 + 0.004 * draws.standard_normal(one.shape)).astype(np.float32), BF16)
        for name, one in family.base.items()
    }
    family.write("light", light)
    child = {
        name: rounded(np.float32(0.7) * one + np.float32(0.3) * light[name], BF16)
        for name, one in family.base.items()
    }
    found, _ = told(family, family.write("lighter", child), "base", "light")
    assert found.methods[0] is MergeMethod.LINEAR and found.share == 1.0
    assert found.recipe is not None and found.recipe.settings is not None
    assert found.recipe.settings.weights == (0.7, 0.3)


def test_one_trimmed_task_vector_of_weight_one_is_told(family: Family) -> None:
    child = {
        name: np.asarray(one + largest(family.second[name] - one, 0.5), np.float32)
        for name, one in family.base.items()
    }
    written = family.write("trimmed", child)
    found = kinprint.unmerge(written, [family.folder / "second"], base=family.folder / "base")
    assert found.methods == (MergeMethod.TIES,)
    assert found.recipe is not None and found.recipe.settings is not None
    assert found.recipe.settings.densities == (0.5,)


@pytest.mark.parametrize("given", ["base and parent", "parents"])
def test_numbers_that_are_those_of_several_models_are_said_to_be(
    family: Family, given: str
) -> None:
    """A choice between models that no sum tells: it is no unknown training."""
    draws = np.random.default_rng(6)
    child = {
        name: np.where(draws.random(one.shape) < 0.6, family.first[name], one)
        for name, one in family.base.items()
    }
    written = family.write("from-several", child)
    if given == "parents":
        found, said = told(family, written, "base", "first")
    else:
        found = kinprint.unmerge(written, [family.folder / "first"], base=family.folder / "base")
        said = " ".join(sentences(found.document, "en"))
    assert found.doubt is MergeDoubt.FROM_SEVERAL and found.recipe is None
    total = sum(one.size for one in child.values())
    assert f"Of {total:,} numbers compared, {total:,} (100 %) are at the same place in one" in said
    assert "trained afterwards" not in said


def test_a_tune_of_one_model_is_not_said_to_be_of_several(family: Family) -> None:
    light = {
        name: np.where(np.random.default_rng(7).random(one.shape) < 0.3, one + 0.01, one)
        for name, one in family.first.items()
    }
    found, _ = told(family, family.write("light-tune", light), "base", "first")
    assert found.doubt is MergeDoubt.NO_RECIPE


def test_a_share_of_squares_is_of_what_was_compared(family: Family) -> None:
    """A large tensor that no parent has is no part of the nearest mixture."""
    extra = {"model.layers.0.extra.weight": drawn(4, 1.0)["lm_head.weight"]}
    numbers = sum(one.size for one in STRANGER.values())
    part = f"{100 * numbers // (numbers + TOKENS * WIDTH)} %"
    found, said = told(family, family.write("stranger-and", STRANGER | extra), "first", "second")
    assert f"The tensors that were compared hold {part} of the child's numbers" in said
    assert "of the squares of what was compared" in said and "the child's squares" not in said
    assert "hold" not in told(family, family.write("stranger", STRANGER), "first", "second")[1]
    assert found.document.doubt is MergeDoubt.NO_BASE


@pytest.mark.parametrize("sample", [False, True])
def test_what_equals_a_parent_where_it_was_compared_is_not_called_trained(
    family: Family, sample: bool
) -> None:
    extra = {"model.layers.0.extra.weight": drawn(4, 1.0)["lm_head.weight"]}
    child = family.write("first-and", family.first | extra)
    found = kinprint.unmerge(
        child, [family.folder / name for name in ("second", "first")], sample=sample
    )
    said = " ".join(sentences(found.document, "en"))
    assert found.outcome is MergeOutcome.UNDECIDED and found.doubt is MergeDoubt.COPIED_PART
    assert "Every number that was compared is that of first at the same place:" in said
    assert "trained" not in said and "squares" not in said
    assert {one.source for one in found.tensors} == {1, None}
    assert found.document.equal == found.document.compared > 0
    assert found.document.copied is None


def test_zeros_have_no_share(family: Family) -> None:
    zero = {name: np.zeros_like(one) for name, one in family.first.items()}
    found, said = told(family, family.write("zero", zero), "first", "second")
    assert found.doubt is MergeDoubt.ONLY_ZEROS and found.document.residual is None
    assert all(one.residual is None for one in found.tensors)
    assert all(one.residual is None for one in (*found.roles, *found.layers))
    assert "All numbers that were compared are zero" in said and "%" not in said
