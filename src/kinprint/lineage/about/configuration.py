"""Two configurations side by side, field by field: shown, and never counted as evidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kinprint.model.geometry import geometry_of, text_parts
from kinprint.tables import read_table

_LONGEST = 120  # characters of a value; longer ones are cut


class FieldPlace(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a field stands in configurations of any kind: a row of `configuration.toml`.

    Attributes
    ----------
    name
        What the field is called.
    size
        The field of the model's geometry that knows it, which has all its spellings.
    keys
        Its names in config.json; a point leads inside.
    gguf
        Its key in a GGUF header, after the architecture's own name.
    """

    name: str
    size: str = ""
    keys: tuple[str, ...] = ()
    gguf: str = ""


class ConfigurationField(Struct, frozen=True):
    """A field of two configurations as text; None where a model does not say."""

    name: str
    a: str | None = None
    b: str | None = None


# Read once, since comparisons may run in threads: see `lineage/reading/levels.py`.
_FIELDS = msgspec.convert(
    read_table(Path(__file__).with_name("configuration.toml")), dict[str, list[FieldPlace]]
)


def shown_fields() -> tuple[FieldPlace, ...]:
    """All fields that are shown, in order."""
    return tuple(_FIELDS["row"])


def compare_configurations(
    a: tuple[Mapping[str, Any], Mapping[str, Any] | None],
    b: tuple[Mapping[str, Any], Mapping[str, Any] | None],
) -> tuple[ConfigurationField, ...]:
    """Fields that either model has; each is a configuration and a GGUF header's metadata."""
    first, second = fields_of(*a), fields_of(*b)
    names = [field.name for field in shown_fields() if field.name in {*first, *second}]
    return tuple(ConfigurationField(name, first.get(name), second.get(name)) for name in names)


def fields_of(config: Mapping[str, Any], metadata: Mapping[str, Any] | None) -> dict[str, str]:
    """What a model says of each field, as text."""
    sizes = geometry_of(config, metadata)
    parts = list(reversed(text_parts(config)))  # what the language model itself says comes first
    family = (metadata or {}).get("general.architecture")
    fields: dict[str, str] = {}
    for field in shown_fields():
        value = getattr(sizes, field.size) if field.size else None
        if value is None:
            inside = (_inside(part, key) for key in field.keys for part in parts)
            value = next((one for one in inside if one is not None), None)
        if value is None and field.gguf and metadata is not None and not config:
            value = metadata.get(f"{family}.{field.gguf}")
        if value is not None:
            fields[field.name] = as_text(value)
    return fields


def as_text(value: object) -> str:
    """A value of a configuration as people write it: 10000.0 and 10000 are the same."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    written = value if isinstance(value, str) else _json(value)
    return written if len(written) <= _LONGEST else written[: _LONGEST - 1] + "…"


def _json(value: object) -> str:
    try:
        return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return "…"


def _inside(part: Mapping[str, Any], key: str) -> Any:
    value: Any = part
    for word in key.split("."):
        value = value.get(word) if isinstance(value, Mapping) else None
    return value
