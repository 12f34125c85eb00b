"""What each step of a level wants of a tower: addresses and rows, whatever they cost.

A step sees one tower and nothing of any other, so that a model gives the same sample whatever
it is compared with. Layers and units have absolute places that models share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from kinprint.lineage.reading.levels import (
    LevelPlan,
    Step,
    StepKind,
    choose_layers,
    sample_units,
    spread_layers,
)
from kinprint.lineage.reading.parts import TABLES
from kinprint.lineage.reading.tower import Piece, Tower
from kinprint.model.places import Address
from kinprint.records import Component

FEW = 8
"""Rows of a tensor that no step reads more of."""
_DOWN_ROWS = 2  # of what units send out
_COMMON = 512  # the number of a token that is in use in nearly all vocabularies, as those before
_DOWN = 2.0  # what a unit sends out is read if that costs at most so often what it takes in


def all_pieces(tower: Tower) -> tuple[Piece, ...]:
    """All weights of a tower."""
    pieces = [Piece(address) for address in tower.norms]
    for layer in tower.layers:
        pieces += _unit_pieces(tower, layer, None, 0)
        for expert in tower.experts.get(layer, ()):
            pieces += _unit_pieces(tower, layer, expert, 0)
        if tower.has("o", layer):
            pieces.append(Piece(tower.address("o", layer), None, True))
    known = {piece.address for piece in pieces}
    pieces += [Piece(address) for address in tower.weights if address not in known]
    return tuple(pieces)


def _norms(tower: Tower, step: Step, plan: LevelPlan) -> list[Piece]:
    looked = spread_layers(tower.depth, step.layers, plan.shift)
    layers = {*(tower.layers[at] for at in looked), None}
    return [Piece(address) for address in tower.norms if address.layer in layers]


def _units(tower: Tower, step: Step, plan: LevelPlan) -> list[Piece]:
    return [
        piece
        for layer in _layers(tower, step.layers, plan, _has_feed_forward)
        for piece in _unit_pieces(tower, layer, None, step.rows, plan.shift)
    ]


def _experts(tower: Tower, step: Step, plan: LevelPlan) -> list[Piece]:
    """Some experts, the first without a shift, as far as they lie in the shards that are known."""
    return [
        piece
        for layer in _layers(tower, step.layers, plan, _has_experts)
        for expert in _moved(tower.experts[layer], step.count, plan)
        for piece in _unit_pieces(tower, layer, expert, step.rows, plan.shift)
    ]


def _routers(tower: Tower, step: Step, plan: LevelPlan) -> list[Piece]:
    layers = _layers(tower, step.layers, plan, partial(_has, "router"))
    return [Piece(tower.address("router", layer)) for layer in layers]


def _attention(tower: Tower, step: Step, plan: LevelPlan) -> list[Piece]:
    """Some groups of heads, keys and values, and one query head of each.

    Without a shift they are the first. Of all else that belongs to attention there a few rows.
    """
    wanted: list[Piece] = []
    for layer in _layers(tower, step.layers, plan, has_heads):
        shape = tower.heads(layer)
        if shape is None:
            continue
        groups = _moved(range(shape.groups), step.count, plan)
        heads = shape.heads // shape.groups  # of a group
        rows = {
            "q": tuple(g * heads * shape.size + i for g in groups for i in range(shape.size)),
            "k": tuple(g * shape.size + i for g in groups for i in range(shape.size)),
            "v": tuple(g * shape.values + i for g in groups for i in range(shape.values)),
        }
        wanted += [
            Piece(tower.address(name, layer), of_role)
            for role, of_role in rows.items()
            for name in (role, f"{role}.bias")
            if tower.has(name, layer)
        ]
        known = {piece.address for piece in wanted}
        wanted += [
            few_rows(tower, address, plan)
            for address, part in tower.weights.items()
            if part.component is Component.ATTENTION and part.layer == layer
            and address not in known
        ]  # fmt: skip
    return wanted


def _layer(tower: Tower, step: Step, plan: LevelPlan) -> list[Piece]:
    """All of one feed-forward, or of one expert where a layer has nothing else.

    Units that were renamed are found among all of their layer, and judged by what the match did
    not see: that takes gate, up and down.
    """
    layers = _layers(tower, 1, plan, _has_feed_forward) or _layers(tower, 1, plan, _has_experts)
    return whole_feed_forward(tower, layers[0]) if layers else []


def whole_feed_forward(tower: Tower, layer: int) -> list[Piece]:
    """All units of a layer's feed-forward, or of its first expert; none where it has neither."""
    dense = _has_feed_forward(tower, layer)
    expert = None if dense else next(iter(tower.experts.get(layer, ())), None)
    return _unit_pieces(tower, layer, expert, 0) if dense or expert is not None else []


