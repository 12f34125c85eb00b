"""How often correlations by layer would be as large as these if the models had nothing in common.

Two models trained independently have their channels in independent orders, so one order of
channels, the same in all layers, may be exchanged for another. Under such exchanges correlations
r of n channels have mean 0, variance 1/(n − 1), and those of layers i and j the covariance
A_ij B_ij/(n − 1), where A and B hold the correlations of the layers of each model among
themselves (the covariance of a linear permutation statistic; A. Wald and J. Wolfowitz, Ann. Math.
Statist. 15, 1944). Were layers independent, A and B would be the unit matrix; they are not, and a
mean over layers then scatters more than the number of layers suggests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct, to_builtins
from numpy.typing import NDArray

from kinprint.studies.comparing import compare
from kinprint.studies.derivation.pairwise import TensorPair
from kinprint.studies.marks import mark_of
from kinprint.studies.results import Fact
from kinprint.studies.study import ReadTensor

BEYOND = 2.0  # deviations
DRAWS = 20_000
Doubles = NDArray[np.float64]


class Chance(Struct, frozen=True):
    """How often chance gives a mean, a largest value and a count beyond two deviations as large."""

    mean: float
    largest: float
    beyond: float


class LayerTest(Struct, frozen=True):
    """Correlations by layer, and how often they would be as large.

    `independent` is for layers that have nothing to do with each other, `together` for layers that
    correlate as those of the two models do, or as the few of which that was published; None where
    nothing is known of it.
    """

    layers: int
    deviation: float
    mean: float
    largest: float
    beyond: int
    independent: Chance
    together: Chance | None

    @property
    def facts(self) -> dict[str, Fact]:
        """As data."""
        facts: dict[str, Fact] = to_builtins(self)
        return facts


def layer_test(pairs: Sequence[TensorPair], seed: int) -> LayerTest | None:
    """The test of one role; None where fewer than two layers have a correlation."""
    known = [pair for pair in pairs if pair.value("pearson") is not None]
    if len(known) < 2 or known[0].a.values is None:
        return None
    r = np.array([pair.value("pearson") for pair in known], float)
    deviation = 1 / math.sqrt(known[0].a.values.size - 1)
    beyond = int((np.abs(r) > BEYOND * deviation).sum())
    seen = float(r.mean()), float(np.abs(r).max()), beyond
    rng = np.random.default_rng(seed)
    unit = rng.standard_normal((DRAWS, len(r))) * deviation
    covariance = _covariance(known)
    together = None
    if covariance is not None:
        values, vectors = np.linalg.eigh(covariance)
        factor = vectors * np.sqrt(np.maximum(values, 0))
        together = _chance(unit @ factor.T, deviation, *seen)
    return LayerTest(len(r), deviation, *seen, _chance(unit, deviation, *seen), together)


def _covariance(pairs: Sequence[TensorPair]) -> Doubles | None:
    """The covariance of the layers of both models, in units of the variance of one.

    Of replicas the correlations of a few layers were published; all others get their mean.
    Layer 0, which resembles no other in the models of the dispute, is left out of that mean.
    """
    if all(side.origin is None for pair in pairs for side in (pair.a, pair.b)):
        one, other = (
            np.corrcoef(np.stack([v for v in side if v is not None]))
            for side in zip(*((pair.a.values, pair.b.values) for pair in pairs), strict=True)
        )
        return np.asarray(one * other)
    known = [
        first * second
        for i, j in combinations([pair for pair in pairs if pair.layer], 2)
        for first, second in [(_pearson(i.a, j.a), _pearson(i.b, j.b))]
        if first is not None and second is not None
    ]
    if not known:
        return None
    usual = float(np.mean(known))
    return np.full((len(pairs), len(pairs)), usual) + np.eye(len(pairs)) * (1 - usual)


def _pearson(x: ReadTensor, y: ReadTensor) -> float | None:
    if mark_of("pearson", x.origin, y.origin) is None:  # as of most pairs of layers
        return None
    return compare(x, y, ("pearson",)).value("pearson")


def _chance(draws: Doubles, deviation: float, mean: float, largest: float, beyond: int) -> Chance:
    """Shares of draws that reach what was seen, the observation counted as one of them."""
    sizes = np.abs(draws)
    reached = (
        np.abs(draws.mean(axis=1)) >= abs(mean),
        sizes.max(axis=1) >= largest,
        (sizes > BEYOND * deviation).sum(axis=1) >= beyond,
    )
    return Chance(*(float((1 + one.sum()) / (1 + len(draws))) for one in reached))
