"""Added tokens in the small files beside a tokenizer.

tiktoken and sentencepiece files do not know the tokens that were added later, and some
conversions to tokenizer.json forgot them: they stand in `tokenizer_config.json` or
`added_tokens.json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kinprint.model.tokens.vocabulary import AddedToken
from kinprint.reader.jsonfile import parse_object

SETTINGS, ADDED, MERGES = "tokenizer_config.json", "added_tokens.json", "merges.txt"
_NAMED = (
    "bos_token",
    "eos_token",
    "unk_token",
    "pad_token",
    "sep_token",
    "cls_token",
    "mask_token",
)


def declared_tokens(files: Mapping[str, bytes]) -> list[AddedToken]:
    """Added tokens with their ids, from whichever of the files are there.

    What is not a token is passed over: these files hold much else, written by many hands.
    """
    found: dict[int, AddedToken] = {}
    for path, raw in files.items():
        base = path.rpartition("/")[2]
        if base == SETTINGS:
            table = parse_object(path, raw).get("added_tokens_decoder")
            for key, value in table.items() if isinstance(table, dict) else ():
                text = _content(value)
                if key.isascii() and key.isdigit() and len(key) < 10 and text:
                    special = isinstance(value, dict) and value.get("special") is True
                    found.setdefault(int(key), AddedToken(int(key), text, special))
        elif base == ADDED:
            for text, at in parse_object(path, raw).items():
                if isinstance(at, int) and not isinstance(at, bool) and at >= 0 and text:
                    found.setdefault(at, AddedToken(at, text))
    return [found[at] for at in sorted(found)]


def named_tokens(files: Mapping[str, bytes]) -> list[str]:
    """Texts that the settings name as beginning, end, padding and so on."""
    named: list[str] = []
    for path, raw in files.items():
        if path.rpartition("/")[2] == SETTINGS:
            settings = parse_object(path, raw)
            more = settings.get("additional_special_tokens")
            values = [settings.get(name) for name in _NAMED]
            values += more if isinstance(more, list) else []
            named += [text for value in values if (text := _content(value))]
    return named


def _content(value: Any) -> str:
    """The text of a token written as a string or as an object."""
    if isinstance(value, dict):
        value = value.get("content")
    return value if isinstance(value, str) else ""
