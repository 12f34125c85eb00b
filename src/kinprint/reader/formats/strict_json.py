"""JSON read strictly: no key twice, and names that are safe to print."""

from __future__ import annotations

from typing import Any


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
