"""Numbers that a formula gives: tables of positions, frequencies, windows, filters.

Models that have nothing in common hold the same ones. A formula is told from learnt numbers without
its name: a sine, a ramp, a geometric series and sums and products of a few of them continue
themselves, since each number is one linear combination of those before it. Learnt numbers are not
that predictable: rounding alone is left of a computed series, about all of a learnt one. Patterns
of signs such as Hadamard's matrices say in their second half what the first one says, and their
rows lie at right angles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kinprint.measure.ordered import distinct

Floats = NDArray[np.float32]

_ORDER = 8  # numbers before: a sine needs two, a window times a sine six
_SHORT = 2  # of a series of few numbers
_LONG = 4 * _ORDER  # numbers from which on a series is long
_LOOKED_AT = 96  # numbers of a row that tell
_FEWEST = 6  # numbers that show a series of second order
_VALUES = 4  # fewer different ones continue themselves by chance
_SOME = 0.25  # of the series of a table: in two dimensions some stand still where others turn
_COARSE, _FINE = 2.0**-6, 2.0**-10  # what rounding to bfloat16, and sines in single, leave
_NEARLY_ALL = 0.9  # of the power: chance leaves a third of the frequencies 0.7 of it
_LINEAR = 0.7  # of the steps of a filter's slopes
_ROWS = 96  # rows of a table that tell
_SIGNS = 2.0**-7  # how far apart rounding puts numbers of one size
_PAIRS = 15  # of rows: six random ones of 128 signs are at right angles once in 10^17 times
_MANY = 256  # numbers among which short floats have small ones, with more binary places
_FEW_PLACES, _MORE_PLACES = 12, 16  # binary places of a short fraction, in short floats and others
_FILLED = 0.1  # distance from an even distribution
# Kolmogorov's distance times the root of the number: of random ones 0.0028 have less than 0.4, and
# 3 in 10^8 less than 0.25.
_EVEN, _VERY_EVEN = 0.4, 0.25


def computed(rows: Floats) -> bool:
    """Whether a table is computed: its rows, or its columns if the rows are consecutive ones.

    Rows that are all the same are one row written over and over.

    Examples
    --------
    >>> places = np.arange(8)[:, None] / 10000 ** (np.arange(64) / 64)
    >>> computed(np.sin(places).astype(np.float32))
    True
    >>> computed(np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32))
    False
    """
    wide = np.asarray(rows, np.float64)
    if not wide.size or not np.isfinite(wide).all():
        return False
    if (len(wide) > 1 and (wide == wide[0]).all()) or all(map(_repeats, wide)):
        return True
    return any(_continued(series, _slack(rows)) for series in (wide, wide.T))


def of_a_formula(matrix: Floats) -> bool:
    """Whether a formula gives a matrix, along its rows or its columns, as far as some of them tell.

    Hadamard's matrices too, however their rows and columns are ordered and signed.

    Examples
    --------
    >>> angles = np.pi / 64 * (np.arange(64) + 0.5) * np.arange(64)[:, None]
    >>> of_a_formula(np.cos(angles).astype(np.float32))
    True
    >>> of_a_formula(np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32))
    False
    """
    return of_formulas([matrix])[0]


def of_formulas(matrices: Sequence[Floats]) -> list[bool]:
    """`of_a_formula` of several matrices: one look at all of them finds most to be of none."""
    series = [
        (at, one)
        for at, matrix in enumerate(matrices)
        if matrix.size and np.isfinite(matrix[0]).all()
        for one in (matrix, matrix.T)
    ]
    clear = _concentrated([one[len(one) // 2, :_LOOKED_AT] for _, one in series])
    told = {
        at
        for (at, one), likely in zip(series, clear, strict=True)
        if (likely and _series_continue(one)) or _is_of_signs(one)
    }
    return [at in told for at in range(len(matrices))]


def _series_continue(series: Floats) -> bool:
    """Whether enough of some series continue themselves."""
    some = series[np.linspace(0, len(series) - 1, _ORDER).astype(np.int64), :_LOOKED_AT]
    return _continued(np.asarray(some, np.float64), _slack(some))


def _concentrated(series: Sequence[Floats]) -> list[bool]:
    """Of which series a third of the frequencies have nearly all of the power: rare by chance.

    So it is where a few sines and lines make up a long series. Of a constant nothing is left.
    """
    found = [False] * len(series)
    for length in {len(one) for one in series if len(one) >= _LONG}:
        alike = [at for at, one in enumerate(series) if len(one) == length]
        power = np.square(np.abs(np.fft.rfft([series[at] for at in alike])[:, 1:]))
        power.sort(axis=1)
        most = power[:, -power.shape[1] // 3 :].sum(axis=1) >= _NEARLY_ALL * power.sum(axis=1)
        for at, one in zip(alike, most.tolist(), strict=True):
            found[at] = one
    return found


def tabulated(rows: Floats) -> bool:
    """Whether numbers stand in a table that nobody trains: patterns of signs at right angles, also
    in blocks and between zeros, whole numbers, and numbers that are spread more evenly than chance
    spreads them, as the tables of Sobol, Halton and van der Corput.

    Examples
    --------
    >>> tabulated(np.random.default_rng(0).permutation(64)[None].astype(np.float32) / 64)
    True
    >>> tabulated(np.random.default_rng(0).random((8, 64)).astype(np.float32))
    False
    """
    if not rows.size or not np.isfinite(rows).all() or not rows.any():
        return False
    return right_angled(rows) or whole(rows) or _spread_evenly(rows)


def right_angled(rows: Floats) -> bool:
    """Whether rows are signs of one size and zeros, and at right angles, along either axis.

    Rows without a place in common say nothing: as many must have some as chance does not bring to
    right angles.
    """
    return any(_are_right_angled(one[:_ROWS]) for one in (rows, rows.T))


def _are_right_angled(rows: Floats) -> bool:
    size = np.abs(rows).max(axis=1, initial=0.0, keepdims=True)
    off = np.abs(np.abs(rows) - size)
    if not ((off <= _SIGNS * size) | (rows == 0)).all():
        return False
    signs = np.sign(rows, dtype=np.float32)
    products, common = signs @ signs.T, np.abs(signs) @ np.abs(signs).T
    pairs = np.triu(common >= _FEWEST, 1)
    return bool(pairs.sum() >= _PAIRS and not products[pairs].any())


def whole(rows: Floats) -> bool:
    """Whether all numbers are whole, as those of a mask, an index or a count."""
    return bool(rows.size and np.array_equal(rows, np.rint(rows)) and rows.any())


def _spread_evenly(rows: Floats) -> bool:
    """Whether numbers have few binary places and fill an interval, or fill it too evenly."""
    return _is_dyadic(rows) or any(_evenness(one) for one in (rows, rows.T))


def _is_dyadic(rows: Floats) -> bool:
    """Whether a table fills the interval from nought or minus one to one with short fractions.

    Short floats have few binary places too, but small ones among them have them further down.
    """
    if rows.size < _MANY or rows.min() < -1 or rows.max() > 1:
        return False
    coarse = np.array_equal(rows.astype(ml_dtypes.bfloat16).astype(np.float32), rows)
    coarse = coarse or np.array_equal(rows.astype(np.float16).astype(np.float32), rows)
    places = np.ldexp(np.asarray(rows, np.float64), _FEW_PLACES if coarse else _MORE_PLACES)
    if not np.array_equal(places, np.rint(places)):
        return False
    low = -1.0 if rows.min() < 0 else 0.0
    return bool(_distance(np.sort(rows, axis=None)[None], low, 1.0)[0] <= _FILLED)


def _evenness(series: Floats) -> bool:
    """Whether series fill their intervals more evenly than chance does, most of them or the one."""
    length = series.shape[1]
    if length < _LONG:
        return False
    ordered = np.sort(np.asarray(series, np.float64)[:_ROWS], axis=1)
    ordered = ordered[np.diff(ordered, axis=1).all(axis=1)]  # what repeats has other reasons
    if 2 * len(ordered) < min(len(series), _ROWS):
        return False
    far = _distance(ordered, ordered[:, :1], ordered[:, -1:]) * np.sqrt(length)
    return bool(np.median(far) <= (_EVEN if len(far) >= _FEWEST else _VERY_EVEN))


def _distance(ordered: NDArray[Any], low: Any, high: Any) -> NDArray[np.float64]:
    """How far the distributions of series are from an even one (Kolmogorov's distance)."""
    steps = np.arange(ordered.shape[1] + 1) / ordered.shape[1]
    share = (ordered - low) / (high - low)
    far = np.maximum(np.abs(share - steps[:-1]), np.abs(share - steps[1:]))
    return np.asarray(far.max(axis=1), np.float64)


def _is_of_signs(rows: Floats) -> bool:
    """Whether rows are of numbers of one size, and at right angles, as chance has none."""
    if len(rows) < _FEWEST or (rows.shape[1] > 1 and abs(rows[0, 0]) != abs(rows[0, 1])):
        return False
    size = np.abs(rows[:, :1])
    if not size[0] or not size[-1]:
        return False
    if not all((np.abs(rows[at]) == size[at]).all() for at in (0, -1)):
        return False
    signs = np.sign(rows[:_LOOKED_AT], dtype=np.float32)
    products = signs @ signs.T
    return bool((np.abs(rows) == size).all() and np.count_nonzero(products) == len(signs))


def continues(row: Floats) -> bool:
    """Whether a row of numbers, or as much of it as tells, is computed."""
    if _repeats(row):
        return True
    some = np.asarray(row[:_LOOKED_AT], np.float64)
    if len(some) < _LONG or not np.isfinite(some).all():
        return False
    return _continued(some[None], _slack(row[:_LOOKED_AT]))


def _repeats(row: NDArray[Any]) -> bool:
    """Whether a row is its beginning over and over, at least twice, or in turn with its opposite.

    Of the periods that the first numbers allow, all are tried.
    """
    half = len(row) // 2
    if half < _FEWEST:
        return False
    row, size = row[: 2 * half], np.abs(row[: 2 * half])
    periods = np.flatnonzero(size[1 : half + 1] == size[0]) + 1
    if not len(periods):
        return False
    for start in range(1, _VALUES):
        periods = periods[size[np.minimum(periods + start, 2 * half - 1)] == size[start]]
    return any(
        np.array_equal(row[period:], row[:-period]) or np.array_equal(row[period:], -row[:-period])
        for period in periods
    )


def _slack(rows: Floats) -> float:
    """How far rounding may put numbers off, as a share of the largest."""
    coarse = np.array_equal(rows.astype(ml_dtypes.bfloat16).astype(np.float32), rows)
    return _COARSE if coarse else _FINE


def _continued(series: NDArray[np.float64], slack: float) -> bool:
    """Whether enough of the series that vary continue themselves."""
    length = series.shape[1]
    if length < _FEWEST:
        return False
    size = np.abs(series).max(axis=1)
    varying = series[np.ptp(series, axis=1) > 4 * slack * size]
    if not len(varying):
        return False
    order = _ORDER if length >= _LONG else _SHORT
    hits = sum(_is_linear(one, slack) or _predicted(one, order, slack) for one in varying)
    return bool(hits >= max(_SOME * len(varying), min(len(varying), 2)))


def _predicted(series: NDArray[np.float64], order: int, slack: float) -> bool:
    """Whether each number is a linear combination of those before it and a constant."""
    if np.count_nonzero(series) < _FEWEST or distinct(series) < _VALUES:
        return False
    windows = np.lib.stride_tricks.sliding_window_view(series, order + 1)
    before = np.column_stack([windows[:, :order], np.ones(len(windows))])
    fitted = before @ np.linalg.lstsq(before, windows[:, order], rcond=None)[0]
    error = np.abs(windows[:, order] - fitted).max()
    return bool(error <= slack * np.abs(series).max())


def _is_linear(series: NDArray[np.float64], slack: float) -> bool:
    """Whether a series is made of a few straight lines, between zeros at its ends."""
    some = np.flatnonzero(series)
    span = series[some[0] : some[-1] + 1] if len(some) else series[:0]
    if len(span) < _FEWEST or np.count_nonzero(span) < _LINEAR * len(span):
        return False
    bends = np.abs(np.diff(span, 2)) > slack * np.abs(span).max()
    return bool(1 - bends.mean() >= _LINEAR)
