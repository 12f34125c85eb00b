"""JSON of files: small ones such as config.json read leniently, indices and headers strictly."""

from __future__ import annotations

import json
from typing import Any

from kinprint import text
from kinprint.errors import BadConfig


def parse_object(path: str, raw: bytes) -> dict[str, Any]:
    """The JSON object in `raw`, read as leniently as Python reads and writes it.

    Configurations in the field begin with byte order marks and hold Infinity.
    """
    try:
        found = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        cause = text.message("cause.json.broken", detail=str(error))
        raise BadConfig(file=path, cause=cause) from None
    if not isinstance(found, dict):
        raise BadConfig(file=path, cause=text.message("cause.json.no-object"))
    return found


class DuplicateKeyError(Exception):
    """The same key stands twice in one JSON object; the message is the key."""


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, unless it has a key twice: readers differ on which of the two counts."""
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise DuplicateKeyError(key)
            seen.add(key)
    return made


def quoted(name: str) -> str:
    """A name as a message may quote it: a hostile one is long or cannot be printed."""
    return repr(name if len(name) <= 120 else name[:117] + "…")
