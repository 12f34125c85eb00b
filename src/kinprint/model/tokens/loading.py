"""From a file's name and bytes to a vocabulary: the one place that knows all formats.

What reads a format is loaded with the first file of it: a model has one, seldom two.
"""

from __future__ import annotations

from collections.abc import Mapping

from kinprint.errors import BadTokenizer
from kinprint.model.tokens.added_tokens import MERGES, declared_tokens, named_tokens
from kinprint.model.tokens.merges import parse_merges
from kinprint.model.tokens.vocabulary import Vocabulary
from kinprint.text import message

# Gemma 3's tokenizer.json, the largest known, has 33 MB.
LARGEST_FILE = 96 << 20
_POINTER = b"version https://git-lfs"
_MARK = b"\xef\xbb\xbf"


def load_vocabulary(name: str, raw: bytes, beside: Mapping[str, bytes] | None = None) -> Vocabulary:
    """The vocabulary in the file `name`; `beside` holds the files that complete it, by path.

    The name tells the format, except that `.model` files are looked into: Llama 3, GLM-4 and
    Kimi keep tiktoken's format under sentencepiece's name.
    """
    files = beside or {}
    base = name.rpartition("/")[2].lower()
    if len(raw) > LARGEST_FILE:
        cause = message("cause.tokenizer.too-large", most=LARGEST_FILE >> 20)
        raise BadTokenizer(file=name, cause=cause)
    if raw.startswith(_POINTER):
        raise BadTokenizer(file=name, cause=message("cause.tokenizer.lfs-pointer"))
    declared = declared_tokens(files)
    if base.endswith(".tiktoken"):
        from kinprint.model.tokens.ranks import parse_tiktoken

        return parse_tiktoken(name, raw, declared)
    if ".model" in base or base.endswith(".spm"):
        from kinprint.model.tokens.ranks import is_tiktoken, parse_tiktoken
        from kinprint.model.tokens.sentencepiece_model import parse_sentencepiece

        if is_tiktoken(raw):
            return parse_tiktoken(name, raw, declared)
        return parse_sentencepiece(name, raw, declared)
    raw = raw.removeprefix(_MARK)
    if base.startswith("tekken") and base.endswith(".json"):
        from kinprint.model.tokens.ranks import parse_tekken

        return parse_tekken(name, raw)
    if base.endswith("vocab.json"):
        from kinprint.model.tokens.lists import parse_vocab_json

        merges = _merges(files)
        return parse_vocab_json(name, raw, merges, declared, named_tokens(files))
    if base.endswith(".json"):
        from kinprint.model.tokens.tokenizer_json import parse_tokenizer_json

        return parse_tokenizer_json(name, raw, declared, named_tokens(files))
    if base.endswith(".txt"):
        from kinprint.model.tokens.lists import parse_vocab_txt

        return parse_vocab_txt(name, raw, declared)
    raise BadTokenizer(file=name, cause=message("cause.tokenizer.name"))


def _merges(files: Mapping[str, bytes]) -> list[str | tuple[str, str]] | None:
    for path, raw in files.items():
        if path.rpartition("/")[2] == MERGES:
            return parse_merges(path, raw)
    return None
