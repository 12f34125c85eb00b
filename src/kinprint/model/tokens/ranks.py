"""Vocabularies that are lists of bytes with a rank: tiktoken files and Mistral's tekken.json.

Both hold the bytes themselves in base64, so there is no spelling to undo.
"""

from __future__ import annotations

import binascii
from collections.abc import Sequence

import msgspec

from kinprint.errors import BadTokenizer
from kinprint.model.tokens.vocabulary import LARGEST_SIZE, AddedToken, Draft, Vocabulary
from kinprint.text import message

TIKTOKEN, TEKKEN = "tiktoken", "tekken"

# What a tekken.json without a list of its own means (files up to version 7).
_TEKKEN_SPECIAL = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]", "[IMG]", "<pad>", "[IMG_BREAK]"),
    *("[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
    "[TOOL_CONTENT]",
)


class _Token(msgspec.Struct):
    rank: int
    token_bytes: str


class _Special(msgspec.Struct):
    rank: int
    token_str: str


class _Sizes(msgspec.Struct):
    default_vocab_size: int
    default_num_special_tokens: int


class _Tekken(msgspec.Struct):
    config: _Sizes
    vocab: list[_Token]
    special_tokens: list[_Special] | None = None


_read_tekken = msgspec.json.Decoder(_Tekken).decode  # made once: see `source/repository.py`


def is_tiktoken(raw: bytes) -> bool:
    """Whether a file looks like tiktoken's whatever its name: base64, a blank, a number."""
    words = raw[:4096].partition(b"\n")[0].split()
    return len(words) == 2 and words[1].isdigit() and _decodes(words[0])


def parse_tiktoken(file: str, raw: bytes, declared: Sequence[AddedToken] = ()) -> Vocabulary:
    """The vocabulary of a tiktoken file; its special tokens are only ever declared beside it."""
    draft = Draft(file)
    ids, tokens = [], []
    for number, line in enumerate(raw.split(b"\n"), 1):
        words = line.split()
        if not words:
            continue
        if len(words) != 2 or not words[1].isdigit() or len(words[1]) > 9:
            raise draft.bad("cause.tokenizer.rank-line", number=number)
        tokens.append(_base64(draft, words[0], "cause.tokenizer.base64-line", number))
        ids.append(int(words[1]))
    draft.put(ids, tokens)
    draft.declare(declared, {}, "")
    return draft.finish(TIKTOKEN, "bpe")


def parse_tekken(file: str, raw: bytes) -> Vocabulary:
    """The vocabulary of a tekken.json: special tokens first, then as many as the size says."""
    try:
        found = _read_tekken(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        cause = message("cause.tokenizer.broken", detail=str(error))
        raise BadTokenizer(file=file, cause=cause) from None
    draft = Draft(file)
    size, before = found.config.default_vocab_size, found.config.default_num_special_tokens
    if not 0 <= before <= size <= LARGEST_SIZE:
        raise draft.bad("cause.tokenizer.special", size=size, special=before)
    kept = [token for token in found.vocab if token.rank < size - before]
    ids = [before + token.rank for token in kept]
    key = "cause.tokenizer.base64-rank"
    draft.put(ids, [_base64(draft, token.token_bytes, key, token.rank) for token in kept])
    if before and min(ids) < before:
        raise draft.bad("cause.tokenizer.negative-rank")
    names = {at: f"<SPECIAL_{at}>" for at in range(before)}
    if found.special_tokens is None:
        names.update(enumerate(_TEKKEN_SPECIAL[:before]))
    else:
        names.update((token.rank, token.token_str) for token in found.special_tokens)
    if any(not 0 <= at < before for at in names):
        raise draft.bad("cause.tokenizer.special-rank", special=before)
    draft.add(AddedToken(at, text, True) for at, text in names.items())
    return draft.finish(TEKKEN, "bpe")


def _base64(draft: Draft, text: bytes | str, key: str, number: int) -> bytes:
    if text == b"=":  # Whisper's files write an empty token so
        return b""
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise draft.bad(key, number=number, detail=str(error)) from None


def _decodes(text: bytes) -> bool:
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error:
        return False
    return True
