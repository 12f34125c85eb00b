"""What two models share beyond a base: planted relations between models made of a demo model."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from msgspec import UNSET
from safetensors.numpy import load_file, save_file

import kinprint
from kinprint.diff.given import Beyond, BeyondFinding, finding_of, summed_up
from kinprint.errors import BadOption
from kinprint.measure.rounding import equality
from kinprint.measure.updates import Updates
from kinprint.records import BeyondState, Component, ModelRef, Part, Relation
from kinprint.report.beyond import beyond_table
from kinprint.report.build.beyond import beyond_part
from kinprint.report.exports import render
from kinprint.report.schema import BeyondPart
from kinprint.report.translation import Translator, translated
from kinprint.report.views.terminal.diff import diff_lines
from tests.fewer_layers import short_zoo

Tensors = dict[str, np.ndarray]


def base() -> Path:
    return short_zoo() / "base-a"


def stored(folder: Path, change: Callable[[str, np.ndarray], np.ndarray]) -> Path:
    """A copy of the base with other numbers, in the base's format."""
    shutil.copytree(base(), folder)
    tensors = load_file(base() / "model.safetensors")
    changed = {
        name: np.ascontiguousarray(change(name, value.astype(np.float32))).astype(value.dtype)
        for name, value in tensors.items()
    }
    save_file(changed, folder / "model.safetensors", {"format": "pt"})
    return folder


