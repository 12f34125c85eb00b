"""How alike two vectors are, number against number.

Inputs of any real type and shape, taken flat; sums run in float64. Where a formula divides
by zero (a zero vector has no direction, a constant one no variation) or meets a value that
is no finite number, the answer is NaN, never a guess.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinprint.measure import blocks
from kinprint.measure.blocks import BLOCK, Floats


def cosine(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """Cosine of the angle between two vectors, Σab / √(Σa²·Σb²).

    Unchanged when either is scaled. Its trap: vectors whose entries share a mean far from
    zero, as norm weights do, have a cosine near one whatever else they contain.
    """
    found = blocks.sums(a, b, block=block)
    return found.cosine if found else math.nan


def pearson(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """Pearson correlation: the cosine after each vector's own mean is taken off.

    Unchanged when either is scaled or shifted, so a common mean cannot raise it. For
    independent vectors of length n it scatters around zero with deviation 1/√(n−1).
    """
    found = blocks.sums(a, b, centred=True, block=block)
    return found.cosine if found else math.nan


def centred_cosine(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """Cosine after each vector's own mean is taken off: Pearson correlation by another name.

    Both names stand because published tables use both; the number is one.
    """
    return pearson(a, b, block)


@blocks.quiet
def cosine_about(a: ArrayLike, b: ArrayLike, centre: float = 1.0, block: int = BLOCK) -> float:
    """Cosine of a − c and b − c for one constant c, one unless told otherwise.

    The derivation report's files call this "centered cosine" with c = 1, where norm gains
    begin. It is not Pearson: two vectors on the same side of c give about +1, on opposite
    sides about −1, whatever their patterns.
    """
    x, y = blocks.pair(a, b)
    scans = blocks.scan(x, block), blocks.scan(y, block)
    if not all(one.finite for one in scans):
        return math.nan
    power = blocks.exponent_of(max(scans[0].peak, scans[1].peak, abs(centre)))
    shift = math.ldexp(centre, -power)
    parts = []
    for p, q in zip(blocks.each(x, power, block), blocks.each(y, power, block), strict=True):
        p -= shift
        q -= shift
        parts.append((blocks.dot(p, p), blocks.dot(q, q), blocks.dot(p, q)))
    xx, yy, xy = blocks.totals(parts, 3)
    return blocks.Sums(len(x), xx, yy, xy).cosine


@blocks.quiet
def l2(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """Euclidean distance, √Σ(a−b)².

    It grows with the length and the scale of the vectors, so it compares only within one
    tensor type; two vectors of nothing are at distance zero.
    """
    x, y = blocks.pair(a, b)
    scans = blocks.scan(x, block), blocks.scan(y, block)
    if not all(one.finite for one in scans):
        return math.nan
    power = blocks.exponent_of(max(scans[0].peak, scans[1].peak))
    total = math.fsum(
        blocks.dot(p - q, p - q)
        for p, q in zip(blocks.each(x, power, block), blocks.each(y, power, block), strict=True)
    )
    return blocks.unscale(math.sqrt(total), power)


def norm(a: ArrayLike, block: int = BLOCK) -> float:
    """Euclidean length of one vector, √Σa²."""
    found = blocks.sums(a, a, block=block)
    return blocks.unscale(math.sqrt(found.aa), found.exponent_a) if found else math.nan


def relative_l2(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """Distance over the length of the first vector, ‖a−b‖ / ‖a‖.

    The published tables divide by the first model's norm; swapping the models changes the
    number. `symmetric_relative_l2` does not have that habit.
    """
    return _ratio(l2(a, b, block), norm(a, block))


def symmetric_relative_l2(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """Distance over the mean of the two lengths, 2‖a−b‖ / (‖a‖+‖b‖): 0 for equals, at most 2."""
    found = _ratio(l2(a, b, block), norm(a, block) / 2 + norm(b, block) / 2)
    return 2.0 if found > 2 else found


def relative_rmse(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """Root mean square difference over the root mean square of the first vector.

    The lengths cancel: this is `relative_l2`, and is offered because a published table has
    a column of that name.
    """
    return relative_l2(a, b, block)


@blocks.quiet
def mean_abs_diff(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """Mean of |a−b|, element by element."""
    x, y = blocks.pair(a, b)
    if not len(x):
        return math.nan
    return blocks.unscale(math.fsum(part / len(x) for part in _gaps(x, y, np.sum, block)), 4)


@blocks.quiet
def max_abs_diff(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """Largest |a−b|: one changed element is enough to move it."""
    x, y = blocks.pair(a, b)
    return blocks.unscale(max(_gaps(x, y, np.max, block), default=math.nan), 4)


def variation(a: ArrayLike, block: int = BLOCK) -> float:
    """Coefficient of variation of one vector: population deviation over |mean|."""
    x = blocks.flat(a)
    found = blocks.sums(x, x, centred=True, block=block)
    if not found or not found.size:
        return math.nan
    mean = blocks.mean_of(x, found.exponent_a, block)
    return _ratio(math.sqrt(max(0.0, found.aa) / found.size), abs(mean))


def variation_difference(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """Difference of the coefficients of variation, |σₐ/|μₐ| − σ_b/|μ_b||.

    It compares two numbers, not two vectors: any reordering of either leaves it unchanged.
    """
    blocks.pair(a, b)
    return abs(variation(a, block) - variation(b, block))


@blocks.quiet
def sign_agreement(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> float:
    """Share of places where both signs are equal; zero, of either sign, agrees with zero only."""
    x, y = blocks.pair(a, b)
    if not len(x):
        return math.nan
    equal = 0
    for p, q in zip(blocks.each(x, block=block), blocks.each(y, block=block), strict=True):
        if not (np.isfinite(p).all() and np.isfinite(q).all()):
            return math.nan
        equal += int((np.sign(p) == np.sign(q)).sum())
    return equal / len(x)


def shuffled_cosine_mean(a: ArrayLike, b: ArrayLike) -> float:
    """Mean of the cosine over all n! shuffles, n·ā·b̄ / (‖a‖·‖b‖); NaN without a direction.

    That is what a cosine owes to the two sets of values alone; the rest comes from their places.
    Shuffling changes neither length, and Σ a_i b_π(i) has the mean n·ā·b̄ (Hoeffding 1951), which
    is what centring takes off the product.
    """
    raw, centred = blocks.sums(a, b), blocks.sums(a, b, centred=True)
    if raw is None or centred is None or math.isnan(raw.cosine):
        return math.nan
    return blocks.clip((raw.ab - centred.ab) / (math.sqrt(raw.aa) * math.sqrt(raw.bb)))


def _gaps(
    x: NDArray[Any], y: NDArray[Any], gather: Callable[[Floats], np.float64], block: int
) -> list[float]:
    """One number a block from |a−b|/16 (so that it cannot overflow), or NaN alone."""
    pairs = zip(blocks.each(x, 4, block), blocks.each(y, 4, block), strict=True)
    parts = [float(gather(np.abs(p - q))) for p, q in pairs]
    return parts if all(map(math.isfinite, parts)) else [math.nan]


def _ratio(above: float, below: float) -> float:
    return above / below if below else math.nan
