"""How many mutual nearest neighbours carry the same index, against random labels.

Pairs are found by content alone; whether the two of a pair share an index is then pure chance
for independent models. Stronger than adding up scores as soon as most units find their twin.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from kinprint.device import Array, array_module, downloaded, uploaded
from kinprint.nulls.result import DRAWS, LN10, Floats, Ints, NullResult, drawn, no_evidence

# Two scores closer than this part of the largest one are tied. Products of long rows are added
# in an order that depends on their place in the matrix, so a tie must not be broken by rounding.
MARGIN = 1e-6
SINGLE_MARGIN = 1e-5
"""The same for products that are made in single precision."""
_PRODUCTS, _PRODUCTS_ON_CARD = 1 << 20, 1 << 26  # made at once; these stay near the processor
_FEWEST = 64  # rows that are multiplied at once, however many the others are


class Pairs(Struct, frozen=True):
    """Mutual nearest neighbours of one layer: their indices in the first and second model.

    `size` is how many units of the first model took part, so how many indices a unit could
    have had; `reachable` counts pairs whose second index is among those of the first.
    """

    first: Ints
    second: Ints
    size: int
    reachable: int


class Nearest(Struct, frozen=True):
    """For each row of a table its best column, the score there, and the lead over the next."""

    at: Ints
    score: Floats
    lead: Floats


class Neighbours(Struct, frozen=True):
    """Who is nearest to whom, seen from the rows of a table and from its columns."""

    there: Nearest
    back: Nearest

    def pairs(
        self,
        first: ArrayLike | None = None,
        second: ArrayLike | None = None,
        margin: float = SINGLE_MARGIN,
    ) -> Pairs:
        """Rows and columns that are each other's single best, by a clear margin.

        `first` and `second` are the indices of rows and columns, as for `mutual_pairs`.
        """
        there, back = self.there, self.back
        rows, columns = len(there.at), len(back.at)
        own = np.arange(rows) if first is None else np.asarray(first, np.int64)
        other = np.arange(columns) if second is None else np.asarray(second, np.int64)
        if len(set(own.tolist())) != rows or len(set(other.tolist())) != columns:
            raise ValueError("every row and column needs an index of its own")
        if not rows or not columns:
            return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), rows, 0)
        gap = margin * float(np.abs(there.score, where=there.lead > 0, out=np.zeros(rows)).max())
        i = np.arange(rows)
        mutual = (there.lead > gap) & (back.at[there.at] == i) & (back.lead[there.at] > gap)
        left, right = own[i[mutual]], other[there.at[mutual]]
        order = np.argsort(left)
        return Pairs(left[order], right[order], rows, int(np.isin(right, own).sum()))


def nearest_rows(x: Array, y: Array, flips: bool = False) -> Neighbours:
    """Rows of x and rows of y with the largest inner products, or the largest by size.

    The table of all products is made in pieces and not kept: between channels of a wide model
    it would be larger than all that was read. `flips` compares sizes; scores keep their sign. Rows
    hold numbers only.
    """
    here = uploaded(x), uploaded(y)
    one, other = (array_module(part).ascontiguousarray(part, np.float32) for part in here)
    most = _PRODUCTS if array_module(one) is np else _PRODUCTS_ON_CARD
    each = max(_FEWEST, most // max(len(other), 1))
    there: list[Nearest] = []
    back: Nearest | None = None
    for start in range(0, max(len(one), 1), each):
        table = one[start : start + each] @ other.T
        there.append(_best(table, flips))
        back = _best(table.T, flips) if back is None else _better(back, table, start, flips)
    assert back is not None
    return Neighbours(
        Nearest(
            np.concatenate([one.at for one in there]),
            np.concatenate([one.score for one in there]),
            np.concatenate([one.lead for one in there]),
        ),
        back,
    )


def mutual_pairs(
    scores: ArrayLike,
    first: ArrayLike | None = None,
    second: ArrayLike | None = None,
) -> Pairs:
    """Pair row i and column j where each is the other's single best, by a clear margin.

    The first model (rows) supplies the random labels. `first` and `second` are the indices of
    rows and columns where only a sample was read. A zero, constant or duplicated row ties
    with something, so it never enters a pair; all copies go, because keeping the first of
    them would look at labels.
    """
    given = np.asarray(scores)
    if given.dtype != np.float32:
        given = np.asarray(given, np.float64)
    finite = np.isfinite(given)
    table = given if finite.all() else np.where(finite, given, given.dtype.type(-math.inf))
    return Neighbours(_best(table), _best(table.T)).pairs(first, second, MARGIN)


def fixed_points(
    layers: Sequence[Pairs], signed: Sequence[ArrayLike] | None = None, seed: int | None = 0
) -> NullResult:
    """Bound the chance of so many pairs with equal indices, over layers labelled apart.

    Let F count them, m_l reachable pairs among n_l labels in layer l. A given set of j pairs is
    fixed with probability at most Π 1/(n_l)(n_l − 1)…, so the mean of C(F, j) is at most
    λ^j / j! with λ = Σ m_l / n_l. Where F ≥ k, C(F, j) ≥ C(k, j); by Markov's inequality
    P(F ≥ k) ≤ λ^j·(k − j)!/k! for every j ≤ k, and j = k is the plain λ^k / k!. The best j
    depends on k and λ alone. If all pairs are fixed, the exact Π (n_l − m_l)!/n_l! holds too.
    Of layers that are copies of one another pass only one.

    With `signed`, one value for each pair that a flip of its unit would negate (pairs found by
    scores that no flip changes), only fixed pairs with a positive value count. Every unit has a
    coin of its own, independent of labels, so each factor 1/n becomes 1/(2n), and λ is halved.
    The effect is the share of pairs that count.
    """
    pairs = sum(layer.reachable for layer in layers)
    if not pairs:
        return no_evidence("fixed points")
    counted = [layer.first == layer.second for layer in layers]
    coins = signed is not None
    if signed is not None:
        positive = [np.asarray(values, np.float64) > 0 for values in signed]
        counted = [one & other for one, other in zip(counted, positive, strict=True)]
    fixed = sum(int(one.sum()) for one in counted)
    shapes = [(layer.reachable, layer.size) for layer in layers]
    return NullResult(
        statistic=float(fixed),
        log10_p=fixed_point_log10_p(fixed, shapes, coins),
        bound="signed fixed points" if coins else "fixed points",
        floor=_all_fixed(shapes, coins) / LN10,
        effect=fixed / pairs,
        n=sum(layer.size for layer in layers),
        null=drawn(seed, lambda rng: _draw(shapes, coins, rng)),
        details={"pairs": float(pairs), "expected": _rate(shapes, coins)},
    )


def fixed_point_log10_p(
    fixed: int, shapes: Sequence[tuple[int, int]], coins: bool = False
) -> float:
    """The bound for `fixed` equal indices, given (pairs, labels) of each layer.

    With `coins` they were counted only where a fair coin fell right, too.
    """
    rate = _rate(shapes, coins)
    if not fixed or not rate:
        return 0.0
    j = np.arange(fixed + 1)
    factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, fixed + 1)))])
    moments = j * math.log(rate) + factorials[fixed - j] - factorials[fixed]
    found = min(0.0, float(moments.min()))
    if fixed == sum(m for m, _ in shapes):
        found = min(found, _all_fixed(shapes, coins))
    return found / LN10


def _best(table: Array, flips: bool = False) -> Nearest:
    """Best column of each row, by size with `flips`; a row without any finite one leads by nothing.

    The best is struck out to find the next, which is much quicker than to sort.
    """
    if not table.size:
        return Nearest(np.zeros(len(table), np.int64), np.zeros(len(table)), np.zeros(len(table)))
    xp = array_module(table)
    size = xp.ascontiguousarray(abs(table)) if flips else xp.array(table, order="C")
    rows = xp.arange(len(size))
    at = size.argmax(axis=1)
    found = table[rows, at], size[rows, at]
    size[rows, at] = -math.inf
    score, top, second = (downloaded(one).astype(np.float64) for one in (*found, size.max(axis=1)))
    good = np.isfinite(top)
    lead = np.where(good, top, 0.0) - np.where(good, second, 0.0)
    return Nearest(downloaded(at), score, lead)


def _better(known: Nearest, table: Array, start: int, flips: bool) -> Nearest:
    """What is known of columns from rows before `start`, bettered by a table of rows from there on.

    Only columns whose largest number here beats the second best so far are looked at closely: of
    the k-th of equal tables about two in k.
    """
    largest = abs(table).max(axis=0) if flips else table.max(axis=0)
    best = np.abs(known.score) if flips else known.score
    rest = best - known.lead
    some = np.flatnonzero(downloaded(largest) > rest)
    seen = _best(table[:, uploaded(some)].T, flips)
    old, new = best[some], np.abs(seen.score) if flips else seen.score
    later = new > old
    second = np.where(later, np.maximum(old, new - seen.lead), np.maximum(new, rest[some]))
    at, score, lead = known.at.copy(), known.score.copy(), known.lead.copy()
    at[some] = np.where(later, seen.at + start, at[some])
    score[some] = np.where(later, seen.score, score[some])
    lead[some] = np.maximum(old, new) - second
    return Nearest(at, score, lead)


def _rate(shapes: Sequence[tuple[int, int]], coins: bool) -> float:
    """Mean number of pairs that count by chance."""
    return sum(m / n for m, n in shapes if n) / (2.0 if coins else 1.0)


def _all_fixed(shapes: Sequence[tuple[int, int]], coins: bool) -> float:
    """Log of the chance that every pair counts."""
    labels = sum(math.lgamma(n - m + 1) - math.lgamma(n + 1) for m, n in shapes)
    return labels - (math.log(2.0) * sum(m for m, _ in shapes) if coins else 0.0)


def _draw(shapes: Sequence[tuple[int, int]], coins: bool, rng: np.random.Generator) -> Floats:
    """Counts under random labels, drawn from their exact distribution layer by layer."""
    total = np.zeros(DRAWS)
    for (m, n), times in Counter(shapes).items():
        if m:
            chances = _distribution(m, n)
            total += rng.choice(len(chances), size=(DRAWS, times), p=chances).sum(axis=1)
    return rng.binomial(total.astype(np.int64), 0.5).astype(np.float64) if coins else total


@cache
def _inclusions() -> Floats:
    """(−1)^(j − k)·C(j, k) for k up to twenty and j up to forty; zero where j < k."""
    return np.array([[(-1.0) ** (j - k) * math.comb(j, k) for j in range(41)] for k in range(21)])


def _distribution(m: int, n: int) -> Floats:
    """Probabilities of 0, 1, 2 … fixed pairs among m, by inclusion and exclusion.

    The moments fall like 1/j!, so forty terms exhaust double precision.
    """
    most = min(m, 40)
    moments = [1.0]
    for j in range(most):
        moments.append(moments[-1] * (m - j) / ((n - j) * (j + 1)))
    signed = _inclusions()[: min(most, 20) + 1, : most + 1] * np.array(moments)
    clipped = np.clip(signed.sum(axis=1), 0.0, None)
    found: Floats = clipped / clipped.sum()
    return found
