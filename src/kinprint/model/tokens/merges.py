"""Merges of a byte-pair vocabulary as pairs of token ids.

Merges are spelled as tokens are, so ids say the same without any spelling, in two numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, repeat

import numpy as np

from kinprint.errors import BadTokenizer
from kinprint.model.tokens.vocabulary import Ids, bracketed
from kinprint.text import message

Merge = str | tuple[str, str]
_CLOSING = (">", "]")


def merge_ids(file: str, merges: Sequence[Merge], texts: Mapping[str, int]) -> Ids:
    """The ids of both parts of each merge, -1 where a part is no token."""
    parts = _parts(file, merges)
    made = np.fromiter(map(texts.get, parts, repeat(-1)), np.int64, len(parts)).reshape(-1, 2)
    made.flags.writeable = False
    return made


def _parts(file: str, merges: Sequence[Merge]) -> list[str]:
    """Left and right parts in turn; half a million are cut at once, if all are written well."""
    if str not in map(type, merges):
        return list(chain.from_iterable(merges))
    if isinstance(merges[0], str):
        with suppress(TypeError):
            parts = " ".join(merges).split(" ")  # type: ignore[arg-type]
            sizes = np.fromiter(map(len, parts), np.int64, len(parts))
            if len(parts) == 2 * len(merges) and bool((sizes > 0).all()):
                whole = np.fromiter(map(len, merges), np.int64, len(merges))
                if np.array_equal(sizes[0::2] + sizes[1::2] + 1, whole):
                    return parts
    pairs = (split_merge(file, m) if isinstance(m, str) else m for m in merges)
    return list(chain.from_iterable(pairs))


def split_merge(file: str, merge: str) -> tuple[str, str]:
    """The two parts of a merge written with a blank between them."""
    at = merge.find(" ", 1)
    if at < 0 or at + 1 == len(merge):
        cause = message("cause.tokenizer.merge", merge=f"{merge!r:.80}")
        raise BadTokenizer(file=file, cause=cause)
    return merge[:at], merge[at + 1 :]


def unlearnt(merges: Ids, texts: Mapping[str, int]) -> list[str]:
    """Tokens in brackets that no merge makes: they were not learnt from text but put there."""
    closing = {text: at for text, at in texts.items() if text.endswith(_CLOSING)}
    written = [text for text in closing if bracketed(text)]
    if not written:
        return []
    ends = np.zeros(max(texts.values()) + 2, np.bool_)  # the last is for -1
    ends[list(closing.values())] = True
    close = merges[ends[merges[:, 1]] & (merges[:, 0] >= 0)]
    needed = set(close.ravel().tolist())
    names = {at: text for text, at in texts.items() if at in needed}
    made = {names[left] + names[right] for left, right in close.tolist()}
    return [text for text in written if text not in made]


def parse_merges(file: str, raw: bytes) -> list[Merge]:
    """The lines of a merges.txt, without its version line."""
    try:
        lines = raw.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        cause = message("cause.tokenizer.broken", detail=str(error))
        raise BadTokenizer(file=file, cause=cause) from None
    if lines and lines[0].startswith("#version"):
        del lines[0]
    return [line.rstrip("\r") for line in lines if line.strip("\r ")]
