"""What a model is built on, as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from kinprint.errors import printable
from kinprint.report import identifying
from kinprint.report.schema import IdentifyDocument
from kinprint.report.translation import translated
from kinprint.report.views.terminal.comparison import NARROW
from kinprint.report.views.terminal.layout import Line, Look, lines

_INDENT = "     "


def identify_lines(document: IdentifyDocument, language: str) -> Iterator[Line]:
    """The headline, each parent with what links it, and what was searched."""
    headline = printable(identifying.summary(document, language), 2000)
    yield from lines(headline, "", Look.TITLE, NARROW)
    for label in document.labels:
        said = translated(document, label, language)
        yield from lines(printable(said, 1000), "", Look.WARNING, NARROW)
    for number, one in enumerate(document.parents, 1):
        yield Line()
        yield Line(f"  {number}. {printable(one.title, 200)}", Look.TITLE)
        for said in identifying.parent_says(document, one, language):
            for line in lines(printable(said, 1000), width=NARROW - len(_INDENT)):
                yield Line(_INDENT + line.text, line.look)
    yield Line()
    for said in identifying.sentences(document, language):
        yield from lines(printable(said, 2000), width=NARROW)
    for said in identifying.faults(document, language):
        yield from lines(printable(said, 1000), "", Look.WARNING, NARROW)
