"""Which tokens are read of an embedding: a choice that two models share without being asked.

Low numbers lie side by side, and what they spell (bytes, then the commonest pieces) is in nearly
all vocabularies. Some more are chosen by a hash of their spelling, so that vocabularies whose
numbers were dealt anew meet as well. A shift moves the low ones and changes the hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from msgspec import Struct

from kinprint.lineage.reading.levels import token_window
from kinprint.lineage.reading.plan import SPREAD_TOKENS, TokenRows
from kinprint.lineage.reading.tower import Piece, Tower
from kinprint.model.places import Address
from kinprint.model.tokens import Vocabulary


class ChosenTokens(Struct, frozen=True):
    """Tokens by name and number; a name is a spelling, or a number and the tokenizer's digest."""

    names: tuple[bytes, ...]
    ids: tuple[int, ...]


def all_tokens(vocabulary: Vocabulary, height: int) -> ChosenTokens:
    """All ordinary tokens of an embedding with so many rows; of equal spellings the first."""
    numbers: dict[bytes, int] = {}
    for number, token in enumerate(vocabulary.tokens[:height]):
        if token is not None and number not in vocabulary.special:
            numbers.setdefault(token, number)
    return ChosenTokens(tuple(numbers), tuple(numbers.values()))


def choose_tokens(
    tower: Tower, table: Address, wanted: TokenRows, vocabulary: Vocabulary | None
) -> ChosenTokens:
    """The tokens to read, so many as their rows cost no more than was planned for them."""
    if not wanted.spelled:
        digest = tower.tokenizer_digest
        low = token_window(wanted.count, tower.length(table), wanted.shift)
        return ChosenTokens(tuple(f"{digest}#{number}".encode() for number in low), tuple(low))
    if vocabulary is None:
        return ChosenTokens((), ())
    known = all_tokens(vocabulary, tower.length(table))
    for chosen in _choices(known, wanted):
        ids = tuple(sorted(known.ids[at] for at in chosen))
        if tower.cost([Piece(table, ids)]) <= wanted.bytes:
            return ChosenTokens(
                tuple(known.names[at] for at in chosen), tuple(known.ids[at] for at in chosen)
            )
    return ChosenTokens((), ())


def _choices(known: ChosenTokens, wanted: TokenRows) -> Iterator[Sequence[int]]:
    """Places of tokens with low numbers and of others by hash, then ever fewer of both."""
    low = token_window(wanted.count, len(known.ids), wanted.shift)
    rest = [*range(low.start), *range(low.stop, len(known.ids))]
    salt = wanted.shift.to_bytes(hashlib.blake2b.SALT_SIZE, "little")

    def order(at: int) -> bytes:
        return hashlib.blake2b(known.names[at], digest_size=8, salt=salt).digest()

    hashed = sorted(rest, key=order)
    spread = SPREAD_TOKENS
    while spread:
        yield [*low, *hashed[:spread]]
        spread //= 2
    while low:
        yield low
        low = low[: len(low) // 2]
