"""What would have to be read to decide a part that was not read or cannot be matched.

Units that were renamed are found among all of their layer, heads among all heads, and a basis that
was turned by as many tokens as there are channels. All of it is known from headers.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from math import prod

from kinprint.lineage.reading.parts import part_of
from kinprint.lineage.reading.sample import Extent
from kinprint.lineage.reading.tower import Piece, Tower
from kinprint.model.places import Address
from kinprint.records import Component, Part

_TABLES = (Component.EMBEDDING, Component.HEAD)


def part_sizes(tower: Tower) -> dict[Part, Extent]:
    """The parts of a tower with their sizes, and the bytes of this model that would decide them.

    Layers whose headers were not read have the parts of the nearest layer below that were.
    """
    members: dict[Part, list[Address]] = defaultdict(list)
    for address, place in tower.places.items():
        part = part_of(address, tower.label)
        if part is not None and place.shape is not None:
            members[part].append(address)
    basis = _basis_bytes(tower)
    sizes = {part: _size(tower, part, own, basis) for part, own in members.items()}
    by_layer: dict[int | None, list[Part]] = defaultdict(list)
    for part in members:
        by_layer[part.layer].append(part)
    known: list[Part] = []
    for layer in tower.layers:
        own = by_layer.get(layer, [])
        sizes |= {replace(part, layer=layer): sizes[part] for part in known if not own}
        known = own or known
    return sizes


def bytes_to_decide(tower: Tower, part: Part) -> int | None:
    """Bytes of this model that matching a part takes; None where no reading decides about it."""
    size = part_sizes(tower).get(part)
    return None if size is None else size.needs


def _size(tower: Tower, part: Part, members: list[Address], basis: int) -> Extent:
    """How many numbers a part has, and what its tensors and the rows for a basis cost.

    A table needs no more than those rows; blocks without a test are not decided by any.
    """
    weights = sum(prod(tower.places[address].shape or ()) for address in members)
    if part.component is Component.MIXER:
        return Extent(weights)
    table = part.component in _TABLES
    stored = 0 if table else sum(tower.stored_bytes(address) for address in members)
    return Extent(weights, needs=stored + basis)


def _basis_bytes(tower: Tower) -> int:
    """Rows of as many tokens as there are channels and some more, and the vocabulary."""
    if tower.embedding is None:
        return 0
    rows = min(tower.width + tower.width // 8, tower.length(tower.embedding))
    return tower.cost([Piece(tower.embedding, tuple(range(rows)))]) + tower.tokenizer_bytes
