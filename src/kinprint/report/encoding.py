"""Documents of comparisons as JSON files, and back; whatever else is in a file is refused."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from kinprint.errors import FormatError
from kinprint.report.documents import (
    ComparisonDocument,
    Document,
    MatrixDocument,
)

_SHOWN = 200  # characters of a cause


def encode(document: Document) -> bytes:
    """The JSON file of a document: the same bytes for the same document, always valid text."""
    try:
        raw = msgspec.json.encode(document)
    except UnicodeEncodeError:  # names on a disk may be no text
        raw = msgspec.json.encode(_valid(msgspec.to_builtins(document)))
    return msgspec.json.format(raw, indent=1) + b"\n"


def decode(raw: bytes, name: str = "compare.json") -> Document:
    """The document in a JSON file; an error that names the file where there is none."""
    try:
        found: Document = msgspec.json.decode(raw, type=Document)
    except RecursionError:
        raise _unreadable(name, "it is nested too deeply") from None
    except ValueError as error:  # all of msgspec's, and bytes that are no text
        raise _unreadable(name, str(error)[:_SHOWN]) from None
    for cause in _contradictions(found):
        raise _unreadable(name, cause)
    return found


def read_document(file: Path) -> Document:
    """The document in a file on disk."""
    return decode(file.read_bytes(), str(file))


# More than any comparison has; a page of it would help nobody.
_MOST = {"models": 1000, "evidence": 500, "seeds": 20_000, "labels": 2000, "notes": 2000,
         "configuration": 500, "controls": 2000, "unread": 2000, "failed": 500_000}  # fmt: skip
_DRAWS = 20_000


def _contradictions(document: Document) -> Iterator[str]:
    """What no document that was made here says, and what drawing one relies on."""
    for name, most in _MOST.items():
        if len(getattr(document, name, ())) > most:
            yield f"it has more than {most:,} entries in '{name}'"
    if isinstance(document, ComparisonDocument) and any(
        len(one.null) > _DRAWS for one in document.evidence
    ):
        yield f"a null has more than {_DRAWS:,} draws"
    if isinstance(document, ComparisonDocument):
        if len(document.models) != 2:
            yield f"it compares {len(document.models)} models"
    elif isinstance(document, MatrixDocument):
        count = len(document.models)
        if document.order and sorted(document.order) != list(range(count)):
            yield "its order does not name every model once"
        if document.tree and not _is_tree(document, count):
            yield "its tree does not join every branch once"


def _is_tree(document: MatrixDocument, leaves: int) -> bool:
    """Whether merges join leaves and earlier merges, each once, into one."""
    if len(document.tree) != leaves - 1:
        return False
    joined: set[int] = set()
    for at, merge in enumerate(document.tree):
        for branch in (merge.one, merge.other):
            if not 0 <= branch < leaves + at or branch in joined:
                return False
            joined.add(branch)
        if not math.isfinite(merge.height):
            return False
    return True


def _unreadable(name: str, cause: str) -> FormatError:
    return FormatError(cause=f"'{name}' is no comparison, matrix or plan of kinprint: {cause}")


def _valid(value: Any) -> Any:
    """Plain data with halves of characters spelled out, so that it can be written as UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_valid(key): _valid(each) for key, each in value.items()}
    return [_valid(each) for each in value] if isinstance(value, list) else value
