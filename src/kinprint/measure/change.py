"""How one array of numbers changed into another, from sums that one pass over them gives.

Sums of blocks add up to those of the whole, whichever way it was cut. Beside them a change is
folded into a small matrix: columns that are `FOLDED` apart are added with random signs, then rows.
The rank of the change is that of the folded one, as long as it is smaller, and independent errors
stay independent, so that what is left of a low rank is told from rounding (count sketches: Clarkson
and Woodruff, arXiv 1207.6365). A second one, in which every number got a random sign first, shows
what errors of the same sizes without any structure would give. Arrays may be NumPy's or CuPy's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.device import Array, array_module, downloaded, on_card, uploaded

Floats = NDArray[np.float32]

FOLDED = 256
"""Rows and columns of a folded change, at most."""
_AT_ONCE = 1 << 20  # numbers: with fewer, threads wait for each other more than they compute
_SMALL, _EVERY, _FOLDS_SUMMED = 1 << 20, 8, 2  # of which all rows and columns are summed, else so
_STRIPE = 64  # rows that are summed together, one of `_EVERY` such
_COINS = (1 << 20) - 3  # random signs, taken from another place for each block
_SEED = 20260
_HALF, _LOW = 16, 0xFFFF  # the last bits of a whole number, which are subtracted by themselves
_LITTLE = 1e-3  # of the squares: changes of less than 97 % leave more
_TOLD = 16  # rows of so many numbers, or columns: of fewer chance makes right angles
_CROSSED = 32  # rows and columns, from the middle, whose products with their change are summed
_UNFOLDED, _UNSUMMED, _UNCROSSED = np.zeros((0, 0), np.float32), np.zeros(0), np.zeros((4, 0))


class ChangeSums(Struct, frozen=True, eq=False):
    """Sums over numbers of two arrays at equal places; those of parts may be added.

    Attributes
    ----------
    numbers : how many there are.
    equal : how many are equal; bit by bit where both are stored in one type, and whole numbers with
        all of their digits.
    broken : how many are not finite in either array, equal ones left out; they are in no sum.
    zeroed, filled : how many became zero, or were zero before and are not.
    zeros : how many are zero in both.
    a_squares, a_changes, squares : sums of a², a · (b − a) and (b − a)².
    largest : the largest |b − a|.
    folded : the change, folded into a small matrix.
    shuffled : the same of changes with random signs.
    row_squares, column_squares : sums of b² over rows and columns, folded alike: errors of rounding
        are in proportion. Of a large matrix they are taken from a part.
    row_products, column_products : of some rows and columns from the middle, the sums of
        b · (b − a), b² and (b − a)², and how many numbers each has.
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
    row_products: NDArray[np.float64]
    column_products: NDArray[np.float64]

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

    @property
    def left(self) -> float | None:
        """How much of the second lies in the directions of the change: 1 for as much as by chance,
        0 where they were taken out of it. None where nothing tells.

        Where they are directions of columns, each column of the second is at right angles to its
        own change, and so with rows. Of unrelated directions in n dimensions the squared cosine is
        1/n on the average.
        """
        found = []
        for products, after, changes, counts in (self.row_products, self.column_products):
            by_chance = float((after * changes / np.maximum(counts, 1.0)).sum())
            told = np.count_nonzero(changes) >= _TOLD and counts.max() >= _TOLD
            if by_chance > 0 and told:
                found.append(float(np.square(products).sum()) / by_chance)
        return min(found, default=None)

    @property
    def uneven(self) -> float | None:
        """How far the factors of single rows or columns are from that of all (root mean square, by
        their sizes): 0.5 where half of them are copies and the others have nothing in common. None
        where nothing tells."""
        found = []
        for products, after, changes, counts in (self.row_products, self.column_products):
            before = np.maximum(after - 2 * products + changes, 0.0)
            told = np.count_nonzero(before) >= _TOLD and counts.max() >= _TOLD
            if told:
                factors = 1.0 + (products - changes) / np.where(before > 0, before, 1.0)
                squares = np.square(factors - self.scale)
                found.append(math.sqrt((before * squares).sum() / before.sum()))
        return max(found, default=None)

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
            self.row_products + other.row_products,
            self.column_products + other.column_products,
        )


