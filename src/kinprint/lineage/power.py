"""How small a relation would have been seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kinprint.lineage.charge import Charge
from kinprint.lineage.tests.registry import Scale, registered_test
from kinprint.records import Evidence

# Bounds whose statistic grows in proportion to the effect.
_LINEAR = ("block permutation", "signed blocks", "signs", "quarter turns")
_LEFT = 0.75  # of a correlation, after centring in blocks of four
_POWER_QUANTILE = 1.2816  # nine times in ten


def detectable_effects(exact: Sequence[Evidence], charge: Charge) -> tuple[tuple[str, float], ...]:
    """The smallest effect that each test would have found nine times in ten.

    A bound close to exp(−T²/2V) needs √(2 ln 1/α) + z deviations of the statistic under the
    null, of which the evidence keeps a sample; effects are proportional to the statistic.
    """
    found: list[tuple[str, float]] = []
    for one in exact:
        level = charge.level(one.test)
        if one.floor > level:
            continue
        size = _detectable(one, level)
        if size is not None and 0 < size < 1:
            found.append((one.test, size))
    return tuple(found)


def _detectable(one: Evidence, level: float) -> float | None:
    proportional = one.bound in _LINEAR and registered_test(one).scale is Scale.CORRELATION
    if not proportional or len(one.null) < 20:
        return None
    scale = _scale(one)
    if scale is None:
        return None
    mean = math.fsum(one.null) / len(one.null)
    variance = math.fsum((value - mean) ** 2 for value in one.null) / (len(one.null) - 1)
    deviations = math.sqrt(-2.0 * level * math.log(10.0)) + _POWER_QUANTILE
    return scale * math.sqrt(variance) * deviations


def _scale(one: Evidence) -> float | None:
    """What one unit of the statistic is on the scale of the effect.

    Gains are scored by rank and centred in blocks of four, which leaves three quarters of a
    correlation; elsewhere effect and statistic are the same up to a factor.
    """
    if one.vectors is not None:
        return 1.0 / (_LEFT * one.n * one.vectors) if one.n and one.vectors else None
    if not one.statistic or one.effect is None:
        return None
    return abs(one.effect / one.statistic)