def _kinds(tower: Tower, step: Step, plan: LevelPlan) -> list[Piece]:
    """A few rows of tables, values and routing: of common tokens, and some of the others."""
    wanted: list[Piece] = []
    for table in (tower.embedding, tower.head):
        if table is not None:
            common = _COMMON + plan.shift % _COMMON
            start = max(0, min(common, tower.length(table) - step.rows))
            wanted.append(Piece(table, tuple(range(start, start + step.rows))))
    for role in ("v", "router"):
        layers = _layers(tower, 1, plan, partial(_has, role))
        for address in (tower.address(role, at) for at in layers):
            rows = _moved(range(tower.length(address)), step.rows, plan)
            wanted.append(Piece(address, tuple(rows)))
    return [one for one in wanted if step.rows <= tower.length(one.address)]


def _rest(tower: Tower, step: Step, plan: LevelPlan) -> list[Piece]:
    """A few rows of all other kinds of tensors in one layer, and of those outside the layers."""
    others = [
        address
        for address, part in tower.weights.items()
        if part.component not in (Component.NORMS, Component.EXPERT, *TABLES)
    ]
    inside = {one.role for one in others if one.layer is not None and tower.owns(one)}
    wanted = [
        few_rows(tower, tower.address(role, layer), plan)
        for role in sorted(inside)
        for layer in _layers(tower, 1, plan, partial(_has, role))
    ]
    outside = (one for one in others if one.layer is None or not tower.owns(one))
    return wanted + [few_rows(tower, one, plan) for one in outside]


def few_rows(tower: Tower, address: Address, plan: LevelPlan) -> Piece:
    """A few neighbouring rows of a tensor, along whichever axis is cheap; all of a vector.

    Neighbours tell a table that is computed.
    """
    shape = tower.places[address].shape or ()
    inputs = len(shape) > 1 and tower.stores_inputs_as_rows(address)
    rows = range(shape[1 if inputs else 0] if len(shape) > 1 else 0)
    whole = len(rows) <= FEW
    return Piece(address, None if whole else tuple(_moved(rows, FEW, plan)), inputs)


def _moved(numbers: Sequence[int], count: int, plan: LevelPlan) -> Sequence[int]:
    """So many neighbours of some numbers, where the seed has moved them."""
    most = max(len(numbers) - count, 0)
    start = plan.shift % (most + 1)
    return numbers[start : start + count]


StepFunction = Callable[[Tower, Step, LevelPlan], list[Piece]]
STEPS: dict[StepKind, StepFunction] = {
    StepKind.NORMS: _norms,
    StepKind.UNITS: _units,
    StepKind.EXPERTS: _experts,
    StepKind.ROUTERS: _routers,
    StepKind.ATTENTION: _attention,
    StepKind.LAYER: _layer,
    StepKind.KINDS: _kinds,
    StepKind.REST: _rest,
}
"""What each kind of step wants; tokens of the embedding are chosen while reading."""


def _unit_pieces(
    tower: Tower, layer: int, expert: int | None, count: int, shift: int = 0
) -> list[Piece]:
    """Some units of a feed-forward, or all if `count` is 0.

    Gate and up, biases, and of down some rows, and where that is cheap enough what the units send
    out: whatever the format of another model makes dear, the rows are there to be compared.
    """
    prefix = tower.feed_forward(layer, expert)
    if prefix is None:
        return []
    up = tower.address(f"{prefix}up", layer, expert)
    rows = sample_units(tower.length(up), count, shift) if count else None
    wanted = {"up": rows, "gate": rows, "up.bias": rows, "gate.bias": rows, "down.bias": None}
    pieces = [
        Piece(tower.address(f"{prefix}{role}", layer, expert), of_role)
        for role, of_role in wanted.items()
        if tower.has(f"{prefix}{role}", layer, expert)
    ]
    if tower.has(f"{prefix}down", layer, expert):
        down = Piece(tower.address(f"{prefix}down", layer, expert), rows, True)
        cheap = rows is None or tower.stores_inputs_as_rows(down.address)
        if cheap or tower.stored_bytes(down.address) <= _DOWN * tower.cost(pieces[:1]):
            pieces.append(down)
        if not cheap:
            pieces.append(Piece(down.address, tuple(range(_DOWN_ROWS))))
    return pieces


def _has(role: str, tower: Tower, layer: int) -> bool:
    return tower.has(role, layer)


def _has_feed_forward(tower: Tower, layer: int) -> bool:
    return tower.feed_forward(layer) is not None


def _has_experts(tower: Tower, layer: int) -> bool:
    return bool(tower.experts.get(layer))


def has_heads(tower: Tower, layer: int) -> bool:
    """Whether a layer's queries and keys are made of heads."""
    return tower.heads(layer) is not None


def _layers(
    tower: Tower, most: int, plan: LevelPlan, has: Callable[[Tower, int], bool]
) -> tuple[int, ...]:
    """Layers that hold something: those that the level looks into, or the next after them."""
    starts = spread_layers(tower.depth, plan.layers, plan.shift)
    stops = [*starts[1:], tower.depth][: len(starts)]
    cells = (tower.layers[start:stop] for start, stop in zip(starts, stops, strict=True))
    first = (next((layer for layer in cell if has(tower, layer)), None) for cell in cells)
    fitting = [layer for layer in first if layer is not None]
    return choose_layers(fitting, max(tower.layers, default=-1) + 1, most, plan.shift)
