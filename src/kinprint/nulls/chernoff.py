"""The least Chernoff exponent, found for many problems at once.

Markov's inequality gives P(T ≥ t) ≤ exp(K(s) − s·t) for every s > 0, where K is the log of
the mean of e^{sT} over the group. Each s is a valid bound for the t at hand, hence so is the
smallest of them; a search that stops early or goes astray loses power, never validity.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kinprint.nulls.result import Floats

# At this size of s·score the exponentials are saturated (e^−20 is nothing beside 1) for scores
# down to 1e-8 of the largest; beyond it rounding would be amplified and nothing be gained.
LARGEST = 1e9
_GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0
_STEP = math.log(4.0)
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)


def log_cosh(x: Floats) -> Floats:
    """Log of the hyperbolic cosine, without overflow."""
    size = np.abs(x)
    found: Floats = size + np.log1p(np.exp(-2.0 * size)) - math.log(2.0)
    # The difference above cancels near zero, where log cosh x = x²/2 − x⁴/12 + …
    small = size < 1e-3
    return np.where(small, size * size * (0.5 - size * size / 12.0), found)


def log_mean_exp(x: Floats) -> Floats:
    """Log of the mean of e^x along the first axis, without overflow."""
    top = x.max(axis=0)
    found: Floats = top + np.log(np.exp(x - top).mean(axis=0))
    return found


def least_exponent(
    log_mgf: Callable[[Floats], Floats],
    observed: Floats,
    variance: Floats,
    largest: Floats,
    mass: Floats,
) -> Floats:
    """Smallest K(s) − s·t over s > 0 for each problem, in natural logs, never above zero.

    All arrays have one entry a problem: the observed t, the variance of T under the group
    (where to begin: a Gaussian's best s is t / variance), the largest |score| (where to stop)
    and the sum of largest scores, by which rounding errors are bounded and added, so that
    neither rounding nor ties broken by it make a p-value smaller. K is convex with K(0) = 0,
    so the exponent has one valley in log s: it is crossed in steps of four and narrowed by
    golden section.
    """
    live = (observed > 0) & (variance > 0) & (largest > 0)
    if not live.any():
        return np.zeros(len(live))
    safe = np.where(live, largest, 1.0)
    top = np.log(LARGEST / safe)
    with np.errstate(divide="ignore", invalid="ignore"):
        start = np.log(np.where(live, observed / np.where(live, variance, 1.0), 1.0))
    u = np.minimum(np.clip(start - _STEP, -690.0, 690.0), top)

    def exponent(at: Floats) -> Floats:
        s = np.exp(at)
        value = log_mgf(s) - s * observed + _ROUNDING * s * mass
        return np.where(live, value, 0.0)

    best_u, best = u, exponent(u)
    rising = ~live
    while not rising.all():
        u = np.minimum(u + _STEP, top)
        value = exponent(u)
        better = value < best
        best_u, best = np.where(better, u, best_u), np.where(better, value, best)
        rising |= ~better | (u >= top)
    return np.minimum(_narrow(exponent, best_u - _STEP, best_u + _STEP, best), 0.0)


def _narrow(
    exponent: Callable[[Floats], Floats], low: Floats, high: Floats, best: Floats
) -> Floats:
    """Golden section in log s down to a hundredth: what is lost is of second order, 1e-4 of it."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = exponent(left), exponent(right)
    for _ in range(math.ceil(math.log(1e-2 / (2 * _STEP)) / math.log(_GOLDEN))):
        best = np.minimum(best, np.minimum(at_left, at_right))
        lower = at_left < at_right
        low, high = np.where(lower, low, left), np.where(lower, right, high)
        fresh = np.where(lower, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        value = exponent(fresh)
        left, right = np.where(lower, fresh, right), np.where(lower, left, fresh)
        at_left, at_right = np.where(lower, value, at_right), np.where(lower, at_left, value)
    return np.minimum(best, np.minimum(at_left, at_right))
