"""The least Chernoff exponent, found for many problems at once.

Markov's inequality gives P(T ≥ t) ≤ exp(K(s) − s·t) for every s > 0, where K is the log of
the mean of e^{sT} over the group. Each s is a valid bound for the t at hand, hence so is the
smallest of them; a search that stops early or goes astray loses power, never validity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from kinprint.nulls.result import Floats

# At this size of s·score the exponentials are saturated (e^−20 is nothing beside 1) for scores
# down to 1e-8 of the largest; beyond it rounding would be amplified and nothing be gained.
LARGEST = 1e9
TOGETHER = 8
"""How many problems are solved at once."""
_STEP = math.log(4.0)
# How near in log s is near enough, how far to look aside, and how often at most: what is lost
# is of second order in the first, less than a thousandth of the exponent.
_NEAR, _ASIDE, _MOST = 0.03, 0.2, 8
_LITTLE = 1e-4  # of the exponent: what a parabola may promise that is not worth a step
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


def each_together(sizes: Sequence[Hashable], solve: Callable[[list[int]], Floats]) -> list[float]:
    """What `solve` finds for each of many problems, given the places of some of one size.

    A search for several at once costs little more than for one, and what is found of a problem
    does not depend on those beside it. They are `TOGETHER` at the most, so that memory has an end.

    Examples
    --------
    >>> each_together(["a", "b", "a"], lambda some: 10.0 * np.array(some))
    [0.0, 10.0, 20.0]
    """
    alike: dict[Hashable, list[int]] = {}
    for at, size in enumerate(sizes):
        alike.setdefault(size, []).append(at)
    found: dict[int, float] = {}
    for places in alike.values():
        for start in range(0, len(places), TOGETHER):
            some = places[start : start + TOGETHER]
            found |= dict(zip(some, solve(some).tolist(), strict=True))
    return [found[at] for at in range(len(sizes))]


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
    so the exponent has one valley: it is crossed in steps of four and then followed down by
    parabolas, which for a Gaussian is one step.
    """
    live = (observed > 0) & (variance > 0) & (largest > 0)
    if not live.any():
        return np.zeros(len(live))
    safe = np.where(live, largest, 1.0)
    top = np.log(LARGEST / safe)
    with np.errstate(divide="ignore", invalid="ignore"):
        start = np.log(np.where(live, observed / np.where(live, variance, 1.0), 1.0))
    u = np.minimum(np.clip(start - _STEP, -690.0, 690.0), top)

    def exponent(s: Floats) -> Floats:
        return np.where(live, log_mgf(s) - s * observed + _ROUNDING * s * mass, 0.0)

    mid = np.exp(u)
    best = exponent(mid)
    low, before = np.zeros(len(u)), np.zeros(len(u))  # the exponent is zero at s = 0
    high, after = np.full(len(u), np.nan), np.zeros(len(u))
    falling = live
    while falling.any():
        u = np.minimum(u + _STEP, top)
        s = np.exp(u)
        value = exponent(s)
        better = falling & (value < best)
        ended = falling & ~better
        low, before = np.where(better, mid, low), np.where(better, best, before)
        high, after = np.where(ended, s, high), np.where(ended, value, after)
        mid, best = np.where(better, s, mid), np.where(better, value, best)
        falling = better & (u < top)
    open_end = np.isnan(high)
    if open_end.any():
        high = np.where(open_end, mid * math.exp(_STEP), high)
        after = np.where(open_end, exponent(high), after)
    return np.minimum(_narrow(exponent, (low, mid, high), (before, best, after)), 0.0)


def _narrow(
    exponent: Callable[[Floats], Floats],
    points: tuple[Floats, Floats, Floats],
    values: tuple[Floats, Floats, Floats],
) -> Floats:
    """The least value in a valley that is convex in s, from three points that enclose it.

    Each step goes to the bottom of the parabola through the three; where that is the point at hand,
    a little into the wider side, so that a chance fit does not end the search; upwards where both
    are as wide, which rounding must not decide. A problem ends where its points are near each
    other, or where the second or a later parabola promises little: it is then left alone, so that
    what is found does not depend on the problems beside it.
    """
    (low, mid, high), (before, best, after) = points, values
    low = np.where(low > 0, low, mid / 4.0)  # zero at s = 0 will do for zero a step below
    for number in range(_MOST):
        left, right = 1.0 - low / mid, high / mid - 1.0  # in units of the middle
        to_low, to_high = np.log(mid / low), np.log(high / mid)
        with np.errstate(divide="ignore", invalid="ignore"):
            tilt = (before - best) * right**2 - (after - best) * left**2
            bend = (before - best) * right + (after - best) * left
            s = mid * (1.0 + tilt / (2.0 * bend))
            gain = tilt**2 / (4.0 * bend * left * right * (left + right))
            good = (s > low) & (s < high) & (np.abs(np.log(s / mid)) > _NEAR)
        apart = np.maximum(to_low, to_high) > 2.0 * _NEAR
        going = apart & ((gain > _LITTLE * np.abs(best)) | (number == 0))
        if not going.any():
            break
        aside = mid * np.exp(_ASIDE * np.where(to_high > to_low - _NEAR, to_high, -to_low))
        s = np.where(going, np.where(good, s, aside), mid)
        value = exponent(s)
        better, smaller = going & (value < best), s < mid
        low_to_mid, high_to_mid = better & ~smaller, better & smaller
        low_to_s, high_to_s = going & ~better & smaller, going & ~better & ~smaller
        low = np.where(low_to_mid, mid, np.where(low_to_s, s, low))
        before = np.where(low_to_mid, best, np.where(low_to_s, value, before))
        high = np.where(high_to_mid, mid, np.where(high_to_s, s, high))
        after = np.where(high_to_mid, best, np.where(high_to_s, value, after))
        mid, best = np.where(better, s, mid), np.where(better, value, best)
    return best
