"""The calibrated tier: likeness that no symmetry gives a null for, ranked among known strangers.

Whoever draws the whole symmetry group anew at random (labels, signs and bases) silences every
exact test. What he cannot change is how well units can be matched; but independent models
match too, since they learn the same features. So the quality of the match is compared with
pairs of models that were trained apart and are shipped as data, pairs of a teacher and its
student among them. It flags and never accuses alone: a verdict takes no p-value from here.
"""

from __future__ import annotations

import functools
import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from kinprint.lineage.alignment.gram_likeness import GRAM_WIDTH
from kinprint.lineage.reading.sample import Sample
from kinprint.measure.direct import pearson
from kinprint.nulls.conformal import conformal
from kinprint.records import Evidence

QUALITY = "quality"
"""The detail under which a test of matched units tells how well they match."""
GRAM = "gram"
"""The detail under which it tells how alike Gram matrices are after alignment."""
WIDEST = GRAM_WIDTH
"""Width up to which the shipped pairs speak for a model; none of them is wider."""
_NEAR = 6
_PERFECT = 3.0  # gate, up and down of every unit have a partner of cosine one
_PLAIN = 2.0
_ROLES = ("gate", "up", "down")
_UNKNOWN = "known independent pairs of this kind"


@dataclass(frozen=True, slots=True)
class KnownPair:
    """Two models trained apart: their roots, their kind, how well their units match, and how
    alike their Gram matrices are where that was measured."""

    roots: tuple[str, str]
    stratum: str
    excess: float
    gram: float | None = None


@functools.cache
def known_pairs() -> tuple[KnownPair, ...]:
    """The shipped pairs; no two of them share a root."""
    path = Path(__file__).with_name("calibrated.toml")
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["pair"]
    return tuple(
        KnownPair(
            (row["roots"][0], row["roots"][1]), row["stratum"], row["excess"], row.get("gram")
        )
        for row in rows
    )


def calibrate(a: Sample, b: Sample, evidence: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """What the battery's evidence means beside known strangers, and whether gains look learnt.

    Swapping the models changes nothing.
    """
    return _match(a, b, evidence), _likeness(a, b, evidence), _gains(a, b)


def excess(quality: float, width: int, units: int, gated: bool = True) -> float:
    """Quality of a match above that of random rows, as a share of what is left to a perfect one.

    The best of n sums of m cosines between random rows of d numbers is about √(2 ln n · m/d),
    so that widths and numbers of units do not drown the likeness.
    """
    matrices = _PERFECT if gated else _PLAIN
    chance = math.sqrt(2.0 * math.log(max(units, 2)) * matrices / max(width, 1))
    if chance >= matrices:
        return math.nan
    return (quality - chance) / (matrices - chance)


def stratum(a: Sample, b: Sample) -> str:
    """The kind of a pair, fixed before any value is seen; empty where no known pair is like it."""
    gated = all(side.facts.gated for side in (a, b))
    whole = all(_units(side) and _whole(side) for side in (a, b))
    narrow = max(a.width, b.width) <= WIDEST
    return "gated" if gated and whole and narrow else ""


def neighbour_correlation(side: Sample) -> float:
    """Mean correlation of a model's gains in neighbouring layers among those that were read.

    Trained gains follow each other through the depth (0.2 to 0.5 in small trained models);
    gains drawn anew do not. Layers further apart than a sixth of the depth, the distance of
    neighbours in the models where this was seen, are no neighbours. NaN where no two vary.
    """
    reach = max(1, side.depth // _NEAR)
    layers: dict[str, list[int]] = {}
    for role, layer in side.norms:
        if layer >= 0:
            layers.setdefault(role, []).append(layer)
    found = [
        pearson(side.norms[role, one], side.norms[role, other])
        for role, places in layers.items()
        for one, other in pairwise(sorted(places))
        if other - one <= reach and len(side.norms[role, one]) == side.width
    ]
    known = [value for value in found if math.isfinite(value)]
    return math.fsum(known) / len(known) if known else math.nan


def gain_spread(side: Sample) -> float:
    """How far gains have moved from a constant: the mean of deviation over mean; 0 if none."""
    found = [
        float(gains.std()) / float(abs(gains.mean()))
        for gains in side.norms.values()
        if len(gains) == side.width and np.isfinite(gains).all() and abs(float(gains.mean())) > 0
    ]
    return math.fsum(found) / len(found) if found else 0.0


def _match(a: Sample, b: Sample, evidence: Sequence[Evidence]) -> Evidence:
    """The quality of the best match among strangers."""
    told, kind = _told(evidence, QUALITY), stratum(a, b)
    if told is None or not kind:
        return _silent("Q.known", "matched units" if told is None else _UNKNOWN)
    own = excess(told, min(a.width, b.width), max(_units(a), _units(b)))
    return _ranked("Q.known", own, kind, [(one.excess, one.stratum) for one in known_pairs()])


def _likeness(a: Sample, b: Sample, evidence: Sequence[Evidence]) -> Evidence:
    """Aligned Gram similarity among strangers."""
    told, kind = _told(evidence, GRAM), stratum(a, b)
    if told is None or not kind:
        return _silent("G.known", "aligned units of strangers, none of them wide")
    known = [(one.gram, one.stratum) for one in known_pairs() if one.gram is not None]
    return _ranked("G.known", told, kind, known)


def _told(evidence: Sequence[Evidence], name: str) -> float | None:
    return max(
        (value for one in evidence for told, value in one.details if told == name), default=None
    )


def _ranked(test: str, own: float, kind: str, known: Sequence[tuple[float, str]]) -> Evidence:
    """The rank of a value among known pairs of the same kind."""
    result = conformal(own, [value for value, _ in known], [each for _, each in known], kind)
    if not result.n or not math.isfinite(own):
        return _silent(test, _UNKNOWN)
    return Evidence(
        test, "calibrated", "none", "ok", result.log10_p, own, own, result.n, result.bound,
        result.floor, result.null, roles=_ROLES,
    )  # fmt: skip


def _silent(test: str, reason: str) -> Evidence:
    return Evidence(test, "calibrated", "none", "needs", roles=_ROLES, reason=reason)


def _gains(a: Sample, b: Sample) -> Evidence:
    least = min((neighbour_correlation(side) for side in (a, b)), key=_nan_first)
    spread = max(gain_spread(side) for side in (a, b))
    if math.isnan(least):
        return Evidence(
            "gains.look", "rule", "rule", "undefined", learnt=True, bound="none",
            reason="no gains of neighbouring layers that vary", details=(("spread", spread),),
        )  # fmt: skip
    return Evidence(
        "gains.look", "rule", "rule", "ok", learnt=True, effect=least,
        bound="none", details=(("neighbours", least), ("spread", spread)),
    )  # fmt: skip


def _nan_first(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _units(side: Sample) -> int:
    """All units of a model that a unit of another may be matched with."""
    parts = [*side.units.values(), *side.experts.values()]
    return max((len(one.index) for one in parts), default=0)


def _whole(side: Sample) -> bool:
    """Whether all units of its feed-forwards were read: the best of a sample is a weaker best."""
    parts = [*side.units.values(), *side.experts.values()]
    return all(len(np.unique(one.index)) == one.total for one in parts)
