"""The README of a study's folder: what it shows and cannot show, before any number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kinprint import text
from kinprint.report.schema import StudyDocument
from kinprint.report.study import in_language, sample_note, statuses
from kinprint.report.translation import translated
from kinprint.report.views.markdown.escape import escaped, other_languages, table
from kinprint.studies.results import Cell, Fact, Table
from kinprint.text import Words

ROWS = 12  # of a table are shown; the file has all of them
_FACTS, _DEPTH = 16, 2


class Names(Struct, frozen=True):
    """What the files of a report are called, seen from its README."""

    data: str
    sheets: Mapping[str, str]
    pictures: Mapping[str, str]


def page(document: StudyDocument, language: str, names: Names) -> str:
    """The README in one language."""

    def say(key: str, **fields: object) -> str:
        return text.say(key, language, **fields)

    def quote(words: Words) -> str:
        return escaped(words[language])

    study = document.study
    lines = [f"# {quote(study.title)}", ""]
    lines += [f"**{escaped(translated(document, one, language))}**\n" for one in document.labels]
    lines += [other_languages(language), ""]
    lines += _models(document, say("report.models"))
    lines += [f"## {say('report.study.shows')}", "", quote(study.shows), ""]
    lines += [f"## {say('report.study.cannot')}", "", quote(study.cannot), ""]
    lines += [f"## {say('report.study.findings')}", ""]
    lines += [f"- {quote(finding)}" for finding in document.findings]
    lines += ["", say("report.study.no-verdict"), ""]
    if document.charts:
        lines += [f"## {say('report.study.pictures')}", ""]
        for chart in document.charts:
            lines += [f"![{quote(chart.title)}]({names.pictures[chart.name]})", ""]
    facts = _flat(document.facts)[:_FACTS]
    if facts:
        head = say("report.column.name"), say("report.column.value")
        lines += [f"## {say('report.study.numbers')}", "", *table(head, facts, language), ""]
    if document.tables:
        lines += [f"## {say('report.study.tables')}", ""]
        for one in document.tables:
            shown = _table(in_language(document, one, language), language, names.sheets[one.name])
            lines += [f"### {quote(one.title)}", "", *shown, ""]
    rows = statuses(document)
    if rows:
        head = say("report.column.status"), say("report.column.rows")
        lines += [f"## {say('report.study.statuses')}", "", *table(head, rows, language), ""]
    note = sample_note(document)
    lines += [note.say(language), ""] if note is not None else []
    lines += [say("report.data", file=names.data, link=names.data), ""]
    return "\n".join(lines)


def _models(document: StudyDocument, title: str) -> list[str]:
    pinned = {one.name: one.commit for one in document.sources}
    if document.sources:
        named = [
            escaped(name) + (f" ({escaped(commit[:12])})" if commit else "")
            for name, commit in pinned.items()
        ]
    else:
        named = [escaped(name) for name in document.models]
    return [f"{title}: {', '.join(named)}", ""] if named else []


def _table(one: Table, language: str, link: str) -> list[str]:
    if not one.rows:
        return [text.say("report.study.empty", language)]
    shown = one.rows[:ROWS]
    key = "report.study.shortened" if len(one.rows) > ROWS else "report.study.whole"
    said = text.say(
        key, language, shown=len(shown), total=len(one.rows), file=escaped(link), link=link
    )
    return [*table(one.columns, shown, language), "", said]


def _flat(facts: Mapping[str, Fact], before: str = "") -> list[tuple[str, Cell]]:
    """Facts that are one value, inner ones with the names of what they lie in."""
    found: list[tuple[str, Cell]] = []
    for name, value in facts.items():
        if isinstance(value, dict):
            if before.count(", ") < _DEPTH - 1:
                found += _flat(value, f"{before}{name}, ")
        elif not isinstance(value, Sequence) or isinstance(value, str):
            found.append((f"{before}{name}", value))
    return found
