"""A study's result: its words, what was asked, all that a redrawing needs; the list of studies."""

from __future__ import annotations

from typing import Any, Self

from msgspec import UNSET, Struct, UnsetType

from kinprint.records import ModelRef
from kinprint.report.schema.common import Count, ReadPart, Translations
from kinprint.studies.charts import Chart
from kinprint.studies.results import Table
from kinprint.text import Words

STUDY_SCHEMA, STUDIES_SCHEMA = "kinprint.study/1", "kinprint.studies/1"


class StudyPart(Struct, frozen=True, kw_only=True):
    """Which study it is, and what it can and cannot show."""

    name: str
    code: str
    title: Words
    shows: Words
    cannot: Words


class SourcePart(Struct, frozen=True, kw_only=True):
    """One of the models that were read, pinned where its place has commits."""

    given: str
    name: str
    kind: str
    commit: str | None

    @classmethod
    def of(cls, ref: ModelRef) -> Self:
        """What a document says of the state of a model."""
        return cls(given=ref.given, name=ref.name, kind=ref.kind, commit=ref.commit or None)


class StudyAsked(Struct, frozen=True, kw_only=True):
    """What the user asked for; null means what the study does by itself.

    `rows` is how many rows of a matrix are sampled, null for all of them; `seed` chooses which.
    """

    layers: tuple[int, ...] | None
    roles: tuple[str, ...] | None
    measures: tuple[str, ...] | None
    rows: int | None
    seed: Count


class StudyDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=STUDY_SCHEMA):
    """A named experiment on some models, done.

    `facts` are the few numbers that sum it up, `findings` what came out in words; `statuses`
    counts the rows of all tables by status.
    """

    study: StudyPart
    models: tuple[str, ...]
    labels: tuple[str, ...]
    sources: tuple[SourcePart, ...]
    asked: StudyAsked | None
    findings: tuple[Words, ...]
    facts: dict[str, Any]
    statuses: dict[str, int]
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...]
    translations: Translations | UnsetType = UNSET
    read: ReadPart | None


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
