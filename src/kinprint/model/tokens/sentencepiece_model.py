"""Vocabularies in sentencepiece's own files (`tokenizer.model`, `spiece.model`).

Three fields of the model are needed, so they are read from the wire without the library:
ModelProto.pieces = 1 {piece = 1, type = 3}, ModelProto.trainer_spec = 2 {model_type = 3}
(sentencepiece_model.proto).
"""

from __future__ import annotations

from collections.abc import Sequence

from kinprint.errors import BadTokenizer
from kinprint.model.tokens.protobuf import BYTES, VARINT, WireError, fields
from kinprint.model.tokens.spelling import MARK, SENTENCEPIECE
from kinprint.model.tokens.spelling import Spelling as _Spelling
from kinprint.model.tokens.vocabulary import LARGEST_SIZE, AddedToken, Draft, Vocabulary
from kinprint.text import message

# Piece types, the same numbers in GGUF (there they are called token types).
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
_ALGORITHMS = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
SPELLING = _Spelling(SENTENCEPIECE, mark=MARK)


def parse_sentencepiece(file: str, raw: bytes, declared: Sequence[AddedToken] = ()) -> Vocabulary:
    """The vocabulary of a sentencepiece model; `declared` tokens come from files beside it."""
    try:
        texts, types, algorithm = _read(raw)
    except WireError as error:
        cause = message("cause.tokenizer.sentencepiece", fault=error.cause)
        raise BadTokenizer(file=file, cause=cause) from None
    draft = Draft(file)
    draft.put(range(len(texts)), SPELLING.decode(texts))
    unused = fill_by_type(draft, texts, types, SPELLING)
    draft.declare(declared, dict(zip(texts, range(len(texts)), strict=True)), MARK)
    return draft.finish(SENTENCEPIECE, algorithm, unused=unused)


def fill_by_type(
    draft: Draft, texts: Sequence[str], types: Sequence[int], spelling: _Spelling
) -> list[int]:
    """Mark special, added and byte tokens by their types; the unused ids are returned.

    User-defined pieces are those that a tokenizer.json calls added and not special.
    """
    draft.fallback.update(at for at in spelling.fallbacks(texts) if types[at] in (NORMAL, BYTE))
    draft.add(
        (
            AddedToken(at, texts[at], kind in (UNKNOWN, CONTROL))
            for at, kind in enumerate(types)
            if kind in (UNKNOWN, CONTROL, USER_DEFINED)
        ),
        spelling.mark,
    )
    return [at for at, kind in enumerate(types) if kind == UNUSED]


def _read(raw: bytes) -> tuple[list[str], list[int], str]:
    texts: list[str] = []
    types: list[int] = []
    algorithm = 1  # the default in the schema
    for number, wire, value in fields(raw):
        if wire != BYTES or not isinstance(value, bytes):
            continue
        if number == 1:
            piece, kind = b"", NORMAL
            for inner, form, content in fields(value):
                if inner == 1 and form == BYTES and isinstance(content, bytes):
                    piece = content
                elif inner == 3 and form == VARINT and isinstance(content, int):
                    kind = content
            texts.append(piece.decode("utf-8", "surrogateescape"))
            types.append(kind)
            if len(texts) > LARGEST_SIZE:
                raise WireError("cause.tokenizer.wire.pieces")
        elif number == 2:
            for inner, form, content in fields(value):
                if inner == 3 and form == VARINT and isinstance(content, int):
                    algorithm = content
    return texts, types, _ALGORITHMS.get(algorithm, "")
