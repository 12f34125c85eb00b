"""What each step of a level wants of each model: addresses and rows, whatever they cost.

A step sees all towers, since models are compared in layers and units that all of them have, and
the places of those that are not read whole: only for these it wants something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kinprint.lineage.reading.levels import (
    Grid,
    LevelPlan,
    Step,
    StepKind,
    sample_units,
    spread_layers,
)
from kinprint.lineage.reading.tower import Piece, Tower

_DOWN = 2.0  # what a unit sends out is read if that costs at most so often what it takes in

Wanted = dict[int, list[Piece]]
"""Pieces by the place of the model."""


def all_pieces(tower: Tower) -> tuple[Piece, ...]:
    """Everything that a sample can hold of a model."""
    pieces = [Piece(address) for address in tower.norms]
    for layer in range(tower.depth):
        pieces += _unit_pieces(tower, layer, None, None)
        for expert in tower.experts.get(layer, ()):
            pieces += _unit_pieces(tower, layer, expert, None)
        for role in ("router", "q", "k", "v", "q.bias", "k.bias", "v.bias"):
            pieces += [Piece(tower.address(role, layer))] if tower.has(role, layer) else []
        if tower.has("o", layer):
            pieces.append(Piece(tower.address("o", layer), None, True))
    if tower.embedding is not None:
        pieces.append(Piece(tower.embedding))
    return tuple(pieces)


def _norms(towers: Sequence[Tower], some: Sequence[int], step: Step, plan: LevelPlan) -> Wanted:
    layers = {*_layers_of_all(towers, step.layers), None}
    return {
        at: [Piece(address) for address in towers[at].norms if address.layer in layers]
        for at in some
    }


def _units(towers: Sequence[Tower], some: Sequence[int], step: Step, plan: LevelPlan) -> Wanted:
    rows = _unit_rows(towers, some, step)
    layers = _common_layers(towers, some, plan, step.layers, _has_feed_forward)
    return {
        at: [piece for layer in layers for piece in _unit_pieces(towers[at], layer, None, rows)]
        for at in some
    }


def _experts(towers: Sequence[Tower], some: Sequence[int], step: Step, plan: LevelPlan) -> Wanted:
    """The same experts of the same layers, as far as they lie in the shards that are known."""
    rows = _unit_rows(towers, some, step)
    mixtures = [towers[at] for at in some if towers[at].experts]

    def shared(layer: int) -> list[int]:
        return sorted(set.intersection(*(set(one.experts.get(layer, ())) for one in mixtures)))

    def has_shared(_: Tower, layer: int) -> bool:
        return bool(mixtures and shared(layer))

    layers = _common_layers(towers, some, plan, step.layers, has_shared)
    wanted: Wanted = {at: [] for at in some}
    for layer in layers if mixtures else ():
        experts = shared(layer)
        for expert in (experts[number] for number in Grid(len(experts)).first(step.count)):
            for at in some:
                wanted[at] += _unit_pieces(towers[at], layer, expert, rows)
    return wanted


def _routers(towers: Sequence[Tower], some: Sequence[int], step: Step, plan: LevelPlan) -> Wanted:
    def has(tower: Tower, layer: int) -> bool:
        return tower.has("router", layer)

    layers = _common_layers(towers, some, plan, step.layers, has)
    return {
        at: [
            Piece(towers[at].address("router", layer)) for layer in layers if has(towers[at], layer)
        ]
        for at in some
    }


def _attention(towers: Sequence[Tower], some: Sequence[int], step: Step, plan: LevelPlan) -> Wanted:
    """The first groups of heads: keys and values, and one query head of each group."""

    def has(tower: Tower, layer: int) -> bool:
        present = all(tower.has(role, layer) for role in ("q", "k"))
        return present and tower.heads(layer) is not None

    layers = _common_layers(towers, some, plan, step.layers, has)
    wanted: Wanted = {}
    for at in some:
        tower = towers[at]
        wanted[at] = []
        for layer in layers:
            shape = tower.heads(layer)
            if shape is None or not has(tower, layer):
                continue
            groups = range(min(step.count, shape.groups))
            heads = shape.heads // shape.groups  # of a group
            rows = {
                "q": tuple(g * heads * shape.size + i for g in groups for i in range(shape.size)),
                "k": tuple(g * shape.size + i for g in groups for i in range(shape.size)),
                "v": tuple(g * shape.values + i for g in groups for i in range(shape.values)),
            }
            for role, of_role in rows.items():
                for name in (role, f"{role}.bias"):
                    if tower.has(name, layer):
                        wanted[at].append(Piece(tower.address(name, layer), of_role))
    return wanted


def _layer(towers: Sequence[Tower], some: Sequence[int], step: Step, plan: LevelPlan) -> Wanted:
    """All units of a layer of the model where that is cheapest, some of the others'.

    Only what units take in: what they send out costs as much again and decides less.
    """
    few = sample_units(_fewest_units(towers, some), step.rows)

    def inputs(at: int, layer: int, rows: tuple[int, ...] | None) -> list[Piece]:
        pieces = _unit_pieces(towers[at], layer, None, rows)
        return [piece for piece in pieces if not piece.inputs]

    def price(at: int, layer: int) -> int:
        return sum(towers[at].stored_bytes(piece.address) for piece in inputs(at, layer, None))

    layers = _common_layers(towers, some, plan, plan.layers, _has_feed_forward)
    if not layers:
        return {}
    layer = min(layers, key=lambda one: (sum(price(at, one) for at in some), one))
    order = sorted(some, key=lambda at: (price(at, layer), towers[at].name))
    first = order[:1] if len(towers) == len(some) == 2 else order
    return {at: inputs(at, layer, None if at in first else few) for at in some}


StepFunction = Callable[[Sequence[Tower], Sequence[int], Step, LevelPlan], Wanted]
STEPS: dict[StepKind, StepFunction] = {
    StepKind.NORMS: _norms,
    StepKind.UNITS: _units,
    StepKind.EXPERTS: _experts,
    StepKind.ROUTERS: _routers,
    StepKind.ATTENTION: _attention,
    StepKind.LAYER: _layer,
}
"""What each kind of step wants; tokens of the embedding are chosen while reading."""


def _unit_pieces(
    tower: Tower, layer: int, expert: int | None, rows: tuple[int, ...] | None
) -> list[Piece]:
    """A feed-forward's units: gate and up, their biases, and down where it is cheap enough."""
    prefix = tower.feed_forward(layer, expert)
    if prefix is None:
        return []
    up = tower.address(f"{prefix}up", layer, expert)
    if rows is not None:
        rows = tuple(row for row in rows if row < tower.length(up))
    pieces = [
        Piece(tower.address(role, layer, expert), rows)
        for role in (f"{prefix}up", f"{prefix}gate", f"{prefix}up.bias")
        if tower.has(role, layer, expert)
    ]
    if tower.has(f"{prefix}down", layer, expert):
        down = Piece(tower.address(f"{prefix}down", layer, expert), rows, True)
        cheap = rows is None or tower.stores_inputs_as_rows(down.address)
        if cheap or tower.stored_bytes(down.address) <= _DOWN * tower.cost(pieces[:1]):
            pieces.append(down)
    return pieces


