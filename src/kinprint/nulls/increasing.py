"""The longest run of matched pairs whose indices rise together: for deletions and insertions.

When units were removed or added, equal indices are lost but their order is kept. A layer of
independent labels puts its pairs in a random order, whose longest increasing subsequence is
about twice the root of their number.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from kinprint.measure.ordered import distinct
from kinprint.nulls.combination import fisher
from kinprint.nulls.fixed_points import Pairs
from kinprint.nulls.result import DRAWS, LN10, Floats, Ints, NullResult, drawn, no_evidence


def longest_increasing(sequence: ArrayLike) -> int:
    """Length of the longest strictly increasing subsequence, in n log n steps (patience)."""
    tails: list[float] = []
    for value in np.asarray(sequence).tolist():
        at = bisect_left(tails, value)
        tails[at : at + 1] = [value]
    return len(tails)


def increasing_log10_p(length: int, pairs: int) -> float:
    """Bound the chance that a random order of `pairs` things holds a rising run of `length`.

    C(n, j) subsequences of length j rise with chance 1/j! each. An order with a run of k holds
    at least C(k, j) of them, so P(LIS ≥ k) ≤ C(n, j) / (j!·C(k, j)) for every j ≤ k; j = k is
    the plain C(n, k)/k!.
    """
    if length < 2 or length > pairs:
        return 0.0
    return float(_table(pairs, length))


def increasing_subsequence(layers: Sequence[Pairs], seed: int | None = 0) -> NullResult:
    """Test the order of matched pairs in every layer, and combine layers by Fisher's method.

    Layers are labelled independently of each other, so their p-values are independent; of
    layers that are copies pass only one. The
    statistic is Fisher's −2 Σ ln p; the effect is the share of pairs that lie on the runs.
    """
    orders = [(layer.second[np.argsort(layer.first)], len(layer.first)) for layer in layers]
    orders = [(order, n) for order, n in orders if n > 1]
    if not orders:
        return no_evidence("increasing subsequence")
    if any(distinct(order) < n for order, n in orders):
        raise ValueError("pairs must be one to one")
    lengths = [longest_increasing(order) for order, _ in orders]
    numbers = [n for _, n in orders]
    logs = [increasing_log10_p(k, n) for k, n in zip(lengths, numbers, strict=True)]
    floors = [-math.lgamma(n + 1) / LN10 for n in numbers]
    return NullResult(
        statistic=-2.0 * LN10 * sum(logs),
        log10_p=fisher(logs),
        bound="increasing subsequence",
        floor=fisher(floors),
        effect=sum(lengths) / sum(numbers),
        n=sum(numbers),
        null=drawn(seed, lambda rng: _draw(numbers, rng)),
        details={"longest": float(max(lengths)), "layers": float(len(orders))},
    )


def longest_of_many(orders: Ints) -> Ints:
    """Longest increasing subsequence of every row (R, n), all rows stepped together."""
    values = np.ascontiguousarray(orders.T, np.int32)
    top = np.iinfo(np.int32).max
    tails = np.full((8, values.shape[1]), top, np.int32)
    every = np.arange(values.shape[1])
    for value in values:
        at = (tails < value).sum(axis=0, dtype=np.int32)
        if at.max() >= len(tails):
            tails = np.concatenate([tails, np.full_like(tails, top)])
        tails[at, every] = value
    found: Ints = (tails < top).sum(axis=0, dtype=np.int64)
    return found


@lru_cache(maxsize=4096)
def _table(n: int, k: int) -> float:
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    j = np.arange(k + 1)
    chosen = logs[n] - logs[j] - logs[n - j]
    among = logs[k] - logs[j] - logs[k - j]
    return min(0.0, float((chosen - logs[j] - among).min())) / LN10


def _draw(numbers: Sequence[int], rng: np.random.Generator) -> Floats:
    """Fisher's statistic for random orders, layer by layer."""
    # All layers at once; what fills up the shorter ones is less than any index and ends no run.
    orders = np.full((len(numbers), DRAWS, max(numbers)), -1)
    for at, n in enumerate(numbers):
        orders[at, :, :n] = rng.permuted(np.tile(np.arange(n), (DRAWS, 1)), axis=1)
    drawn = longest_of_many(orders.reshape(-1, max(numbers))).reshape(len(numbers), DRAWS)
    total = np.zeros(DRAWS)
    for row, n in zip(drawn, numbers, strict=True):
        known = [increasing_log10_p(k, n) for k in range(int(row.max()) + 1)]
        total += np.array(known)[row]
    found: Floats = -2.0 * LN10 * total
    return found
