"""The README of a study's folder: what it shows and cannot show, before any number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from kinprint.report import phrases
from kinprint.report.document import Report
from kinprint.report.markdown import escaped, table
from kinprint.studies.charts import Chart
from kinprint.studies.results import Cell, Fact, Table
from kinprint.text import Words

ROWS = 12  # of a table are shown; the file has all of them
_FACTS, _DEPTH = 16, 2


@dataclass(frozen=True, slots=True)
class Names:
    """What the files of a report are called, seen from its README."""

    data: str
    sheets: Mapping[str, str]
    pictures: Mapping[str, str]


def page(report: Report, language: str, names: Names) -> str:
    """The README in one language."""

    def say(words: Words, **values: object) -> str:
        text = words[language]
        return text.format(**values) if values else text

    def quote(words: Words) -> str:
        return escaped(words[language])

    study, result = report.study, report.result
    lines = [f"# {quote(study.title)}", ""]
    lines += [f"**{escaped(label)}**\n" for label in result.labels]
    lines += [say(phrases.OTHER_LANGUAGE), ""]
    lines += _models(report, say(phrases.MODELS))
    for title, words in ((phrases.SHOWS, study.shows), (phrases.CANNOT, study.cannot)):
        lines += [f"## {say(title)}", "", quote(words), ""]
    lines += [f"## {say(phrases.FINDINGS)}", ""]
    lines += [f"- {quote(finding)}" for finding in result.findings]
    lines += ["", say(phrases.NO_VERDICT), ""]
    if result.charts:
        lines += [f"## {say(phrases.PICTURES)}", ""]
        lines += [line for chart in result.charts for line in _picture(chart, language, names)]
    facts = _flat(result.facts)[:_FACTS]
    if facts:
        lines += [f"## {say(phrases.NUMBERS)}", ""]
        lines += [*table((say(phrases.NAME), say(phrases.VALUE)), facts, language), ""]
    if result.tables:
        lines += [f"## {say(phrases.TABLES)}", ""]
        for one in result.tables:
            lines += [f"### {quote(one.title)}", "", *_table(one, language, names), ""]
    if result.statuses:
        rows = sorted(result.statuses.items(), key=lambda pair: (pair[0] != "ok", pair[0]))
        lines += [f"## {say(phrases.STATUSES)}", ""]
        lines += [*table((say(phrases.STATUS), say(phrases.ROWS)), rows, language), ""]
    note = sample_note(report)
    lines += [say(note), ""] if note is not None else []
    lines += [say(phrases.DATA, file=names.data, link=names.data), ""]
    return "\n".join(lines)


def sample_note(report: Report) -> Words | None:
    """How matrices were sampled, where the tables say that any were."""
    asked = report.asked
    samples = [
        value
        for one in report.result.tables
        if "sample" in one.columns
        for value in one.column("sample")
        if value
    ]
    if asked is None or not samples:
        return None
    if asked.rows is None:
        return phrases.WHOLE_SAMPLE
    return phrases.SAMPLE.format(rows=asked.rows, seed=asked.seed)


def _models(report: Report, title: str) -> list[str]:
    pinned = {one.name: one.commit for one in report.sources}
    if report.sources:
        named = [
            escaped(name) + (f" ({escaped(commit[:12])})" if commit else "")
            for name, commit in pinned.items()
        ]
    else:
        named = [escaped(name) for name in report.result.models]
    return [f"{title}: {', '.join(named)}", ""] if named else []


def _picture(chart: Chart, language: str, names: Names) -> list[str]:
    title = escaped(chart.title[language])
    return [f"![{title}]({names.pictures[chart.name]})", ""]


def in_language(one: Table, language: str) -> Table:
    """A table whose texts are there twice, with those of one language; the file has both."""
    other = "_en" if language == "ko" else "_ko"
    kept = [at for at, name in enumerate(one.columns) if not name.endswith(other)]
    columns = tuple(one.columns[at].removesuffix(f"_{language}") for at in kept)
    return replace(
        one, columns=columns, rows=tuple(tuple(row[at] for at in kept) for row in one.rows)
    )


def _table(one: Table, language: str, names: Names) -> list[str]:
    link = names.sheets[one.name]
    one = in_language(one, language)
    if not one.rows:
        return [phrases.EMPTY[language]]
    shown = one.rows[:ROWS]
    words = phrases.SHORTENED if len(one.rows) > ROWS else phrases.WHOLE
    told = words[language]
    told = told.format(shown=len(shown), total=len(one.rows), file=escaped(link), link=link)
    return [*table(one.columns, shown, language), "", told]


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
