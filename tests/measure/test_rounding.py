"""Equal numbers, numbers that are equal after rounding, and numbers that only look so."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinprint.measure.equal_rows import Floats, equal_places, equal_rows
from kinprint.measure.rounding import _TABLES, equality

WEIGHTS = (np.random.default_rng(0).standard_normal((64, 256)) * 0.02).astype(np.float32)


def stored(values: Floats, kind: Any, scale: float = 1.0) -> Floats:
    return np.asarray((values / scale).astype(kind), np.float32) * np.float32(scale)


def quantised(values: Floats, bits: int, block: int) -> Floats:
    """Multiples of a step that follows the largest number of a block."""
    rows = values.reshape(-1, block)
    step = np.abs(rows).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
    return np.asarray((np.round(rows / step) * step).reshape(values.shape), np.float32)


def moved(values: Floats, share: float, seed: int = 1) -> Floats:
    """A fine-tune: numbers changed by a share of their spread."""
    noise = np.random.default_rng(seed).standard_normal(values.shape)
    return np.asarray(values + share * 0.02 * noise, np.float32)


@pytest.mark.parametrize(
    ("kind", "bits"),
    [
        (ml_dtypes.bfloat16, 16),
        (np.float16, 16),
        (ml_dtypes.float8_e4m3fn, 8),
        (ml_dtypes.float8_e5m2, 8),
    ],
)
def test_casts_are_told_with_their_bits(kind: Any, bits: int) -> None:
    fine = WEIGHTS * 50
    for pair in ((fine, stored(fine, kind)), (stored(fine, kind), fine)):
        found = equality(*pair)
        assert not found.equal and found.bits == bits


def test_half_precision_of_a_bfloat16_model_is_a_cast() -> None:
    half = stored(WEIGHTS, ml_dtypes.bfloat16)
    assert equality(half, stored(half, np.float16)).same


@pytest.mark.parametrize(
    ("bits", "block"),
    [*product((2, 3, 4, 5, 6, 8), (32, 64, 128)), *product((2, 3, 4, 6), (16,))],
)
def test_quantised_numbers_are_told_with_their_bits(bits: int, block: int) -> None:
    assert equality(WEIGHTS, quantised(WEIGHTS, bits, block)).bits == bits


def test_steps_may_lie_along_columns_in_which_no_number_is_twice() -> None:
    fine = (np.random.default_rng(8).standard_normal((512, 64)) * 0.02).astype(np.float32)
    blocks = fine.T.reshape(64, -1, 32)
    low = blocks.min(axis=-1, keepdims=True)
    step = (blocks.max(axis=-1, keepdims=True) - low) / 15
    coarse = np.float32(low + np.round((blocks - low) / step) * step).reshape(64, 512).T
    assert all(len(np.unique(row)) == len(row) for row in coarse)
    assert equality(fine, coarse).bits == 4


def test_bytes_of_a_model_in_a_short_float_may_have_more_different_numbers_than_it() -> None:
    short = stored(WEIGHTS[:, :128], ml_dtypes.bfloat16)
    assert equality(short, quantised(short, 8, 128)).bits == 8


def test_scaled_floats_of_eight_bits() -> None:
    assert equality(WEIGHTS, stored(WEIGHTS, ml_dtypes.float8_e4m3fn, 0.0007)).bits == 8


@pytest.mark.parametrize("zeros", [0.5, 0.7, 0.8])
@pytest.mark.parametrize("block", [32, 256])
def test_pruned_numbers_are_told_with_their_bits_in_either_order(zeros: float, block: int) -> None:
    """Few of a block are left, so that their gaps are many steps."""
    kept = np.random.default_rng(2).random(WEIGHTS.shape) >= zeros
    fine = np.asarray(WEIGHTS * kept, np.float32)
    coarse = quantised(fine, 8, block)
    found = [equality(*pair) for pair in ((fine, coarse), (coarse, fine))]
    assert [one.bits for one in found] == [8, 8]


def test_gains_of_which_most_lie_within_a_step_may_be_cast() -> None:
    draws = np.random.default_rng(3)
    gains = (1 + 5e-4 * draws.standard_normal(1024)).astype(np.float32)
    gains[::10] += 0.2 * draws.standard_normal(103).astype(np.float32)
    found = equality(gains, stored(gains, ml_dtypes.bfloat16))
    assert found.bits == 16 and found.exact


def test_a_fine_tune_is_no_rounding() -> None:
    half = stored(WEIGHTS, ml_dtypes.bfloat16)
    for share in (0.001, 0.01, 0.1):
        tuned = stored(moved(half, share), ml_dtypes.bfloat16)
        assert not equality(half, tuned).same
        assert not equality(WEIGHTS, tuned).same
    # What changes numbers by a tenth of a step of four bits cannot be told from rounding.
    for share in (0.1, 0.5):
        assert not equality(half, quantised(moved(half, share), 4, 32)).same


@pytest.mark.parametrize("block", [16, 32])
@pytest.mark.parametrize(("bits", "share"), [(3, 0.05), (4, 0.01), (6, 0.01)])
def test_a_change_below_the_step_of_a_grid_is_seen_between_its_levels(
    bits: int, share: float, block: int
) -> None:
    """Numbers that were moved first lie past the half way to another level now and then."""
    fine = (np.random.default_rng(7).standard_t(6, (64, 512)) * 0.02).astype(np.float32)
    assert equality(fine, quantised(fine, bits, block)).bits == bits
    assert not equality(fine, quantised(moved(fine, share), bits, block)).same


def test_two_grids_of_one_master_are_its_rounding() -> None:
    """The finer one was moved by half a step of its own, past the half way to another level."""
    fine = np.abs(np.random.default_rng(8).normal(0, 0.02, (64, 512))).astype(np.float32)

    def from_least(rows: Floats) -> Floats:
        blocks = rows.reshape(-1, 32)
        least = blocks.min(axis=1, keepdims=True)
        step = (blocks.max(axis=1, keepdims=True) - least) / 15
        levels = np.rint((blocks - least) / step)
        return np.asarray((least + step * levels).reshape(rows.shape), np.float32)

    assert equality(quantised(fine, 8, 32), from_least(fine)).bits == 4
    assert not equality(quantised(fine, 8, 32), from_least(moved(fine, 0.05))).same


def test_blocks_of_two_levels_are_no_rounding_and_no_warning() -> None:
    signs = np.where(WEIGHTS > 0, np.float32(0.016), np.float32(-0.016))
    with np.errstate(all="raise"):
        assert not equality(WEIGHTS, signs).same


def test_two_casts_of_one_master_are_its_rounding() -> None:
    half, short = stored(WEIGHTS, np.float16), stored(WEIGHTS, ml_dtypes.bfloat16)
    assert not np.array_equal(stored(half, ml_dtypes.bfloat16), short)
    found = equality(half, short)
    assert found.bits == 16 and not found.exact
    assert not equality(half, stored(moved(WEIGHTS, 0.003), ml_dtypes.bfloat16)).same


def test_two_casts_of_few_gains_are_their_rounding() -> None:
    """Ties fall either way, in one of sixteen on average and in some vectors in one of eight."""
    gains = np.random.default_rng(5).normal(1, 0.05, (200, 128)).astype(np.float32)
    half, short = stored(gains, np.float16), stored(gains, ml_dtypes.bfloat16)
    assert (np.mean(stored(half, ml_dtypes.bfloat16) != short, axis=1) > 0.1).any()
    assert all(equality(*rows).same for rows in zip(half, short, strict=True))
    short[:, 7] += 2.0**-6  # two steps
    assert not any(equality(*rows).same for rows in zip(half, short, strict=True))


def test_what_was_pruned_is_no_rounding() -> None:
    """Half of the inputs set to zero, half of every four, or whole blocks."""
    half = stored(WEIGHTS, ml_dtypes.bfloat16)
    for kept in (np.arange(256) % 4 < 2, np.arange(256) % 64 < 32, np.arange(256) < 128):
        assert not equality(half, half * kept).same
        assert not equality((half * kept).T, half.T).same


def test_gains_near_one_are_no_rounding_of_each_other() -> None:
    """Of hardly trained models they hold few values, a step of bfloat16 apart."""
    ones = np.ones((2, 128), np.float32)
    one, other = (stored(ones + moved(ones * 0, 0.5, seed), ml_dtypes.bfloat16) for seed in (3, 4))
    assert not equality(one, other).same


def test_a_vector_that_was_trained_on_a_little_is_no_rounding() -> None:
    """One number in a row is no grid of its own."""
    rng = np.random.default_rng(7)
    gains = stored(1 + 0.03 * rng.standard_normal((1, 128)).astype(np.float32), ml_dtypes.bfloat16)
    changed = gains * (1 + 0.003 * rng.standard_normal((1, 128)).astype(np.float32))
    tuned = stored(changed, ml_dtypes.bfloat16)
    assert not equality(gains, tuned).same and not equality(tuned, gains).same


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
def test_gains_of_a_merge_are_no_rounding_of_its_parents(share: float) -> None:
    """They are near each other, close to one, and hold few values."""
    rng = np.random.default_rng(8)
    one, other = (1 + 0.03 * rng.standard_normal((2, 1, 128))).astype(np.float32)
    merged = stored(share * one + (1 - share) * other, ml_dtypes.bfloat16)
    for parent in (one, stored(one, ml_dtypes.bfloat16)):
        assert not equality(parent, merged).same and not equality(merged, parent).same


def test_what_is_only_near_a_grid_of_its_own_is_no_rounding() -> None:
    """Within half a step, but with numbers in another order."""
    coarse = quantised(WEIGHTS, 4, 32)
    step = np.abs(WEIGHTS.reshape(-1, 32)).max(axis=1).repeat(32).reshape(WEIGHTS.shape) / 7
    near = coarse + step * np.random.default_rng(9).uniform(-0.5, 0.5, WEIGHTS.shape)
    assert equality(near.astype(np.float32), coarse).bits == 4  # as any rounding to it is
    for bits in (4, 8):
        step = np.abs(WEIGHTS.reshape(-1, 32)).max(axis=1).repeat(32).reshape(WEIGHTS.shape)
        step /= 2 ** (bits - 1) - 1
        off = 0.3 * step * np.random.default_rng(10).standard_normal(WEIGHTS.shape)
        assert not equality(WEIGHTS, quantised((WEIGHTS + off).astype(np.float32), bits, 32)).same


def test_strangers_are_no_rounding() -> None:
    other = moved(np.zeros_like(WEIGHTS), 1.0)
    for bits in (2, 3, 4, 8):
        assert not equality(WEIGHTS, quantised(other, bits, 32)).same
        assert not equality(quantised(WEIGHTS, bits, 32), quantised(other, bits, 32)).same


def test_constants_have_nothing_to_say() -> None:
    ones = np.ones((4, 128), np.float32)
    assert equality(ones, ones).equal and equality(ones, ones).information == 0.0
    few = np.ones((1, 128), np.float32)
    few[0, 3] = 2.0
    assert equality(few, few).information < 3  # 128 places for one outlier
    assert equality(WEIGHTS, WEIGHTS).information > 100


def test_what_is_no_number_equals_nothing_else() -> None:
    broken = WEIGHTS.copy()
    broken[0, 0] = np.nan
    assert not equality(WEIGHTS, broken).same
    assert not equality(WEIGHTS, WEIGHTS[:, :128]).same


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("table", [one.levels for one in _TABLES])
def test_levels_of_a_table_are_found_wherever_their_blocks_begin(
    table: tuple[float, ...], sign: int
) -> None:
    """Scales hold for 64 numbers each, so that the largest of 32 may be any level."""
    levels = np.array(table, np.float32)
    blocks = WEIGHTS.reshape(-1, 64)
    scales = sign * np.abs(blocks).max(axis=1, keepdims=True) / levels[-1]

    def coded(rows: Floats) -> Floats:
        scaled = rows.reshape(-1, 64) / scales
        nearest = np.abs(scaled[..., None] - levels).argmin(axis=-1)
        return np.asarray((levels[nearest] * scales).reshape(WEIGHTS.shape), np.float32)

    assert equality(WEIGHTS, coded(WEIGHTS)).bits == 4
    assert not equality(WEIGHTS, coded(moved(WEIGHTS, 0.05))).same
    assert not equality(WEIGHTS, coded(moved(np.zeros_like(WEIGHTS), 1.0))).same


def test_columns_that_were_left_alone_do_not_hide_the_levels_of_the_others() -> None:
    levels = np.array(_TABLES[0].levels, np.float32)
    fine = np.random.default_rng(8).normal(0, 0.02, (64, 1024)).astype(np.float32)
    blocks = fine.reshape(-1, 32)
    scales = np.abs(blocks).max(axis=1, keepdims=True)
    nearest = np.abs((blocks / scales)[..., None] - levels).argmin(axis=-1)
    four = (levels[nearest] * scales).reshape(fine.shape)
    eight = (np.rint(blocks / scales * 127) * scales / 127).reshape(fine.shape)
    for bits, coarse in ((4, four), (8, eight.astype(np.float32))):
        coarse[:, :32] = fine[:, :32]
        assert equality(fine, coarse).bits == bits


def test_rows_that_are_equal_count_if_they_say_something() -> None:
    other = moved(np.zeros_like(WEIGHTS), 1.0)
    other[::4] = WEIGHTS[::4]
    share, information = equal_rows(WEIGHTS, other, 12.0)
    assert share == 0.25 and information > 100
    assert equal_rows(WEIGHTS, other[::-1], 12.0)[0] == 0.25  # wherever they are
    masked = np.zeros_like(WEIGHTS)
    masked[:, :8] = 0.5  # where zeros are says nothing
    assert equal_rows(masked, masked, 12.0) == (0.0, 0.0)


def test_numbers_that_a_change_spared_are_counted_where_they_are() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(0, 0.02, (24, 96)).astype(np.float32)
    pruned = np.where(rng.random(x.shape) < 0.5, x, np.float32(0))
    share, of_all, information = equal_places(x, pruned)
    assert share == 1.0 and abs(of_all - 0.5) < 0.05 and information > 30
    changed = np.where(rng.random(x.shape) < 0.7, x, rng.normal(0, 0.02, x.shape)).astype("f4")
    share, of_all, information = equal_places(x, changed)
    assert abs(share - 0.7) < 0.05 and share == of_all and information > 30


@pytest.mark.parametrize("levels", [1, 3, 7, 127])
def test_strangers_on_one_grid_under_one_mask_spare_nothing(levels: int) -> None:
    rng = np.random.default_rng(levels)
    mask = rng.random((48, 256)) < 0.5
    x, y = (np.rint(rng.normal(0, 0.4 * levels, mask.shape)).clip(-levels, levels) * mask
            for _ in range(2))  # fmt: skip
    assert equal_places(x.astype(np.float32), y.astype(np.float32)) == (0.0, 0.0, 0.0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), width=st.integers(2, 40))
def test_what_equal_places_tell_is_no_more_than_chance_allows(seed: int, width: int) -> None:
    """Of random orders of one row, no more than 1/k! have k numbers in place."""
    rng = np.random.default_rng(seed)
    row = rng.normal(size=(1, width)).astype(np.float32)
    told = [equal_places(row, rng.permuted(row, axis=1))[2] for _ in range(200)]
    for least in (0.3, 0.78, 1.38):
        assert np.mean(np.array(told) >= least) <= 10**-least + 5 * np.sqrt(10**-least / 200)
