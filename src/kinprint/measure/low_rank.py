"""Is a change of low rank, and of which? Is it noise? Both from its folded form.

A merged adapter adds a product of two thin matrices, then the sum is rounded to the type that it is
stored in. So r singular values stand out, and all others are those of independent errors, whose
largest one lies at a known edge (Marchenko and Pastur 1967; Bai and Yin 1993) and whose size is
that of rounding. Training moves all directions, by amounts that fall off without a gap.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.device import Array, array_module, computed_on_device, on_card
from kinprint.measure.change import ChangeSums

HIGHEST = 0.75
"""Of the singular values: a change of more is not called one of low rank."""
_BEYOND = 1.08  # times the edge: none of 3,400 matrices of errors did, of 64 × 128 to 256 × 256
_GAP = 1.25  # of the last singular value that stands out to the next
_CLEAR_GAP = 2.0  # where errors are larger than those of rounding
_ROUNDED = 2.0  # times the errors of rounding that may be left
_LEAST_SIZE = 1e-4  # of the mean square: emptier rows and columns are not made larger than this
_SQUARED = 1e-9  # of the largest square: smaller ones are off by more than 1e-6
_STEPS = 40  # of the search for the largest singular value
_FEWEST = 8  # rows and columns of a matrix whose rank means something
_SIGNIFICAND = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
_LEAST_EXPONENT = {"float16": -13}  # below it floats are as far apart as at it


class ChangeSpectrum(Struct, frozen=True):
    """How a change is spread over directions.

    Attributes
    ----------
    effective : how many directions carry it: (Σσ²)² / Σσ⁴ of its folded form, which is at most its
        number of rows or columns and flatter than the change itself where that is larger.
    rank : how many stand out, where nothing but errors is left beside them; None where it has no
        such rank.
    low, high : directions that stand out clearly, and that may.
    whiteness : 1 for independent errors, near 0 where one direction carries all: the largest
        singular value that errors of the same sizes have, over the one found.
    """

    effective: float
    rank: int | None
    low: int
    high: int
    whiteness: float


def rounding_variance(values: NDArray[Any]) -> float | None:
    """The mean square of what rounding to their type would have changed numbers by.

    None where the type says nothing of the step between numbers.
    """
    kind = values.dtype.name
    if kind not in _SIGNIFICAND or not values.size:
        return None
    exponent = np.frexp(np.abs(values.astype(np.float64)))[1]
    exponent = np.maximum(exponent, _LEAST_EXPONENT.get(kind, -125))
    steps = np.ldexp(1.0, exponent - _SIGNIFICAND[kind])
    return float(np.mean(np.square(steps)) / 12.0)


def spectrum_of(sums: ChangeSums, rounding: float | None) -> ChangeSpectrum | None:
    """The spectrum of a change; None where nothing changed, or the matrix is too small.

    Parameters
    ----------
    sums : sums over the whole matrix.
    rounding : the mean square of errors of rounding, where it is known.
    """
    if min(sums.folded.shape) < _FEWEST or not sums.squares:
        return None
    known = sums.folded, sums.shuffled, sums.row_squares, sums.column_squares
    if not all(np.isfinite(one).all() for one in known):
        return None
    values = _singular_values(_evened(sums))
    squares = np.square(values)
    total = float(squares.sum())
    if not total or not np.isfinite(total):
        return None
    errors, found = (largest_singular_value(one) for one in (sums.shuffled, sums.folded))
    effective = total**2 / float(np.square(squares).sum())
    low, high = _standing_out(values, sums.folded.shape)
    expected = None if rounding is None else rounding * sums.numbers / sums.folded.size
    rank = _rank(values, sums.folded.shape, low, high, expected)
    return ChangeSpectrum(effective, rank, low, high, min(1.0, errors / found))


def _rank(
    values: NDArray[np.float64],
    shape: tuple[int, ...],
    low: int,
    high: int,
    expected: float | None,
) -> int | None:
    """How many singular values make the rank, where the next one is clearly smaller.

    `expected` is the mean square of errors of rounding in the folded matrix. Where an update is
    smaller than the step between numbers it leaves them as they are, so that errors follow it and
    stand out a little: then the ones count that stand out by half, if all others are far below.
    """
    tall, wide = shape
    variance = float(np.square(values[high:]).sum()) / max((tall - high) * (wide - high), 1)
    rounded = expected is not None and variance <= _ROUNDED * expected
    for rank, gap in ((high, _GAP if rounded else _CLEAR_GAP), (low, _CLEAR_GAP)):
        if not 0 < rank <= HIGHEST * len(values):
            continue
        after = values[rank] if rank < len(values) else 0.0
        if after <= 0 or values[rank - 1] >= gap * after:
            return rank
    return None


def _evened(sums: ChangeSums) -> NDArray[np.float64]:
    """The folded change, rows and columns divided by how large errors of rounding are in them.

    That makes errors alike everywhere and leaves the rank as it was.
    """
    found = sums.folded.astype(np.float64)
    for squares, axis in ((sums.row_squares, 0), (sums.column_squares, 1)):
        mean = squares.mean()
        if mean > 0:
            sizes = np.sqrt(np.maximum(squares / mean, _LEAST_SIZE))
            found /= np.expand_dims(sizes, 1 - axis)
    return found


def _singular_values(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Singular values, largest first.

    By a decomposition where squares would lose those among which a rank may end; of still smaller
    ones it matters that they are small.
    """
    squares = _squares(matrix)[::-1]
    if squares[int(HIGHEST * len(squares))] > _SQUARED * squares[0]:
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))
    return np.asarray(np.linalg.svd(matrix, compute_uv=False))


