"""What numbers that are equal tell: arrangements of a row, rows that two arrays have, places.

Constants and zeros are equal in strangers too. An arrangement of many different numbers is not.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from kinprint.measure.computed import continues

Floats = NDArray[np.float32]

_INFORMED = 8  # rows whose arrangements are counted
_LOOKED_AT = 4096  # numbers that tell whether they are constant
_CONSTANT = 0.9  # of the numbers of a row that are one value: the others may be outliers
_COLUMNS = 16  # by which a row is looked up among others
_FEWEST_EQUAL = 0.25  # of the numbers: fewer are not looked at one by one
_HARDLY_EQUAL = 0.02  # of the numbers of some rows, zeros counted: the others need no look
_BY_CHANCE = 0.05  # of the numbers: where more are equal by chance, their grid is coarse
_ROWS = 64  # rows that a grid is looked for in


def arrangements(rows: Floats) -> float:
    """log10 of n!/Π m! for the row where that is largest; m counts equal numbers among its n.

    Zeros do not count: where they are may be a mask that others have too. Nor does a row that is
    constant but for a few outliers, which strangers have at the same places, or that is computed.
    """
    known = sorted(
        ((_arrangements(row), at) for at, row in enumerate(rows[:_INFORMED])), reverse=True
    )
    return next((one for one, at in known if not one or not continues(rows[at])), 0.0)


def constant(values: Floats) -> bool:
    """Whether numbers other than zero are one value, but for a few."""
    some = values.reshape(-1)[:: max(1, values.size // _LOOKED_AT)]
    return _is_constant(_counts(some))


def _counts(values: Floats) -> NDArray[np.int64]:
    """How often each number occurs, zeros left out."""
    return np.unique(values[np.isfinite(values) & (values != 0)], return_counts=True)[1]


def _is_constant(counts: NDArray[np.int64]) -> bool:
    return bool(counts.max(initial=0) >= _CONSTANT * counts.sum())


def _arrangements(row: Floats) -> float:
    counts = _counts(row)
    if _is_constant(counts):
        return 0.0
    total = math.lgamma(int(counts.sum()) + 1) - sum(map(math.lgamma, (counts + 1).tolist()))
    return total / math.log(10.0)


def equal_rows(x: Floats, y: Floats, least: float) -> tuple[float, float]:
    """The share of rows that are in both arrays, number by number, and what the best of them tell.

    Rows may have changed places: a copy whose rows were numbered anew has all of them.

    Parameters
    ----------
    x, y : rows of equal length.
    least : log10 of the arrangements that a row must have in order to count, were it the only one;
        as many more as there are pairs of rows to look at.

    Returns
    -------
    The share of the rows of `x`, and log10 of the arrangements of the row that has most, paid for
    all pairs.
    """
    paid = math.log10(max(len(x) * len(y), 1))
    same = np.flatnonzero(found_in(x, y))
    some = same[:: max(1, len(same) // _ROWS)]
    known = [_arrangements(x[at]) - paid for at in some]
    telling = sum(one >= least for one in known)
    if not telling or continues(x[some[int(np.argmax(known))]]):
        return 0.0, 0.0
    return len(same) / len(x) * telling / len(some), max(known)


def equal_places(x: Floats, y: Floats) -> tuple[float, float, float]:
    """The shares of numbers that are equal where they are, among those that neither array has zero
    and among all, and what the row with most of them tells.

    Pruning keeps some numbers and a sparse change spares most. Of n numbers in random order k or
    more are in place once in k! times at most: each k of them are so once in n!/(n - k)! times.
    That holds for numbers that occur once, and rows that are computed tell nothing. Grids on which
    numbers are often equal by chance tell little, and so do a few equal numbers: no share is given.
    """
    if (some_rows(x) == some_rows(y)).mean() < _HARDLY_EQUAL:
        return 0.0, 0.0, 0.0
    known = (x != 0) & (y != 0)
    equal = known & (x == y)
    count = int(known.sum())
    share = equal.sum() / max(count, 1)
    by_chance = float((known & (x == np.roll(y, 1, axis=1))).sum()) / max(count, 1)
    if share < _FEWEST_EQUAL or by_chance > _BY_CHANCE:
        return 0.0, 0.0, 0.0
    best = int(np.argmax(equal.sum(axis=1)))
    once = _occur_once(x[best]) & _occur_once(y[best])
    places = int((equal[best] & once).sum())
    if continues(x[best]):
        return 0.0, 0.0, 0.0
    told = math.lgamma(places + 1) / math.log(10.0) - math.log10(len(x))
    return float(share), float(equal.sum() / x.size), max(0.0, told)


def _occur_once(row: Floats) -> NDArray[np.bool_]:
    """Which numbers of a row are different from all others."""
    _, place, counts = np.unique(row, return_inverse=True, return_counts=True)
    return np.asarray(counts[place] == 1)


def found_in(x: Floats, y: Floats) -> NDArray[np.bool_]:
    """Which rows of the first array are in the second; they are looked up by some columns."""
    step = max(1, x.shape[1] // _COLUMNS)
    ours, theirs = (hashed(rows[:, ::step]) for rows in (x, y))
    order = np.argsort(theirs)
    there = order[np.minimum(np.searchsorted(theirs[order], ours), len(y) - 1)]
    found = theirs[there] == ours
    if not found.any():
        return np.asarray(found)
    found[found] = (x[found] == y[there[found]]).all(axis=1)
    if x.shape == y.shape:
        same = x[:, 0] == y[:, 0]
        same[same] = (x[same] == y[same]).all(axis=1)
        found |= same
    return np.asarray(found)


def hashed(rows: Floats) -> NDArray[np.uint64]:
    """A number for each row: equal ones have the same, others hardly ever; zeros have no sign."""
    bits = np.ascontiguousarray(rows + np.float32(0)).view(np.uint32)
    return np.asarray(bits @ _odd(rows.shape[1]))


@cache
def _odd(count: int) -> NDArray[np.uint64]:
    return np.random.default_rng(0).integers(2**63, size=count, dtype=np.uint64) | np.uint64(1)


def some_rows(rows: Floats) -> Floats:
    """Rows from everywhere, which tell what most tensors are not."""
    return rows[:: max(1, len(rows) // _ROWS)][:_ROWS]
