"""What each step of a level wants of each model: addresses and rows, whatever they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kinprint.lineage.reading.levels import (
    Grid,
    Level,
    Step,
    sample_units,
    spread_layers,
)
from kinprint.lineage.reading.tower import Part, Tower

_DOWN = 2.0  # what a unit sends out is read if that costs at most so often what it takes in


def whole_parts(one: Tower) -> tuple[Part, ...]:
    """Everything that a sample can hold of a model."""
    found = [Part(address) for address in one.norms]
    for layer in range(one.depth):
        found += _unit_parts(one, layer, None, None)
        for expert in one.experts.get(layer, ()):
            found += _unit_parts(one, layer, expert, None)
        found += [Part(one.address("router", layer))] if one.has("router", layer) else []
        for role in ("q", "k", "v", "q.bias", "k.bias", "v.bias"):
            found += [Part(one.address(role, layer))] if one.has(role, layer) else []
        found += [Part(one.address("o", layer), None, True)] if one.has("o", layer) else []
    if one.embedding is not None:
        found.append(Part(one.embedding))
    return tuple(found)


_Wanted = dict[int, list[Part]]


def _norms(towers: Sequence[Tower], some: Sequence[int], step: Step, level: Level) -> _Wanted:
    layers = set(_layers(towers, step.layers)) | {None}
    return {at: [Part(a) for a in towers[at].norms if a.layer in layers] for at in some}


def _units(towers: Sequence[Tower], some: Sequence[int], step: Step, level: Level) -> _Wanted:
    rows = _rows(towers, some, step)

    def has(one: Tower, layer: int) -> bool:
        return one.feed_forward(layer) is not None

    layers = _common(towers, some, level, step.layers, has)
    return {
        at: [part for layer in layers for part in _unit_parts(towers[at], layer, None, rows)]
        for at in some
    }


def _experts(towers: Sequence[Tower], some: Sequence[int], step: Step, level: Level) -> _Wanted:
    """The same experts of the same layers, as far as they lie in the shards that are known."""
    rows = _rows(towers, some, step)
    able = [towers[at] for at in some if towers[at].experts]

    def shared(layer: int) -> list[int]:
        return sorted(set.intersection(*(set(one.experts.get(layer, ())) for one in able)))

    layers = _common(towers, some, level, step.layers, lambda _, at: bool(able and shared(at)))
    found: _Wanted = {at: [] for at in some}
    for layer in layers if able else ():
        both = shared(layer)
        for expert in (both[number] for number in Grid(len(both)).first(step.count)):
            for at in some:
                found[at] += _unit_parts(towers[at], layer, expert, rows)
    return found


def _routers(towers: Sequence[Tower], some: Sequence[int], step: Step, level: Level) -> _Wanted:
    layers = _common(towers, some, level, step.layers, lambda one, layer: one.has("router", layer))
    return {
        at: [
            Part(one.address("router", layer))
            for one in [towers[at]]
            for layer in layers
            if one.has("router", layer)
        ]
        for at in some
    }


def _attention(towers: Sequence[Tower], some: Sequence[int], step: Step, level: Level) -> _Wanted:
    """The first groups of heads: keys and values, and one query head of each group."""

    def has(one: Tower, layer: int) -> bool:
        return all(one.has(role, layer) for role in ("q", "k")) and one.heads(layer) is not None

    layers = _common(towers, some, level, step.layers, has)
    found: _Wanted = {}
    for at in some:
        one = towers[at]
        found[at] = []
        for layer in layers:
            shape = one.heads(layer)
            if shape is None or not has(one, layer):
                continue
            groups = range(min(step.count, shape.groups))
            keys = tuple(g * shape.size + i for g in groups for i in range(shape.size))
            each = shape.heads // shape.groups
            queries = tuple(g * each * shape.size + i for g in groups for i in range(shape.size))
            values = tuple(g * shape.values + i for g in groups for i in range(shape.values))
            rows = {"q": queries, "k": keys, "v": values}
            for role, wanted in rows.items():
                for word in (role, f"{role}.bias"):
                    if one.has(word, layer):
                        found[at].append(Part(one.address(word, layer), wanted))
    return found


def _layer(towers: Sequence[Tower], some: Sequence[int], step: Step, level: Level) -> _Wanted:
    """All units of a layer of the model where that is cheapest, some of the others'.

    Only what units take in: what they send out costs as much again and decides less.
    """
    few = sample_units(_fewest_units(towers, some), step.rows)

    def has(one: Tower, layer: int) -> bool:
        return one.feed_forward(layer) is not None

    def takes(at: int, layer: int, rows: tuple[int, ...] | None) -> list[Part]:
        parts = _unit_parts(towers[at], layer, None, rows)
        return [part for part in parts if not part.inputs]

    def price(at: int, layer: int) -> int:
        return sum(towers[at].stored_bytes(part.address) for part in takes(at, layer, None))

    layers = _common(towers, some, level, level.layers, has)
    if not layers:
        return {}
    layer = min(layers, key=lambda one: (sum(price(at, one) for at in some), one))
    order = sorted(some, key=lambda at: (price(at, layer), towers[at].name))
    first = order[:1] if len(towers) == len(some) == 2 else order
    return {at: takes(at, layer, None if at in first else few) for at in some}


STEPS: dict[str, Callable[[Sequence[Tower], Sequence[int], Step, Level], _Wanted]] = {
    "norms": _norms,
    "units": _units,
    "experts": _experts,
    "routers": _routers,
    "attention": _attention,
    "layer": _layer,
}


def _unit_parts(
    one: Tower, layer: int, expert: int | None, rows: tuple[int, ...] | None
) -> list[Part]:
    """A feed-forward's units: gate and up, their biases, and down where it is cheap enough."""
    prefix = one.feed_forward(layer, expert)
    if prefix is None:
        return []
    up = one.address(f"{prefix}up", layer, expert)
    if rows is not None:
        rows = tuple(row for row in rows if row < one.length(up))
    names = (f"{prefix}up", f"{prefix}gate", f"{prefix}up.bias")
    found = [
        Part(one.address(name, layer, expert), rows)
        for name in names
        if one.has(name, layer, expert)
    ]
    down = Part(one.address(f"{prefix}down", layer, expert), rows, True)
    if one.has(f"{prefix}down", layer, expert):
        cheap = rows is None or one.turned(down.address)
        if cheap or one.stored_bytes(down.address) <= _DOWN * one.cost(found[:1]):
            found.append(down)
    return found


def _rows(towers: Sequence[Tower], some: Sequence[int], step: Step) -> tuple[int, ...] | None:
    """Which units a step asks for; None for all."""
    return sample_units(_fewest_units(towers, some), step.rows) if step.rows else None


def _fewest_units(towers: Sequence[Tower], some: Sequence[int]) -> int:
    """The smallest feed-forward of all: units that every one of them has."""
    return min((size for at in some if (size := towers[at].fewest_units)), default=0)


def _layers(towers: Sequence[Tower], most: int) -> tuple[int, ...]:
    return spread_layers(min(one.depth for one in towers), most)


def _common(
    towers: Sequence[Tower],
    some: Sequence[int],
    level: Level,
    most: int,
    has: Callable[[Tower, int], bool],
) -> tuple[int, ...]:
    """Layers, evenly spread, that hold something in all of the models that have it at all."""
    possible = _layers(towers, level.layers)
    able = [towers[at] for at in some if any(has(towers[at], layer) for layer in possible)]
    fitting = [layer for layer in possible if able and all(has(one, layer) for one in able)]
    count = min(most, len(fitting))
    return tuple(fitting[int((at + 0.5) * len(fitting) / count)] for at in range(count))
