"""A study as all views show it: tables in one language, how matrices were sampled, statuses."""

from __future__ import annotations

from dataclasses import replace

from kinprint import text
from kinprint.report.schema import StudyDocument
from kinprint.report.translation import Translatable, translated
from kinprint.studies.results import Cell, Table
from kinprint.text.catalogue import FIRST

_SENTENCES = ("reason", "note")


def in_language(document: Translatable, one: Table, language: str) -> Table:
    """A table in a language: sentences in it, and of texts that are there in all, those in it."""
    named = ((at, _name(one, name, language)) for at, name in enumerate(one.columns))
    kept = {at: name for at, name in named if name}

    def cell(at: int, value: Cell) -> Cell:
        if one.columns[at] in _SENTENCES and isinstance(value, str):
            return translated(document, value, language)
        return value

    rows = tuple(tuple(cell(at, row[at]) for at in kept) for row in one.rows)
    return replace(one, columns=tuple(kept.values()), rows=rows)


def _name(one: Table, column: str, language: str) -> str:
    """What a column is called in a language; empty where it is that of another language.

    `why_en` and `why_ko` are one column, `why`. English stands in for a language without one.
    """
    stem, _, code = column.rpartition("_")
    if code not in text.languages():
        return column
    spoken = language if f"{stem}_{language}" in one.columns else FIRST
    return stem if code == spoken else ""


def sample_note(document: StudyDocument) -> text.Message | None:
    """How matrices were sampled, where the tables say that any were."""
    asked = document.asked
    samples = [
        value
        for one in document.tables
        if "sample" in one.columns
        for value in one.column("sample")
        if value
    ]
    if asked is None or not samples:
        return None
    if asked.rows is None:
        return text.message("report.study.whole-sample")
    return text.message("report.study.sample", rows=asked.rows, seed=asked.seed)


def statuses(document: StudyDocument) -> list[tuple[str, int]]:
    """How many rows of all tables have which status, good ones first."""
    return sorted(document.statuses.items(), key=lambda pair: (pair[0] != "ok", pair[0]))
