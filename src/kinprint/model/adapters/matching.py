"""An adapter and its base brought together: which weight each piece changes, and how.

Names decide which weight is meant, shapes which way round it is. What matches nothing, such as
a head for another task, is a tensor that only the adapted model has; what matches two weights,
or does not fit the one it matches, is an error: a wrong sum would look like a comparison.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from kinprint.model.adapters.building import (
    Shape,
    both_factors,
    build_update,
    first_spec,
    low_rank,
)
from kinprint.model.adapters.naming import Names, table, unwrapped
from kinprint.model.adapters.parsing import Adapter, Piece, refused
from kinprint.model.adapters.update import Update
from kinprint.records import TensorSpec
from kinprint.text import Message, message


class Matched(Struct, frozen=True):
    """Updates by the name of the base's weight, and what found no place in the base.

    `own` are tensors of the latter kind, by their names in the adapted model.
    """

    updates: Mapping[str, Update]
    own: Mapping[str, TensorSpec]
    warnings: tuple[Message, ...]


def match_updates(
    adapter: Adapter, base: Mapping[str, Shape], transposed: Collection[str] | None = None
) -> Matched:
    """Find the weight that each piece of an adapter changes.

    `base` holds the base's tensors by name with their stored shapes (of quantised weights
    the logical names and shapes); `transposed` those that store inputs before outputs, None
    where only the adapter can tell. Where factors contradict it they are believed, and the
    update says so: they were made by the code that runs the model.
    """
    names = Names(base)
    updates: dict[str, Update] = {}
    own: dict[str, TensorSpec] = {}
    warnings: list[Message] = []
    # A copy of the base's own weight comes first: it may have more rows than the base.
    for piece in sorted(adapter.pieces, key=lambda piece: "stored" not in piece.parts):
        if "diagonal" in piece.parts and not first_spec(piece).count:
            continue  # AdaLoRA may leave a weight a rank of zero
        found = _targets(piece, adapter, names, base)
        apart = {} if found else _apart(piece, adapter, names, base)
        for name, update in apart.items():
            updates[name] = _joined(updates[name], update, piece) if name in updates else update
        if not found and not apart:
            own |= _own(piece)
            warnings.append(message("note.adapter.no-change", tensor=first_spec(piece).name))
        for name in found:
            turned = adapter.fan_in_fan_out if transposed is None else name in transposed
            held = updates.get(name)
            shape = base[name] if held is None or held.stored is None else held.stored.spec.shape
            update = build_update(piece, name, shape, turned, adapter)
            updates[name] = update if held is None else _joined(held, update, piece)
    return Matched(updates, own, tuple(warnings))


def _own(piece: Piece) -> dict[str, TensorSpec]:
    """The tensors of a piece by what a model that stored them would call them."""
    return {
        piece.target if part == "stored" else unwrapped(spec.name): spec
        for part, spec in piece.parts.items()
    }


def _targets(
    piece: Piece, adapter: Adapter, names: Names, base: Mapping[str, Shape]
) -> tuple[str, ...]:
    """Tensors of the base that a piece changes: one, or two where a bias is scaled too."""
    if piece.whole:
        return _one(piece, names.find(piece.target))
    found = _one(piece, names.find(f"{piece.target}.weight"))
    if not found and adapter.parameters:
        return _parameter(piece, adapter, names, base)
    if found and "factor" in piece.parts and piece.parts["factor"].shape[-1:] == (1,):
        return (*found, *_one(piece, names.find(f"{piece.target}.bias")))
    return found


def _one(piece: Piece, found: tuple[str, ...]) -> tuple[str, ...]:
    if len(found) > 1:
        spec = first_spec(piece)
        raise refused(
            spec.file,
            "cause.adapter.two-targets",
            tensor=spec.name,
            first=found[0],
            second=found[1],
        )
    return found


def _parameter(
    piece: Piece, adapter: Adapter, names: Names, base: Mapping[str, Shape]
) -> tuple[str, ...]:
    """The parameter below a module that a piece targets.

    Several of one module are wrapped one inside another in the order in which the model's
    code defines them, which no file tells: only their shapes say which is which.
    """
    listed = [
        name
        for leaf in _leaves(piece, adapter)
        for name in _one(piece, names.find(f"{piece.target}.{leaf}"))
    ]
    fitting = (name for name in listed if both_factors(piece, base[name]) is not None)
    return _one(piece, tuple(fitting))


def _apart(
    piece: Piece, adapter: Adapter, names: Names, base: Mapping[str, Shape]
) -> dict[str, Update]:
    """Updates of experts that the base stores one by one and its adapter has stacked."""
    fitting: list[dict[str, Update]] = []
    for leaf in () if piece.whole else _leaves(piece, adapter):
        for modules in table()["apart"].get(leaf, ()):
            held = _each_expert(piece, modules, names)
            found = _spread(piece, held, base, adapter) if held else {}
            if found:
                fitting.append(found)
    if len(fitting) > 1:
        spec = first_spec(piece)
        raise refused(spec.file, "cause.adapter.several-stacks", tensor=spec.name)
    return fitting[0] if fitting else {}


def _leaves(piece: Piece, adapter: Adapter) -> tuple[str, ...]:
    """Last words of the parameters that an adapter targets below the module of a piece."""
    split = (parameter.rpartition(".") for parameter in adapter.parameters)
    return tuple(
        leaf for module, _, leaf in split if not module or f".{piece.target}".endswith(f".{module}")
    )


def _each_expert(piece: Piece, modules: list[str], names: Names) -> list[tuple[str, ...]]:
    """Names of the base's tensors that make up each expert, as many as there are."""
    held: list[tuple[str, ...]] = []
    while True:
        stems = [f"{piece.target}.{len(held)}.{module}.weight" for module in modules]
        expert = [_one(piece, names.find(name)) for name in stems]
        if not all(expert):
            return held
        held.append(tuple(name for found in expert for name in found))


def _spread(
    piece: Piece, held: list[tuple[str, ...]], base: Mapping[str, Shape], adapter: Adapter
) -> dict[str, Update]:
    """The update of a stack, cut into those of the weights it is made of."""
    shapes = [base[name] for name in held[0]]
    if any([base[name] for name in expert] != shapes for expert in held):
        return {}
    if any(len(shape) != 2 or shape[1] != shapes[0][1] for shape in shapes):
        return {}
    stack = (len(held), sum(shape[0] for shape in shapes), shapes[0][1])
    if both_factors(piece, stack) is None:
        return {}
    whole = low_rank(piece, piece.target, stack, False, adapter)
    updates: dict[str, Update] = {}
    for index, expert in enumerate(held):
        first = 0
        for name, shape in zip(expert, shapes, strict=True):
            updates[name] = replace(whole, name=name, shape=shape, expert=index, first=first)
            first += shape[0]
    return updates


def _joined(first: Update, second: Update, piece: Piece) -> Update:
    """Two pieces of one weight: its own copy of the base or its tokens, and an update."""
    if first.stored is None and second.stored is not None:
        first, second = second, first
    vectors = {**first.vectors, **second.vectors}
    clash = len(vectors) < len(first.vectors) + len(second.vectors)
    if clash or (first.pairs and second.pairs) or second.stored is not None:
        raise refused(first_spec(piece).file, "cause.adapter.two-updates", weight=first.name)
    main = second if second.pairs else first
    return replace(
        main,
        shape=first.shape if first.stored is not None else main.shape,
        vectors=vectors,
        stored=first.stored,
        tokens=first.tokens or second.tokens,
    )
