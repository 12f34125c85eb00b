"""Two configurations side by side, field by field: shown, and never counted as evidence."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from kinprint.model.geometry import geometry_of, text_parts

_LONGEST = 120  # characters of a value; longer ones are cut


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of the table: where a field stands in configurations of any kind."""

    name: str
    size: str = ""
    keys: tuple[str, ...] = ()
    gguf: str = ""


@dataclass(frozen=True, slots=True)
class Setting:
    """A field of both configurations as text; None where a model does not say."""

    name: str
    a: str | None = None
    b: str | None = None


@functools.cache
def rows() -> tuple[Row, ...]:
    """All fields that are shown, in order."""
    text = Path(__file__).with_name("configuration.toml").read_bytes()
    return tuple(msgspec.toml.decode(text, type=dict[str, list[Row]])["row"])


def side_by_side(
    a: tuple[Mapping[str, Any], Mapping[str, Any] | None],
    b: tuple[Mapping[str, Any], Mapping[str, Any] | None],
) -> tuple[Setting, ...]:
    """Fields that either model tells; each is a configuration and a GGUF header's metadata."""
    mine, theirs = fields_of(*a), fields_of(*b)
    names = (row.name for row in rows() if row.name in mine or row.name in theirs)
    return tuple(Setting(name, mine.get(name), theirs.get(name)) for name in names)


def fields_of(config: Mapping[str, Any], metadata: Mapping[str, Any] | None) -> dict[str, str]:
    """What a model says of each field, as text."""
    sizes = geometry_of(config, metadata)
    parts = list(reversed(text_parts(config)))  # what the language model itself says comes first
    family = (metadata or {}).get("general.architecture")
    found: dict[str, str] = {}
    for row in rows():
        value = getattr(sizes, row.size) if row.size else None
        for key in row.keys if value is None else ():
            value = next((told for part in parts if (told := _inside(part, key)) is not None), None)
            if value is not None:
                break
        if value is None and row.gguf and metadata is not None and not config:
            value = metadata.get(f"{family}.{row.gguf}")
        if value is not None:
            found[row.name] = as_text(value)
    return found


def as_text(value: object) -> str:
    """A value of a configuration as people write it: 10000.0 and 10000 are the same."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    text = value if isinstance(value, str) else _json(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _json(value: object) -> str:
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return "…"


def _inside(part: Mapping[str, Any], key: str) -> Any:
    found: Any = part
    for word in key.split("."):
        found = found.get(word) if isinstance(found, Mapping) else None
    return found
