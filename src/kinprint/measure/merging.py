"""The arithmetic of merges: parents in, merged numbers out, rounded where a merging tool rounds.

Operations follow mergekit's (arXiv 2403.13257): every step of a calculation in a short format is
computed in float32 and rounded, as PyTorch does on a CPU, and weights are rounded to the format
too. Linear averages: arXiv 2203.05482; task arithmetic: 2212.04089; TIES: 2306.01708; DARE:
2311.03099. Arrays of one shape are given block by block; what a method needs to know of a whole
tensor (an angle, a threshold, a scale) is an argument.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

COLLINEAR = 0.9995
"""The cosine beyond which slerp is a straight line."""
_NO_SUM = 1e-8  # weights whose sum is nearer to zero are not divided by it


class Precision(StrEnum):
    """The number format in which a merge is computed or stored."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"

    @property
    def bits(self) -> int:
        """Bits of the significand, the hidden one counted."""
        return {Precision.FLOAT32: 24, Precision.BFLOAT16: 8, Precision.FLOAT16: 11}[self]


_TYPES: dict[Precision, Any] = {
    Precision.BFLOAT16: ml_dtypes.bfloat16,
    Precision.FLOAT16: np.float16,
}


def rounded(values: Floats, precision: Precision) -> Floats:
    """Numbers rounded to a format, as float32."""
    if precision is Precision.FLOAT32:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(_TYPES[precision]).astype(np.float32)


def linear(
    parents: Sequence[Floats],
    weights: Sequence[float],
    normalize: bool,
    precision: Precision,
    *,
    fused: bool = True,
) -> Floats:
    """A weighted sum, divided by the sum of the weights where `normalize` says so.

    Parents are rounded to `precision` first. `fused` sums in float32 with multiplications that are
    not rounded on their own, as mergekit 0.1.5 does; earlier ones round every step. Weights that
    sum to zero give no numbers.
    """
    own = [rounded(parent, precision) for parent in parents]
    if not fused:
        given = rounded(np.array(weights, np.float32), precision)
        terms = [rounded(weight * one, precision) for weight, one in zip(given, own, strict=True)]
        mixed = rounded(_sum(terms), precision)
        if not normalize:
            return mixed
        return rounded(_divided(mixed, rounded(_sum(list(given)), precision)), precision)
    given = np.array(weights, np.float32)
    total = np.zeros(own[0].shape, np.float32)
    for weight, one in zip(given, own, strict=True):
        total = (total + np.float64(weight) * one).astype(np.float32)
    return rounded(_divided(total, _sum(list(given))) if normalize else total, precision)


def _divided(values: Floats, divisor: Floats) -> Floats:
    """Numbers divided by one that may be zero."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.asarray(values / divisor)


def slerp_coefficients(t: float, cosine: float) -> tuple[float, float]:
    """What two tensors are multiplied by on the way from the first to the second."""
    if abs(cosine) > COLLINEAR:
        return 1 - t, t
    angle = math.acos(max(-1.0, min(1.0, cosine)))
    return math.sin((1 - t) * angle) / math.sin(angle), math.sin(t * angle) / math.sin(angle)


def slerp(first: Floats, second: Floats, coefficients: tuple[float, float]) -> Floats:
    """Two tensors joined along a great circle; computed in float32 whatever they are stored in."""
    a, b = (np.float32(one) for one in coefficients)
    return np.asarray(a * first + b * second, np.float32)


def task_vectors(base: Floats, parents: Sequence[Floats], precision: Precision) -> list[Floats]:
    """What each parent adds to the base."""
    under = rounded(base, precision)
    return [rounded(rounded(parent, precision) - under, precision) for parent in parents]


def add_task_vectors(
    base: Floats,
    vectors: Sequence[Floats],
    weights: Sequence[float],
    precision: Precision,
    *,
    scale: float = 1.0,
    normalize: bool = False,
    consensus: bool = False,
) -> Floats:
    """The base and a weighted sum of what parents add to it.

    With `consensus` each number takes only the terms that have the sign of their sum. `scale` is
    what recipes call lambda.
    """
    given = rounded(np.array(weights, np.float32), precision)
    terms = [
        rounded(vector * weight, precision) for vector, weight in zip(vectors, given, strict=True)
    ]
    divisor: Any
    if consensus:
        positive = rounded(_sum(terms), precision) >= 0
        agree = [np.sign(term) == np.where(positive, 1, -1) for term in terms]
        terms = [term * mask for term, mask in zip(terms, agree, strict=True)]
        divisor = rounded(
            _sum([weight * mask for weight, mask in zip(given, agree, strict=True)]), precision
        )
        divisor = np.where(divisor == 0, np.float32(1), divisor)
    else:
        divisor = rounded(_sum(list(given)), precision)
        divisor = np.float32(1) if abs(divisor) < _NO_SUM else divisor
    mixed = rounded(_sum(terms), precision)
    if normalize:
        mixed = rounded(mixed / divisor, precision)
    if scale != 1:
        mixed = rounded(mixed * np.float32(scale), precision)
    return rounded(rounded(base, precision) + mixed, precision)


def _sum(terms: Sequence[Any]) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return np.asarray(total, np.float32)
