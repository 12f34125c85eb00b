"""The list of studies: what each compares, and how many models it takes."""

from __future__ import annotations

from msgspec import Struct

from kinprint.report.schema.common import Count
from kinprint.text import Words

STUDIES_SCHEMA = "kinprint.studies/1"


class ModelCount(Struct, frozen=True, kw_only=True):
    """How many models a study takes; `most` is null where there is no limit."""

    least: Count
    most: Count | None


class StudyEntry(Struct, frozen=True, kw_only=True):
    """One named study; texts by language."""

    name: str
    code: str
    title: Words
    shows: Words
    cannot: Words
    models: ModelCount
    roles: tuple[str, ...]
    layers: tuple[int, ...]
    measures: tuple[str, ...]
    vocabulary: bool


class StudiesDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=STUDIES_SCHEMA):
    """All named studies."""

    studies: tuple[StudyEntry, ...]