@computed_on_device
def _squares(matrix: Array) -> Array:
    """The squares of a small matrix' singular values, smallest first."""
    rows = matrix if len(matrix) <= matrix.shape[1] else matrix.T
    return array_module(rows).linalg.eigvalsh(rows @ rows.T)


def largest_singular_value(matrix: NDArray[np.float32]) -> float:
    """The largest singular value, to about 1e-5 of it.

    By Lanczos' method with every vector made orthogonal to all before: a tenth of the time of a
    decomposition, most of which other threads can use. A card decomposes while they go on.
    """
    wide = matrix.astype(np.float64)
    if on_card():
        return math.sqrt(max(float(_squares(wide)[-1]), 0.0))
    steps = min(_STEPS, *wide.shape)
    basis = np.zeros((steps, len(wide)))
    vector = np.random.default_rng(_STEPS).standard_normal(len(wide))
    for step in range(steps):
        for _ in range(2):  # the second time takes off what rounding left
            vector = vector - basis[:step].T @ (basis[:step] @ vector)
        length = float(np.linalg.norm(vector))
        if not length:
            break
        basis[step] = vector / length
        vector = wide @ (basis[step] @ wide)
    reached = basis @ wide
    return math.sqrt(max(float(np.linalg.eigvalsh(reached @ reached.T)[-1]), 0.0))


def _standing_out(values: NDArray[np.float64], shape: tuple[int, ...]) -> tuple[int, int]:
    """The fewest singular values beside which the others are those of errors, and those of them
    that are half as large again as errors get."""
    squares = np.square(values)
    tails = np.concatenate([np.cumsum(squares[::-1])[::-1], [0.0]])
    tall, wide = shape
    for rank in range(len(values)):
        left = max((tall - rank) * (wide - rank), 1)
        edge = math.sqrt(tails[rank] / left) * (math.sqrt(tall - rank) + math.sqrt(wide - rank))
        if values[rank] <= _BEYOND * edge:
            clear = int(np.count_nonzero(values[:rank] > 1.5 * edge))
            return clear, rank
    return 0, len(values)
