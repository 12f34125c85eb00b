"""JSON Schemas of documents, made from the records that are the documents.

`python -m kinprint.report.schemas FOLDER` writes them and the tables of their README anew; a
test holds what is in the repository against what would be written.
"""

from __future__ import annotations

import inspect
import sys
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from kinprint.report.documents import (
    COMPARE_SCHEMA,
    MATRIX_SCHEMA,
    PLAN_SCHEMA,
    ComparisonDocument,
    MatrixDocument,
    PlanDocument,
)

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TITLES = {
    COMPARE_SCHEMA: "Two models compared",
    MATRIX_SCHEMA: "All pairs of some models",
    PLAN_SCHEMA: "What a comparison would cost",
}
_KINDS: dict[str, type[msgspec.Struct]] = {
    COMPARE_SCHEMA: ComparisonDocument,
    MATRIX_SCHEMA: MatrixDocument,
    PLAN_SCHEMA: PlanDocument,
}
README = "README.md"
_MARK = "<!-- fields: written by python -m kinprint.report.schemas -->"


def file_name(schema: str) -> str:
    """The file that holds a schema: kinprint.compare/1 is in kinprint.compare-1.schema.json."""
    return f"{schema.replace('/', '-')}.schema.json"


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of one kind of document, with a description for every field."""
    found = msgspec.json.schema(_KINDS[name])
    words = field_words()
    for title, definition in found["$defs"].items():
        definition["description"] = inspect.cleandoc(definition["description"])
        for field, shape in definition["properties"].items():
            shape["description"] = words[title][field]
    return {
        "$schema": _DIALECT,
        "$id": f"urn:kinprint:{name.removeprefix('kinprint.').replace('/', ':')}",
        "title": _TITLES[name],
        **found,
    }


def field_words() -> dict[str, dict[str, str]]:
    """What every field of every record says."""
    text = Path(__file__).with_name("document_words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def files(readme: str) -> dict[str, bytes]:
    """All files of the folder by name; `readme` is what the README says before its tables."""
    found = {
        file_name(name): msgspec.json.format(msgspec.json.encode(schema_of(name)), indent=1) + b"\n"
        for name in _KINDS
    }
    before = readme.partition(_MARK)[0]
    found[README] = (before + _MARK + "\n" + "\n".join(_tables()) + "\n").encode("utf-8")
    return found


def _tables() -> list[str]:
    """A table of fields for each record, documents first."""
    shown: dict[str, dict[str, Any]] = {}
    for name in _KINDS:
        definitions = schema_of(name)["$defs"]
        top = _KINDS[name].__name__
        shown |= {each: definitions[each] for each in (top, *definitions) if each not in shown}
    lines: list[str] = []
    for title, definition in shown.items():
        lines += ["", f"### {title}", "", definition["description"], "", "| field | type | |"]
        lines.append("|---|---|---|")
        lines += [
            f"| `{field}` | {_type_in_words(shape)} | {shape['description']} |"
            for field, shape in definition["properties"].items()
        ]
    return lines


def _type_in_words(shape: dict[str, Any]) -> str:
    if "$ref" in shape:
        return str(shape["$ref"]).rpartition("/")[2]
    if "anyOf" in shape:
        return " or ".join(_type_in_words(one) for one in shape["anyOf"])
    if "enum" in shape:
        return ", ".join(f"`{one}`" for one in shape["enum"])
    if shape.get("type") == "array":
        inside = shape.get("items") or shape["prefixItems"][0]
        return f"list of {_type_in_words(inside)}"
    if shape.get("type") == "object":
        return f"object of {_type_in_words(shape['additionalProperties'])}"
    return str(shape.get("type", "any"))


def write(folder: Path) -> None:
    """Write all files of the folder anew; the README keeps what stands before its tables."""
    readme = folder / README
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in files(text).items():
        (folder / name).write_bytes(raw)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
