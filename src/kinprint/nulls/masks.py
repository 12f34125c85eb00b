"""Values that were put into a matrix at many places: zeros of a mask, padding.

Two strangers may have been pruned by one public mask. Zeros at equal places are then no equal
weights, and more than that: rows with a common mask overlap at more places than rows with
different ones, so their products scatter more, and labels that a mask tells apart are not
exchangeable. Flips are: a mask of zeros is the same for x and −x. So where both models have such
places, tests keep the coins of units and channels and leave their labels alone, which is a
subgroup and therefore exact whatever the masks have in common.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

SHARE = 0.005
"""So many of a matrix's numbers beyond what a grid explains make a mask."""
_GROUP = 16  # numbers that share a scale in every common quantisation
_OFTEN = 100  # times as often as zeros at random places a grid leaves a group of nothing else
# Numbers looked at for a value other than zero, how many must be equal to one of them, how much
# more often than the next it must occur, and how many values there are if they are no coarse grid.
_SOME, _MANY, _RATIO, _VALUES = 2048, 40, 4, 64


def masked(*matrices: NDArray[Any], whole_rows: bool = False) -> bool:
    """Whether zeros fill places of a matrix, or of several side by side, that its other numbers do
    not explain.

    Zero is also a step of a quantisation grid. A grid that is symmetric has about twice as many
    numbers of the smallest size as zeros; so in each group of numbers that may share a scale, ties
    of the smallest size, twice, are taken off the zeros. Ties of any coarse grid would hide a mask
    that cuts out whole columns; so groups of nothing but zeros count by themselves, where zeros of
    the other groups do not explain them. Rows of zeros alone count with `whole_rows` only: where
    such rows take no part in a test, they say nothing. Depends on no order of rows and on no sign.
    """
    zeros = sum(np.count_nonzero(rows == 0) for rows in matrices)
    if zeros <= SHARE * sum(rows.size for rows in matrices):
        return False
    x = np.concatenate([rows.reshape(-1, rows.shape[-1]) for rows in matrices], axis=1)
    zero = x == 0
    if not whole_rows:
        some = ~zero.all(axis=1)
        x, zero = x[some], zero[some]
    groups = -(-x.shape[1] // _GROUP)
    size = np.full((len(x), groups * _GROUP), np.inf)
    size[:, : x.shape[1]] = np.where(zero, np.inf, np.abs(x))
    size = size.reshape(-1, _GROUP)
    least = size.min(axis=1)
    known = np.isfinite(least)
    empty = len(known) - int(np.count_nonzero(known))
    others = max(int(np.count_nonzero(zero)) - empty * _GROUP, 0)
    spread = others / max(_GROUP * (len(known) - empty), 1)
    by_chance = _OFTEN * len(known) * spread**_GROUP
    if _GROUP * (empty - by_chance) > SHARE * x.size:
        return True
    ties = np.count_nonzero(size[known] == least[known, None]) - np.count_nonzero(known)
    return bool(np.count_nonzero(zero) - 2 * ties > SHARE * x.size)


def without_filler(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows with zeros where one other size of number stands at many places: padding, constants.

    Such a size must be far more frequent than the next; steps of a grid are not. Of few sizes, one
    may be that of the least step; but a grid with such a step has zeros, and a codebook without
    them writes another number for each. Of some numbers, evenly spaced, so that a filler of a few
    percent is found wherever it lies.
    """
    flat = rows.reshape(-1)
    some = np.abs(flat[_spread(len(flat))])
    some = np.sort(some[np.isfinite(some)])
    if not some[_MANY:][some[_MANY:] == some[:-_MANY]].any():
        return rows
    values, counts = np.unique(some[some != 0], return_counts=True)
    few = len(counts) < _VALUES
    if len(counts) < 2 or (few and np.count_nonzero(some == 0) > SHARE * len(some)):
        return rows
    first, second = np.argsort(counts)[:-3:-1]
    if counts[first] <= _RATIO * counts[second]:
        return rows
    return np.where(np.abs(rows) == values[first], np.float32(0), rows)


@lru_cache(maxsize=16)
def _spread(n: int) -> NDArray[np.int64]:
    """Some of n places, evenly spaced; many matrices have as many."""
    return np.linspace(0, n - 1, min(n, _SOME)).astype(np.int64)
