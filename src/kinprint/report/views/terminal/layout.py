"""Lines of a terminal and how they look."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct

from kinprint.records import Relation
from kinprint.report.relations import SIGNS
from kinprint.text.lines import WIDTH, wrapped


class Look(StrEnum):
    """How a line that is no plain text looks, in the words of the library that prints it."""

    PLAIN = ""
    ASIDE = "dim"
    TITLE = "bold"
    WARNING = "bold yellow"


class Line(Struct, frozen=True):
    """A line and how it looks where there are colours."""

    text: str = ""
    look: str = Look.PLAIN

    def __str__(self) -> str:
        return self.text


def answer_look(relation: Relation) -> str:
    """How the sentence looks that gives the answer."""
    return f"bold {SIGNS[relation].terminal}"


def lines(
    text: str, indent: str = "", look: str = Look.PLAIN, width: int = WIDTH
) -> Iterator[Line]:
    """Text in lines of a width, all of one look."""
    for line in wrapped(text, indent, width):
        yield Line(line, look)


def paragraph(text: str, indent: str) -> str:
    """Text under a heading, for what is written about a study."""
    return textwrap.indent("\n".join(wrapped(text, width=WIDTH - len(indent))), indent)
