"""Which basis, layer and feed-forward of another model corresponds to which, for the map.

Things are taken as they are numbered unless only matching has found a relation; then the
search of the battery is repeated, because what it found is beyond doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct, field

from kinprint.lineage.alignment.residual import IDENTITY, ResidualMap
from kinprint.lineage.alignment.units import (
    Matching,
    RatedMap,
    UnitStack,
    match_feed_forwards,
    rate_map,
)
from kinprint.lineage.pair import Alignment, Pair
from kinprint.lineage.preparation import FeedForward
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.tests.registry import Basis, LineageTest

_AS_STORED = (RatedMap(IDENTITY, 0.0),)


class Correspondence(Struct, frozen=True):
    """Two layers that correspond; `quality` is that of a search, None if by number."""

    a: int
    b: int
    quality: float | None = None


class Route(Struct, frozen=True):
    """From the first model of a pair to the second: basis, layers, places of feed-forwards."""

    residual: ResidualMap
    layers: dict[int, int] = field(default_factory=dict)
    feed_forwards: tuple[tuple[int, int], ...] = ()
    by_number: bool = True


def find_route(pair: Pair, significant: Collection[LineageTest]) -> Route | None:
    """The basis and the layers: as they are, unless only matching has found a relation.

    Layers of strangers go by number; those of relatives are looked for where depths differ.
    Nothing corresponds to anything between strangers of different width.
    """
    alignment = pair.alignment_from(pair.sides[0])
    first, second = pair.samples
    same_depth = first.depth == second.depth
    searched = any(test.basis in (Basis.FOUND, Basis.NUMBERED_OR_FOUND) for test in significant)
    stored = not searched or any(_shows_as_stored(test, same_depth) for test in significant)
    if first.width != second.width or not stored:
        matching = alignment.feed_forwards if searched else None
        return None if matching is None else _matched(alignment, matching)
    if significant and not same_depth:
        matching = match_feed_forwards(
            alignment.first.prepared.feed_forwards,
            alignment.second.prepared.feed_forwards,
            _AS_STORED,
            alignment.first.units_flip,
        )
        if matching is not None:
            return _matched(alignment, matching)
    return _numbered(alignment)


def correspondences(pair: Pair, route: Route) -> Iterator[Correspondence]:
    """Layers of the first model with their partners, and how well a search says they fit."""
    ours, theirs = (side.prepared.feed_forwards for side in pair.sides)
    qualities: dict[int, float] = {}
    for at, to in () if route.by_number else route.feed_forwards:
        layer = ours[at].layer
        if theirs[to].layer == route.layers[layer]:
            quality = _quality(ours[at], theirs[to], route.residual, pair.sides[0].units_flip)
            qualities[layer] = max(quality, qualities.get(layer, 0.0))
    for layer, partner in route.layers.items():
        yield Correspondence(layer, partner, qualities.get(layer))


def _shows_as_stored(test: LineageTest, same_depth: bool) -> bool:
    """Whether a finding of the test shows that parts of equal number are alike."""
    numbered = test.basis in (Basis.NUMBERED, Basis.NUMBERED_OR_FOUND)
    return test.basis is Basis.AS_STORED or (numbered and same_depth)


def _matched(alignment: Alignment, matching: Matching) -> Route:
    """The partners of a search; a layer goes where most of its feed-forwards go."""
    ours, theirs = (side.prepared.feed_forwards for side in (alignment.first, alignment.second))
    places = tuple((at, to) for at, to in enumerate(matching.partners) if to >= 0)
    votes: dict[int, list[int]] = {}
    for at, to in places:
        votes.setdefault(ours[at].layer, []).append(theirs[to].layer)
    layers = {layer: max(sorted(set(given)), key=given.count) for layer, given in votes.items()}
    return Route(matching.residual, layers, places, by_number=False)


def _numbered(alignment: Alignment) -> Route:
    """Layers by number; in a layer experts by number, or whichever fits a dense one best."""
    ours, theirs = (side.prepared.feed_forwards for side in (alignment.first, alignment.second))
    first, second = (
        _layers_read(side.prepared.sample) for side in (alignment.first, alignment.second)
    )
    places = {(part.layer, part.expert): at for at, part in enumerate(theirs)}
    pairs = []
    for at, part in enumerate(ours):
        to = places.get((part.layer, part.expert))
        if to is None:
            inside = [to for to, other in enumerate(theirs) if other.layer == part.layer]
            others = [theirs[place] for place in inside]
            flips = alignment.first.units_flip
            nearest = match_feed_forwards([part], others, _AS_STORED, flips)
            to = None if nearest is None else inside[nearest.partners[0]]
        if to is not None:
            pairs.append((at, to))
    return Route(IDENTITY, {layer: layer for layer in sorted(first & second)}, tuple(pairs))


def _layers_read(sample: Sample) -> set[int]:
    layers = {layer for _, layer in sample.norms if layer >= 0}
    layers |= {*sample.units, *sample.attention, *sample.routers}
    return layers | {layer for layer, _ in sample.experts}


def _quality(first: FeedForward, second: FeedForward, residual: ResidualMap, flips: bool) -> float:
    matrices = 2 + (first.gate is not None and second.gate is not None)
    return rate_map([first], UnitStack.of([second]), residual, flips).quality / matrices
