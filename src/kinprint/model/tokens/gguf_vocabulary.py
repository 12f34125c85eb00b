"""The vocabulary that a GGUF file carries in its header.

A GGUF repository often holds nothing else, and its own list is the one its rows follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from kinprint.errors import BadTokenizer
from kinprint.model.tokens.choice import GGUF_KEY
from kinprint.model.tokens.merges import merge_ids
from kinprint.model.tokens.sentencepiece_model import (
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
    fill_by_type,
)
from kinprint.model.tokens.spelling import (
    BYTE_LEVEL,
    MARK,
    SENTENCEPIECE,
    WORDPIECE,
    Spelling,
    guess_spelling,
    literal,
)
from kinprint.model.tokens.vocabulary import LARGEST_SIZE, Draft, Ids, Vocabulary, bracketed
from kinprint.text import message

_SPECIAL_IDS = ("bos", "eos", "unknown", "padding", "seperator", "separator", "cls", "mask")
# `tokenizer.ggml.model` as llama.cpp writes it: how tokens are spelled, and what made them.
_MODELS = {
    "gpt2": (Spelling(BYTE_LEVEL), "bpe"),
    "llama": (Spelling(SENTENCEPIECE, mark=MARK), "bpe"),
    "gemma4": (Spelling(SENTENCEPIECE, mark=MARK), "bpe"),
    "t5": (Spelling(SENTENCEPIECE, mark=MARK), "unigram"),
    "plamo2": (Spelling(SENTENCEPIECE, mark=MARK), "unigram"),
    "bert": (Spelling(WORDPIECE, prefix="##"), "wordpiece"),
}
_ESCAPED = "rwkv"


def vocabulary_of_gguf(file: str, metadata: Mapping[str, object]) -> Vocabulary:
    """The vocabulary in a GGUF header's metadata."""
    texts = metadata.get(GGUF_KEY + "tokens")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        cause = message("cause.tokenizer.no-texts", key=f"{GGUF_KEY}tokens")
        raise BadTokenizer(file=file, cause=cause)
    if not texts or len(texts) > LARGEST_SIZE:
        cause = message("cause.tokenizer.size", size=len(texts))
        raise BadTokenizer(file=file, cause=cause)
    types = _types(file, metadata, len(texts))
    name = str(metadata.get(GGUF_KEY + "model", ""))
    spelling, algorithm = _MODELS.get(name) or (guess_spelling(texts), name[:40])
    if name == "bert":
        texts = _unphantomed(texts, types)
    draft = Draft(file)
    if name == _ESCAPED:
        spelling = Spelling(_ESCAPED)
        draft.put(range(len(texts)), [_unescaped(text) for text in texts])
    else:
        draft.put(range(len(texts)), spelling.decode(texts))
    unused = fill_by_type(draft, texts, types, spelling)
    by_text = {text: at for at, text in reversed(list(enumerate(texts)))}
    if spelling.kind == WORDPIECE:
        draft.control(by_text, [text for text in texts if bracketed(text)])
    named = (metadata.get(f"{GGUF_KEY}{role}_token_id") for role in _SPECIAL_IDS)
    draft.control(
        by_text, [texts[at] for at in named if isinstance(at, int) and 0 <= at < len(texts)]
    )
    return draft.finish(spelling.kind, algorithm, _merges(file, metadata, by_text), unused)


def _types(file: str, metadata: Mapping[str, object], count: int) -> list[int]:
    """The type of each token; files without them have ordinary tokens only."""
    found = metadata.get(GGUF_KEY + "token_type")
    if found is None:
        return [NORMAL] * count
    if not isinstance(found, np.ndarray) or found.dtype.kind not in "iu" or found.ndim != 1:
        cause = message("cause.tokenizer.no-numbers", key=f"{GGUF_KEY}token_type")
        raise BadTokenizer(file=file, cause=cause)
    if len(found) != count:
        cause = message("cause.tokenizer.types", types=len(found), tokens=count)
        raise BadTokenizer(file=file, cause=cause)
    types: list[int] = found.tolist()
    return types


def _merges(file: str, metadata: Mapping[str, object], texts: Mapping[str, int]) -> Ids | None:
    found = metadata.get(GGUF_KEY + "merges")
    if found is None:
        return None
    if not isinstance(found, list) or not all(isinstance(merge, str) for merge in found):
        cause = message("cause.tokenizer.no-texts", key=f"{GGUF_KEY}merges")
        raise BadTokenizer(file=file, cause=cause)
    return merge_ids(file, found, texts) if found else None


def _unphantomed(texts: Sequence[str], types: Sequence[int]) -> list[str]:
    """BERT's own spelling back: the converter writes ▁word for word and piece for ##piece."""
    kept = (UNKNOWN, CONTROL, USER_DEFINED, UNUSED)
    return [
        text if kind in kept else text.removeprefix(MARK) if text.startswith(MARK) else "##" + text
        for text, kind in zip(texts, types, strict=True)
    ]


def _unescaped(text: str) -> bytes:
    r"""RWKV's tokens, which are written as Python writes bytes: \t, \n, \xNN."""
    try:
        return text.encode("ascii").decode("unicode_escape").encode("latin-1")
    except (UnicodeDecodeError, UnicodeEncodeError):
        return literal(text)
