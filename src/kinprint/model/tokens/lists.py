"""Vocabularies that are bare lists: `vocab.json` with `merges.txt`, and BERT's `vocab.txt`.

Nothing in these files says how tokens are spelled or which are special, so both are judged
by the tokens themselves.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kinprint.errors import BadTokenizer
from kinprint.model.tokens.merges import Merge, merge_ids, unlearnt
from kinprint.model.tokens.spelling import (
    WORDPIECE,
    Spelling,
    guess_spelling,
)
from kinprint.model.tokens.vocabulary import AddedToken, Draft, Vocabulary, bracketed
from kinprint.text import message


def parse_vocab_json(
    file: str,
    raw: bytes,
    merges: Sequence[Merge] | None = None,
    declared: Sequence[AddedToken] = (),
    named: Sequence[str] = (),
) -> Vocabulary:
    """The vocabulary of a vocab.json, an object of tokens and their ids."""
    try:
        by_text = msgspec.json.decode(raw, type=dict[str, int])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        cause = message("cause.tokenizer.broken", detail=str(error))
        raise BadTokenizer(file=file, cause=cause) from None
    algorithm = "" if merges is None else "bpe"
    return _listed(file, by_text, guess_spelling(by_text), algorithm, merges, declared, named)


def parse_vocab_txt(file: str, raw: bytes, declared: Sequence[AddedToken] = ()) -> Vocabulary:
    """The vocabulary of a vocab.txt: a token a line, numbered from 0."""
    try:
        texts = [line.removesuffix("\r") for line in raw.decode("utf-8-sig").split("\n")]
    except UnicodeDecodeError as error:
        cause = message("cause.tokenizer.broken", detail=str(error))
        raise BadTokenizer(file=file, cause=cause) from None
    while texts and not texts[-1]:
        texts.pop()
    # A line that stands twice names its last id, as in the tokenizers that read these files.
    by_text = {text: at for at, text in enumerate(texts)}
    spelling = Spelling(WORDPIECE, prefix="##")
    return _listed(file, by_text, spelling, "wordpiece", None, declared, ())


def _listed(
    file: str,
    by_text: dict[str, int],
    spelling: Spelling,
    algorithm: str,
    merges: Sequence[Merge] | None,
    declared: Sequence[AddedToken],
    named: Sequence[str],
) -> Vocabulary:
    draft = Draft(file)
    texts, ids = list(by_text), list(by_text.values())
    draft.put(ids, spelling.decode(texts))
    draft.fallback.update(ids[at] for at in spelling.fallbacks(texts))
    pairs = None if merges is None else merge_ids(file, merges, by_text)
    if pairs is None or spelling.kind == WORDPIECE:
        draft.control(by_text, _control(by_text, spelling.kind))
    else:
        draft.control(by_text, unlearnt(pairs, by_text))
    draft.declare(declared, by_text, spelling.mark)
    draft.control(by_text, named)
    return draft.finish(spelling.kind, algorithm, pairs)


def _control(by_text: dict[str, int], kind: str) -> list[str]:
    """Control tokens of a list without merges, which would show what was learnt.

    WordPiece learns no letters in brackets. Elsewhere only the first few ids and the
    well-known form <|…|> are believed.
    """
    written = [text for text in by_text if bracketed(text)]
    if kind == WORDPIECE:
        return written
    known = [text for text in written if text.startswith("<|") or by_text[text] < 8]
    return [text for text in known if not text.startswith("<0x")]
