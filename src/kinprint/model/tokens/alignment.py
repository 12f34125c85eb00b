"""Which tokens two vocabularies share, one to one.

Rows of two embeddings can be compared only for tokens that stand for the same bytes; the
pairing must be the same every time and must not use a row twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kinprint.model.tokens.vocabulary import Ids, Vocabulary

_Key = bytes | tuple[bytes, int]


class Alignment(Struct, frozen=True, eq=False):
    """Pairs of ids, sorted by the id in a; `special` says which pairs are control tokens."""

    a: Ids
    b: Ids
    special: npt.NDArray[np.bool_]
    only_a: int
    only_b: int

    @property
    def shared(self) -> int:
        """Number of tokens that both have."""
        return len(self.a)

    def lookup(self, size: int) -> Ids:
        """The id in b for each of a's `size` ids, -1 where b has no such token."""
        table = np.full(size, -1, np.int64)
        table[self.a] = self.b
        return table


def align(a: Vocabulary, b: Vocabulary) -> Alignment:
    """Pair the tokens of two vocabularies that stand for the same bytes.

    Special tokens are paired with special ones of the same text. Where a spelling occurs
    more than once, the first occurrence by id goes with the first, the second with the
    second. A byte that sentencepiece falls back to goes with such a byte if it can, since
    the letter of the same byte is trained on its own; what is then left over on both sides
    is paired across.
    """
    plain_a, plain_b = _ordinary(a), _ordinary(b)
    special = _pair(_index(a, a.special), _index(b, b.special))
    found = [
        special,
        _pair(_index(a, a.fallback), _index(b, b.fallback)),
        _pair(_index(a, plain_a), _index(b, plain_b)),
    ]
    if a.fallback or b.fallback:
        left_a, left_b = _left(a.size, (p[0] for p in found)), _left(b.size, (p[1] for p in found))
        bytes_a, bytes_b = _bytes(a, a.fallback, left_a), _bytes(b, b.fallback, left_b)
        if bytes_a:
            found.append(_pair(bytes_a, _bytes(b, plain_b, left_b)))
        if bytes_b:
            found.append(_pair(_bytes(a, plain_a, left_a), bytes_b))
    ids_a = np.concatenate([pair[0] for pair in found])
    ids_b = np.concatenate([pair[1] for pair in found])
    control = np.zeros(len(ids_a), np.bool_)
    control[: len(special[0])] = True
    order = np.argsort(ids_a, kind="stable")
    return Alignment(
        a=ids_a[order],
        b=ids_b[order],
        special=control[order],
        only_a=a.used - len(ids_a),
        only_b=b.used - len(ids_b),
    )


def _ordinary(vocabulary: Vocabulary) -> list[int]:
    apart = vocabulary.special | vocabulary.fallback
    return [
        at for at, token in enumerate(vocabulary.tokens) if token is not None and at not in apart
    ]


def _index(vocabulary: Vocabulary, ids: Iterable[int]) -> dict[_Key, int]:
    """Ids by token; a token that occurs again has its occurrence in the key."""
    chosen = sorted(ids)
    tokens = [token for at in chosen if (token := vocabulary.tokens[at]) is not None]
    found: dict[_Key, int] = dict(zip(reversed(tokens), reversed(chosen), strict=True))
    if len(found) < len(chosen):
        again: dict[bytes, int] = {}
        for at, token in zip(chosen, tokens, strict=True):
            if found[token] != at:
                again[token] = again.get(token, 0) + 1
                found[token, again[token]] = at
    return found


def _pair(a: dict[_Key, int], b: dict[_Key, int]) -> tuple[Ids, Ids]:
    ids_a = np.fromiter(a.values(), np.int64, len(a))
    ids_b = np.fromiter(map(b.get, a, repeat(-1)), np.int64, len(a))
    shared = ids_b >= 0
    return ids_a[shared], ids_b[shared]


def _left(size: int, paired: Iterable[Ids]) -> npt.NDArray[np.bool_]:
    left = np.ones(size, np.bool_)
    for ids in paired:
        left[ids] = False
    return left


def _bytes(
    vocabulary: Vocabulary, ids: Iterable[int], left: npt.NDArray[np.bool_]
) -> dict[_Key, int]:
    """Those of the ids that are left over and stand for a single byte."""
    chosen = np.fromiter(ids, np.int64)
    rest = chosen[left[chosen]].tolist()
    return _index(vocabulary, [at for at in rest if len(vocabulary.tokens[at] or b"") == 1])
