"""A report as lines of a terminal, eighty columns wide: the words first, then short tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from kinprint.errors import printable
from kinprint.report import phrases
from kinprint.report.document import Report
from kinprint.report.numbers import telling
from kinprint.report.page import in_language, sample_note
from kinprint.studies.results import Cell, Table
from kinprint.text import Words

WIDTH = 80
_WIDEST = 26  # columns of a cell
_ROWS = 8  # of a table that is one of several
_MOST_ROWS = 16
_FIRST = 3  # columns that say what a row is about
_LAST = ("reason", "note", "sample", "group")
_WHO = ("role", "model_a", "layer_a", "model_b", "layer_b")  # never left out: they name the row


def lines(report: Report, language: str) -> Iterator[str]:
    """The whole report, line by line."""

    def say(words: Words) -> str:
        return printable(words[language], 5000)

    study, result = report.study, report.result
    yield from wrapped(f"{say(study.title)} ({study.code})")
    for label in result.labels:
        yield from wrapped(f"! {printable(label, 1000)}", "  ")
    most = _MOST_ROWS if len(result.tables) == 1 else _ROWS
    for table in result.tables:
        yield ""
        yield from wrapped(f"{say(table.title)}:")
        yield from table_lines(table, most, language)
    if result.findings:
        yield ""
    for finding in result.findings:
        yield from wrapped(f"- {say(finding)}", "  ")
    yield ""
    yield from wrapped(f"{say(phrases.CANNOT)}: {say(study.cannot)}")
    note = sample_note(report)
    if note is not None:
        yield from wrapped(say(note))
    if result.statuses:
        counts = sorted(result.statuses.items(), key=lambda pair: (pair[0] != "ok", pair[0]))
        listed = ", ".join(f"{status} {count:,}" for status, count in counts)
        yield from wrapped(f"{say(phrases.STATUSES)}: {listed}")


def table_lines(table: Table, most: int, language: str) -> Iterator[str]:
    """As many columns and rows of a table as fit, and a line about what is left out."""
    if not table.rows:
        yield "  " + (phrases.EMPTY[language])
        return
    table = in_language(table, language)
    shown = table.rows[:most]
    kept = _columns(table, shown)
    grid = [[_text(table.columns[at]) for at in kept]]
    grid += [[_text(row[at]) for at in kept] for row in shown]
    widths = [max(columns_of(line[at]) for line in grid) for at in range(len(kept))]
    right = [_is_number(table, shown, at) for at in kept]
    for line in grid:
        parts = [
            _padded(text, width, to_right)
            for text, width, to_right in zip(line, widths, right, strict=True)
        ]
        yield "  " + "  ".join(parts).rstrip()
    rows, columns = len(table.rows) - len(shown), len(table.columns) - len(kept)
    if rows or columns:
        template = phrases.LEFT_OUT[language]
        told = template.format(rows=rows, columns=columns)
        yield from ("  " + line for line in wrapped(told, width=WIDTH - 2))


def wrapped(text: str, indent: str = "", width: int = WIDTH) -> list[str]:
    """Text in lines of the terminal's width; Hangul takes two columns a letter."""
    found: list[str] = []
    line = ""
    for word in text.split(" "):
        tried = f"{line} {word}" if line else word
        if line.strip() and columns_of(tried) > width:
            found.append(line)
            tried = indent + word
        line = tried
        while columns_of(line) > width:
            cut = next(at for at in range(len(line), 0, -1) if columns_of(line[:at]) <= width)
            found.append(line[:cut])
            line = indent + line[cut:]
    return [*found, line]


def columns_of(text: str) -> int:
    """How many columns of a terminal some text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def paragraph(text: str, indent: str) -> str:
    """Text under a heading, for what is written about a study."""
    return textwrap.indent("\n".join(wrapped(text, width=WIDTH - len(indent))), indent)


def _columns(table: Table, rows: Sequence[Sequence[Cell]]) -> list[int]:
    """The columns that say most: what a row is, its numbers, its status if any is not ok."""
    used = [
        at for at in range(len(table.columns)) if any(row[at] not in (None, "") for row in rows)
    ]
    floats = [at for at in used if any(isinstance(row[at], float) for row in rows)]
    names = [at for at in used if at not in floats and table.columns[at] != "status"]
    telling_apart = [at for at in names if len({row[at] for row in table.rows}) > 1]
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
            columns_of(_text(value)) for value in (table.columns[at], *(row[at] for row in rows))
        )
        if width <= room:
            kept.append(at)
            room -= width
    return sorted(kept)


def _text(value: Cell) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return telling(value, 4).replace("−", "-").replace("–", "-")
    text = printable(str(value), 200)
    if columns_of(text) <= _WIDEST:
        return text
    while columns_of(text) >= _WIDEST:  # names of tensors differ at both ends
        middle = len(text) // 3
        text = text[:middle] + text[middle + 1 :]
    return f"{text[: len(text) // 3]}…{text[len(text) // 3 :]}"


def _is_number(table: Table, rows: Sequence[Sequence[Cell]], at: int) -> bool:
    return all(isinstance(row[at], int | float | None) for row in rows)


def _padded(text: str, width: int, to_right: bool) -> str:
    gap = " " * (width - columns_of(text))
    return gap + text if to_right else text + gap
