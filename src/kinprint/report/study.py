"""A study as all views show it: tables in one language, how matrices were sampled, statuses."""

from __future__ import annotations

from msgspec.structs import replace

from kinprint import text
from kinprint.report.schema import StudyDocument
from kinprint.report.translation import Translatable, translated
from kinprint.studies.results import Cell, Table

_SENTENCES = ("reason", "note")


def in_language(document: Translatable, one: Table, language: str) -> Table:
    """A table in a language: sentences in it, and of texts that are there in all, those in it."""
    others = tuple(f"_{other}" for other in text.languages() if other != language)
    kept = [at for at, name in enumerate(one.columns) if not name.endswith(others)]
    columns = tuple(one.columns[at].removesuffix(f"_{language}") for at in kept)

    def cell(at: int, value: Cell) -> Cell:
        if one.columns[at] in _SENTENCES and isinstance(value, str):
            return translated(document, value, language)
        return value

    rows = tuple(tuple(cell(at, row[at]) for at in kept) for row in one.rows)
    return replace(one, columns=columns, rows=rows)


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
