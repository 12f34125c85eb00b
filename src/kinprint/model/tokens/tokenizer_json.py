"""Vocabularies in `tokenizer.json`, the file of the tokenizers library.

The library itself gives tokens only in their spelling and is slow to build: what is needed
here are three lists and the names of the steps, which say how tokens are spelled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kinprint.errors import BadTokenizer
from kinprint.model.tokens.merges import Merge, merge_ids, unlearnt
from kinprint.model.tokens.spelling import (
    BYTE_LEVEL,
    MARK,
    SENTENCEPIECE,
    WORDPIECE,
    WORDS,
    Spelling,
    guess_spelling,
)
from kinprint.model.tokens.vocabulary import AddedToken, Draft, Vocabulary, bracketed
from kinprint.text import message

# Pieces that sentencepiece models begin with; some conversions forget to flag them.
_FIRST_PIECES = ("<unk>", "<s>", "</s>", "<pad>", "<bos>", "<eos>", "<mask>")


class _Added(msgspec.Struct):
    id: int
    content: str
    special: bool = False


class _Model(msgspec.Struct):
    vocab: dict[str, int] | list[tuple[str, Any]]
    type: str | None = None
    merges: list[str | tuple[str, str]] | None = None
    unk_token: str | None = None
    unk_id: int | None = None
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None


class _File(msgspec.Struct):
    model: _Model
    added_tokens: list[_Added] | None = None
    normalizer: Any = None
    pre_tokenizer: Any = None
    decoder: Any = None


_DECODER = msgspec.json.Decoder(_File)


def parse_tokenizer_json(
    file: str,
    raw: bytes,
    declared: Sequence[AddedToken] = (),
    named: Sequence[str] = (),
) -> Vocabulary:
    """The vocabulary of a tokenizer.json; `declared` and `named` come from files beside it."""
    try:
        found = _DECODER.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        cause = message("cause.tokenizer.broken", detail=str(error))
        raise BadTokenizer(file=file, cause=cause) from None
    model = found.model
    if isinstance(model.vocab, dict):
        texts: list[str] = list(model.vocab)
        ids: Sequence[int] = list(model.vocab.values())
        by_text = model.vocab
    else:
        texts = [text for text, _ in model.vocab]
        ids = range(len(texts))
        by_text = {text: at for at, text in reversed(list(enumerate(texts)))}
    algorithm = (model.type or _type_of(model)).lower()
    spelling = _spelling(found, algorithm, by_text)
    draft = Draft(file)
    added = [
        # The library looks a text up before it believes the id.
        AddedToken(by_text.get(token.content, token.id), token.content, token.special)
        for token in found.added_tokens or ()
    ]
    if texts:
        draft.put(ids, spelling.decode(texts))
        draft.fallback.update(ids[at] for at in spelling.fallbacks(texts))
    pairs = None if model.merges is None else merge_ids(file, _merges(model), by_text)
    draft.control(by_text, _unflagged(model, spelling, by_text, texts))
    if pairs is not None:
        draft.control(by_text, [t for t in unlearnt(pairs, by_text) if t[:3] != "<0x"])
    draft.add(added, spelling.mark)
    draft.declare(declared, by_text | {token.text: token.id for token in added}, spelling.mark)
    draft.control(by_text, named)
    return draft.finish(spelling.kind, algorithm, pairs)


def _merges(model: _Model) -> list[Merge]:
    return model.merges or []


def _type_of(model: _Model) -> str:
    """The kind of model in files that are older than the field."""
    if model.merges is not None:
        return "BPE"
    if not isinstance(model.vocab, dict):
        return "Unigram"
    return "WordPiece" if model.continuing_subword_prefix is not None else "WordLevel"


def _spelling(found: _File, algorithm: str, texts: dict[str, int]) -> Spelling:
    """How tokens are written, from the steps around the model."""
    model = found.model
    prefix = model.continuing_subword_prefix
    if algorithm == "wordpiece":
        return Spelling(WORDPIECE, prefix="##" if prefix is None else prefix)
    suffix = model.end_of_word_suffix or ""
    mark = ""
    for step in _steps(found.pre_tokenizer, found.decoder, found.normalizer):
        kind = step.get("type")
        if kind == "ByteLevel":
            return Spelling(BYTE_LEVEL, suffix=suffix)
        if kind == "Metaspace":
            mark = mark or _letter(step.get("replacement"))
        if kind == "Replace" and MARK in (step.get("content"), _pattern(step)):
            mark = MARK
    if mark or algorithm == "unigram":
        return Spelling(SENTENCEPIECE, mark=mark or MARK)
    if algorithm == "wordlevel":
        return Spelling(WORDS)
    if prefix:
        return Spelling(WORDPIECE, prefix=prefix)
    return Spelling(WORDS, suffix=suffix) if suffix else guess_spelling(texts)


def _letter(value: object) -> str:
    return value if isinstance(value, str) and value else MARK


def _pattern(step: dict[str, Any]) -> object:
    pattern = step.get("pattern")
    return pattern.get("String") if isinstance(pattern, dict) else None


def _steps(*parts: object) -> Iterator[dict[str, Any]]:
    """Every step of a pipeline, those inside sequences too, in order."""
    waiting = list(reversed(parts))
    while waiting:
        part = waiting.pop()
        if not isinstance(part, dict):
            continue
        yield part
        for key in ("pretokenizers", "decoders", "normalizers"):
            inner = part.get(key)
            if isinstance(inner, list):
                waiting.extend(reversed(inner))


def _unflagged(
    model: _Model, spelling: Spelling, by_text: dict[str, int], texts: Sequence[str]
) -> list[str]:
    """Control tokens that carry no flag: the unknown one, first pieces, BERT's in brackets."""
    found = [model.unk_token] if model.unk_token else []
    if model.unk_id is not None and 0 <= model.unk_id < len(texts):
        found.append(texts[model.unk_id])
    if spelling.kind == WORDPIECE:
        found += [text for text in texts if bracketed(text)]
    elif spelling.kind == SENTENCEPIECE:
        found += [text for text in _FIRST_PIECES if by_text.get(text, 8) < 8]
    return found
