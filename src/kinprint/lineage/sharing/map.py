"""Where shared weights are: which layer corresponds to which, and how alike each role is there.

A search for what fits best makes strangers alike, so the map never shows what a search has
seen. Layers, basis, units and heads are taken as they are numbered unless the battery has found
a relation that shows only after matching. What is matched is matched by sizes, and what the map
shows of it are signs, which the search did not see; roles that a basis was fitted to are left
out in that basis. So strangers give noise around zero, on the scale that `chance` tells.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.lineage.alignment.residual import IDENTITY, MapSource, ResidualMap
from kinprint.lineage.charge import Charge
from kinprint.lineage.pair import FeedForwardPair, Pair
from kinprint.lineage.preparation import DENSE, FEWEST_TOKENS
from kinprint.lineage.reading.sample import OUTSIDE
from kinprint.lineage.sharing.attention import attention_tallies
from kinprint.lineage.sharing.route import Correspondence, Route, correspondences, find_route
from kinprint.lineage.sharing.tally import Tally, row_cosines
from kinprint.lineage.side import Side
from kinprint.lineage.tests.registry import Basis, LineageTest, registered_test
from kinprint.mapped import let_go
from kinprint.measure.basis import spread
from kinprint.measure.direct import cosine, pearson, relative_l2
from kinprint.records import Component, Evidence, Group
from kinprint.text import Message, message

_TOKENS = 1024  # rows of the embedding that are looked at


class Cell(Struct, frozen=True):
    """How alike a role is in two layers, and the deviation that chance would give that.

    `a` and `b` are the layers, `count` how many rows were compared; `chance` is None where the
    labels or signs of neither model can be called random.
    """

    role: str
    a: int
    b: int
    likeness: float
    chance: float | None
    count: int


class LayerMap(Struct, frozen=True):
    """All cells of two models; `alignment` says what was matched, and how."""

    depths: tuple[int, int]
    layers: tuple[Correspondence, ...] = ()
    cells: tuple[Cell, ...] = ()
    alignment: tuple[Message, ...] = ()


class NormLikeness(Struct, frozen=True):
    """A norm vector of both models, number by number, as published comparisons have it."""

    role: str
    a: int
    b: int
    cosine: float
    pearson: float
    relative_l2: float
    n: int


def map_shared(pair: Pair, a: Side, evidence: Sequence[Evidence], charge: Charge) -> LayerMap:
    """The map of two models that the battery has compared, as seen from `a`.

    `evidence` is the battery's; it decides whether matched parts may be shown at all.
    """
    first, second = pair.sides
    b = second if first is a else first
    significant = {registered_test(each) for each in evidence if charge.significant(each)}
    route = find_route(pair, significant)
    depths = a.prepared.sample.depth, b.prepared.sample.depth
    if route is None:
        return LayerMap(depths)
    groups = {test.group for test in significant}
    by_index = Group.UNIT in groups or Group.UNIT_SIGN not in groups
    cells = [
        *_norm_cells(pair, route),
        *_attention_cells(pair, route, significant),
        *_unit_cells(pair, route, by_index, related=bool(significant)),
        *_router_cells(pair, route),
        *_embedding_cells(pair, route),
    ]
    layers = list(correspondences(pair, route))
    if first is not a:
        cells = [replace(cell, a=cell.b, b=cell.a) for cell in cells]
        layers = [replace(layer, a=layer.b, b=layer.a) for layer in layers]
    return LayerMap(
        depths,
        tuple(sorted(layers, key=lambda layer: (layer.a, layer.b))),
        tuple(sorted(cells, key=lambda cell: (cell.a, cell.b))),
        _matched_parts(route, by_index),
    )


def norm_likenesses(a: Side, b: Side) -> tuple[NormLikeness, ...]:
    """Norm vectors as stored, in layers of equal number, as the disputes compared them."""
    ours, theirs = a.prepared.sample.norms, b.prepared.sample.norms
    both = [key for key in ours if key in theirs and ours[key].shape == theirs[key].shape]
    return tuple(
        NormLikeness(
            role,
            layer,
            layer,
            cosine(ours[role, layer], theirs[role, layer]),
            pearson(ours[role, layer], theirs[role, layer]),
            relative_l2(ours[role, layer], theirs[role, layer]),
            ours[role, layer].size,
        )
        for role, layer in sorted(both)
    )


def _norm_cells(pair: Pair, route: Route) -> Iterator[Cell]:
    """Gains of equal channels, as normal scores; in a rotated basis there are none."""
    if route.residual.matrix is not None or route.residual.source is MapSource.GAINS:
        return
    left, right = _channels(route.residual)
    ours, theirs = (side.prepared.scores.by_norm for side in pair.sides)
    granted = pair.refusal(Group.RESIDUAL) is None
    for role, layer in ours:
        partner = route.layers.get(layer, layer if layer == OUTSIDE else None)
        if partner is None or (role, partner) not in theirs:
            continue
        x, y = ours[role, layer][left], theirs[role, partner][right]
        likeness = _correlation(x, y)
        if math.isfinite(likeness):
            chance = 1.0 / math.sqrt(len(x) - 1) if granted else None
            yield Cell(_norm_name(role, pair), layer, partner, likeness, chance, len(x))


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size > 0 else math.nan


def _norm_name(role: str, pair: Pair) -> str:
    """The norm before the feed-forward by the name that tables of roles have for it."""
    if not role.startswith("norm_mlp"):
        return role
    own = any(name == "norm_pre_ffn" for sample in pair.samples for name, _ in sample.norms)
    return role.replace("norm_mlp", "norm_pre_ffn" if own else "norm_post_attn")


def _channels(residual: ResidualMap) -> tuple[slice | np.ndarray, slice | np.ndarray]:
    """Channels of both models that correspond, where the map is an assignment."""
    if residual.pairs is None:
        return slice(None), slice(None)
    return residual.pairs[0], residual.pairs[1]


def _unit_cells(pair: Pair, route: Route, by_index: bool, related: bool) -> Iterator[Cell]:
    """Units of equal index, or matched ones; of strangers' experts one a layer is matched."""
    first, second = pair.sides
    labels, signs = (pair.refusal(group) is None for group in (Group.UNIT, Group.UNIT_SIGN))
    tallies: dict[tuple[str, int, int], Tally] = {}
    indexed: set[tuple[str, int, int]] = set()
    for at, to in route.feed_forwards:
        part = FeedForwardPair(
            at, to, first.prepared.feed_forwards[at], second.prepared.feed_forwards[to]
        )
        together = by_index and part.first.total == part.second.total
        if not together and not (signs and first.units_flip):
            continue  # without coins nothing honest can be said of matched units
        prefix = "" if part.first.expert == part.second.expert == DENSE else "expert_"
        keys = {
            role: (prefix + role, part.first.layer, part.second.layer) for role in sorted(part.read)
        }
        by_role = {role: tallies.setdefault(key, Tally()) for role, key in keys.items()}
        if together:
            indexed |= set(keys.values())
            _tally_by_index(part, route.residual, by_role)
        elif related or not any(tally.count for tally in by_role.values()):
            _tally_matched(pair, part, route.residual, by_role)
        let_go()
    for key, tally in tallies.items():
        yield from _cell(*key, tally, labels if key in indexed else True)


