"""Which basis, layer and feed-forward of another model answers to which, for the map.

Things are taken as they are numbered unless only matching has found a relation; then the
search of the battery is repeated, because what it found is beyond doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from kinprint.lineage.alignment.residual import IDENTITY, Residual
from kinprint.lineage.alignment.units import Judged, Stack, align_units, judge
from kinprint.lineage.pair import Pair
from kinprint.lineage.preparation import Forward
from kinprint.lineage.side import Side
from kinprint.lineage.tests.registry import Basis, LineageTest

_AS_IT_LIES = (Judged(IDENTITY, 0.0),)


@dataclass(frozen=True, slots=True)
class Correspondence:
    """Two layers that answer to each other; `quality` is that of a search, None if by number."""

    a: int
    b: int
    quality: float | None = None


@dataclass(slots=True)
class Route:
    """From the first model to the second: basis, layers, feed-forwards."""

    residual: Residual
    layers: dict[int, int] = field(default_factory=dict)
    forwards: tuple[tuple[int, int], ...] = ()
    by_number: bool = True


def find_route(pair: Pair, found: Collection[LineageTest]) -> Route | None:
    """The basis and the layers: as they are, unless only matching has found a relation.

    Layers of strangers go by number; those of kin are looked for where depths differ. Nothing
    answers to anything between strangers of different width.
    """
    first, second = pair.sides
    one, other = first.prepared, second.prepared
    same_depth = one.sample.depth == other.sample.depth
    searched = any(test.basis in (Basis.FOUND, Basis.NUMBERED_OR_FOUND) for test in found)
    plain = not searched or any(_as_stored(test, same_depth) for test in found)
    if one.width == other.width and plain:
        aligned = None
        if found and not same_depth:
            aligned = align_units(one.forwards, other.forwards, _AS_IT_LIES, first.odd)
        if aligned is None:
            return _numbered(first, second)
    else:
        aligned = pair.units(first, second) if searched else None
    if aligned is None:
        return None
    forwards = tuple((at, to) for at, to in enumerate(aligned.partners) if to >= 0)
    votes: dict[int, list[int]] = {}
    for at, to in forwards:
        votes.setdefault(one.forwards[at].layer, []).append(other.forwards[to].layer)
    layers = {layer: max(sorted(set(told)), key=told.count) for layer, told in votes.items()}
    return Route(aligned.residual, layers, forwards, by_number=False)


def _as_stored(test: LineageTest, same_depth: bool) -> bool:
    """Whether a finding of the test shows that parts of equal number are alike."""
    numbered = test.basis in (Basis.NUMBERED, Basis.NUMBERED_OR_FOUND)
    return test.basis is Basis.AS_STORED or (numbered and same_depth)


def _numbered(first: Side, second: Side) -> Route:
    """Layers by number; in a layer experts by number, or whichever fits a dense one best."""
    one, other = first.prepared, second.prepared
    read = [_layers_read(side) for side in (first, second)]
    layers = {layer: layer for layer in sorted(read[0] & read[1])}
    places = {(part.layer, part.expert): at for at, part in enumerate(other.forwards)}
    forwards = []
    for at, part in enumerate(one.forwards):
        to = places.get((part.layer, part.expert))
        if to is None:
            inside = [to for to, each in enumerate(other.forwards) if each.layer == part.layer]
            parts = [other.forwards[each] for each in inside]
            nearest = align_units([part], parts, _AS_IT_LIES, first.odd)
            to = None if nearest is None else inside[nearest.partners[0]]
        if to is not None:
            forwards.append((at, to))
    return Route(IDENTITY, layers, tuple(forwards))


def _layers_read(side: Side) -> set[int]:
    sample = side.prepared.sample
    found = {layer for _, layer in sample.norms if layer >= 0}
    parts = (*sample.units, *sample.attention, *sample.routers)
    return found | set(parts) | {layer for layer, _ in sample.experts}


def _quality(one: Forward, other: Forward, residual: Residual, odd: bool) -> float:
    matrices = 2 + (one.gate is not None and other.gate is not None)
    return judge([one], Stack.of([other]), residual, odd).quality / matrices


def correspondences(pair: Pair, route: Route) -> Iterator[Correspondence]:
    """Layers of the first model with their partners, and how well a search says they fit."""
    mine, theirs = (side.prepared.forwards for side in pair.sides)
    told: dict[int, float] = {}
    for at, to in () if route.by_number else route.forwards:
        if theirs[to].layer == route.layers[mine[at].layer]:
            fits = _quality(mine[at], theirs[to], route.residual, pair.sides[0].odd)
            told[mine[at].layer] = max(fits, told.get(mine[at].layer, 0.0))
    for layer, partner in route.layers.items():
        yield Correspondence(layer, partner, told.get(layer))
