"""What two models changed in one base, on arrays whose truth is known."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from kinprint.measure.updates import Updates, overlap, updates

DRAWS = np.random.default_rng(7)
SHAPE = (64, 256)


def bf16(values: np.ndarray) -> np.ndarray:
    return values.astype(ml_dtypes.bfloat16).astype(np.float32)


@pytest.fixture(scope="module")
def base() -> np.ndarray:
    return bf16(DRAWS.normal(0, 0.02, SHAPE))


def tuned(base: np.ndarray, size: float) -> np.ndarray:
    return bf16(base + DRAWS.normal(0, size, base.shape))


def test_updates_apart_have_no_cosine_and_nothing_in_common_beyond_chance(base: np.ndarray) -> None:
    found = updates(tuned(base, 1e-3), tuned(base, 1e-3), base)
    assert found.equal > 50, "changes of some steps are often equal by chance"
    assert found.cosine is not None and abs(found.cosine) < 0.04
    assert found.in_common is not None and abs(found.in_common) < 0.04


def test_a_further_tune_has_all_of_the_first_in_it(base: np.ndarray) -> None:
    first = tuned(base, 1e-3)
    found = updates(first, tuned(first, 1e-3), base)
    assert found.of_b_on_a == pytest.approx(1.0, abs=0.03)
    assert found.of_a_on_b == pytest.approx(0.5, abs=0.03)
    assert found.apart == pytest.approx(1.0, abs=0.03)


def test_numbers_that_both_took_from_one_update_are_counted(base: np.ndarray) -> None:
    first, second = tuned(base, 1e-3), tuned(base, 1e-3)
    taken = np.arange(SHAPE[0])[:, None] < 16
    found = updates(first, np.where(taken, first, second), base)
    far = [updates(one[:16], one[:16], base[:16]).far for one in (first,)]
    assert found.equal - found.chance == pytest.approx(far[0], rel=0.1)
    assert found.in_common is not None and 0.2 < found.in_common < 0.5


def test_a_mask_of_both_is_no_update(base: np.ndarray) -> None:
    mask = DRAWS.random(SHAPE) < 0.5
    a, b = (np.where(mask, 0.0, tuned(base, 1e-3)).astype(np.float32) for _ in range(2))
    cosine = updates(a, b, base).cosine
    assert cosine is not None and abs(cosine) < 0.05


def test_rounding_of_a_coarse_base_is_named(base: np.ndarray) -> None:
    steps = np.abs(base.reshape(-1, 32)).max(axis=1, keepdims=True) / 7
    coarse = (np.rint(base.reshape(-1, 32) / steps) * steps).astype(np.float32).reshape(SHAPE)
    a, b = tuned(base, 1e-4), tuned(base, 1e-4)
    found = updates(a, b, coarse)
    assert found.cosine is not None and found.cosine > 0.9, "both have the error of the base"
    assert found.rounded == pytest.approx(1.0, abs=0.2)
    assert updates(a, b, base).rounded == 0.0


def test_rounding_of_two_coarse_models_is_named(base: np.ndarray) -> None:
    def quantised(values: np.ndarray) -> np.ndarray:
        blocks = values.reshape(-1, 32)
        steps = np.abs(base.reshape(-1, 32)).max(axis=1, keepdims=True) / 7
        rounded: np.ndarray = (np.rint(blocks / steps) * steps).astype(np.float32)
        return rounded.reshape(SHAPE)

    found = updates(quantised(tuned(base, 1e-4)), quantised(tuned(base, 1e-4)), base)
    assert found.cosine is not None and found.cosine > 0.9
    assert found.rounded > 0.5


def test_a_grid_that_both_have_makes_no_numbers_common(base: np.ndarray) -> None:
    def quantised(values: np.ndarray) -> np.ndarray:
        blocks = values.reshape(-1, 32)
        steps = np.abs(base.reshape(-1, 32)).max(axis=1, keepdims=True) / 127
        rounded: np.ndarray = (np.rint(blocks / steps) * steps).astype(np.float32)
        return rounded.reshape(SHAPE)

    a, b = (quantised(base + DRAWS.normal(0, 3e-4, SHAPE)) for _ in range(2))
    found = updates(a, b, base.astype(np.float32))
    assert found.in_common is None


def test_sums_of_tensors_add_up(base: np.ndarray) -> None:
    a, b = tuned(base, 1e-3), tuned(base, 1e-3)
    whole = updates(a, b, base)
    halves = [updates(a[rows], b[rows], base[rows]) for rows in (slice(32), slice(32, None))]
    both = sum(halves, Updates())
    assert both.cosine == pytest.approx(whole.cosine)
    assert (both.equal, both.changed, both.numbers) == (whole.equal, whole.changed, whole.numbers)


def test_numbers_that_are_none_are_left_out(base: np.ndarray) -> None:
    a, b = tuned(base, 1e-3), tuned(base, 1e-3)
    a[0, 0], b[1, 1] = np.nan, np.inf
    found = updates(a, b, base)
    assert found.numbers == base.size - 2
    assert found.cosine is not None and np.isfinite(found.cosine)


def test_nothing_changed_has_no_cosine(base: np.ndarray) -> None:
    found = updates(base, base, base)
    assert found.cosine is None and found.in_common is None and found.apart is None


def test_adapters_with_one_input_share_their_subspace() -> None:
    inputs, other = (DRAWS.normal(size=(8, 256)) for _ in range(2))
    u, v, w = (
        (DRAWS.normal(size=(64, 8)) @ side).astype(np.float32) for side in (inputs, inputs, other)
    )
    same, apart = overlap(u, v), overlap(u, w)
    assert same is not None and same.beyond > 0.8
    assert apart is not None
    assert apart.share == pytest.approx(apart.chance, abs=0.05)
    assert overlap(u, DRAWS.normal(size=(64, 256)).astype(np.float32)) is None
