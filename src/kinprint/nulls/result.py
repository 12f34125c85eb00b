"""The record that every test hands on: a statistic, how rare it is, and a picture of chance."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kinprint.records import Sensitivity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LN10 = math.log(10.0)
DRAWS = 200
"""Size of the sample that a result keeps for a plot."""


_AT_ONCE = 1 << 20


def portions(numbers: int, draws: int = DRAWS) -> list[int]:
    """How many draws of so many numbers to make at once, so that memory stays small."""
    size = max(1, min(draws, _AT_ONCE // max(1, numbers)))
    whole, rest = divmod(draws, size)
    return [size] * whole + [rest] * (rest > 0)


def drawn(seed: int | None, draw: Callable[[np.random.Generator], Floats]) -> tuple[float, ...]:
    """A sample of a statistic under the null; none where there is no seed, as nobody looks."""
    return () if seed is None else tuple(draw(np.random.default_rng(seed)).tolist())


class NullResult(Struct, frozen=True):
    """A statistic and a bound on how often chance alone reaches it.

    `log10_p` bounds the probability of a statistic at least this large; `bound` names the
    inequality; `floor` is log10 of the smallest p that the group of relabellings allows, so
    that a weak p can be told from a weak test. `effect` is a size that does not grow with `n`,
    the number of things that could be relabelled. `null` is a small sample of the statistic
    under random relabelling, none if no seed was given. `details` holds further numbers by name.
    `sensitivity` is set where the test was told what an effect adds to its scores.
    """

    statistic: float
    log10_p: float
    bound: str
    floor: float
    effect: float
    n: int
    null: tuple[float, ...] = ()
    details: Mapping[str, float] = field(default_factory=dict)
    sensitivity: Sensitivity | None = None


def no_evidence(bound: str, n: int = 0) -> NullResult:
    """The result of a test that had nothing to relabel: p is one, and could not be less."""
    return NullResult(0.0, 0.0, bound, 0.0, math.nan, n)