def change_sums(
    a: Array, b: Array, shape: tuple[int, int], first_row: int = 0, first_column: int = 0
) -> ChangeSums:
    """Sums over a block of a matrix.

    Parameters
    ----------
    a, b : the block before and after, rows by columns, in any types of floats, or whole
        numbers of 32 or 64 bits; what single precision has not is summed in double precision.
    shape : rows and columns of the whole matrix.
    first_row, first_column : where the block begins in it.
    """
    if on_card() and not _is_wide(a, b):
        return _card_sums(a, b, shape, first_row, first_column)
    rows, columns = a.shape
    tall, wide = min(shape[0], FOLDED), min(shape[1], FOLDED)
    signs = _signs(shape[1], 1)[first_column : first_column + columns]
    folds = np.zeros((2, tall, wide), np.float32)
    row_squares, column_squares = np.zeros(tall), np.zeros(wide)
    every, some_columns = _part_of(shape)
    sums = np.zeros(3)
    counts = np.zeros(6, np.int64)
    row_products, column_products = (np.zeros((4, min(size, _CROSSED))) for size in shape)
    largest = 0.0
    each = max(1, _AT_ONCE // max(columns, 1))
    work = _Buffers(each, columns, np.float64 if _is_wide(a, b) else np.float32)
    for start in range(0, rows if columns else 0, each):
        some_a, some_b = a[start : start + each], b[start : start + each]
        x, y, d = work.of(len(some_a))
        x[...], y[...] = some_a, some_b
        _subtract(some_a, some_b, x, y, out=d)
        flat = x.reshape(-1), y.reshape(-1), d.reshape(-1)
        some = _sums(flat[0], flat[2])
        equal = _equal(some_a, some_b, x, y)
        same = int(np.count_nonzero(equal))
        broken = bad = 0
        if not np.isfinite(some).all():
            equal |= np.isnan(x) & np.isnan(y)
            same = int(np.count_nonzero(equal))
            broken, bad = _mend(x, y, d, equal)
            some = _sums(*(z.reshape(-1).astype(np.float64) for z in (x, d)))
        if _cancel(some):
            some = _sums_of_small(x, y)
        sums += some
        x_zeros, y_zeros = (int(np.count_nonzero(one == 0)) - bad for one in (x, y))
        both = int(np.count_nonzero((x == 0) & (y == 0))) - bad if x_zeros and y_zeros else 0
        counts += (x.size, same, broken, y_zeros - both, x_zeros - both, both)
        at = first_row + start
        some_y = y[:, :some_columns]
        row_squares += _wrapped(np.einsum("ij,ij->i", some_y, some_y), at, tall)
        for stripe in _stripes(at, len(y), every):
            some_y = y[stripe]
            column_squares += _wrapped(np.einsum("ij,ij->j", some_y, some_y), first_column, wide)
        row_products += _crossed(x, y, at, 0, shape)
        column_products += _crossed(x, y, first_column, 1, shape)
        if same == x.size:
            continue
        largest = max(largest, float(d.max()), -float(d.min()))
        folds[0] += _folded(d, signs, first_column, at, shape)
        coins = _coins(at * shape[1] + first_column, d.size)
        np.multiply(flat[2], coins, out=flat[1])
        folds[1] += _folded(y, signs, first_column, at, shape)
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
        row_products=row_products,
        column_products=column_products,
    )


def unfolded_sums(a: Array, b: Array) -> ChangeSums:
    """Sums over some rows of a matrix without its folded forms: a few rows have no directions."""
    kind = np.float64 if _is_wide(a, b) else np.float32
    x, y = a.astype(kind), b.astype(kind)
    d = np.empty_like(x)
    _subtract(a, b, x, y, out=d)
    equal = _equal(a, b, x, y)
    some, broken, bad = _sums(x.reshape(-1), d.reshape(-1)), 0, 0
    if not np.isfinite(some).all():
        equal = equal | (np.isnan(x) & np.isnan(y))
        broken, bad = _mend(x, y, d, equal)
        some = _sums(*(one.reshape(-1).astype(np.float64) for one in (x, d)))
    if _cancel(some):
        some = _sums_of_small(x, y)
    x_zeros, y_zeros = (int(np.count_nonzero(one == 0)) - bad for one in (x, y))
    both = int(np.count_nonzero((x == 0) & (y == 0))) - bad if x_zeros and y_zeros else 0
    return ChangeSums(
        numbers=x.size,
        equal=int(np.count_nonzero(equal)),
        broken=broken,
        zeroed=y_zeros - both,
        filled=x_zeros - both,
        zeros=both,
        a_squares=float(some[0]),
        a_changes=float(some[1]),
        squares=float(some[2]),
        largest=float(np.abs(d).max(initial=0.0)),
        folded=_UNFOLDED,
        shuffled=_UNFOLDED,
        row_squares=_UNSUMMED,
        column_squares=_UNSUMMED,
        row_products=_UNCROSSED,
        column_products=_UNCROSSED,
    )


