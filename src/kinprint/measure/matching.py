"""Which row of one matrix goes with which of another: the best assignment, and its scores.

For router rows, experts and layers that may have been reordered. A best assignment finds
similarity in noise too: its mean cosine is not a measure of kinship without a null.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from kinprint.measure import blocks
from kinprint.measure.blocks import Floats


class Matching(Struct, frozen=True):
    """Pairs (first, second) with their scores, in the order of the first.

    Rows without a direction take no part. `distinct` is False when some scores tie so that
    another assignment would be as good: the pairs are then partly the solver's habit.
    """

    pairs: tuple[tuple[int, int], ...]
    scores: tuple[float, ...]
    distinct: bool

    @property
    def mean(self) -> float:
        """Mean score of the pairs."""
        return math.fsum(self.scores) / len(self.scores) if self.scores else math.nan


@blocks.quiet
def cosine_table(a: ArrayLike, b: ArrayLike) -> Floats:
    """Cosines of every row of the one with every row of the other; NaN for zero rows."""
    x, y = blocks.matrix(a), blocks.matrix(b)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"rows of {x.shape[1]} and {y.shape[1]} numbers cannot be compared")
    total = np.zeros((x.shape[0], y.shape[0]))
    lengths = [np.zeros(m.shape[0]) for m in (x, y)]
    peaks = [_row_peaks(m) for m in (x, y)]
    for part in blocks.row_blocks((x if x.shape[0] >= y.shape[0] else y).T):
        p, q = (
            blocks.cast(m[:, part]) / peak[:, None] for m, peak in zip((x, y), peaks, strict=True)
        )
        total += p @ q.T
        for length, columns in zip(lengths, (p, q), strict=True):
            length += np.einsum("ij,ij->i", columns, columns)
    table: Floats = total / np.sqrt(lengths[0])[:, None] / np.sqrt(lengths[1])[None, :]
    return np.clip(table, -1.0, 1.0)


def assign(scores: ArrayLike) -> Matching:
    """Pair rows with columns one to one so that the sum of scores is largest.

    Jonker and Volgenant's method as scipy has it. Rows and columns without a finite score
    are left out; where there are more of one kind, the rest stays unpaired.
    """
    from scipy.optimize import linear_sum_assignment

    table = np.asarray(scores, np.float64)
    finite = np.isfinite(table)
    rows, columns = np.flatnonzero(finite.any(axis=1)), np.flatnonzero(finite.any(axis=0))
    kept = table[np.ix_(rows, columns)]
    if not kept.size:
        return Matching((), (), False)
    # A missing score among known ones must lose to any sum of known ones.
    worst = float(np.nanmin(np.where(np.isfinite(kept), kept, math.nan)))
    spread = float(np.nanmax(np.where(np.isfinite(kept), kept, math.nan))) - worst
    filled = np.where(np.isfinite(kept), kept, worst - (spread + 1) * (min(kept.shape) + 1))
    left, right = linear_sum_assignment(filled, maximize=True)
    chosen = [(i, j) for i, j in zip(left, right, strict=True) if np.isfinite(kept[i, j])]
    return Matching(
        tuple((int(rows[i]), int(columns[j])) for i, j in chosen),
        tuple(float(kept[i, j]) for i, j in chosen),
        _distinct(filled, left, right),
    )


def match_rows(a: ArrayLike, b: ArrayLike) -> Matching:
    """Pair the rows of two matrices by their cosines."""
    return assign(cosine_table(a, b))


def aligned_cosine(a: ArrayLike, b: ArrayLike) -> float:
    """Mean cosine of the rows after the best pairing; NaN when nothing can be paired."""
    return match_rows(a, b).mean


def _row_peaks(m: blocks.Array) -> Floats:
    found = np.empty(m.shape[0])
    for part in blocks.row_blocks(m):
        found[part] = np.abs(blocks.cast(m[part])).max(axis=1, initial=0.0)
    return np.where(found > 0, found, math.nan)


def _distinct(scores: Floats, left: blocks.Array, right: blocks.Array) -> bool:
    """Whether no two pairs could swap partners, nor one take a free one, at no loss."""
    own = scores[left, right]
    swapped = scores[np.ix_(left, right)]
    loss = own[:, None] + own[None, :] - swapped - swapped.T
    np.fill_diagonal(loss, math.inf)
    free = np.setdiff1d(np.arange(scores.shape[1]), right)
    other = np.setdiff1d(np.arange(scores.shape[0]), left)
    idle = [
        (own[:, None] - scores[np.ix_(left, free)]),
        (own[None, :] - scores[np.ix_(other, right)]),
    ]
    scale = 1e-12 * max(1.0, float(np.abs(own).max()))
    return bool(loss.min() > scale and all(gap.min(initial=math.inf) > scale for gap in idle))
