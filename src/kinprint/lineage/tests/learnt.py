"""A look at norm gains: were they learnt, and how far have they moved from a constant?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from kinprint.lineage.pair import Pair
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.tests.registry import LineageTest, look
from kinprint.measure.rows import row_pearsons
from kinprint.records import Component, Evidence, Group, Reason, Status, Tier

_NEAR = 6


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
    neighbours = [
        (sample.norms[role, layer], sample.norms[role, after])
        for role, places in layers.items()
        for layer, after in pairwise(sorted(places))
        if after - layer <= reach
        and len(sample.norms[role, layer]) == len(sample.norms[role, after]) == sample.width
    ]
    if not neighbours:
        return math.nan
    before, behind = (np.stack(gains) for gains in zip(*neighbours, strict=True))
    correlations = row_pearsons(before, behind)
    known = correlations[np.isfinite(correlations)].tolist()
    return math.fsum(known) / len(known) if known else math.nan


def gain_spread(sample: Sample) -> float:
    """How far gains have moved from a constant: the mean of deviation over mean; 0 if none."""
    spreads = [
        float(gains.std(dtype=np.float64)) / mean
        for gains in sample.norms.values()
        if len(gains) == sample.width
        and np.isfinite(gains).all()
        and (mean := float(abs(gains.mean(dtype=np.float64)))) > 0
    ]
    return math.fsum(spreads) / len(spreads) if spreads else 0.0


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


def _nan_first(value: float) -> float:
    return -math.inf if math.isnan(value) else value
