"""JSON Schemas of documents, made from the records that are the documents.

`python -m kinprint.report.schema.json_schema FOLDER` writes them and the tables of their README
anew; a test holds what is in the repository against what would be written.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import msgspec

from kinprint.report.schema import (
    COMPARE_SCHEMA,
    DIFF_SCHEMA,
    IDENTIFY_SCHEMA,
    INSPECT_SCHEMA,
    MATRIX_SCHEMA,
    PLAN_SCHEMA,
    READING_PLAN_SCHEMA,
    REPRODUCTION_SCHEMA,
    STUDIES_SCHEMA,
    STUDY_PLAN_SCHEMA,
    STUDY_SCHEMA,
    TREE_SCHEMA,
    UNMERGE_SCHEMA,
    ComparisonDocument,
    DiffDocument,
    IdentifyDocument,
    InspectionDocument,
    MatrixDocument,
    PlanDocument,
    ReadingPlanDocument,
    ReproductionDocument,
    StudiesDocument,
    StudyDocument,
    StudyPlanDocument,
    TreeDocument,
    UnmergeDocument,
)
from kinprint.tables import read_table
from kinprint.text import Words

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
KINDS: dict[str, tuple[type[msgspec.Struct], str]] = {
    COMPARE_SCHEMA: (ComparisonDocument, "Two models compared"),
    MATRIX_SCHEMA: (MatrixDocument, "All pairs of some models"),
    DIFF_SCHEMA: (DiffDocument, "What changed from one model to another"),
    PLAN_SCHEMA: (PlanDocument, "What a comparison would cost"),
    STUDY_SCHEMA: (StudyDocument, "A study, done"),
    UNMERGE_SCHEMA: (UnmergeDocument, "Which merge made a model"),
    IDENTIFY_SCHEMA: (IdentifyDocument, "What a model is built on"),
    TREE_SCHEMA: (TreeDocument, "The families of an atlas"),
    INSPECT_SCHEMA: (InspectionDocument, "What a model holds"),
    READING_PLAN_SCHEMA: (ReadingPlanDocument, "What reading tensors of a model would cost"),
    STUDY_PLAN_SCHEMA: (StudyPlanDocument, "What a study would cost"),
    REPRODUCTION_SCHEMA: (ReproductionDocument, "A public dispute's analyses, done again"),
    STUDIES_SCHEMA: (StudiesDocument, "All named studies"),
}
"""Every kind of document by the name of its schema, with a title."""
README = "README.md"
_MARK = "<!-- fields: written by python -m kinprint.report.schema.json_schema -->"


def file_name(schema: str) -> str:
    """The file that holds a schema: kinprint.compare/1 is in kinprint.compare-1.schema.json."""
    return f"{schema.replace('/', '-')}.schema.json"


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of one kind of document, with a description for every field."""
    kind, title = KINDS[name]
    (top,), definitions = msgspec.json.schema_components(
        (kind,), schema_hook=_schema_hook, ref_template="#/$defs/{name}"
    )
    words = field_words()
    records: dict[str, Any] = {}
    for record, definition in definitions.items():
        if "enum" in definition:
            continue
        definition["description"] = inspect.cleandoc(definition["description"])
        for field, shape in definition["properties"].items():
            definition["properties"][field] = _without_enums(shape, definitions)
            definition["properties"][field]["description"] = words[record][field]
        records[record] = definition
    return {
        "$schema": _DIALECT,
        "$id": f"urn:kinprint:{name.removeprefix('kinprint.').replace('/', ':')}",
        "title": title,
        **top,
        "$defs": records,
    }


def field_words() -> dict[str, dict[str, str]]:
    """What every field of every record says."""
    return read_table(Path(__file__).with_name("fields.toml"))


def files(readme: str) -> dict[str, bytes]:
    """All files of the folder by name; `readme` is what the README says before its tables."""
    found = {
        file_name(name): msgspec.json.format(msgspec.json.encode(schema_of(name)), indent=1) + b"\n"
        for name in KINDS
    }
    before = readme.partition(_MARK)[0]
    found[README] = (before + _MARK + "\n" + "\n".join(_tables()) + "\n").encode("utf-8")
    return found


def _tables() -> list[str]:
    """A table of fields for each record, documents first."""
    shown: dict[str, dict[str, Any]] = {}
    for name in KINDS:
        definitions = schema_of(name)["$defs"]
        top = KINDS[name][0].__name__
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
        inside = shape.get("additionalProperties")
        return f"object of {_type_in_words(inside)}" if inside else "object"
    return str(shape.get("type", "any"))


def _without_enums(shape: Any, definitions: dict[str, Any]) -> Any:
    """A schema in which lists of words stand where they are used: there are few of them."""
    if isinstance(shape, list):
        return [_without_enums(one, definitions) for one in shape]
    if not isinstance(shape, dict):
        return shape
    named = definitions.get(str(shape.get("$ref", "")).rpartition("/")[2], {})
    if "enum" in named:
        return {"enum": named["enum"]}
    return {key: _without_enums(value, definitions) for key, value in shape.items()}


def _schema_hook(kind: type) -> dict[str, Any]:
    if kind is not Words:
        raise NotImplementedError(kind)
    return {"type": "object", "additionalProperties": {"type": "string"}, "required": ["en"]}


def write(folder: Path) -> None:
    """Write all files of the folder anew; the README keeps what stands before its tables."""
    readme = folder / README
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    folder.mkdir(parents=True, exist_ok=True)
    for name, raw in files(text).items():
        (folder / name).write_bytes(raw)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
