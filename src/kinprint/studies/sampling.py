"""Which rows of a large matrix are read: few, the same in every model, and spread out.

Rows come in short runs, because a request costs more than a row; the runs are drawn by
chance, one in each equal part of the matrix, so that no part is left out and the interval
of an estimate can be computed from the runs.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

Rows = range | tuple[int, ...]
RUN = 4


def sample_rows(height: int, count: int, seed: int = 0, run: int = RUN) -> Rows:
    """About `count` of `height` rows, in runs of `run`; all where that is no more.

    The choice depends on height, count and seed alone: two models with equal shapes are
    compared on the same rows, whatever they are called.
    """
    if count >= height:
        return range(height)
    runs = max(count // run, 1)
    length = min(run, count)
    edges = np.linspace(0, height, runs + 1).astype(int)
    chance = np.random.default_rng([seed, height, count])
    picked: list[int] = []
    for low, high in pairwise(edges):
        start = int(low + chance.integers(0, max(high - low - length, 0) + 1))
        picked += range(start, min(start + length, int(high)))
    return tuple(picked)
