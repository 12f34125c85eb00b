"""Tables that a formula gives are told from numbers that were learnt or drawn."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import scipy.linalg

from kinprint.measure.computed import Floats, computed, continues, of_a_formula

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