def _tally_by_index(
    part: FeedForwardPair, residual: ResidualMap, by_role: Mapping[str, Tally]
) -> None:
    _, left, right = np.intersect1d(part.first.index, part.second.index, return_indices=True)
    for role, tally in by_role.items():
        x, y = getattr(part.first, role), getattr(part.second, role)
        tally.add_labelled(residual.carry(x[left]), y[right])


def _tally_matched(
    pair: Pair, part: FeedForwardPair, residual: ResidualMap, by_role: Mapping[str, Tally]
) -> None:
    """Units that are each other's nearest; what gate rows share takes the sign of the others."""
    matched, _ = pair.alignment_from(pair.sides[0]).matched_units(part, residual)
    left, right = (
        [places[index] for index in indices.tolist()]
        for places, indices in (
            ({index: at for at, index in enumerate(part.first.index.tolist())}, matched.first),
            ({index: at for at, index in enumerate(part.second.index.tolist())}, matched.second),
        )
    )
    cosines = {
        role: row_cosines(
            residual.carry(getattr(part.first, role)[left]), getattr(part.second, role)[right]
        )
        for role in by_role
    }
    none = np.zeros(len(left))
    signs = np.sign(cosines.get("up", none) + cosines.get("down", none))
    for role, tally in by_role.items():
        tally.add_signed(cosines[role] * signs if role == "gate" else cosines[role])


