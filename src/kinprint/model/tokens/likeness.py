"""What two tokenizers have in common, in numbers: fingerprints, overlaps, shifted ids.

A vocabulary is often extended or renumbered when a model is derived. These are the figures
that the reports on such cases argued from; none of them is evidence about weights.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kinprint.model.tokens.alignment import Alignment, align
from kinprint.model.tokens.vocabulary import Ids, Vocabulary

FIRST_MERGES = 1000
TOP_OFFSETS = 10
_MISSING = np.uint32(0xFFFFFFFF)


class Fingerprint(Struct, frozen=True):
    """What identifies one tokenizer, whatever file it came in."""

    kind: str
    algorithm: str
    size: int
    used: int
    special: int
    vocabulary_sha256: str
    merges: int | None
    merges_sha256: str | None
    first_merges_sha256: str | None


class Overlap(Struct, frozen=True):
    """How many tokens (or merges) two tokenizers share, and what part of each that is."""

    shared: int
    only_a: int
    only_b: int

    @property
    def union(self) -> int:
        """Number of different ones in both together."""
        return self.shared + self.only_a + self.only_b

    @property
    def jaccard(self) -> float:
        """Shared over union."""
        return self.shared / self.union if self.union else 0.0

    @property
    def of_smaller(self) -> float:
        """Shared over the smaller of the two."""
        smaller = self.shared + min(self.only_a, self.only_b)
        return self.shared / smaller if smaller else 0.0


class Run(Struct, frozen=True):
    """Consecutive ids in a whose tokens have consecutive ids in b."""

    length: int
    start_a: int
    start_b: int


class Likeness(Struct, frozen=True):
    """Everything that is reported about a pair of tokenizers.

    `offsets` counts id in b less id in a over shared ASCII tokens, the most frequent first.
    `best_run` is the longest run at the most frequent offset, `longest_run` at any.
    """

    overlap: Overlap
    special_shared: int
    same_id: int
    offsets: tuple[tuple[int, int], ...]
    best_run: Run | None
    longest_run: Run | None
    merges: Overlap | None
    first_merges_equal: int | None


def fingerprint(vocabulary: Vocabulary) -> Fingerprint:
    """Identify a tokenizer by its normalised content."""
    merges = vocabulary.merges
    return Fingerprint(
        kind=vocabulary.kind,
        algorithm=vocabulary.algorithm,
        size=vocabulary.size,
        used=vocabulary.used,
        special=len(vocabulary.special),
        vocabulary_sha256=vocabulary_sha256(vocabulary),
        merges=None if merges is None else len(merges),
        merges_sha256=merges_sha256(vocabulary),
        first_merges_sha256=merges_sha256(vocabulary, FIRST_MERGES),
    )


def vocabulary_sha256(vocabulary: Vocabulary) -> str:
    """Hash of all tokens in the order of their ids, the same for every spelling of them.

    Hashed are the length of each token (four bytes, little-endian; all ones where an id is
    unused), a byte each that is 1 for special tokens, and then all tokens one after another.
    """
    special = np.zeros(vocabulary.size, np.uint8)
    special[list(vocabulary.special)] = 1
    from hashlib import sha256

    digest = sha256(_lengths(vocabulary).tobytes())
    digest.update(special.tobytes())
    digest.update(b"".join(filter(None, vocabulary.tokens)))
    return digest.hexdigest()


def merges_sha256(vocabulary: Vocabulary, first: int | None = None) -> str | None:
    """Hash of the merges in order, or of the `first` of them; None where there are none.

    Hashed are the lengths of all parts, as for tokens, and then all parts.
    """
    if vocabulary.merges is None:
        return None
    parts = vocabulary.merges[:first].ravel()
    lengths = np.append(_lengths(vocabulary), _MISSING)  # where -1 points
    tokens = [*(token or b"" for token in vocabulary.tokens), b""]
    from hashlib import sha256

    digest = sha256(lengths[parts].tobytes())
    digest.update(b"".join([tokens[at] for at in parts.tolist()]))
    return digest.hexdigest()


def _lengths(vocabulary: Vocabulary) -> npt.NDArray[np.uint32]:
    sizes = (_MISSING if token is None else len(token) for token in vocabulary.tokens)
    return np.fromiter(sizes, np.dtype("<u4"), vocabulary.size)


def compare_tokenizers(
    a: Vocabulary, b: Vocabulary, alignment: Alignment | None = None
) -> Likeness:
    """All figures about a pair at once; `alignment` saves aligning again."""
    pairs = align(a, b) if alignment is None else alignment
    offsets = ascii_offsets(a, pairs)
    return Likeness(
        overlap=Overlap(pairs.shared, pairs.only_a, pairs.only_b),
        special_shared=int(np.count_nonzero(pairs.special)),
        same_id=same_id_matches(a, b),
        offsets=offsets[:TOP_OFFSETS],
        best_run=longest_run(pairs, offsets[0][0]) if offsets else None,
        longest_run=longest_run(pairs),
        merges=merge_overlap(a, b, pairs),
        first_merges_equal=first_merges_equal(a, b),
    )


def same_id_matches(a: Vocabulary, b: Vocabulary) -> int:
    """Number of ids at which both have the same token."""
    pairs = enumerate(zip(a.tokens, b.tokens, strict=False))
    equal = [at for at, (left, right) in pairs if left == right and left is not None]
    return sum((at in a.special) == (at in b.special) for at in equal)


def ascii_offsets(a: Vocabulary, alignment: Alignment) -> tuple[tuple[int, int], ...]:
    """Offsets of shared ordinary ASCII tokens and how often each occurs, most frequent first."""
    tokens = a.tokens
    plain = np.fromiter(
        ((token := tokens[at]) is not None and token.isascii() for at in alignment.a.tolist()),
        np.bool_,
        alignment.shared,
    )
    offsets = (alignment.b - alignment.a)[plain & ~alignment.special]
    values, counts = np.unique(offsets, return_counts=True)
    order = np.lexsort((values, np.abs(values), -counts))
    return tuple(zip(values[order].tolist(), counts[order].tolist(), strict=True))


def longest_run(alignment: Alignment, offset: int | None = None) -> Run | None:
    """The longest stretch of ids that both number alike, up to a shift; the first if several."""
    ids_a, ids_b = alignment.a, alignment.b
    if offset is not None:
        chosen = ids_b - ids_a == offset
        ids_a, ids_b = ids_a[chosen], ids_b[chosen]
    if not len(ids_a):
        return None
    breaks = np.flatnonzero((np.diff(ids_a) != 1) | (np.diff(ids_b) != 1)) + 1
    starts = np.concatenate((np.zeros(1, np.int64), breaks))
    lengths = np.diff(np.append(starts, len(ids_a)))
    best = int(np.argmax(lengths))
    first = int(starts[best])
    return Run(int(lengths[best]), int(ids_a[first]), int(ids_b[first]))


def merge_overlap(a: Vocabulary, b: Vocabulary, alignment: Alignment) -> Overlap | None:
    """How many merges two tokenizers share, in any order; None where one has no merges."""
    if a.merges is None or b.merges is None:
        return None
    table = np.append(alignment.lookup(a.size), -1)  # a part that is no token points here
    known = table[a.merges]
    mine, theirs = _keys(known[(known >= 0).all(axis=1)]), _keys(b.merges)
    shared = len(np.intersect1d(mine, theirs, assume_unique=True))
    return Overlap(shared, len(_keys(a.merges)) - shared, len(theirs) - shared)


def first_merges_equal(a: Vocabulary, b: Vocabulary) -> int | None:
    """How many of the first merges are the same at the same place; None without merges."""
    if a.merges is None or b.merges is None:
        return None
    ours, theirs = a.merges[:FIRST_MERGES].tolist(), b.merges[:FIRST_MERGES].tolist()
    rows = zip(ours, theirs, strict=False)
    return sum(
        [_token(a, at) for at in left] == [_token(b, at) for at in right] for left, right in rows
    )


def _token(vocabulary: Vocabulary, at: int) -> bytes | None:
    return vocabulary.tokens[at] if at >= 0 else None


def _keys(merges: Ids) -> Ids:
    """One number for each different merge, sorted."""
    keys = np.sort(merges[:, 0] * (1 << 32) + merges[:, 1])
    different: Ids = keys[np.diff(keys, prepend=keys[:1] - 1) != 0]
    return different
