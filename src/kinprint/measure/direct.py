"""How alike two vectors are, number against number.

Inputs of any real type; sums run in float64. Where a formula divides by zero (a zero
vector has no direction, a constant one no variation) the answer is NaN, never a guess.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray


def cosine(a: ArrayLike, b: ArrayLike) -> float:
    """Cosine of the angle between two vectors, Σab / √(Σa²·Σb²).

    Unchanged when either is scaled. Its trap: vectors whose entries share a mean far from
    zero, as norm weights do, have a cosine near one whatever else they contain.
    """
    x, y = _pair(a, b)
    scale = math.sqrt(float(x @ x)) * math.sqrt(float(y @ y))
    return _clip(float(x @ y) / scale) if scale else math.nan


def pearson(a: ArrayLike, b: ArrayLike) -> float:
    """Pearson correlation: the cosine after each vector's own mean is taken off.

    Unchanged when either is scaled or shifted, so a common mean cannot raise it. For
    independent vectors of length n it scatters around zero with deviation 1/√(n−1).
    """
    x, y = _pair(a, b)
    if not len(x) or np.all(x == x[0]) or np.all(y == y[0]):
        return math.nan
    return cosine(x - x.mean(), y - y.mean())


def _pair(a: ArrayLike, b: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    x, y = (np.asarray(item).astype(np.float64).reshape(-1) for item in (a, b))
    if x.shape != y.shape:
        raise ValueError(f"vectors of {len(x)} and {len(y)} numbers cannot be compared")
    return x, y


def _clip(value: float) -> float:
    return max(-1.0, min(1.0, value))
