"""Text in lines of a terminal, where letters of some languages take two columns."""

from __future__ import annotations

import re
import unicodedata

WIDTH = 80
_BREAK = re.compile(r"(?<![<≤>]) (?!%)")  # a number stays with what is said of it


def columns_of(text: str) -> int:
    """How many columns of a terminal some text takes."""
    if text.isascii():
        return len(text)
    return sum(map(_columns, text))


def wrapped(text: str, indent: str = "", width: int = WIDTH) -> list[str]:
    """Text in lines of a width; `indent` begins all lines but the first."""
    found: list[str] = []
    line = ""
    for word in _BREAK.split(text):
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


def padded(text: str, width: int) -> str:
    """Text with blanks up to a number of columns."""
    return text + " " * (width - columns_of(text))


def _columns(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
