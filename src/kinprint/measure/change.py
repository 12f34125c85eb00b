"""How one array of numbers changed into another, from sums that one pass over them gives.

Sums of blocks add up to those of the whole, whichever way it was cut. Beside them a change is
folded into a small matrix: columns that are `FOLDED` apart are added with random signs, then rows.
The rank of the change is that of the folded one, as long as it is smaller, and independent errors
stay independent, so that what is left of a low rank is told from rounding (count sketches: Clarkson
and Woodruff, arXiv 1207.6365). A second one, in which every number got a random sign first, shows
what errors of the same sizes without any structure would give.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Array = NDArray[Any]

FOLDED = 256
"""Rows and columns of a folded change, at most."""
_AT_ONCE = 1 << 20  # numbers: with fewer, threads wait for each other more than they compute
_SMALL, _EVERY, _FOLDS_SUMMED = 1 << 20, 8, 2  # of which all rows and columns are summed, else so
_COINS = (1 << 20) - 3  # random signs, taken from another place for each block
_SEED = 20260


@dataclass(frozen=True, slots=True, eq=False)
class ChangeSums:
    """Sums over numbers of two arrays at equal places; those of parts may be added.

    Attributes
    ----------
    numbers : how many there are.
    equal : how many are equal; bit by bit where both are stored in one type.
    broken : how many are not finite in either array, equal ones left out; they are in no sum.
    zeroed, filled : how many became zero, or were zero before and are not.
    zeros : how many are zero in both.
    a_squares, a_changes, squares : sums of a², a · (b − a) and (b − a)².
    largest : the largest |b − a|.
    folded : the change, folded into a small matrix.
    shuffled : the same of changes with random signs.
    row_squares, column_squares : sums of b² over rows and columns, folded alike: errors of rounding
        are in proportion. Of a large matrix they are taken from a part.
    """

    numbers: int
    equal: int
    broken: int
    zeroed: int
    filled: int
    zeros: int
    a_squares: float
    a_changes: float
    squares: float
    largest: float
    folded: Floats
    shuffled: Floats
    row_squares: NDArray[np.float64]
    column_squares: NDArray[np.float64]

    @property
    def changed(self) -> float:
        """The share of numbers that are not equal."""
        return 1.0 - self.equal / self.numbers if self.numbers else 0.0

    @property
    def relative(self) -> float:
        """The size of the change in terms of what was there; infinite where that was nothing."""
        if not self.squares:
            return 0.0
        return math.sqrt(self.squares / self.a_squares) if self.a_squares else math.inf

    @property
    def scale(self) -> float:
        """The factor that brings the first nearest to the second, by least squares."""
        return 1.0 + self.a_changes / self.a_squares if self.a_squares else math.nan

    @property
    def cosine(self) -> float:
        """The cosine of the angle between the two."""
        after = self.a_squares + 2 * self.a_changes + self.squares
        size = math.sqrt(max(self.a_squares * after, 0.0))
        return min(1.0, (self.a_squares + self.a_changes) / size) if size > 0 else math.nan

    def __add__(self, other: ChangeSums) -> ChangeSums:
        return ChangeSums(
            self.numbers + other.numbers,
            self.equal + other.equal,
            self.broken + other.broken,
            self.zeroed + other.zeroed,
            self.filled + other.filled,
            self.zeros + other.zeros,
            self.a_squares + other.a_squares,
            self.a_changes + other.a_changes,
            self.squares + other.squares,
            max(self.largest, other.largest),
            self.folded + other.folded,
            self.shuffled + other.shuffled,
            self.row_squares + other.row_squares,
            self.column_squares + other.column_squares,
        )


def change_sums(
    a: Array, b: Array, shape: tuple[int, int], first_row: int = 0, first_column: int = 0
) -> ChangeSums:
    """Sums over a block of a matrix.

    Parameters
    ----------
    a, b : the block before and after, rows by columns, in any types of floats.
    shape : rows and columns of the whole matrix.
    first_row, first_column : where the block begins in it.
    """
    rows, columns = a.shape
    tall, wide = min(shape[0], FOLDED), min(shape[1], FOLDED)
    signs = _signs(shape[1], 1)[first_column : first_column + columns]
    folds = np.zeros((2, tall, wide), np.float32)
    row_squares, column_squares = np.zeros(tall), np.zeros(wide)
    every, some_columns = _part_of(shape)
    sums = np.zeros(3)
    counts = np.zeros(6, np.int64)
    largest = 0.0
    each = max(1, _AT_ONCE // max(columns, 1))
    alike = a.dtype == b.dtype and a.dtype.itemsize in _BITS
    work = _Buffers(each, columns)
    for start in range(0, rows, each):
        some_a, some_b = a[start : start + each], b[start : start + each]
        x, y, d = work.of(len(some_a))
        x[...], y[...] = some_a, some_b
        with np.errstate(over="ignore", invalid="ignore"):
            np.subtract(y, x, out=d)
        flat = x.reshape(-1), y.reshape(-1), d.reshape(-1)
        some = _sums(flat[0], flat[2])
        equal = _bits(some_a) == _bits(some_b) if alike else x == y
        same = int(np.count_nonzero(equal))
        broken = 0
        if not np.isfinite(some).all():
            equal |= np.isnan(x) & np.isnan(y)
            same = int(np.count_nonzero(equal))
            broken = _mend(x, y, d, equal)
            some = _sums(*(z.reshape(-1).astype(np.float64) for z in (x, d)))
        sums += some
        x_zeros, y_zeros = (int(np.count_nonzero(one == 0)) for one in (x, y))
        both = int(np.count_nonzero((x == 0) & (y == 0))) if x_zeros and y_zeros else 0
        counts += (x.size, same, broken, y_zeros - both, x_zeros - both, both)
        if same == x.size:
            continue
        largest = max(largest, float(d.max()), -float(d.min()))
        at = first_row + start
        some_y = y[:, :some_columns]
        _add_runs(row_squares, np.einsum("ij,ij->i", some_y, some_y), at)
        if at // each % every == 0:
            _add_runs(column_squares, np.einsum("ij,ij->j", y, y), first_column)
        _fold_rows(folds[0], _fold_columns(d, signs, first_column, wide), at, shape[0])
        coins = _coins(at * shape[1] + first_column, d.size)
        np.multiply(flat[2], coins, out=flat[1])
        _fold_rows(folds[1], _fold_columns(y, signs, first_column, wide), at, shape[0])
    numbers, same, broken, zeroed, filled, zeros = counts.tolist()
    return ChangeSums(
        numbers=numbers,
        equal=same,
        broken=broken,
        zeroed=zeroed,
        filled=filled,
        zeros=zeros,
        a_squares=float(sums[0]),
        a_changes=float(sums[1]),
        squares=float(sums[2]),
        largest=largest,
        folded=folds[0],
        shuffled=folds[1],
        row_squares=row_squares,
        column_squares=column_squares,
    )


def _part_of(shape: tuple[int, int]) -> tuple[int, int | None]:
    """How many groups of rows give one whose columns are summed, and columns whose rows are."""
    if shape[0] * shape[1] <= _SMALL:
        return 1, None
    return _EVERY, max(_FOLDS_SUMMED * FOLDED, 1)


def _add_runs(out: NDArray[np.float64], values: Array, first: int) -> None:
    """Add values to those of places that are as many apart as `out` has."""
    for start, stop, to in _runs(first, len(values), len(out)):
        out[to : to + stop - start] += values[start:stop]


def _sums(x: Array, d: Array) -> NDArray[np.float64]:
    with np.errstate(over="ignore", invalid="ignore"):
        return _products(x, d)


def _products(x: Array, d: Array) -> NDArray[np.float64]:
    return np.array([x @ x, x @ d, d @ d], np.float64)


class _Buffers:
    """Room for a few rows before, after, and their change; made once for a block."""

    def __init__(self, rows: int, columns: int) -> None:
        self._room = np.empty((3, rows, columns), np.float32)

    def of(self, rows: int) -> tuple[Floats, Floats, Floats]:
        return self._room[0, :rows], self._room[1, :rows], self._room[2, :rows]


_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _bits(array: Array) -> NDArray[Any]:
    return array.view(_BITS[array.dtype.itemsize])


def _mend(x: Floats, y: Floats, d: Floats, equal: NDArray[np.bool_]) -> int:
    """Take numbers that are not finite out of the sums, and count those that differ; so do those
    whose difference no number can hold."""
    bad = ~(np.isfinite(x) & np.isfinite(y) & np.isfinite(d))
    x[bad], y[bad], d[bad] = 0.0, 0.0, 0.0
    return int(np.count_nonzero(bad & ~equal))


def _fold_columns(rows: Floats, signs: Floats, first: int, wide: int) -> Floats:
    """Add columns that are `wide` apart, with their signs."""
    columns = rows.shape[1]
    if first % wide or columns < wide:  # a block that begins or ends between the folds
        out = np.zeros((len(rows), wide), np.float32)
        signed = rows * signs
        for start, stop, to in _runs(first, columns, wide):
            out[:, to : to + stop - start] += signed[:, start:stop]
        return out
    whole = columns // wide * wide
    slabs = rows[:, :whole].reshape(len(rows), -1, wide)
    out = np.asarray(np.einsum("ijk,jk->ik", slabs, signs[:whole].reshape(-1, wide)), np.float32)
    if whole < columns:
        out[:, : columns - whole] += rows[:, whole:] * signs[whole:]
    return out


def _fold_rows(out: Floats, rows: Floats, first: int, count: int) -> None:
    """Add rows that are as many apart as `out` has, with their signs."""
    signs = _signs(count, 0)[first : first + len(rows)]
    signed = rows * signs[:, None]
    for start, stop, to in _runs(first, len(rows), len(out)):
        out[to : to + stop - start] += signed[start:stop]


def _runs(first: int, count: int, period: int) -> list[tuple[int, int, int]]:
    """Stretches of places that stay within one period: their start, stop, and place in it."""
    found, start = [], 0
    while start < count:
        to = (first + start) % period
        stop = min(count, start + period - to)
        found.append((start, stop, to))
        start = stop
    return found


@cache
def _signs(count: int, axis: int) -> Floats:
    """A sign for each row or column of a matrix; all are positive where nothing is folded."""
    if count <= FOLDED:
        return np.ones(count, np.float32)
    draw = np.random.default_rng([_SEED, axis, count])
    return (2 * draw.integers(0, 2, count) - 1).astype(np.float32)


@cache
def _all_coins() -> Floats:
    draw = np.random.default_rng([_SEED, 2])
    coins = (2 * draw.integers(0, 2, _COINS) - 1).astype(np.float32)
    return np.concatenate([coins, coins[:_AT_ONCE]])


def _coins(place: int, count: int) -> Floats:
    """Random signs for numbers that begin at a place of a matrix."""
    start = place % _COINS
    known = _all_coins()
    if start + count <= len(known):
        return known[start : start + count]
    return np.resize(np.roll(known[:_COINS], -start), count)
