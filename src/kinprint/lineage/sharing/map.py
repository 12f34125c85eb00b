"""Where shared weights are: which layer answers to which, and how alike each role is there.

A search for what fits best makes strangers alike, so the map never shows what a search has
seen. Layers, basis, units and heads are taken as they are numbered unless the battery has found
a relation that shows only after matching. What is matched is matched by sizes, and what the map
shows of it are signs, which the search did not see; roles that a basis was fitted to are left
out in that basis. So strangers give noise around zero, on the scale that `chance` tells.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kinprint.lineage.alignment.residual import IDENTITY, Residual
from kinprint.lineage.alignment.units import spread
from kinprint.lineage.charge import Charge
from kinprint.lineage.pair import ForwardPair, Pair
from kinprint.lineage.preparation import DENSE, TOKENS, Forward
from kinprint.lineage.sharing.attention import attention_tallies
from kinprint.lineage.sharing.route import (
    Correspondence,
    Route,
    correspondences,
    find_route,
)
from kinprint.lineage.sharing.tally import Tally, row_cosines
from kinprint.lineage.side import Side
from kinprint.lineage.tests.registry import Basis, LineageTest, registered_test
from kinprint.measure.direct import cosine, pearson, relative_l2
from kinprint.records import Evidence, Group, Part

OUTSIDE = -1
"""The layer of what belongs to none."""
_TOKENS = 1024  # rows of the embedding that are looked at


@dataclass(frozen=True, slots=True)
class Cell:
    """How alike a role is in two layers, and the deviation that chance would give that."""

    role: str
    a: int
    b: int
    likeness: float
    chance: float | None
    count: int


@dataclass(frozen=True, slots=True)
class LayerMap:
    """All cells of two models; `alignment` says in words what was matched, and how."""

    depths: tuple[int, int]
    layers: tuple[Correspondence, ...] = ()
    cells: tuple[Cell, ...] = ()
    alignment: str = ""


@dataclass(frozen=True, slots=True)
class NormLikeness:
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
    found = {registered_test(one) for one in evidence if charge.significant(one)}
    route = find_route(pair, found)
    depths = a.prepared.sample.depth, b.prepared.sample.depth
    if route is None:
        return LayerMap(depths)
    groups = {test.group for test in found}
    by_index = Group.UNIT in groups or Group.UNIT_SIGN not in groups
    cells = [
        *_norm_cells(pair, route),
        *_attention_cells(pair, route, found),
        *_unit_cells(pair, route, by_index, kin=bool(found)),
        *_router_cells(pair, route),
        *_embedding_cells(pair, route),
    ]
    layers = tuple(correspondences(pair, route))
    if first is not a:
        cells = [replace(one, a=one.b, b=one.a) for one in cells]
        layers = tuple(replace(one, a=one.b, b=one.a) for one in layers)
    known = tuple(sorted(cells, key=lambda one: (one.a, one.b)))
    order = tuple(sorted(layers, key=lambda one: (one.a, one.b)))
    return LayerMap(depths, order, known, _words(route, by_index))


def norm_likenesses(a: Side, b: Side) -> tuple[NormLikeness, ...]:
    """Norm vectors as stored, in layers of equal number, as the disputes compared them."""
    mine, theirs = a.prepared.sample.norms, b.prepared.sample.norms
    both = [key for key in mine if key in theirs and mine[key].shape == theirs[key].shape]
    return tuple(
        NormLikeness(
            role,
            layer,
            layer,
            cosine(mine[role, layer], theirs[role, layer]),
            pearson(mine[role, layer], theirs[role, layer]),
            relative_l2(mine[role, layer], theirs[role, layer]),
            mine[role, layer].size,
        )
        for role, layer in sorted(both)
    )


def _norm_cells(pair: Pair, route: Route) -> Iterator[Cell]:
    """Gains of equal channels, as normal scores; in a rotated basis there are none."""
    left, right = _channels(route.residual)
    fitted = route.residual.name == "norm gains"
    if route.residual.matrix is not None or fitted:
        return
    mine, theirs = (side.prepared.scores for side in pair.sides)
    granted = not pair.supply(Group.RESIDUAL).refusal
    for role, layer in mine:
        partner = route.layers.get(layer, layer if layer == OUTSIDE else None)
        if partner is None or (role, partner) not in theirs:
            continue
        x, y = mine[role, layer][left], theirs[role, partner][right]
        likeness = _correlation(x, y)
        if math.isfinite(likeness):
            chance = 1.0 / math.sqrt(len(x) - 1) if granted else None
            name = _norm_name(role, pair)
            yield Cell(name, layer, partner, likeness, chance, len(x))


def _correlation(x: np.ndarray, y: np.ndarray) -> float:
    x, y = x - x.mean(), y - y.mean()
    size = math.sqrt(float(x @ x) * float(y @ y))
    return float(x @ y) / size if size > 0 else math.nan


def _norm_name(role: str, pair: Pair) -> str:
    """The norm before the feed-forward by the name that tables of roles have for it."""
    if not role.startswith("norm_mlp"):
        return role
    own = any(
        name == "norm_pre_ffn" for side in pair.sides for name, _ in side.prepared.sample.norms
    )
    return role.replace("norm_mlp", "norm_pre_ffn" if own else "norm_post_attn")


def _channels(residual: Residual) -> tuple[slice | np.ndarray, slice | np.ndarray]:
    if residual.pairs is None:
        return slice(None), slice(None)
    return residual.pairs[0], residual.pairs[1]


def _unit_cells(pair: Pair, route: Route, by_index: bool, kin: bool) -> Iterator[Cell]:
    """Units of equal index, or matched ones; of strangers' experts one a layer is matched."""
    first, second = pair.sides
    tallies: dict[tuple[str, int, int], Tally] = {}
    granted = {group: not pair.supply(group).refusal for group in (Group.UNIT, Group.UNIT_SIGN)}
    indexed: set[tuple[str, int, int]] = set()
    for at, to in route.forwards:
        one, other = first.prepared.forwards[at], second.prepared.forwards[to]
        together = by_index and one.total == other.total
        if not together and not (granted[Group.UNIT_SIGN] and first.odd):
            continue  # without coins nothing honest can be said of matched units
        prefix = "" if one.expert == other.expert == DENSE else "expert_"
        known = {
            role: tallies.setdefault((prefix + role, one.layer, other.layer), Tally())
            for role in sorted(one.read & other.read)
        }
        if not together and not kin and any(tally.count for tally in known.values()):
            continue
        if together:
            indexed |= {(prefix + role, one.layer, other.layer) for role in known}
            _by_index(one, other, route.residual, known)
        else:
            _by_coin(pair, ForwardPair(at, to, one, other), route.residual, known)
    for key, tally in tallies.items():
        yield from _cell(*key, tally, granted[Group.UNIT] if key in indexed else True)


