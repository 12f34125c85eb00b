"""What a measure gives for independent random vectors of a given mean and scatter.

The critique's control: if noise around one reaches a cosine of 0.99, then 0.99 is no news.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from kinprint.measure import measures


class Baseline(Struct, frozen=True):
    """Mean and population deviation of a measure over pairs of random vectors."""

    measure: str
    pairs: int
    mean: float
    std: float


def random_baseline(
    measure: str, n: int, mean: float, std: float, length: int, seed: int
) -> Baseline:
    """Measure `n` independent pairs of vectors whose entries are normal (mean, std).

    Pairs without a value are left out of mean and deviation and of the count.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(n):
        a, b = rng.normal(mean, std, length), rng.normal(mean, std, length)
        result = measures.measure(measure, a, b)
        if result.ok:
            found.append(result.value)
    if not found:
        return Baseline(measure, 0, math.nan, math.nan)
    return Baseline(measure, len(found), float(np.mean(found)), float(np.std(found)))
