"""Do numbers at some places run along a course, as a formula gives it?

Models that have nothing in common may start from one formula, and each moves some of the numbers.
What is left equal in both are points of the formula with gaps between them, which no recurrence
spans. A course needs none: each number lies between its neighbours, about where a straight line
through them passes. Of numbers that were learnt or drawn one in six does. Logarithms are tried too,
and every second, third … place, since a formula may be added to a zigzag, and columns of a table.
Sines that turn fast bend more; of three neighbours that are left the two outer ones then have a sum
that is one multiple of the middle one, however few such neighbours there are.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
_Wide = NDArray[np.float64]

_STRIDES = (1, 2, 3, 4, 8)  # places from one number of a course to the next
_ROWS, _COLUMNS = 64, 1024  # that tell
_FEWEST = 12  # numbers between two others
_ENOUGH = 0.25  # of the known numbers that must be so
_NEAR = 0.25  # of the way between two neighbours: so far a bent course is off a straight line
_ON_COURSE = 0.6  # of the numbers: 0.17 of independent ones are
_MORE = 0.3  # so much more than of the same numbers in another order
_ROUNDED = ((ml_dtypes.bfloat16, 2.0**-8), (np.float16, 2.0**-11))  # what rounding changes twice
_SINGLE = 2.0**-20
_TRIPLES, _VARYING = 6, 0.1  # neighbours that tell whether two terms give a third
_SOME = 0.25  # of the series of a table: others stand still
_SINE = 2.0**-10  # what sines in single precision leave


def on_course(rows: Floats, known: NDArray[np.bool_]) -> bool:
    """Whether the known numbers of a table run along courses, over its rows or its columns.

    Examples
    --------
    >>> rows = np.linspace(0, 1, 128, dtype=np.float32)[None] ** 0.3
    >>> some = np.random.default_rng(0).random(rows.shape) < 0.5
    >>> on_course(rows, some)
    True
    >>> on_course(np.random.default_rng(0).normal(size=(1, 128)).astype(np.float32), some)
    False
    """
    known = known & np.isfinite(rows)
    telling = np.sort(np.argsort(-known.sum(axis=1), kind="stable")[:_ROWS])
    row, column = np.nonzero(known[telling, :_COLUMNS])
    row = telling[row]
    values = rows[row, column].astype(np.float64)
    if len(values) < _FEWEST or np.ptp(values) == 0:
        return False
    slack = _slack(rows[row, column])
    mixed = np.random.default_rng(0).permutation(len(values))
    for series, place in ((row, column), (column, row)):
        for stride in _STRIDES:
            left, middle, right = _neighbours(series, place, stride)
            if len(middle) < max(_FEWEST, _ENOUGH * len(values)):
                break
            near = [_near(one, place, left, middle, right, slack) for one in _as_curves(values)]
            if max(near) < _ON_COURSE:
                continue
            by_chance = _near(values[mixed], place, left, middle, right, slack)
            if max(near) >= by_chance + _MORE:
                return True
    return any(_turn(table[:_ROWS, :_COLUMNS], slack) for table in _tables(rows, known))


def _tables(rows: Floats, known: NDArray[np.bool_]) -> tuple[_Wide, _Wide]:
    """A table and its columns as rows; what is not known is no number."""
    table = np.where(known, rows, np.nan).astype(np.float64)
    return table, table.T


def _turn(table: _Wide, slack: float) -> bool:
    """Whether enough of the rows that tell are sines, or other recurrences of two terms."""
    told = [one for row in table if (one := _turns(row, slack)) is not None]
    return bool(told) and sum(told) >= max(_SOME * len(told), min(len(told), 2))


def _turns(row: _Wide, slack: float) -> bool | None:
    """Whether the neighbours of each number have a sum that is one multiple of it and a constant.

    None where too few numbers are left with both neighbours, or where they hardly vary.
    """
    outer, middle = row[2:] + row[:-2], row[1:-1]
    left = np.isfinite(outer) & np.isfinite(middle)
    if left.sum() < _TRIPLES:
        return None
    outer, middle = outer[left], middle[left]
    size = np.abs(middle).max()
    if np.ptp(middle) <= _VARYING * size or len(np.unique(middle)) < _TRIPLES:
        return None
    both = np.column_stack([middle, np.ones(len(middle))])
    off = np.abs(outer - both @ np.linalg.lstsq(both, outer, rcond=None)[0])
    return bool(off.max() <= max(4 * slack, _SINE) * size)


def _as_curves(values: _Wide) -> tuple[_Wide, ...]:
    """Numbers and their logarithms: rates may be powers."""
    if (values > 0).all() or (values < 0).all():
        return values, np.log(np.abs(values))
    return (values,)


def _slack(values: Floats) -> float:
    """How far rounding puts a number off a line through two others, as a share of it."""
    for kind, slack in _ROUNDED:
        with np.errstate(over="ignore"):
            if np.array_equal(values.astype(kind).astype(np.float32), values):
                return slack
    return _SINGLE


def _neighbours(
    series: NDArray[np.intp], place: NDArray[np.intp], stride: int
) -> tuple[NDArray[np.intp], ...]:
    """Numbers with the next ones before and after them in their series, some strides away."""
    start = place % stride
    order = np.lexsort((place, start, series))
    left, middle, right = order[:-2], order[1:-1], order[2:]
    together = (series[left] == series[right]) & (start[left] == start[right])
    return left[together], middle[together], right[together]


def _near(
    values: _Wide,
    place: NDArray[np.intp],
    left: NDArray[np.intp],
    middle: NDArray[np.intp],
    right: NDArray[np.intp],
    slack: float,
) -> float:
    """The share of the numbers that lie about where a line through their neighbours passes."""
    way = (place[middle] - place[left]) / (place[right] - place[left])
    step = values[right] - values[left]
    off = np.abs(values[middle] - values[left] - way * step)
    size = np.abs(values[np.stack([left, middle, right])]).max(axis=0)
    return float((off <= np.maximum(_NEAR * np.abs(step), slack * size)).mean())