def _card_sums(
    a: Array, b: Array, shape: tuple[int, int], first_row: int, first_column: int
) -> ChangeSums:
    """The same on a graphics card."""
    from kinprint.measure.change_on_card import card_sums

    rows, columns = a.shape
    here = uploaded(a), uploaded(b)
    x, y = (one.astype(np.float32, order="C", copy=False) for one in here)
    every, some_columns = _part_of(shape)
    found = card_sums(
        x,
        y,
        _equal(*here, x, y),
        (
            _on_card(_signs, shape[0], 0)[first_row : first_row + rows],
            _on_card(_signs, shape[1], 1)[first_column : first_column + columns],
        ),
        _coins(first_row * shape[1] + first_column, rows * columns),
        first=(first_row, first_column),
        folds=(min(shape[0], FOLDED), min(shape[1], FOLDED)),
        stripes=(_STRIPE, every),
        summed=columns if some_columns is None else some_columns,
    )
    a_squares, a_changes, squares = found.totals.tolist()
    return ChangeSums(
        rows * columns,
        found.equal,
        found.broken,
        found.zeroed,
        found.filled,
        found.zeros,
        a_squares,
        a_changes,
        squares,
        found.largest,
        found.folded,
        found.shuffled,
        found.row_squares,
        found.column_squares,
        _crossed(x, y, first_row, 0, shape),
        _crossed(x, y, first_column, 1, shape),
    )