def _by_index(one: Forward, other: Forward, residual: Residual, known: dict[str, Tally]) -> None:
    _, left, right = np.intersect1d(one.index, other.index, return_indices=True)
    for role, tally in known.items():
        x, y = getattr(one, role), getattr(other, role)
        tally.labelled(residual.carry(x[left]), y[right])


def _by_coin(pair: Pair, parts: ForwardPair, residual: Residual, known: dict[str, Tally]) -> None:
    """Units that are each other's nearest; what gate rows share takes the sign of the others."""
    matched, _ = pair.matched(pair.sides[0], parts, residual)
    places = [
        {index: at for at, index in enumerate(side.index.tolist())}
        for side in (parts.one, parts.other)
    ]
    left = [places[0][index] for index in matched.first.tolist()]
    right = [places[1][index] for index in matched.second.tolist()]
    told = {
        role: row_cosines(
            residual.carry(getattr(parts.one, role)[left]), getattr(parts.other, role)[right]
        )
        for role in known
    }
    coins = np.sign(told.get("up", np.zeros(len(left))) + told.get("down", np.zeros(len(left))))
    for role, tally in known.items():
        tally.tossed(told[role] * coins if role == "gate" else told[role])


def _attention_cells(pair: Pair, route: Route, found: Collection[LineageTest]) -> Iterator[Cell]:
    bases = {test.basis for test in found if test.part is Part.ATTENTION}
    matched = Basis.FOUND in bases and Basis.AS_STORED not in bases
    tallies = attention_tallies(pair, route.residual, route.layers, matched)
    granted = not pair.supply(Group.PLANE_SIGN).refusal, not pair.supply(Group.VALUE_SIGN).refusal
    for (role, one, other), tally in tallies.items():
        yield from _cell(role, one, other, tally, granted[role in ("v", "o")])


def _router_cells(pair: Pair, route: Route) -> Iterator[Cell]:
    """Rows of equal experts."""
    mine, theirs = (side.prepared.routers for side in pair.sides)
    granted = not pair.supply(Group.EXPERT).refusal
    for layer, rows in mine.items():
        partner = route.layers.get(layer)
        if partner is not None and partner in theirs and len(theirs[partner]) == len(rows):
            tally = Tally()
            tally.labelled(route.residual.carry(rows), theirs[partner])
            yield from _cell("router", layer, partner, tally, granted)


def _embedding_cells(pair: Pair, route: Route) -> Iterator[Cell]:
    """Columns of equal channels over shared tokens, unless the basis was fitted to them."""
    if route.residual is not IDENTITY and route.residual.name != "norm gains":
        return
    first, second = (side.prepared for side in pair.sides)
    tables = first.sample.embedding, second.sample.embedding
    shared = sorted(first.token_rows.keys() & second.token_rows.keys())
    if tables[0] is None or tables[1] is None or len(shared) < TOKENS:
        return
    some = [shared[at] for at in spread(len(shared), _TOKENS)]
    x = tables[0].rows[[first.token_rows[token] for token in some]]
    y = tables[1].rows[[second.token_rows[token] for token in some]]
    good = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
    left, right = _channels(route.residual)
    tally = Tally()
    tally.labelled(_columns(x[good])[left], _columns(y[good])[right])
    yield from _cell("embed", OUTSIDE, OUTSIDE, tally, not pair.supply(Group.RESIDUAL).refusal)


def _columns(table: np.ndarray) -> np.ndarray:
    """Columns over tokens, one row a channel, centred and of length one."""
    found = table - table.mean(axis=0, dtype=np.float64)
    length = np.sqrt(np.square(found).sum(axis=0))
    return np.asarray(
        np.where(length > 0, found / np.where(length > 0, length, 1), 0).T, np.float32
    )


def _cell(role: str, one: int, other: int, tally: Tally, granted: bool) -> Iterator[Cell]:
    likeness = tally.likeness
    if likeness is not None:
        chance = tally.chance if granted else None
        yield Cell(role, one, other, likeness, chance, tally.count)


def _words(route: Route, by_index: bool) -> str:
    words = ["by number"] if route.by_number else ["layers matched"]
    if not by_index:
        words.append("units matched")
    if route.residual is not IDENTITY:
        words.append(f"basis from {route.residual.name}")
    return ", ".join(words)
