"""A study's result: its words, what was asked, and everything that a redrawing needs."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, Struct, UnsetType

from kinprint.report.schema.common import Count, ReadPart, Translations
from kinprint.studies.charts import Chart
from kinprint.studies.results import Table
from kinprint.text import Words

STUDY_SCHEMA = "kinprint.study/1"


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
