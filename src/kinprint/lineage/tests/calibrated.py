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
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from kinprint.lineage.alignment.gram import GRAM_WIDTH
from kinprint.lineage.pair import Pair
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.tests.registry import Likeness, LineageTest, look
from kinprint.measure.direct import pearson
from kinprint.nulls.conformal import conformal
from kinprint.records import Component, Evidence, Group, Reason, Status, Tier

WIDEST = GRAM_WIDTH
"""Width up to which the shipped pairs speak for a model; none of them is wider."""
_NEAR = 6
_PERFECT = 3.0  # gate, up and down of every unit have a partner of cosine one
_PLAIN = 2.0
_ROLES = ("gate", "up", "down")


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
    gated = all(sample.facts.gated for sample in (a, b))
    whole = all(_most_units(sample) and _read_whole(sample) for sample in (a, b))
    narrow = max(a.width, b.width) <= WIDEST
    return "gated" if gated and whole and narrow else ""


def neighbour_correlation(sample: Sample) -> float:
    """Mean correlation of a model's gains in neighbouring layers among those that were read.

    Trained gains follow each other through the depth (0.2 to 0.5 in small trained models);
    gains drawn anew do not. Layers further apart than a sixth of the depth, the distance of
    neighbours in the models where this was seen, are no neighbours. NaN where no two vary.
    """
    reach = max(1, sample.depth // _NEAR)
    layers: dict[str, list[int]] = {}
    for role, layer in sample.norms:
        if layer >= 0:
            layers.setdefault(role, []).append(layer)
    correlations = [
        pearson(sample.norms[role, layer], sample.norms[role, after])
        for role, places in layers.items()
        for layer, after in pairwise(sorted(places))
        if after - layer <= reach and len(sample.norms[role, layer]) == sample.width
    ]
    known = [value for value in correlations if math.isfinite(value)]
    return math.fsum(known) / len(known) if known else math.nan


def gain_spread(sample: Sample) -> float:
    """How far gains have moved from a constant: the mean of deviation over mean; 0 if none."""
    spreads = [
        float(gains.std(dtype=np.float64)) / float(abs(gains.mean(dtype=np.float64)))
        for gains in sample.norms.values()
        if len(gains) == sample.width
        and np.isfinite(gains).all()
        and abs(gains.mean(dtype=np.float64)) > 0
    ]
    return math.fsum(spreads) / len(spreads) if spreads else 0.0


def match_quality(evidence: Sequence[Evidence]) -> float | None:
    """How well the units of two models can be matched, blind to labels and signs."""
    qualities = (each.alignment_quality for each in evidence)
    return max((value for value in qualities if value is not None), default=None)


@look("Q.known", tier=Tier.CALIBRATED, component=Component.FEED_FORWARD, likeness=Likeness.MATCH)
def match_among_strangers(pair: Pair, test: LineageTest, evidence: Sequence[Evidence]) -> Evidence:
    """How well units match, ranked among pairs of strangers."""
    a, b = pair.samples
    quality, kind = match_quality(evidence), stratum(a, b)
    if quality is None or not kind:
        return _no_rank(test, Reason.MATCHED_UNITS if quality is None else Reason.KNOWN_PAIRS)
    own = excess(quality, min(a.width, b.width), max(_most_units(a), _most_units(b)))
    return _ranked(test, own, kind, [(known.excess, known.stratum) for known in known_pairs()])


@look("G.known", tier=Tier.CALIBRATED, component=Component.FEED_FORWARD, likeness=Likeness.GRAM)
def gram_among_strangers(pair: Pair, test: LineageTest, evidence: Sequence[Evidence]) -> Evidence:
    """How alike Gram matrices are after alignment, ranked among pairs of strangers."""
    likenesses = (each.gram_likeness for each in evidence)
    likeness = max((value for value in likenesses if value is not None), default=None)
    kind = stratum(*pair.samples)
    if likeness is None or not kind:
        return _no_rank(test, Reason.ALIGNED_UNITS)
    known = [(pair.gram, pair.stratum) for pair in known_pairs() if pair.gram is not None]
    return _ranked(test, likeness, kind, known)


@look("gains.look", tier=Tier.RULE, group=Group.RULE, component=Component.NORMS, learnt=True)
def learnt_gains(pair: Pair, test: LineageTest, _: Sequence[Evidence]) -> Evidence:
    """Whether gains look learnt: how neighbouring layers agree, and how far gains have moved."""
    least = min(map(neighbour_correlation, pair.samples), key=_nan_first)
    varies = not math.isnan(least)
    return Evidence(
        test.name,
        test.tier,
        test.group,
        Status.OK if varies else Status.UNDEFINED,
        effect=least if varies else None,
        bound="none",
        reason=None if varies else Reason.NO_NEIGHBOURING_GAINS.message(),
        learnt=test.learnt,
        gain_spread=max(map(gain_spread, pair.samples)),
        details=(("neighbours", least),) if varies else (),
    )


LOOKS = (match_among_strangers, gram_among_strangers, learnt_gains)
"""What the evidence of a pair means beside known strangers, and whether its gains look learnt."""


def _ranked(
    test: LineageTest, own: float, kind: str, known: Sequence[tuple[float, str]]
) -> Evidence:
    """The rank of a value among known pairs of the same kind."""
    result = conformal(own, [value for value, _ in known], [each for _, each in known], kind)
    if not result.n or not math.isfinite(own):
        return _no_rank(test, Reason.KNOWN_PAIRS)
    return Evidence(
        test.name, test.tier, test.group, Status.OK, result.log10_p, own, own, result.n,
        result.bound, result.floor, result.null, roles=_ROLES,
    )  # fmt: skip


def _no_rank(test: LineageTest, reason: Reason) -> Evidence:
    return replace(test.no_result(reason), roles=_ROLES)


def _nan_first(value: float) -> float:
    return -math.inf if math.isnan(value) else value


def _most_units(sample: Sample) -> int:
    """The most units of a feed-forward that a unit of another model may be matched with."""
    parts = [*sample.units.values(), *sample.experts.values()]
    return max((len(part.index) for part in parts), default=0)


def _read_whole(sample: Sample) -> bool:
    """Whether all units of its feed-forwards were read: the best of a sample is a weaker best."""
    parts = [*sample.units.values(), *sample.experts.values()]
    return all(len(np.unique(part.index)) == part.total for part in parts)
