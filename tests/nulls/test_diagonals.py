"""Diagonals of matrices that began as the identity: found by their mean, and taken out."""

from __future__ import annotations

import numpy as np
import pytest

from kinprint.nulls.blocks import block_log10_p, signed_log10_p
from kinprint.nulls.diagonals import (
    DEVIATIONS,
    diagonals,
    lean,
    without_diagonal,
    without_means,
)
from kinprint.nulls.masks import masked
from kinprint.nulls.preparation import normalise_rows
from tests.nulls import worlds

Array = np.ndarray


def identity(rows: int, columns: int) -> Array:
    return np.eye(rows, columns)


def reversed_identity(rows: int, columns: int) -> Array:
    return np.eye(rows, columns)[:, ::-1]


def repeated(rows: int, columns: int) -> Array:
    least = min(rows, columns)
    alike = np.equal.outer(np.arange(rows) % least, np.arange(columns) % least)
    return np.asarray(alike, float)


def drawn_out(rows: int, columns: int) -> Array:
    """Every row has several neighbouring columns, or the other way round."""
    least = min(rows, columns)
    return np.equal(
        np.arange(rows)[:, None] * least // rows, np.arange(columns) * least // columns
    ).astype(float)


@pytest.mark.parametrize("pattern", [identity, reversed_identity, repeated, drawn_out])
@pytest.mark.parametrize("rows", [64, 128, 352])
def test_diagonals_just_above_the_noise_are_found(pattern: object, rows: int) -> None:
    assert callable(pattern)
    rng = np.random.default_rng(rows)
    matrix = (rng.normal(size=(rows, 128)) + 1.5 * pattern(rows, 128)).astype(np.float32)
    numbers = np.arange(rows)
    columns = diagonals(numbers, rows, 128)
    found = lean([matrix], columns)[0].max(axis=0)
    assert found.max() > DEVIATIONS
    left = matrix
    for which in np.flatnonzero(found > DEVIATIONS).tolist():
        left = without_diagonal(left, numbers, rows, which)
    assert lean([left], columns)[0].max() < DEVIATIONS


def test_matrices_of_chance_have_none() -> None:
    rng = np.random.default_rng(1)
    columns = diagonals(np.arange(96), 96, 64)
    found = np.array(
        [lean([rng.standard_t(4, (96, 64)).astype(np.float32)], columns) for _ in range(500)]
    )
    assert np.abs(found).max() < DEVIATIONS
    assert abs(found.mean()) < 0.1 and 0.8 < found.std() < 1.2


def test_rows_that_were_read_are_enough() -> None:
    rng = np.random.default_rng(2)
    numbers = np.arange(400, 416)
    matrices = [
        (rng.normal(size=(16, 1024)) + 2 * np.eye(1024)[numbers]).astype(np.float32)
        for _ in range(6)
    ]
    found = lean(matrices, diagonals(numbers, 2816, 1024))
    assert found[:, 0, 0].sum() / np.sqrt(6) > DEVIATIONS


def test_neighbours_lose_the_same_columns() -> None:
    rows = np.random.default_rng(3).normal(size=(32, 64)).astype(np.float32)
    left = without_diagonal(rows, np.arange(32), 32, 0)
    changed = left != rows
    assert changed.sum(axis=1).tolist() == [4] * 32
    assert (changed.reshape(8, 4, 64) == changed[::4, None]).all()
    assert not left[changed].any()
    assert masked(left) and not masked(without_diagonal(np.tile(rows, 16), np.arange(32), 32, 0))


@pytest.mark.parametrize("strength", [2.0, 30.0])
def test_what_is_left_of_strangers_is_chance(strength: float) -> None:
    """P-values of rows that began as the identity in both: uniform or above, with signs too."""
    rng = np.random.default_rng(4)
    numbers, plain, signed, with_it = np.arange(64), [], [], []
    for _ in range(400):
        pair = [rng.normal(size=(64, 64)) + strength * np.eye(64) for _ in range(2)]
        rest = [without_diagonal(one.astype(np.float32), numbers, 64, 0) for one in pair]
        centred = [normalise_rows(one - one.mean(axis=1, keepdims=True)) for one in rest]
        products = worlds.block_products(*centred)
        plain.append(float(block_log10_p(products)[0]))
        signed.append(float(signed_log10_p(0 * products, products)[0]))
        as_it_is = worlds.block_products(*(normalise_rows(one) for one in pair))
        with_it.append(float(block_log10_p(as_it_is)[0]))
    worlds.assert_valid(plain)
    worlds.assert_valid(signed)
    with pytest.raises(AssertionError):
        worlds.assert_valid(with_it)


def test_one_number_that_is_not_finite_spoils_no_other() -> None:
    rows = np.random.default_rng(5).normal(size=(64, 64)).astype(np.float32)
    rows[0, 20], rows[1, 30] = np.inf, np.nan
    left = without_diagonal(rows, np.arange(64), 64, 0)
    assert np.array_equal(np.isfinite(left), np.isfinite(rows))
    assert np.array_equal(np.isfinite(without_means(rows)), np.isfinite(rows))
