"""How vocabulary files spell bytes as text, undone in bulk.

The byte that one file writes as Ġ is ▁ in a second and a blank in a third; tokens of two
models can be compared only after the spelling is gone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from msgspec import Struct

BYTE_LEVEL, SENTENCEPIECE, WORDPIECE, WORDS = "byte-level", "sentencepiece", "wordpiece", "words"
MARK = "▁"  # U+2581, sentencepiece's visible blank
END_OF_WORD = "</w>"

_FALLBACK = r"<0x([0-9A-Fa-f]{2})>"
_FOREIGN = 256


def _alphabet() -> tuple[str, ...]:
    """GPT-2's letter for each byte: itself where it prints, else the next from U+0100 on."""
    printing = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    letters, spare = [], 0x100
    for byte in range(256):
        if byte in printing:
            letters.append(chr(byte))
        else:
            letters.append(chr(spare))
            spare += 1
    return tuple(letters)


BYTE_ALPHABET = _alphabet()
_LETTERS = frozenset(BYTE_ALPHABET)
_TOP = max(map(ord, BYTE_ALPHABET)) + 1


def _table() -> npt.NDArray[np.uint16]:
    table = np.full(_TOP + 1, _FOREIGN, np.uint16)
    for byte, letter in enumerate(BYTE_ALPHABET):
        table[ord(letter)] = byte
    return table


_BYTE_OF_CODE = _table()


class Spelling(Struct, frozen=True):
    """How one file writes its tokens.

    `mark` is the letter for a blank (sentencepiece), `prefix` what begins a piece inside a
    word (WordPiece), `suffix` what ends a piece at the end of a word (CLIP, GPT-1). A word
    start in WordPiece gets the blank before it and a piece inside a word gets none, so the
    two cannot be taken for each other.
    """

    kind: str
    mark: str = ""
    prefix: str = ""
    suffix: str = ""

    def decode(self, texts: Sequence[str]) -> list[bytes]:
        """The bytes that each text stands for."""
        if self.suffix:
            bare = Spelling(self.kind, self.mark, self.prefix)
            ends = [len(t) > len(self.suffix) and t.endswith(self.suffix) for t in texts]
            cut = [
                t.removesuffix(self.suffix) if end else t
                for t, end in zip(texts, ends, strict=True)
            ]
            decoded = zip(bare.decode(cut), ends, strict=True)
            return [token + b" " if end else token for token, end in decoded]
        if self.kind == BYTE_LEVEL:
            return byte_level_bytes(texts)
        if self.kind == SENTENCEPIECE:
            tokens = encoded([text.replace(self.mark, " ") for text in texts])
            for at in self.fallbacks(texts):
                tokens[at] = bytes.fromhex(texts[at][3:5])
            return tokens
        if self.kind == WORDPIECE:
            return encoded([self._piece(text) for text in texts])
        return encoded(texts)

    def fallbacks(self, texts: Sequence[str]) -> list[int]:
        """Which of the texts are bytes written as <0xNN>."""
        if self.kind != SENTENCEPIECE:
            return []
        return [
            at
            for at, text in enumerate(texts)
            if len(text) == 6 and text[0] == "<" and re.fullmatch(_FALLBACK, text)
        ]

    def _piece(self, text: str) -> str:
        inside = len(text) > len(self.prefix) and text.startswith(self.prefix)
        return text[len(self.prefix) :] if inside else " " + text


def byte_level_bytes(texts: Sequence[str]) -> list[bytes]:
    """Bytes of texts in GPT-2's alphabet; a text with any other letter is taken literally.

    All texts are looked up in one array: a loop over two million letters would take longer
    than everything else about a tokenizer.
    """
    joined = "".join(texts).encode("utf-32-le", "surrogatepass")
    values = _BYTE_OF_CODE[np.minimum(np.frombuffer(joined, "<u4"), _TOP)]
    ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
    bounds = np.concatenate((np.zeros(1, np.int64), ends))
    raw = values.astype(np.uint8).tobytes()
    edges = bounds.tolist()
    tokens = [raw[start:stop] for start, stop in pairwise(edges)]
    foreign = np.concatenate((np.zeros(1, np.int64), np.cumsum(values == _FOREIGN)))[bounds]
    for at in np.flatnonzero(np.diff(foreign)).tolist():
        tokens[at] = literal(texts[at])
    return tokens


def encoded(texts: Sequence[str]) -> list[bytes]:
    """UTF-8 of texts, whatever they hold."""
    try:
        return [text.encode() for text in texts]
    except UnicodeEncodeError:
        return [literal(text) for text in texts]


def literal(text: str) -> bytes:
    """UTF-8 of a text; bytes that were kept as lone surrogates are themselves again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def guess_spelling(texts: Collection[str]) -> Spelling:
    """How a bare list of tokens is spelled, judged by the letters in it.

    Old files hold nothing but the list. Byte-level files have all 256 letters of their
    alphabet or many words behind Ġ; the others betray themselves by their marks.
    """
    blanks = {BYTE_LEVEL: 0, SENTENCEPIECE: 0, WORDPIECE: 0}
    ends = 0
    for text in texts:
        if text.startswith("Ġ"):
            blanks[BYTE_LEVEL] += 1
        elif text.startswith(MARK):
            blanks[SENTENCEPIECE] += 1
        elif text.startswith("##"):
            blanks[WORDPIECE] += 1
        ends += text.endswith(END_OF_WORD)
    suffix = END_OF_WORD if 10 * ends > len(texts) else ""
    if _LETTERS.issubset(texts):
        return Spelling(BYTE_LEVEL, suffix=suffix)
    kind = max(blanks, key=lambda name: blanks[name])
    if not blanks[kind]:
        return Spelling(WORDS, suffix=suffix)
    return {
        BYTE_LEVEL: Spelling(BYTE_LEVEL, suffix=suffix),
        SENTENCEPIECE: Spelling(SENTENCEPIECE, mark=MARK),
        WORDPIECE: Spelling(WORDPIECE, prefix="##"),
    }[kind]
