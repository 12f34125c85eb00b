"""When zeros are a mask, and when they are a step of a grid or mere padding."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from kinprint.nulls.masks import masked, without_filler

ROWS = np.random.default_rng(5).normal(size=(48, 256)).astype(np.float32)


def grid(rows: np.ndarray, steps: int, group: int) -> np.ndarray:
    """Rounded to a symmetric grid with a scale for every so many numbers: the mean if ternary."""
    parts = rows.reshape(len(rows), -1, group)
    size = np.abs(parts)
    scale = (size.mean(axis=2, keepdims=True) if steps == 1 else
             size.max(axis=2, keepdims=True) / steps)  # fmt: skip
    return np.asarray(np.round(parts / scale).clip(-steps, steps) * scale).reshape(rows.shape)


def with_mask(rows: np.ndarray, share: float) -> np.ndarray:
    return np.asarray(rows * (np.random.default_rng(6).random(rows.shape) >= share))


@pytest.mark.parametrize("group", [16, 32, 128, 256])
@pytest.mark.parametrize("steps", [1, 3, 7, 127])
def test_a_grid_is_no_mask(steps: int, group: int) -> None:
    assert not masked(grid(ROWS, steps, group))


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_stored_weights_are_no_mask(kind: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, kind, kind))
    assert not masked((0.02 * ROWS).astype(dtype).astype(np.float32))


@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.9])
def test_pruned_rows_are(share: float) -> None:
    assert masked(with_mask(ROWS, share))
    if share >= 0.3:
        assert masked(with_mask(grid(ROWS, 7, 32), share))


def test_matrices_side_by_side_are_one_matrix() -> None:
    some = with_mask(ROWS, 0.3)
    some[:4] = 0
    for pair in ((some, ROWS), (ROWS, ROWS), (some, np.zeros_like(ROWS))):
        for whole_rows in (False, True):
            whole = masked(np.concatenate(pair, axis=1), whole_rows=whole_rows)
            assert masked(*pair, whole_rows=whole_rows) == whole


@pytest.mark.parametrize("steps", [1, 3, 7])
def test_columns_cut_out_of_a_coarse_grid_are(steps: int) -> None:
    few = grid(ROWS, steps, 256) + 0.5  # no step of it is zero
    few[::3, 128:] = 0
    assert masked(few)


@pytest.mark.parametrize("sign", [1, -1])
def test_another_value_at_many_places_becomes_zero(sign: int) -> None:
    mask = with_mask(ROWS, 0.05) == 0
    assert np.array_equal(without_filler(np.where(mask, sign * 0.01, ROWS)) == 0, mask)


def test_a_codebook_without_zero_writes_another_number_for_a_mask() -> None:
    codebook = np.random.default_rng(8).normal(size=16).astype(np.float32)
    pruned = with_mask(ROWS, 0.5)
    coded = codebook[np.abs(pruned[..., None] - codebook).argmin(axis=-1)]
    assert masked(without_filler(coded)) and not masked(coded)
    plain = codebook[np.abs(ROWS[..., None] - codebook).argmin(axis=-1)]
    assert np.array_equal(without_filler(plain), plain)


@pytest.mark.parametrize("steps", [1, 2, 3, 7])
def test_steps_of_a_grid_stay(steps: int) -> None:
    whole = grid(ROWS.reshape(1, -1), steps, ROWS.size).astype(np.float32)
    for rows in (ROWS, whole, ROWS.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)):
        assert np.array_equal(without_filler(rows), rows)


def test_rows_without_content_do_not_count() -> None:
    half = ROWS.copy()
    half[24:] = 0
    assert not masked(half) and masked(half, whole_rows=True)
    for rows in (np.zeros((4, 8)), np.ones((4, 8)), np.full((4, 8), np.nan), np.empty((0, 8))):
        single = rows.astype(np.float32)
        assert not masked(single)
        assert np.array_equal(without_filler(single), single, equal_nan=True)


def test_neither_order_nor_sign_matters() -> None:
    rng = np.random.default_rng(7)
    for rows in (ROWS, with_mask(ROWS, 0.01), with_mask(grid(ROWS, 3, 32), 0.1)):
        signs = rng.integers(2, size=(len(rows), 1)) * 2 - 1
        assert masked(rows) == masked(rows[rng.permutation(len(rows))] * signs)
