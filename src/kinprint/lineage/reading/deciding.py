"""What would have to be read to decide a part that was not read or cannot be matched.

Units that were renamed are found among all of their layer, heads among all heads, and a basis that
was turned by as many tokens as there are channels. All of it is known from headers.
"""

from __future__ import annotations

from kinprint.lineage.reading.parts import part_of
from kinprint.lineage.reading.tower import Piece, Tower
from kinprint.records import Component, Part

_TABLES = (Component.EMBEDDING, Component.HEAD)


def bytes_to_decide(tower: Tower) -> dict[Part, int]:
    """For each part of a tower, the bytes of this model that matching it takes.

    That is all of its tensors, and rows of the embedding that give the basis. Blocks without a
    test are left out: no reading decides about them.
    """
    basis = _basis_bytes(tower)
    stored: dict[Part, int] = {}
    for address in tower.places:
        part = part_of(address, tower.label)
        if part is None or part.component is Component.MIXER:
            continue
        own = 0 if part.component in _TABLES else tower.stored_bytes(address)
        stored[part] = stored.get(part, basis) + own
    return stored


def _basis_bytes(tower: Tower) -> int:
    """Rows of as many tokens as there are channels and some more, and the vocabulary."""
    if tower.embedding is None:
        return 0
    rows = min(tower.width + tower.width // 8, tower.length(tower.embedding))
    return tower.cost([Piece(tower.embedding, tuple(range(rows)))]) + tower.tokenizer_bytes
