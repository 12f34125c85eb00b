"""Rows of a large matrix: which are read, and how far the whole may lie from them.

Few rows are read, the same in every model, and spread out. They come in short runs, because a
request costs more than a row; the runs are drawn by chance, one in each equal part of the
matrix, so that no part is left out and the interval of an estimate can be computed from the runs.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np

from kinprint.measure import blocks
from kinprint.measure.measures import measure, measures

Rows = range | tuple[int, ...]
RUN = 4
LEVEL = 0.95


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


def sampled_interval(
    name: str, a: blocks.Array, b: blocks.Array, value: float, share: float
) -> tuple[float, float] | None:
    """Bounds for a measure of two whole matrices, from leaving out each run of rows in turn.

    The jackknife (Efron and Stein 1981) over runs, since neighbouring rows were drawn together,
    with Student's t for one less than the runs and the correction √(1 − n/N) for a finite whole
    (Cochran 1977, section 2.8).

    Parameters
    ----------
    name : a measure.
    a, b : the sampled rows of both matrices, run after run.
    value : what the measure gives for all of them.
    share : which part of all rows they are.

    Returns
    -------
    Bounds that cover the value for the whole with probability 0.95; None where a sample tells
    nothing about it, because the measure is not `estimable`, the runs are fewer than three, or
    the measure has no value without one of them.
    """
    known = measures()[name]
    starts = range(0, len(a), RUN)
    if not known.estimable or len(starts) < 3:
        return None
    left_out = []
    for start in starts:
        kept = np.r_[0:start, min(start + RUN, len(a)) : len(a)]
        found = measure(name, a[kept], b[kept])
        if not found.ok:
            return None
        left_out.append(found.value)
    runs = len(left_out)
    error = math.sqrt((runs - 1) * float(np.var(left_out)) * (1 - share))
    reach = student_reach(runs - 1) * error
    low, high = known.range
    return max(low, value - reach), min(high, value + reach)


@cache
def student_reach(degrees: int) -> float:
    """How many standard errors either way hold a mean with probability `LEVEL`: Student's t.

    Its distribution is a finite sum for whole degrees of freedom (Abramowitz and Stegun 1964,
    26.7.3 and 26.7.4), and is bisected. SciPy has it too, and takes a fifth of a second to load.
    """
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        if _student_share(middle, degrees) < LEVEL:
            low = middle
        else:
            high = middle
    return math.sqrt(degrees) * math.tan(high)


def _student_share(angle: float, degrees: int) -> float:
    """The share of Student's distribution within ± tan(angle) √degrees."""
    square = math.cos(angle) ** 2
    odd = degrees % 2
    term, total = math.cos(angle) if odd else 1.0, 0.0
    for at in range(1 + odd, degrees, 2):
        total += term
        term *= square * at / (at + 1)
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total
