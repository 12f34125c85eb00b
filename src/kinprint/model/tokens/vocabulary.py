"""A model's vocabulary as bytes by token id, and the draft every file format fills.

Formats spell the same bytes in different ways; past this record nobody needs to know which.
Ids come from strangers: they are held against limits before anything is allocated for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from kinprint.errors import BadTokenizer
from kinprint.model.tokens.spelling import literal
from kinprint.text import message

Ids = npt.NDArray[np.int64]

# The largest vocabularies published have 262,144 tokens (and 1,024,000 for byte n-grams).
LARGEST_SIZE = 1 << 22
# Ids may have holes (reserved ones), but not more of them than tokens, small files aside.
_HOLES_ALLOWED = 1 << 16
_BRACKETED = re.compile(r"<[^\s<>]+>|\[[^\s\[\]]+\]")


class Vocabulary(Struct, frozen=True, eq=False):
    """Token bytes by id, None where an id is unused.

    Ordinary tokens are the bytes they stand for; `special` ids are held by their text and
    never compared with ordinary ones. `fallback` ids are the single bytes that a
    sentencepiece model falls back to, which its characters may spell a second time. A row
    of `merges` holds the ids of the two parts that are joined, in order of priority, -1 for
    a part that is no token; it is None where the file has none (`algorithm` may still be
    bpe). `kind` says how the file spelled its tokens, `source` which file it was.
    """

    kind: str
    algorithm: str
    source: str
    tokens: tuple[bytes | None, ...]
    special: frozenset[int]
    fallback: frozenset[int] = frozenset()
    merges: Ids | None = None

    @property
    def size(self) -> int:
        """One more than the largest id."""
        return len(self.tokens)

    @property
    def used(self) -> int:
        """Number of ids that have a token."""
        return self.size - self.tokens.count(None)

    def __hash__(self) -> int:
        return id(self)


class AddedToken(Struct, frozen=True):
    """A token that was added to a trained vocabulary, with the text it stands for."""

    id: int
    text: str
    special: bool = False


def bracketed(text: str) -> bool:
    """Whether a text is written as control tokens are: <s>, [CLS], <|im_start|>."""
    return _BRACKETED.fullmatch(text) is not None


class Draft:
    """A vocabulary being put together from one file; whatever cannot be one is refused."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.slots: list[bytes | None] = []
        self.special: set[int] = set()
        self.fallback: set[int] = set()
        self._added: dict[int, str] = {}

    def bad(self, key: str, /, **fields: object) -> BadTokenizer:
        """The error that says what is wrong with this file."""
        return BadTokenizer(file=self.file, cause=message(key, **fields))

    def put(self, ids: Sequence[int], tokens: Sequence[bytes]) -> None:
        """Lay down the trained tokens, each at its id."""
        if not ids:
            raise self.bad("cause.tokenizer.empty")
        self._check(min(ids))
        self._check(max(ids))
        ordered = np.sort(np.array(ids, np.int64))  # a set takes eight times as much
        if (ordered[1:] == ordered[:-1]).any():
            raise self.bad("cause.tokenizer.id-twice", id=_repeated(ids))
        self.slots = [None] * (max(ids) + 1)
        for at, token in zip(ids, tokens, strict=True):
            self.slots[at] = token

    def add(self, tokens: Iterable[AddedToken], mark: str = "") -> None:
        """Lay down added tokens over the trained ones; `mark`, if any, stands for a blank.

        A token is special when it is flagged so or written in brackets: which flag a
        bracketed one carries differs between copies of the same tokenizer. Other added
        tokens (runs of blanks, line ends) are ordinary text.
        """
        for token in tokens:
            self._check(token.id)
            if self._added.setdefault(token.id, token.text) != token.text:
                raise self.bad("cause.tokenizer.added-twice", id=token.id)
            if token.id >= len(self.slots):
                self.slots.extend([None] * (token.id + 1 - len(self.slots)))
            self.fallback.discard(token.id)
            if token.special or bracketed(token.text):
                self.special.add(token.id)
                self.slots[token.id] = literal(token.text)
            else:
                self.special.discard(token.id)
                text = token.text.replace(mark, " ") if mark else token.text
                self.slots[token.id] = literal(text)

    def declare(self, tokens: Iterable[AddedToken], texts: Mapping[str, int], mark: str) -> None:
        """Take added tokens from a file beside, where they contradict nothing in this one."""
        for token in tokens:
            free = token.id >= len(self.slots) or self.slots[token.id] is None
            if free and token.text not in texts:
                self.add((token,), mark)
            elif texts.get(token.text) == token.id and (token.special or bracketed(token.text)):
                self.add((AddedToken(token.id, token.text, True),))

    def control(self, texts: Mapping[str, int], named: Iterable[str]) -> None:
        """Make tokens special that a tokenizer names as such, if they are written so."""
        self.add(AddedToken(texts[n], n, True) for n in named if n in texts and bracketed(n))

    def finish(
        self, kind: str, algorithm: str, merges: Ids | None = None, unused: Iterable[int] = ()
    ) -> Vocabulary:
        """The vocabulary, with the ids in `unused` emptied."""
        for at in unused:
            self.slots[at] = None
            self.special.discard(at)
            self.fallback.discard(at)
        holes = self.slots.count(None)
        if holes == len(self.slots):
            raise self.bad("cause.tokenizer.empty")
        if holes > len(self.slots) - holes + _HOLES_ALLOWED:
            raise self.bad("cause.tokenizer.holes", holes=holes)
        return Vocabulary(
            kind=kind,
            algorithm=algorithm,
            source=self.file,
            tokens=tuple(self.slots),
            special=frozenset(self.special),
            fallback=frozenset(self.fallback),
            merges=merges,
        )

    def _check(self, at: int) -> None:
        if not 0 <= at < LARGEST_SIZE:
            raise self.bad("cause.tokenizer.id", id=at)


def _repeated(ids: Sequence[int]) -> int:
    seen: set[int] = set()
    for at in ids:
        if at in seen:
            return at
        seen.add(at)
    raise AssertionError("nothing is repeated")