def tune(seed: int, size: float = 0.1) -> Callable[[str, np.ndarray], np.ndarray]:
    """An update of random numbers, as large as a share of each tensor's scatter."""

    def change(name: str, value: np.ndarray) -> np.ndarray:
        draws = np.random.default_rng([seed, *name.encode()])
        return value + draws.normal(0, size * value.std(), value.shape)

    return change


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return stored(tmp_path_factory.mktemp("given") / "tuned", tune(1))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tune that was made apart from the first."""
    return stored(tmp_path_factory.mktemp("given") / "other", tune(2))


def compared(a: Path, b: Path, budget: str | None = None) -> kinprint.Comparison:
    return kinprint.compare(a, b, given=base(), hashes=False, details=False, budget=budget)


@pytest.fixture(scope="module")
def apart(tuned: Path, other: Path) -> kinprint.Comparison:
    """What is said of both beyond the base."""
    return compared(tuned, other)


def beyond(found: kinprint.Comparison) -> BeyondPart:
    """What a comparison says beyond the base."""
    assert found.beyond is not None
    return found.beyond


def states(found: kinprint.Comparison, component: Component) -> set[BeyondState]:
    return {one.state for one in beyond(found).parts if one.component is component}


def test_constants_are_nothing_that_is_shared(tmp_path: Path) -> None:
    """Gains that were set to one, as before a rotation, in tunes that were made apart."""

    def flat(seed: int) -> Callable[[str, np.ndarray], np.ndarray]:
        tuned = tune(seed)
        return lambda name, value: np.ones_like(value) if value.ndim == 1 else tuned(name, value)

    found = compared(stored(tmp_path / "one", flat(1)), stored(tmp_path / "other", flat(2)))
    assert beyond(found).state is BeyondState.APART
    assert states(found, Component.NORMS) == {BeyondState.NOT_COMPARABLE}


def test_tunes_made_apart_share_nothing_beyond_their_base(
    apart: kinprint.Comparison, tmp_path: Path
) -> None:
    found = apart
    assert beyond(found).state is BeyondState.APART
    assert states(found, Component.ATTENTION) == {BeyondState.APART}
    assert states(found, Component.EMBEDDING) == {BeyondState.APART}
    assert states(found, Component.NORMS) == {BeyondState.NOT_COMPARABLE}
    assert found.relation is Relation.DERIVED, "the comparison itself is as it was"
    english = beyond(found).summary
    translations = found.document.translations
    assert translations is not UNSET and "base-a" in translations["ko"][english]
    found.save(tmp_path / "page.html", tmp_path / "page.md")
    for name in ("page.html", "page.md"):
        page = (tmp_path / name).read_text("utf-8")
        assert "Nothing was seen that tuned and other share beyond base-a" in page, name
        assert "not comparable" in page
    assert "Nothing was seen that tuned and other share beyond base-a" in found._repr_html_()
    written = re.sub(r"<[^>]*>", "", (tmp_path / "page.html").read_text("utf-8"))
    assert '">' not in written, "an attribute of the page ends early"


def test_one_update_at_another_scale_is_found(tuned: Path, tmp_path: Path) -> None:
    found = compared(tuned, stored(tmp_path / "half", tune(1, 0.05)))
    assert beyond(found).state is BeyondState.SHARED
    rows = [one for one in beyond(found).parts if one.component is Component.FEED_FORWARD]
    assert {one.state for one in rows} == {BeyondState.SHARED}
    assert [one.b_on_a for one in rows] == pytest.approx([0.5] * len(rows), abs=0.01)


def test_a_copy_with_a_little_noise_is_near(tuned: Path, tmp_path: Path) -> None:
    noise = tune(3, 0.01)
    found = compared(tuned, stored(tmp_path / "noised", lambda n, v: noise(n, tune(1)(n, v))))
    assert beyond(found).state is BeyondState.NEAR


def test_training_on_one_text_is_not_told_from_one_made_from_the_other(
    tuned: Path, tmp_path: Path
) -> None:
    found = compared(tuned, stored(tmp_path / "further", lambda n, v: tune(4)(n, tune(1)(n, v))))
    assert beyond(found).state is BeyondState.ALIKE


def test_layers_taken_over_are_equal_and_the_others_apart(tuned: Path, tmp_path: Path) -> None:
    def change(name: str, value: np.ndarray) -> np.ndarray:
        return tune(1 if ".layers.1." in name else 5)(name, value)

    part = beyond(compared(tuned, stored(tmp_path / "layer", change)))
    assert part.state is BeyondState.SHARED
    equal = {one.layer for one in part.parts if one.state is BeyondState.EQUAL}
    assert equal == {1}


def test_the_same_numbers_are_equal(tuned: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copied"
    shutil.copytree(tuned, copied)
    (copied / "config.json").write_text(
        json.dumps(json.loads((copied / "config.json").read_text()))
    )
    assert beyond(compared(tuned, copied)).state is BeyondState.EQUAL


def test_parts_that_one_model_did_not_change_are_unchanged(tuned: Path, tmp_path: Path) -> None:
    def change(name: str, value: np.ndarray) -> np.ndarray:
        return tune(6)(name, value) if "mlp" in name else value

    found = compared(tuned, stored(tmp_path / "mlp", change))
    assert states(found, Component.ATTENTION) == {BeyondState.UNCHANGED}
    assert states(found, Component.FEED_FORWARD) == {BeyondState.APART}
    rows = [one for one in beyond(found).parts if one.component is Component.ATTENTION]
    assert {tuple(one.unchanged) for one in rows} == {("b",)}


def test_a_permuted_copy_is_not_subtracted(tuned: Path, tmp_path: Path) -> None:
    part = beyond(compared(tuned, short_zoo() / "a-rotated"))
    assert part.state is BeyondState.NOT_COMPARABLE
    assert not any(one.state in (BeyondState.APART, BeyondState.ALIKE) for one in part.parts)


def test_a_stranger_has_nothing_beyond_the_base(tuned: Path) -> None:
    part = beyond(compared(tuned, short_zoo() / "base-b"))
    assert (part.state, part.refused) == (BeyondState.NOT_COMPARABLE, "b")
    assert "base-b" in part.summary and "no link" in part.summary


@pytest.mark.parametrize("where", [0, 1])
def test_the_base_is_none_of_the_two(tuned: Path, where: int) -> None:
    with pytest.raises(BadOption) as error:
        compared(*((base(), tuned) if where else (tuned, base())))
    assert "one of the two" in str(error.value)


def test_a_budget_is_kept_and_read_parts_are_said(tuned: Path, other: Path) -> None:
    found = compared(tuned, other, budget="600kB")
    rows = beyond(found).parts
    assert any(0 < one.read < 1 for one in rows)
    assert found.document.asked.given == str(base())
    assert "--given" in found.document.made.command


# Planted in arrays, where the truth is known and the base is in any format.

PART = Part(Component.ATTENTION, 0)
DRAWS = np.random.default_rng(11)


def array(size: float = 1.0) -> np.ndarray:
    return DRAWS.normal(0, size, (128, 128)).astype(np.float32)


def quantised(values: np.ndarray, levels: int) -> np.ndarray:
    blocks = values.reshape(-1, 32)
    steps = np.abs(blocks).max(axis=1, keepdims=True) / levels
    rounded: np.ndarray = (np.rint(blocks / steps) * steps).astype(np.float32)
    return rounded.reshape(values.shape)


def updates(found: BeyondFinding) -> Updates:
    """The sums over what was read of a part."""
    assert found.updates is not None
    return found.updates


@pytest.mark.parametrize("levels", [7, 31, 127])
def test_a_base_that_was_rounded_is_no_base_of_small_updates(levels: int) -> None:
    base = array()
    a, b = base + array(0.001), base + array(0.001)
    assert finding_of(PART, [(a, b, base)]).state is BeyondState.APART
    found = finding_of(PART, [(a, b, quantised(base, levels))])
    assert found.state in (BeyondState.NOT_COMPARABLE, BeyondState.UNCHANGED)


@pytest.mark.parametrize("levels", [7, 31, 127])
def test_two_models_that_were_rounded_alike_share_no_update(levels: int) -> None:
    base = array()
    a, b = (quantised(base + array(0.01), levels) for _ in range(2))
    found = finding_of(PART, [(a, b, base)])
    assert not found.state.common


def test_rows_taken_from_the_other_are_shared() -> None:
    base = array()
    a, other = base + array(0.1), base + array(0.1)
    taken = (np.arange(len(base)) % 2 == 0)[:, None]
    found = finding_of(PART, [(a, np.where(taken, a, other), base)])
    cosine = updates(found).cosine
    assert cosine is not None and cosine < 0.6, "it is not their cosine that tells"
    assert found.state is BeyondState.SHARED


def test_tunes_that_round_to_the_same_are_not_equal() -> None:
    base, text = array(), array(0.5)
    a, b = (base + text + array(0.002) for _ in range(2))
    found = finding_of(PART, [(a, quantised(b, 3), base)])
    assert equality(a, quantised(b, 3)).same, "the grid hides what tells them apart"
    assert found.state is BeyondState.ALIKE


def test_a_mask_that_both_have_is_no_update() -> None:
    base = array()
    mask = DRAWS.random(base.shape) < 0.5
    a, b = (np.where(mask, 0, base + array(0.1)).astype(np.float32) for _ in range(2))
    assert finding_of(PART, [(a, b, base)]).state is BeyondState.APART


def test_adapters_of_one_seed_are_one_subspace() -> None:
    base, inputs = array(), DRAWS.normal(size=(4, 128))
    a, b = (
        (base + 0.05 * DRAWS.normal(size=(128, 4)) @ inputs).astype(np.float32) for _ in range(2)
    )
    apart = (base + 0.05 * DRAWS.normal(size=(128, 4)) @ DRAWS.normal(size=(4, 128))).astype(
        np.float32
    )
    assert finding_of(PART, [(a, b, base)]).state is BeyondState.SUBSPACE
    assert finding_of(PART, [(a, apart, base)]).state is BeyondState.APART


def test_a_cast_of_the_other_is_equal_and_a_cast_of_the_base_unchanged() -> None:
    base = array()
    a = base + array(0.1)
    cast = a.astype(ml_dtypes.bfloat16).astype(np.float32)
    found = finding_of(PART, [(a, cast, base)])
    assert (found.state, found.bits) == (BeyondState.EQUAL, 16)
    still = finding_of(PART, [(a, base.astype(np.float16).astype(np.float32), base)])
    assert (still.state, still.unchanged) == (BeyondState.UNCHANGED, (False, True))


@pytest.mark.parametrize("draws", [60, pytest.param(400, marks=pytest.mark.slow)])
def test_updates_drawn_apart_are_never_called_common(draws: int) -> None:
    """No draw of random updates has anything in common."""
    base = array()
    for at in range(draws):
        size = 10.0 ** DRAWS.uniform(-4, 0)
        a, b = (
            (base + array(size)).astype(ml_dtypes.bfloat16).astype(np.float32) for _ in range(2)
        )
        found = finding_of(PART, [(a, b, base.astype(ml_dtypes.bfloat16).astype(np.float32))])
        assert not found.state.common and found.state is not BeyondState.ALIKE, (at, size)


def test_swapping_the_models_swaps_the_coefficients() -> None:
    base = array()
    update = array(0.1)
    one, other = (
        finding_of(PART, [(*three, base)])
        for three in ((base + update, base + 2 * update), (base + 2 * update, base + update))
    )
    assert one.state is other.state is BeyondState.SHARED
    assert updates(one).of_b_on_a == pytest.approx(2.0, rel=1e-3)
    assert updates(one).of_b_on_a == updates(other).of_a_on_b


def test_few_common_parts_decide_and_nothing_compared_is_said() -> None:
    base = array()
    a = base + array(0.1)
    equal = finding_of(PART, [(a, a, base)], 10)
    apart = finding_of(PART, [(a, base + array(0.1), base)], 10_000)
    assert summed_up([equal, apart]) is BeyondState.SHARED
    assert summed_up([equal]) is BeyondState.EQUAL
    assert summed_up([apart]) is BeyondState.APART
    assert summed_up([]) is BeyondState.NOT_COMPARABLE


def test_one_part_has_one_cosine() -> None:
    base, both = array(), array(0.1)
    a, b = (base + both + array(0.1) for _ in range(2))
    found = [finding_of(PART, [(a, b, base)], 10)] * 2
    beyond = Beyond(
        ModelRef("c", "local", "c"),
        BeyondState.ALIKE,
        (Relation.DERIVED, Relation.DERIVED),
        tuple(found),
    )
    cosine = f"{updates(found[0]).cosine:.2f}"
    part = beyond_part(beyond, ("a", "b"), Translator())
    assert f"(cosine {cosine})" in part.summary
    assert beyond_table(part, "en")[0][2] == cosine


def test_a_diff_says_it_as_a_comparison_does(
    tuned: Path, other: Path, apart: kinprint.Comparison
) -> None:
    found = kinprint.diff(tuned, other, given=base())
    assert found.beyond is not None and found.beyond == apart.beyond
    assert f"--given ./{base().name} " in found.document.made.command
    said = "Nothing was seen that tuned and other share beyond base-a"
    assert said in found._repr_html_()
    shown = " ".join(line.text.strip() for line in diff_lines(found.document, "en"))
    assert said in shown and "Beyond base-a" in shown
    korean = translated(found.document, found.beyond.summary, "ko")
    assert korean != found.beyond.summary
    for form in (".html", ".md"):
        page = render(found.document, form).decode()
        assert said in page and "not comparable" in page, form
        assert korean in render(found.document, form, "ko").decode()
    with pytest.raises(BadOption, match="one of the two"):
        kinprint.diff(tuned, other, given=tuned)
