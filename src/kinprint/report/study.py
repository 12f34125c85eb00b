"""A study as all views show it: tables in one language, how matrices were sampled, statuses."""

from __future__ import annotations

from dataclasses import replace

from kinprint import text
from kinprint.report.schema import StudyDocument
from kinprint.studies.results import Table


def in_language(one: Table, language: str) -> Table:
    """A table whose texts are there in every language, with those of one; the file has all."""
    others = tuple(f"_{other}" for other in text.languages() if other != language)
    kept = [at for at, name in enumerate(one.columns) if not name.endswith(others)]
    columns = tuple(one.columns[at].removesuffix(f"_{language}") for at in kept)
    return replace(
        one, columns=columns, rows=tuple(tuple(row[at] for at in kept) for row in one.rows)
    )


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
