"""Calibration against known independent pairs, where symmetry gives no exact null.

Likeness that uses neither labels nor signs is inflated by shared features, so its null is
empirical. It flags; it never accuses alone.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from kinprint.nulls.result import NullResult


def conformal(value: float, null: ArrayLike) -> NullResult:
    """Rank a value among those of independent pairs: p = (1 + #{null ≥ value}) / (n + 1).

    Valid when value and null are exchangeable: pairs that share no root with one another nor
    with the pair at hand (`disjoint_pairs`), drawn from one kind. A null that is no number counts
    as a tie. With n pairs p is never below 1/(n + 1).
    """
    known = np.asarray(null, np.float64).reshape(-1)
    n = known.size
    # A value that is no number is no finding: it ranks below everything.
    ahead = n if math.isnan(value) else int((~(known < value)).sum())
    finite = known[np.isfinite(known)]
    spread = float(finite.std(ddof=1)) if finite.size > 1 else math.nan
    effect = (value - float(finite.mean())) / spread if finite.size > 1 and spread else math.nan
    return NullResult(
        statistic=value,
        log10_p=math.log10((1 + ahead) / (n + 1)),
        bound="conformal",
        floor=-math.log10(n + 1),
        effect=effect,
        n=n,
        null=tuple(known.tolist()),
        details={"ahead": float(ahead)},
    )


def disjoint_pairs(
    pairs: Sequence[tuple[Hashable, Hashable]],
    excluded: Sequence[Hashable] = (),
    seed: int = 0,
) -> tuple[int, ...]:
    """Choose pairs of which no two share a root, as indices into the list.

    Pairs with a common root rise and fall together and would be counted as more evidence about
    chance than they are. The order of choice is random and blind to any value; `excluded`
    holds the roots of the pair at hand.
    """
    taken = set(excluded)
    chosen: list[int] = []
    for at in np.random.default_rng(seed).permutation(len(pairs)).tolist():
        one, other = pairs[at]
        if one != other and one not in taken and other not in taken:
            taken |= {one, other}
            chosen.append(at)
    return tuple(sorted(chosen))
