"""Measures that need values in order: ranks, percentiles, and how many differ.

Sorting cannot go block by block, so one copy of a vector is kept, in float32 where the
stored type fits into it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinprint.device import Array, array_module
from kinprint.measure import blocks
from kinprint.measure.blocks import BLOCK, Floats


@blocks.quiet
def spearman(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """Spearman correlation: Pearson of the ranks, tied values sharing their average rank.

    Unchanged by any increasing change of the values, so a few huge entries cannot carry it.
    """
    x, y = blocks.pair(a, b)
    if not len(x) or not (blocks.scan(x, block).finite and blocks.scan(y, block).finite):
        return math.nan
    sorted_x, sorted_y = np.sort(_compact(x)), np.sort(_compact(y))
    pairs = zip(_ranks(x, sorted_x, block), _ranks(y, sorted_y, block), strict=True)
    parts = [(blocks.dot(p, p), blocks.dot(q, q), blocks.dot(p, q)) for p, q in pairs]
    xx, yy, xy = blocks.totals(parts, 3)
    return blocks.Sums(len(x), xx, yy, xy).cosine


@blocks.quiet
def percentile(a: ArrayLike, share: float) -> float:
    """The value below which `share` of the values lie, linear between neighbours."""
    return _select(_compact(blocks.flat(a)).copy(), share)


@blocks.quiet
def p99_abs_diff(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """99th percentile of |a−b|, element by element.

    Differences of small types are kept in float32, which moves the result by at most one
    part in ten million. For what one published table calls by this name see `p99_gap`.
    """
    x, y = blocks.pair(a, b)
    kept = np.empty(len(x), np.result_type(_compact(x[:0]), _compact(y[:0])))
    for start in range(0, len(x), block):
        part = slice(start, start + block)
        kept[part] = np.abs(blocks.cast(x[part]) - blocks.cast(y[part]))
    return _select(kept, 0.99)


def p99_gap(a: ArrayLike, b: ArrayLike) -> float:
    """Difference of the two 99th percentiles, |p99(a) − p99(b)|.

    The confusion matrices published as `p99_abs_diff` are this: their entries add up along
    the line as differences of one number a model do. Reordering either vector changes
    nothing, so it says how widely values spread and not whether they agree.
    """
    blocks.pair(a, b)
    return abs(percentile(a, 0.99) - percentile(b, 0.99))


def distinct(values: Array) -> int:
    """How many different values there are.

    `np.unique` would load NumPy's masked arrays first, only to ask whether these are some.
    """
    ordered = array_module(values).sort(values, axis=None)
    return min(len(ordered), 1) + int((ordered[1:] != ordered[:-1]).sum())


def _compact(vector: NDArray[Any]) -> NDArray[Any]:
    """The values in float32 where that type holds them all, else in float64."""
    small = vector.dtype.itemsize <= 2 or vector.dtype == np.float32
    return vector.astype(np.float32 if small else np.float64, copy=False)


def _select(kept: NDArray[Any], share: float) -> float:
    if not len(kept) or not np.isfinite(kept).all():
        return math.nan
    place = share * (len(kept) - 1)
    low = min(int(place), len(kept) - 1)
    high = min(low + 1, len(kept) - 1)
    kept.partition((low, high))
    below, above = float(kept[low]), float(kept[high])
    return below if below == above else below + (above - below) * (place - low)


def _ranks(vector: NDArray[Any], in_order: NDArray[Any], block: int) -> Iterator[Floats]:
    """Twice the average rank less its mean: whole numbers, so ties and sums are exact.

    Searching a sorted block is several times faster than searching one in any order.
    """
    for start in range(0, len(vector), block):
        part = _compact(vector[start : start + block])
        order = np.argsort(part)
        keys = part[order]
        found = np.empty(len(part), np.float64)
        left = np.searchsorted(in_order, keys, "left")
        found[order] = left + np.searchsorted(in_order, keys, "right") - float(len(vector))
        yield found