def _has_feed_forward(tower: Tower, layer: int) -> bool:
    return tower.feed_forward(layer) is not None


def _unit_rows(towers: Sequence[Tower], some: Sequence[int], step: Step) -> tuple[int, ...] | None:
    """Which units a step asks for; None for all."""
    return sample_units(_fewest_units(towers, some), step.rows) if step.rows else None


def _fewest_units(towers: Sequence[Tower], some: Sequence[int]) -> int:
    """The smallest feed-forward of all: units that every one of them has."""
    return min((size for at in some if (size := towers[at].fewest_units)), default=0)


def _layers_of_all(towers: Sequence[Tower], most: int) -> tuple[int, ...]:
    return spread_layers(min(tower.depth for tower in towers), most)


def _common_layers(
    towers: Sequence[Tower],
    some: Sequence[int],
    plan: LevelPlan,
    most: int,
    has: Callable[[Tower, int], bool],
) -> tuple[int, ...]:
    """Layers, evenly spread, that hold something in all of the models that have it at all."""
    possible = _layers_of_all(towers, plan.layers)
    able = [towers[at] for at in some if any(has(towers[at], layer) for layer in possible)]
    fitting = [layer for layer in possible if able and all(has(one, layer) for one in able)]
    count = min(most, len(fitting))
    return tuple(fitting[int((at + 0.5) * len(fitting) / count)] for at in range(count))
