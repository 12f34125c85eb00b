"""Markdown in which text from strangers is text: nothing in it becomes a link or a tag."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from kinprint import text
from kinprint.errors import printable
from kinprint.report.files import readme
from kinprint.report.numbers import cell_words
from kinprint.studies.results import Cell

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~$])")
_LEADING = re.compile(r"^(\s*)([#+\-=]|\d+[.)])")
_LONGEST = 80


def escaped(given: str, longest: int = 2000) -> str:
    """One line of text that means nothing but itself."""
    shown = printable(" ".join(given.split()), longest).replace("&", "&amp;")
    shown = _SPECIAL.sub(r"\\\1", shown)
    shown = re.sub(r"(?i)(https?|ftp)://", r"\1&#58;//", shown)
    shown = re.sub(r"(?i)\bwww\.", "www&#46;", shown).replace("@", "&#64;")
    return _LEADING.sub(_escape_leading, shown)


def table(columns: Sequence[str], rows: Sequence[Sequence[Cell]], language: str) -> list[str]:
    """Lines of a table; columns of numbers are set to the right."""
    numeric = [
        all(isinstance(row[at], int | float | None) for row in rows) and bool(rows)
        for at in range(len(columns))
    ]
    lines = [
        _line(escaped(name) for name in columns),
        _line("---:" if right else "---" for right in numeric),
    ]
    lines += [_line(cell(value, language) for value in row) for row in rows]
    return lines


def cell(value: Cell, language: str) -> str:
    """A value in a table."""
    shown = cell_words(value, language)
    return escaped(shown, _LONGEST) if isinstance(value, str) else shown


def other_languages(language: str) -> str:
    """Links to a README in all other languages."""
    others = (one for one in text.languages() if one != language)
    return " · ".join(f"[{text.say('page.frame.language', one)}]({readme(one)})" for one in others)


def _line(parts: Iterable[str]) -> str:
    return f"| {' | '.join(parts)} |"


def _escape_leading(found: re.Match[str]) -> str:
    mark = found[2]
    return f"{found[1]}\\{mark}" if len(mark) == 1 else f"{found[1]}{mark[:-1]}\\{mark[-1]}"