def _attention_cells(
    pair: Pair, route: Route, significant: Collection[LineageTest]
) -> Iterator[Cell]:
    bases = {test.basis for test in significant if test.component is Component.ATTENTION}
    matched = Basis.FOUND in bases and Basis.AS_STORED not in bases
    tallies = attention_tallies(pair, route.residual, route.layers, matched)
    planes, values = (pair.refusal(group) is None for group in (Group.PLANE_SIGN, Group.VALUE_SIGN))
    for (role, layer, partner), tally in tallies.items():
        yield from _cell(role, layer, partner, tally, values if role in ("v", "o") else planes)


def _router_cells(pair: Pair, route: Route) -> Iterator[Cell]:
    """Rows of equal experts."""
    ours, theirs = (side.prepared.routers for side in pair.sides)
    granted = pair.refusal(Group.EXPERT) is None
    for layer, rows in ours.items():
        partner = route.layers.get(layer)
        if partner is not None and partner in theirs and len(theirs[partner]) == len(rows):
            tally = Tally()
            tally.add_labelled(route.residual.carry(rows), theirs[partner])
            yield from _cell("router", layer, partner, tally, granted)


def _embedding_cells(pair: Pair, route: Route) -> Iterator[Cell]:
    """Columns of equal channels over shared tokens, unless the basis was fitted to them."""
    if route.residual.source not in (MapSource.IDENTITY, MapSource.GAINS):
        return
    first, second = (side.prepared for side in pair.sides)
    tables = first.sample.embedding, second.sample.embedding
    shared = sorted(first.token_rows.keys() & second.token_rows.keys())
    if tables[0] is None or tables[1] is None or len(shared) < FEWEST_TOKENS:
        return
    some = [shared[at] for at in spread(len(shared), _TOKENS)]
    x = tables[0].rows[[first.token_rows[token] for token in some]]
    y = tables[1].rows[[second.token_rows[token] for token in some]]
    finite = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
    if not finite.any():
        return
    left, right = _channels(route.residual)
    tally = Tally()
    tally.add_labelled(_columns(x[finite])[left], _columns(y[finite])[right])
    yield from _cell("embed", OUTSIDE, OUTSIDE, tally, pair.refusal(Group.RESIDUAL) is None)


def _columns(table: np.ndarray) -> np.ndarray:
    """Columns over tokens, one row a channel, centred and of length one."""
    centred = table - table.mean(axis=0, dtype=np.float64)
    length = np.sqrt(np.square(centred).sum(axis=0))
    return np.asarray(
        np.where(length > 0, centred / np.where(length > 0, length, 1), 0).T, np.float32
    )


def _cell(role: str, layer: int, partner: int, tally: Tally, granted: bool) -> Iterator[Cell]:
    likeness = tally.likeness
    if likeness is not None:
        chance = tally.chance if granted else None
        yield Cell(role, layer, partner, likeness, chance, tally.count)


def _matched_parts(route: Route, by_index: bool) -> tuple[Message, ...]:
    parts = [message("note.map.by-number" if route.by_number else "note.map.layers-matched")]
    if not by_index:
        parts.append(message("note.map.units-matched"))
    if route.residual is not IDENTITY:
        parts.append(message(f"note.map.basis.{route.residual.source.name.lower()}"))
    return tuple(parts)
