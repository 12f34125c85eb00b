"""What would have to be read to decide a part that was not read or cannot be matched.

Units that were renamed are found among all of their layer, heads among all heads, and a basis that
was turned by as many tokens as there are channels. All of it is known from headers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from math import prod

from msgspec.structs import replace

from kinprint.lineage.reading.levels import StepKind, level_plan
from kinprint.lineage.reading.parts import TABLES
from kinprint.lineage.reading.sample import Extent
from kinprint.lineage.reading.steps import STEPS
from kinprint.lineage.reading.tower import Piece, Tower
from kinprint.model.places import Address
from kinprint.records import Component, Level, Part

_WITHOUT_TEST = (Component.MIXER, Component.PROJECTOR, Component.OTHER)


def part_sizes(tower: Tower, *, more: bool = True) -> dict[Part, Extent]:
    """The parts of a tower with their sizes, and the bytes of this model that would decide them.

    Layers whose headers were not read have the parts of the nearest layer below that were. Only
    what a deeper reading does read can be decided, and nothing where there is no `more` to read.
    """
    members: dict[Part, list[Address]] = defaultdict(list)
    for address, part in tower.weights.items():
        members[part].append(address)
    basis = _basis_bytes(tower)
    sizes = {part: _size(tower, part, own, basis) for part, own in members.items()}
    decided = _decided(tower, members) if more else ()
    sizes |= {part: replace(sizes[part], needs=None) for part in members if part not in decided}
    sizes |= _packed_sizes(tower, sizes)
    by_layer: dict[int | None, list[Part]] = defaultdict(list)
    for part in sizes:
        by_layer[part.layer].append(part)
    known: list[Part] = []
    for layer in tower.layers:
        own = by_layer.get(layer, [])
        sizes |= {replace(part, layer=layer): sizes[part] for part in known if not own}
        known = own or known
    return sizes


def _packed_sizes(tower: Tower, sizes: Mapping[Part, Extent]) -> dict[Part, Extent]:
    """Parts with tensors that cannot be read: no reading decides about these."""
    found: dict[Part, Extent] = {}
    for address, part in tower.packed.items():
        known = found.get(part) or sizes.get(part) or Extent()
        weights = known.weights + prod(tower.places[address].shape or ())
        found[part] = replace(known, weights=weights, needs=None, packed=True)
    return found


def _decided(tower: Tower, parts: Collection[Part]) -> Collection[Part]:
    """Parts that the deepest level reads as far as matching takes."""
    deep = level_plan(Level.DEEP)
    models = (tower.model, *tower.model.components)
    stored = sum(one.spec.nbytes for model in models for one in model.weights.values())
    if not tower.partial and stored + tower.tokenizer_bytes + tower.opening_bytes <= deep.whole:
        return parts
    step = next(one for one in deep.steps if one.kind is StepKind.LAYER)
    layer = {tower.weights[piece.address] for piece in STEPS[step.kind](tower, step, deep)}
    return layer | {part for part in parts if part.component in TABLES}


def _size(tower: Tower, part: Part, members: list[Address], basis: int) -> Extent:
    """How many numbers a part has, and what its tensors and the rows for a basis cost.

    A table needs no more than those rows; blocks without a test are not decided by any.
    """
    tensors: dict[str, int] = defaultdict(int)
    for address in members:
        tensors[tower.tensor_name(address)] += prod(tower.places[address].shape or ())
    weights = sum(tensors.values())
    if part.component in _WITHOUT_TEST:
        return Extent(weights, tensors=tensors)
    table = part.component in TABLES
    stored = 0 if table else sum(tower.stored_bytes(address) for address in members)
    return Extent(weights, needs=stored + basis, basis=basis, tensors=tensors)


def _basis_bytes(tower: Tower) -> int:
    """Rows of as many tokens as there are channels and some more, and the vocabulary."""
    if tower.embedding is None:
        return 0
    rows = min(tower.width + tower.width // 8, tower.length(tower.embedding))
    return tower.cost([Piece(tower.embedding, tuple(range(rows)))]) + tower.tokenizer_bytes