def _crossed(
    a: Array, b: Array, first: int, axis: int, shape: tuple[int, int]
) -> NDArray[np.float64]:
    """Products of some rows (axis 0) or columns with their change, as far as they lie in a block
    whose first one is at `first`."""
    start = max(0, (shape[axis] - _CROSSED) // 2)
    stop = min(shape[axis], start + _CROSSED)
    low, high = max(start, first), min(stop, first + a.shape[axis])
    found = np.zeros((4, stop - start))
    if low >= high:
        return found
    some = (slice(low - first, high - first), slice(None))[:: 1 - 2 * axis]
    x, y = (one[some].astype(np.float64) for one in (a, b))
    xp = array_module(x)
    finite = xp.isfinite(x) & xp.isfinite(y)
    y, d = xp.where(finite, y, 0.0), xp.where(finite, y - x, 0.0)
    sums = [(one * other).sum(axis=1 - axis) for one, other in ((y, d), (y, y), (d, d))]
    found[:3, low - start : high - start] = downloaded(xp.stack(sums))
    found[3, low - start : high - start] = a.shape[1 - axis]
    return found


def _stripes(first: int, count: int, every: int) -> list[slice]:
    """One of `every` stripes of a matrix, as far as they lie in so many rows from the first on."""
    if every == 1:
        return [slice(0, count)]
    begun = first // _STRIPE * _STRIPE
    starts = (at for at in range(begun, first + count, _STRIPE) if at // _STRIPE % every == 0)
    return [slice(max(at - first, 0), min(at + _STRIPE - first, count)) for at in starts]


def _part_of(shape: tuple[int, int]) -> tuple[int, int | None]:
    """Of how many stripes of rows one has its columns summed, and of how many columns rows are."""
    if shape[0] * shape[1] <= _SMALL:
        return 1, None
    return _EVERY, max(_FOLDS_SUMMED * FOLDED, 1)


def _sums(x: Array, d: Array) -> NDArray[np.float64]:
    with np.errstate(over="ignore", invalid="ignore"):
        return _products(x, d)


def _products(x: Array, d: Array) -> NDArray[np.float64]:
    return np.array([float(x @ x), float(x @ d), float(d @ d)])


def _cancel(sums: NDArray[np.float64]) -> bool:
    """Whether so little is left of what was there that single precision loses it: the square of
    what is there now is that of before, and the change's, less nearly all of both."""
    return bool(sums[0] + 2 * sums[1] + sums[2] < _LITTLE * sums[0])


def _sums_of_small(x: Array, y: Array) -> NDArray[np.float64]:
    """The same sums in double precision, the change too."""
    before, after = (one.reshape(-1).astype(np.float64) for one in (x, y))
    return _sums(before, after - before)


class _Buffers:
    """Room for a few rows before, after, and their change; made once for a block."""

    def __init__(self, rows: int, columns: int, kind: type[np.floating[Any]]) -> None:
        self._room = np.empty((3, rows, columns), kind)

    def of(self, rows: int) -> tuple[Array, Array, Array]:
        return self._room[0, :rows], self._room[1, :rows], self._room[2, :rows]


_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def _bits(array: Array) -> Array:
    return array.view(_BITS[array.dtype.itemsize])


def _equal(a: Array, b: Array, x: Array, y: Array) -> Array:
    """Which numbers of two arrays are equal; `x` and `y` are the same numbers as floats."""
    if a.dtype == b.dtype and a.dtype.itemsize in _BITS:
        return _bits(a) == _bits(b)
    return a == b if _are_whole(a, b) else x == y


def _subtract(a: Array, b: Array, x: Array, y: Array, out: Array) -> None:
    """The change of numbers, from `x` to `y` as floats.

    Floats have not all digits of long whole numbers, so that halves of these are subtracted.
    """
    if _are_whole(a, b):
        high = (b >> _HALF).astype(np.float64) - (a >> _HALF)
        low = (b & _LOW).astype(np.float64) - (a & _LOW)
        out[...] = high * (_LOW + 1) + low
        return
    with np.errstate(over="ignore", invalid="ignore"):
        np.subtract(y, x, out=out)


def _are_whole(a: Array, b: Array) -> bool:
    """Whether two arrays are of types of whole numbers."""
    return a.dtype.kind in "iu" and b.dtype.kind in "iu"


def _is_wide(a: Array, b: Array) -> bool:
    """Whether one of two arrays is of a type with numbers that single precision has not."""
    return any(np.result_type(one.dtype, np.float32) == np.float64 for one in (a, b))


def _mend(x: Array, y: Array, d: Array, equal: NDArray[np.bool_]) -> tuple[int, int]:
    """Take numbers that are not finite out of the sums, and those whose difference or whose square
    no number can hold; count those that differ, and all."""
    with np.errstate(over="ignore"):
        squares = (np.square(one, dtype=np.float64) for one in (x, y, d))
        bad = ~np.logical_and.reduce([np.isfinite(one) for one in squares])
    x[bad], y[bad], d[bad] = 0.0, 0.0, 0.0
    return int(np.count_nonzero(bad & ~equal)), int(np.count_nonzero(bad))


def _folded(rows: Array, signs: Array, first: int, at: int, shape: tuple[int, int]) -> Array:
    """Add columns that are `FOLDED` apart, then rows, with their signs.

    `first` and `at` are the places of the first column and row; `signs` those of the columns.
    """
    wide = min(shape[1], FOLDED)
    columns = rows.shape[1]
    if first % wide:
        narrow = _wrapped((rows * signs).T, first, wide).T
    else:
        slabs, rest = columns // wide, columns % wide
        whole = slabs * wide
        cut = rows[:, :whole].reshape(len(rows), slabs, wide)
        narrow = np.einsum("ijk,jk->ik", cut, signs[:whole].reshape(slabs, wide))
        narrow[:, :rest] += rows[:, whole:] * signs[whole:]
    row_signs = _signs(shape[0], 0)[at : at + len(rows)]
    return _wrapped(narrow * row_signs[:, None], at, min(shape[0], FOLDED))


def _wrapped(values: Array, first: int, period: int) -> Array:
    """Sums of values, along the first axis, whose places are a period apart; the first is at
    `first`."""
    before = first % period
    periods = -(-(before + len(values)) // period)
    if before or len(values) % period:
        room = np.zeros((periods * period, *values.shape[1:]), values.dtype)
        room[before : before + len(values)] = values
        values = room
    return values.reshape(periods, period, *values.shape[1:]).sum(axis=0)


@cache
def _on_card(made: Callable[..., Floats], *given: int) -> Array:
    return uploaded(made(*given))


@cache
def _signs(count: int, axis: int) -> Floats:
    """A sign for each row or column of a matrix; all are positive where nothing is folded."""
    if count <= FOLDED:
        return np.ones(count, np.float32)
    draw = np.random.default_rng([_SEED, axis, count])
    return (2 * draw.integers(0, 2, count) - 1).astype(np.float32)


@cache
def _some_coins(count: int) -> Floats:
    draw = np.random.default_rng([_SEED, 2])
    coins = (2 * draw.integers(0, 2, _COINS) - 1).astype(np.float32)
    return np.resize(coins, _COINS + count)


def _coins(place: int, count: int) -> Array:
    """Random signs for numbers that begin at a place of a matrix."""
    start, room = place % _COINS, max(_AT_ONCE, 1 << count.bit_length())
    known = _on_card(_some_coins, room) if on_card() else _some_coins(room)
    return known[start : start + count]
