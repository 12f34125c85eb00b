"""Tables that a formula gives are told from numbers that were learnt or drawn."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.linalg
import scipy.stats

from kinprint.measure.computed import (
    Floats,
    computed,
    continues,
    of_a_formula,
    of_formulas,
    right_angled,
    tabulated,
)

TIME, RUN = np.arange(400), slice(40, 48)


def positions(width: int, interleaved: bool) -> Any:
    angles = np.arange(100)[:, None] / 10000 ** (np.arange(width // 2) / (width // 2 - 1))
    both = np.sin(angles), np.cos(angles)
    if interleaved:
        return np.stack(both, axis=-1).reshape(100, width)
    return np.concatenate(both, axis=1)


def of_a_grid() -> Any:
    """Sines of the one place of a picture beside those of the other, which stand still."""
    down, across = (places.reshape(-1) for places in np.meshgrid(range(10), range(10)))
    angles = [place[:, None] / 10000 ** (np.arange(32) / 32) for place in (down, across)]
    return np.concatenate([f(one) for one in angles for f in (np.sin, np.cos)], axis=1)


def filters() -> Any:
    """Triangles, each wider than the one before."""
    ends = np.geomspace(4, 200, 60)
    rising = (TIME[:256] - ends[:-2, None]) / np.diff(ends)[:-1, None]
    falling = (ends[2:, None] - TIME[:256]) / np.diff(ends)[1:, None]
    return np.maximum(0, np.minimum(rising, falling))


TABLES = {
    "positions": positions(256, False),
    "interleaved": positions(256, True),
    "grid": of_a_grid(),
    "turns": np.cos(np.arange(100)[:, None] / 500000 ** (np.arange(64) / 64)),
    "cosines": np.cos(np.pi / 400 * (TIME + 0.5) * np.arange(1, 80)[:, None]),
    "windows": np.hanning(400) * np.cos(2 * np.pi * TIME / 400 * np.arange(80)[:, None]),
    "filters": filters(),
    "ramps": np.arange(1, 90)[:, None] * np.linspace(0, 1, 64),
    "signs": scipy.linalg.hadamard(256) / 16,
    "rows over and over": np.tile(np.log(np.arange(1, 17)), (64, 1)),
}


@pytest.mark.parametrize("sign", [1, -1])
def test_a_row_of_few_values_over_and_over_is_computed(sign: int) -> None:
    """Receptance-weighted models start from such a zigzag of three values."""
    values = np.log(0.3) + np.array([-0.5, 0.0, 0.5])
    row = np.resize(np.concatenate([values, sign * values]), 128).astype(np.float32)
    assert computed(row[None]) and continues(row)
    row[50] += 1
    assert not computed(row[None])


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", TABLES)
def test_tables_of_a_formula_are_told_in_every_format(name: str, kind: Any) -> None:
    stored: Floats = TABLES[name].astype(kind).astype(np.float32)
    assert computed(stored[RUN, :256])


@pytest.mark.parametrize("kind", [np.float32, ml_dtypes.bfloat16])
def test_numbers_that_were_learnt_or_drawn_are_not(kind: Any) -> None:
    rng = np.random.default_rng(1)
    smooth = np.sin(np.arange(100)[:, None] * rng.uniform(0, 0.2, 64))
    for rows in (
        *(rng.normal(size=(8, width)) for width in (16, 32, 64, 128)),
        rng.normal(size=(100, 64)).cumsum(axis=0)[RUN],
        (smooth + 0.05 * rng.normal(size=smooth.shape))[RUN],
        rng.normal(size=(8, 128)) * (rng.random((8, 128)) < 0.1),
        np.sign(rng.normal(size=(8, 128))),
    ):
        stored: Floats = rows.astype(kind).astype(np.float32)
        assert not computed(stored)
        assert not any(continues(row) for row in stored)


@pytest.mark.parametrize("kind", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", sorted({*TABLES} - {"filters", "rows over and over"}))
def test_whole_matrices_of_a_formula_are_told(name: str, kind: Any) -> None:
    stored: Floats = TABLES[name].astype(kind).astype(np.float32)
    assert of_a_formula(stored) and of_a_formula(np.ascontiguousarray(stored.T))


def test_of_many_matrices_each_is_told_by_itself() -> None:
    drawn = np.random.default_rng(1).normal(size=(2, 48, 64)).astype(np.float32)
    formulas = [TABLES[name].astype(np.float32) for name in ("turns", "signs")]
    unknown = np.full((48, 64), np.nan, np.float32)
    matrices = [drawn[0], *formulas, unknown, drawn[1].T, np.empty((0, 8), np.float32)]
    assert of_formulas(matrices) == [of_a_formula(matrix) for matrix in matrices]
    assert sum(of_formulas(matrices)) == len(formulas)


def test_patterns_of_signs_are_told_in_any_order_and_at_any_size() -> None:
    rng = np.random.default_rng(2)
    signs: Floats = scipy.linalg.hadamard(128).astype(np.float32)
    mixed = signs[rng.permutation(128)][:, rng.permutation(128)] * rng.choice([-1, 1], 128)
    for matrix in (mixed, mixed * rng.normal(size=128), (mixed * rng.normal(size=128)).T):
        assert of_a_formula(matrix.astype(np.float32))


def test_matrices_that_were_learnt_or_drawn_are_of_no_formula() -> None:
    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(96, 128))
    for rows in (matrix, matrix.cumsum(axis=0), np.sign(matrix), np.rint(2 * matrix),
                 matrix * (rng.random(matrix.shape) < 0.3), np.tile(matrix, (1, 2)),
                 np.zeros((96, 128)), np.eye(96)):  # fmt: skip
        assert not of_a_formula(rows.astype(np.float32))


def quadratic_residues(order: int) -> Any:
    """Paley's matrix of signs, of an order that is a prime of the form 4 n + 3 and one."""
    prime = order - 1
    squares = {place * place % prime for place in range(1, prime)}
    signs = np.ones((order, order))
    signs[1:, 0] = -1
    for row in range(prime):
        for column in range(prime):
            square = (column - row) % prime in squares or row == column
            signs[row + 1, column + 1] = 1 if square else -1
    assert np.array_equal(signs @ signs.T, order * np.eye(order))
    return signs


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("order", [20, 60, 108, 140])
def test_signs_at_right_angles_are_tabulated(order: int, kind: Any) -> None:
    rng = np.random.default_rng(order)
    signs = quadratic_residues(order)
    scaled = signs * rng.lognormal(size=(order, 1))
    blocks = np.kron(np.eye(3), signs) / np.sqrt(order)
    padded = np.pad(scaled, ((0, 0), (0, 40)))
    for matrix in (signs / np.sqrt(order), scaled, scaled.T, blocks, padded, signs[7:19] * 0.3):
        stored: Floats = matrix.astype(kind).astype(np.float32)
        assert right_angled(stored) and tabulated(stored)


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_tables_that_fill_an_interval_evenly_are_tabulated(kind: Any) -> None:
    sobol = scipy.stats.qmc.Sobol(64, scramble=False).random(256)
    scrambled = scipy.stats.qmc.Sobol(64, rng=np.random.default_rng(1)).random(256)
    halton = scipy.stats.qmc.Halton(16, scramble=False).random(512)
    corput = scipy.stats.qmc.Halton(1, scramble=False).random(512).T
    few = 2 * sobol[::17] - 1
    for table in (sobol, few, corput, *((scrambled, halton) if kind is np.float32 else ())):
        assert tabulated(table.astype(kind).astype(np.float32))


def test_whole_numbers_are_tabulated() -> None:
    rng = np.random.default_rng(4)
    for table in (rng.integers(0, 2, (64, 64)), rng.permutation(512)[None]):
        assert tabulated(table.astype(np.float32))
    assert not tabulated(np.zeros((8, 8), np.float32))


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_what_was_learnt_or_drawn_is_not_tabulated(kind: Any) -> None:
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(96, 128))
    ternary = 0.3 * np.rint(matrix).clip(-1, 1)
    for rows in (
        matrix, rng.random((96, 128)), 2 * rng.random((96, 128)) - 1, 1 + 0.02 * matrix,
        0.3 * np.sign(matrix), ternary, 0.3 * np.eye(96), matrix * (rng.random(matrix.shape) < 0.1),
    ):  # fmt: skip
        assert not tabulated(rows.astype(kind).astype(np.float32))
        assert not right_angled(rows.astype(kind).astype(np.float32))
