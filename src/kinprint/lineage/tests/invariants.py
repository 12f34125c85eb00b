"""The invariants' tier: what no relabelling, flip, turn or rotation of a model can change.

Whoever draws the whole symmetry group anew (labels, signs and bases) silences every exact test.
What he cannot change is how the ends of a unit belong together, so units are matched by one end and
judged by what the match did not see (`measure.invariants`). How far strangers agree in that, and
pupils with their teachers, no theory says: it was measured on models trained for the purpose, and
the limits lie well above the largest of them. Models of one initialisation may agree as much as
descendants do: the tier tells common weights, final or first ones, and not which.

Nothing here is a p-value. Evidence has the share of units, its interval, what strangers of like
width reach, and the same share with layers that do not correspond.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct

from kinprint.lineage.alignment.residual import MapSource, ResidualMap
from kinprint.lineage.pair import Alignment, Pair
from kinprint.lineage.preparation import DENSE, Prepared
from kinprint.lineage.reading.sample import Floats
from kinprint.lineage.tests.registry import LineageTest, NoResult, register
from kinprint.measure.basis import nearest_cosines, polar_factor, refined, spread, token_table
from kinprint.measure.invariants import (
    LayerAgreement,
    Share,
    UnitRows,
    agreements,
    head_agreement,
    plane_agreements,
)
from kinprint.records import Agreement, Component, Evidence, Group, Reason, Status, Tier

Turn = Floats | None
"""A residual map as a matrix; None for the identity."""

PARTS = 6
"""Feed-forwards of the model with fewer units that are matched, at most, over its depth."""
ROWS = 512
"""Units of each of them that are matched, at most."""
FEWEST = 48
"""Fewer units of a feed-forward than this are not matched."""
_CLEAR = 0.6  # mean cosine of nearest gate rows from which on no further map is tried
_REPEATED = 0.6  # mean |cosine| of two ends of units that tell one thing; trained ones have ≤ 0.40
_MAPS = 2  # further maps that are tried
_BETTER = 0.1  # what a further map must have brought: fitting to units alone brings strangers 0.08
_FEW = 16  # rows of a feed-forward by which maps are compared
_PLANES = 64  # units by which planes are compared
_ROUNDS = ((1024, 4), (2048, 2))  # of refinement, up to a width; once in wider models
_INTERVAL = 1.96  # standard deviations of the interval of a share
_STRANGERS_MAY = 0.9


class Statistic(StrEnum):
    """A share of units or heads; its value is its column in the table of known pairs."""

    TWO_OF_THREE = "two_of_three"
    SPAN = "span"
    CONCORDANCE = "concordance"
    NEAREST = "nearest"
    HEADS = "heads"


def statistics(*, gated: bool) -> tuple[Statistic, ...]:
    """What is compared of models with gated feed-forwards, and of those with plain ones."""
    plain = {Statistic.NEAREST}
    of_units = set(Statistic) - plain - {Statistic.HEADS} if gated else plain
    return tuple(one for one in Statistic if one in of_units or one is Statistic.HEADS)


class Limit(Struct, frozen=True):
    """From which share on a statistic speaks: of all layers together, or of one of them."""

    mean: float
    layer: float


LIMITS = {
    Statistic.TWO_OF_THREE: Limit(0.3, 0.5),
    Statistic.SPAN: Limit(0.2, 0.4),
    Statistic.NEAREST: Limit(0.3, 0.5),
}
"""More than three times what any stranger or pupil of the models that they were set on reaches
(0.09, in one layer 0.15; 0.06, in one layer 0.13). That of plain feed-forwards is the first one's,
kept as it was when plain models were measured (0.02, in one layer 0.05). Concordance and heads are
shown and decide nothing: decoy units take the one to chance, and few heads agree by chance."""


class KnownPairs(Struct, frozen=True):
    """What known pairs of one width reach in one statistic."""

    width: int
    strangers: tuple[float, ...]
    taught: tuple[float, ...]

    @property
    def null(self) -> tuple[float, ...]:
        """Shares of strangers and pupils."""
        return (*self.strangers, *self.taught)

    @property
    def largest(self) -> float:
        """The largest share of a stranger or pupil."""
        return max(self.null, default=0.0)


@functools.cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("invariants.json").read_bytes())
    return found


@functools.cache
def known_pairs() -> Mapping[tuple[str, str, str], tuple[KnownPairs, ...]]:
    """The shipped table: known pairs by width.

    By kind of feed-forward ("gated" or "plain"), reading ("whole" or "rows") and statistic.
    """
    found: dict[tuple[str, str, str], list[KnownPairs]] = {}
    for row in _table()["known"]:
        for statistic in statistics(gated=row["feed_forward"] == "gated"):
            values = row[statistic]
            found.setdefault((row["feed_forward"], row["reading"], statistic), []).append(
                KnownPairs(row["width"], tuple(values["strangers"]), tuple(values["taught"]))
            )
    return {key: tuple(values) for key, values in found.items()}


def error_rates() -> Mapping[tuple[str, str, str, str], Share]:
    """How often the limits speak.

    By collection ("set" or "aside"), kind of feed-forward, reading and kind of pair.
    """
    return {
        (row["collection"], row["feed_forward"], row["reading"], row["kind"]): Share(
            row["spoke"], row["pairs"]
        )
        for row in _table()["rate"]
    }


def known_of(statistic: Statistic, width: int, *, whole: bool, gated: bool) -> KnownPairs:
    """Known pairs of the width nearest to a given one, by ratio."""
    kind, reading = "gated" if gated else "plain", "whole" if whole else "rows"
    known = known_pairs()[kind, reading, statistic]
    return min(known, key=lambda each: abs(math.log(each.width / width)))


def invariant_evidence(pair: Pair) -> tuple[Evidence, ...]:
    """What no relabelling can change, compared: one piece of evidence for each statistic."""
    gated = all(_gated(side.prepared) for side in pair.sides)
    tests = [(TESTS[statistic], statistic) for statistic in statistics(gated=gated)]
    try:
        found = _match(pair, gated)
    except NoResult as stop:
        return tuple(test.no_result(stop.reason, stop.status) for test, _ in tests)
    return tuple(_evidence(test, statistic, found) for test, statistic in tests)


def _registered(name: str, component: Component) -> LineageTest:
    return register(LineageTest(name, Tier.CALIBRATED, Group.NONE, component))


TESTS = {
    Statistic.TWO_OF_THREE: _registered("I.two-of-three", Component.FEED_FORWARD),
    Statistic.SPAN: _registered("I.span", Component.FEED_FORWARD),
    Statistic.CONCORDANCE: _registered("I.concordance", Component.FEED_FORWARD),
    Statistic.NEAREST: _registered("I.nearest", Component.FEED_FORWARD),
    Statistic.HEADS: _registered("I.heads", Component.ATTENTION),
}
_ROLES = dict.fromkeys(Statistic, ("gate", "up", "down")) | {
    Statistic.NEAREST: ("up", "down"),
    Statistic.HEADS: ("q", "k", "v", "o"),
}


class _Matched(Struct, frozen=True):
    """Two models whose feed-forwards and heads were matched by one end.

    Attributes
    ----------
    width : the larger residual width.
    whole : whether all units of the first model's feed-forwards were matched.
    gated : whether units have gates in both; otherwise all there is are up and down.
    turned : whether the first model is the second of the pair's sides.
    layers, partners : by layer, its number and that of the layer it was matched with.
    dense : by layer, whether both are feed-forwards that every token goes through.
    units, spans : by layer, how units agree, and how they do by the plane of gate and up.
    heads : by layer, heads that agree, where there are any.
    """

    width: int
    whole: bool
    gated: bool
    turned: bool
    layers: tuple[int, ...]
    partners: tuple[int, ...]
    dense: tuple[bool, ...]
    units: tuple[LayerAgreement, ...]
    spans: tuple[Share, ...]
    heads: tuple[Share, ...]

    def shares(self, statistic: Statistic) -> tuple[Share, ...]:
        """By layer, the share of a statistic; none where the models do not have it."""
        if statistic is Statistic.HEADS:
            return self.heads
        if statistic is Statistic.SPAN:
            return self.spans
        found: tuple[Share, ...] = tuple(getattr(one.units, statistic) for one in self.units)
        return found


def _match(pair: Pair, gated: bool) -> _Matched:
    """Match units of the model that has fewer with whole feed-forwards of the other."""
    first, second = _orientation(pair)
    places = _chosen(first)
    theirs = _whole(second)
    units = [_some(first.unit_rows[place], ROWS) for place in places]
    others = list(theirs.values())
    if not gated:
        units, others = ([UnitRows(one.up, one.down) for one in rows] for rows in (units, others))
    if any(rows.repetition > _REPEATED for rows in (*units, *others)):
        raise NoResult(Reason.UNIT_ENDS_REPEATED, Status.GUARDED)
    side = next(side for side in pair.sides if side.prepared is first)
    turns, bare = _turns(pair.alignment_from(side), units, others)
    if not turns:
        raise NoResult(Reason.RESIDUAL_MAP)
    layers = agreements(units, others, turns)
    spans = [one.units.span for one in layers]
    if gated and bare:
        some = [_some(rows, _PLANES) for rows in units]
        for at, plane in enumerate(plane_agreements(some, others, bare)):
            spans[at] = max(spans[at], plane.span, key=lambda share: share.value)
    partners = [list(theirs)[one.partner] for one in layers]
    heads = []
    for one, (to, _) in zip(layers, partners, strict=True):
        ours = first.head_rows.get(places[one.layer][0])
        partner = second.head_rows.get(to)
        if ours is not None and partner is not None:
            heads.append(head_agreement(ours, partner, turns[one.turn]))
    return _Matched(
        max(first.width, second.width),
        all(place in _whole(first) and first.unit_rows[place].count <= ROWS for place in places),
        gated,
        side is pair.sides[1],
        tuple(layer for layer, _ in places),
        tuple(layer for layer, _ in partners),
        tuple(ours[1] == to[1] == DENSE for ours, to in zip(places, partners, strict=True)),
        layers,
        tuple(spans),
        tuple(share for share in heads if share is not None),
    )


def _chosen(model: Prepared) -> list[tuple[int, int]]:
    """Feed-forwards to match: those that were read whole, then those of which some units were.

    Of large models few layers are read whole, and these are likely to correspond.
    """
    whole = list(_whole(model))
    some = [
        place
        for place, rows in model.unit_rows.items()
        if rows.count >= FEWEST and place not in model.whole_feed_forwards
    ]
    first = [whole[at] for at in spread(len(whole), PARTS)] if whole else []
    left = min(PARTS - len(first), len(some))
    return sorted(first + [some[at] for at in spread(len(some), left)] if left else first)


def _turns(
    alignment: Alignment, units: Sequence[UnitRows], others: Sequence[UnitRows]
) -> tuple[list[Turn], list[Turn]]:
    """Maps to try: those refined with gate rows, and those that saw no unit."""
    ours, theirs = alignment.first.prepared.width, alignment.second.prepared.width
    keys = [rows.key for rows in units], [rows.key for rows in others]
    turns: list[Turn] = [None] if ours == theirs else []
    bare: list[Turn] = [*turns]
    if turns and _nearness(keys, None) >= _CLEAR:
        return turns, bare
    rounds = next((times for width, times in _ROUNDS if ours <= width), 1)
    shared = alignment.channels.shared
    if len(shared.first) >= min(ours, theirs) / 2:
        table = token_table(shared.first, shared.second)
        bare = [polar_factor(table)]
        turns.append(refined(*keys, bare[0], table, rounds))
    nearest = max((_nearness(keys, turn) for turn in turns), default=-1.0)
    if nearest < _CLEAR:
        maps = [each for each in alignment.residual_maps if each.residual.source in _FURTHER]
        for each in sorted(maps, key=lambda each: -each.quality)[:_MAPS]:
            start = _matrix(each.residual, ours)
            if _nearness(keys, start) >= nearest:
                further = refined(*keys, start, rounds=rounds)
                turns += [further] if _nearness(keys, further) >= nearest + _BETTER else []
    return turns, bare


def _nearness(keys: tuple[list[Floats], list[Floats]], turn: Turn) -> float:
    """The mean cosine of nearest gate rows in a map."""
    return float(nearest_cosines(*keys, turn, _FEW).max(axis=1).mean())


_FURTHER = (MapSource.GRAM, MapSource.COLUMNS, MapSource.GAINS)
"""Maps of the alignment that never saw which unit goes with which."""


_CONTROLLED = (Statistic.TWO_OF_THREE, Statistic.NEAREST)
"""What layers that do not correspond are compared by."""


def _evidence(test: LineageTest, statistic: Statistic, found: _Matched) -> Evidence:
    """The share of a statistic beside known pairs of like width."""
    shares = [share for share in found.shares(statistic) if share.of]
    if not shares:
        return test.no_result(Reason.MATCHED_UNITS)
    values = [share.value for share in shares]
    mean = math.fsum(values) / len(values)
    together = Share(sum(one.count for one in shares), sum(one.of for one in shares))
    known = known_of(statistic, found.width, whole=found.whole, gated=found.gated)
    limit = LIMITS.get(statistic)
    speaks = limit is not None and (mean >= limit.mean or max(values) >= limit.layer)
    controls = [one.control.value for one in found.units if one.control is not None]
    agreement = Agreement(
        count=together.count,
        of=together.of,
        share=mean,
        interval=share_interval(together),
        limit=None if limit is None else limit.mean,
        speaks=speaks,
        strangers=len(known.null),
        largest=known.largest,
        width=known.width,
        control=max(controls, default=None) if statistic in _CONTROLLED else None,
        nine_of_ten=log10_tail(together, _STRANGERS_MAY),
        layers=tuple(_agreeing_layers(found, values, limit)) if limit and speaks else (),
    )
    by_layer = zip(found.layers, values, strict=True) if len(values) == len(found.layers) else ()
    return Evidence(
        test.name, test.tier, test.group, Status.OK, statistic=mean, effect=mean, n=together.of,
        bound="none", null=known.null, roles=_ROLES[statistic],
        layers=tuple(sorted(set(found.layers))), by_layer=tuple(by_layer), agreement=agreement,
    )  # fmt: skip


def _agreeing_layers(
    found: _Matched, values: Sequence[float], limit: Limit
) -> Iterator[tuple[int, int]]:
    """Layers that reach the limit of a single one, or that of all where all together do."""
    least = limit.mean if math.fsum(values) >= limit.mean * len(values) else limit.layer
    # Every layer that was matched has units, so that there is a share for each.
    places = zip(found.layers, found.partners, found.dense, values, strict=True)
    for layer, partner, dense, value in places:
        if dense and value >= least:
            yield (partner, layer) if found.turned else (layer, partner)


def agreeing_layers(evidence: Sequence[Evidence], *, first: bool) -> frozenset[int]:
    """Layers of one model of a pair, the first of its sides or the other, that agree."""
    told = (one.agreement for one in evidence if one.agreement is not None)
    return frozenset(pair[0 if first else 1] for each in told for pair in each.layers)


def share_interval(share: Share) -> tuple[float, float]:
    """The score interval of a share (Wilson 1927), as if units were independent."""
    if not share.of:
        return 0.0, 1.0
    n, p, z = share.of, share.value, _INTERVAL
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    reach = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, middle - reach), min(1.0, middle + reach)


def log10_tail(share: Share, chance: float) -> float:
    """A bound on log10 of the probability of so many or more, by Chernoff: −n·KL(share, chance)."""
    p = share.value
    if not share.of or p <= chance:
        return 0.0
    information = p * math.log(p / chance)
    if p < 1:
        information += (1 - p) * math.log((1 - p) / (1 - chance))
    return -share.of * information / math.log(10)


def _orientation(pair: Pair) -> tuple[Prepared, Prepared]:
    """The model whose units look for partners, and the other, of which whole layers were read."""
    sides = [side.prepared for side in pair.sides]
    ways = [
        (one, other)
        for one, other in (sides, sides[::-1])
        if _whole(other) and _most_units(one) >= FEWEST
    ]
    if not ways:
        raise NoResult(Reason.WHOLE_FEED_FORWARDS)
    return min(ways, key=lambda way: _most_units(way[0]))


def _whole(model: Prepared) -> dict[tuple[int, int], UnitRows]:
    """Feed-forwards of which all units were read, and that have enough of them."""
    return {
        place: rows
        for place, rows in model.unit_rows.items()
        if place in model.whole_feed_forwards and rows.count >= FEWEST
    }


def _gated(model: Prepared) -> bool:
    """Whether units have gates, where there are units at all."""
    return all(rows.gate is not None for rows in model.unit_rows.values())


def _most_units(model: Prepared) -> int:
    return max((rows.count for rows in model.unit_rows.values()), default=0)


def _some(rows: UnitRows, most: int) -> UnitRows:
    return rows if rows.count <= most else rows.some(spread(rows.count, most))


def _matrix(residual: ResidualMap, width: int) -> Turn:
    """A residual map as a matrix."""
    return np.asarray(residual.carry(np.eye(width, dtype=np.float32)), np.float32)
