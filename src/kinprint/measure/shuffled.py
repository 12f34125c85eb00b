"""The cosine of two vectors after one of them is shuffled, by drawing and in closed form.

It shows what a cosine owes to the two sets of values alone; what stands above it comes from
their places. The closed form needs no drawing and is what a report should print.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from kinprint.measure import blocks
from kinprint.measure.direct import cosine


@dataclass(frozen=True, slots=True)
class Shuffled:
    """Mean and deviation of the cosine over shuffles; `draws` is zero for the exact ones."""

    mean: float
    std: float
    draws: int


def shuffled_cosine(a: ArrayLike, b: ArrayLike, seed: int = 0, draws: int = 20) -> Shuffled:
    """Cosine of `a` with `draws` shuffles of `b`; the deviation is the sample's (n − 1)."""
    x, y = blocks.pair(a, b)
    rng = np.random.default_rng(seed)
    found = [cosine(x, rng.permutation(y)) for _ in range(draws)]
    if not found or any(map(math.isnan, found)):
        return Shuffled(math.nan, math.nan, draws)
    return Shuffled(
        float(np.mean(found)), float(np.std(found, ddof=1)) if draws > 1 else math.nan, draws
    )


def shuffled_cosine_exact(a: ArrayLike, b: ArrayLike) -> Shuffled:
    """Mean and deviation of that cosine over all n! shuffles.

    The sum Σ a_i b_π(i) has mean n·ā·b̄ and variance Σ(a−ā)²·Σ(b−b̄)² / (n−1) (Hoeffding
    1951); the lengths in the denominator do not change. Hence z = (cosine − mean) / std is
    √(n−1) times the Pearson correlation, exactly.
    """
    raw, centred = blocks.sums(a, b), blocks.sums(a, b, centred=True)
    if raw is None or centred is None or math.isnan(raw.cosine):
        return Shuffled(math.nan, math.nan, 0)
    lengths = math.sqrt(raw.aa) * math.sqrt(raw.bb)
    mean = blocks.clip((raw.ab - centred.ab) / lengths)
    if raw.size < 2:
        return Shuffled(mean, 0.0, 0)
    scatter = math.sqrt(max(0.0, centred.aa)) * math.sqrt(max(0.0, centred.bb))
    return Shuffled(mean, scatter / lengths / math.sqrt(raw.size - 1), 0)


def shuffled_cosine_mean(a: ArrayLike, b: ArrayLike) -> float:
    """The exact mean alone: the cosine that shuffling leaves."""
    return shuffled_cosine_exact(a, b).mean
