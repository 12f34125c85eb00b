"""A study as lines of a terminal: the words first, then short tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kinprint import text
from kinprint.errors import printable
from kinprint.report.numbers import cell_words
from kinprint.report.schema import StudyDocument
from kinprint.report.study import in_language, sample_note, statuses
from kinprint.report.translation import translated
from kinprint.report.views.terminal.layout import Line, lines
from kinprint.studies.results import Cell, Table
from kinprint.text import Message, Words
from kinprint.text.lines import WIDTH, columns_of, wrapped

_WIDEST = 26  # columns of a cell
_ROWS = 8  # of a table that is one of several
_MOST_ROWS = 16
_FIRST = 3  # columns that say what a row is about
_LAST = ("reason", "note", "sample", "group")
_WHO = ("role", "model_a", "layer_a", "model_b", "layer_b")  # never left out: they name the row


def study_lines(document: StudyDocument, language: str) -> Iterator[Line]:
    """The whole document, line by line."""

    def shown(words: Words | Message) -> str:
        said = words[language] if isinstance(words, Words) else words.say(language)
        return printable(said, 5000)

    study = document.study
    yield from lines(f"{shown(study.title)} ({study.code})")
    for label in document.labels:
        yield from lines(f"! {printable(translated(document, label, language), 1000)}", "  ")
    most = _MOST_ROWS if len(document.tables) == 1 else _ROWS
    for table in document.tables:
        yield Line()
        yield from lines(f"{shown(table.title)}:")
        yield from table_lines(in_language(document, table, language), most, language)
    if document.findings:
        yield Line()
    for finding in document.findings:
        yield from lines(f"- {shown(finding)}", "  ")
    yield Line()
    yield from lines(f"{text.say('report.study.cannot', language)}: {shown(study.cannot)}")
    note = sample_note(document)
    if note is not None:
        yield from lines(shown(note))
    if document.statuses:
        listed = ", ".join(f"{status} {count:,}" for status, count in statuses(document))
        yield from lines(f"{text.say('report.study.statuses', language)}: {listed}")


def table_lines(table: Table, most: int, language: str) -> Iterator[Line]:
    """As many columns and rows of a table as fit, and a line about what is left out."""
    if not table.rows:
        yield Line("  " + text.say("report.study.empty", language))
        return
    shown = table.rows[:most]
    kept = _columns(table, shown, language)
    grid = [[_text(table.columns[at], language) for at in kept]]
    grid += [[_text(row[at], language) for at in kept] for row in shown]
    widths = [max(columns_of(line[at]) for line in grid) for at in range(len(kept))]
    right = [_is_number(shown, at) for at in kept]
    for line in grid:
        parts = [
            _padded(cell, width, to_right)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ]
        yield Line("  " + "  ".join(parts).rstrip())
    rows, columns = len(table.rows) - len(shown), len(table.columns) - len(kept)
    if rows or columns:
        told = text.say("report.study.left-out", language, rows=rows, columns=columns)
        yield from (Line("  " + line) for line in wrapped(told, width=WIDTH - 2))


def _columns(table: Table, rows: Sequence[Sequence[Cell]], language: str) -> list[int]:
    """The columns that say most: what a row is, its numbers, its status if any is not ok."""
    used = [
        at for at in range(len(table.columns)) if any(row[at] not in (None, "") for row in rows)
    ]
    floats = [at for at in used if any(isinstance(row[at], float) for row in rows)]
    names = [at for at in used if at not in floats and table.columns[at] != "status"]
    alone = len(table.rows) == 1  # nothing tells it from others, and it needs a name all the same
    telling_apart = [at for at in names if alone or len({row[at] for row in table.rows}) > 1]
    who = [at for at in telling_apart if table.columns[at] in _WHO]
    first = who or [at for at in telling_apart if table.columns[at] not in _LAST][:_FIRST]
    status = [
        at
        for at in used
        if table.columns[at] == "status" and any(row[at] != "ok" for row in table.rows)
    ]
    bounds = [at for at in floats if table.columns[at].endswith(("_low", "_high"))]
    values = [at for at in floats if at not in bounds]
    order = dict.fromkeys((*first, *values, *status, *telling_apart, *names, *bounds))
    kept: list[int] = []
    room = WIDTH
    for at in order:
        width = 2 + max(
            columns_of(_text(value, language))
            for value in (table.columns[at], *(row[at] for row in rows))
        )
        if width <= room:
            kept.append(at)
            room -= width
    return sorted(kept)


def _text(value: Cell, language: str) -> str:
    """A value as wide as a column may be; numbers in letters that every terminal has."""
    shown = cell_words(value, language)
    if not isinstance(value, str):
        return shown.replace("−", "-").replace("–", "-")
    shown = printable(shown, 200)
    if columns_of(shown) <= _WIDEST:
        return shown
    share = 1.0 if " " in shown else 1 / 3  # names of tensors differ at both ends
    while columns_of(shown) >= _WIDEST:
        at = int((len(shown) - 1) * share)
        shown = shown[:at] + shown[at + 1 :]
    at = int(len(shown) * share)
    return f"{shown[:at]}…{shown[at:]}"


def _is_number(rows: Sequence[Sequence[Cell]], at: int) -> bool:
    return all(isinstance(row[at], int | float | None) for row in rows)


def _padded(cell: str, width: int, to_right: bool) -> str:
    gap = " " * (width - columns_of(cell))
    return gap + cell if to_right else cell + gap
