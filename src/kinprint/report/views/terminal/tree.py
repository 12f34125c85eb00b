"""Families of an atlas, as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from kinprint import text
from kinprint.errors import printable
from kinprint.report import trees
from kinprint.report.schema import TreeDocument
from kinprint.report.translation import translated
from kinprint.report.trees import Certainty, Row
from kinprint.report.views.terminal.comparison import NARROW
from kinprint.report.views.terminal.layout import Line, Look, lines

_ARROWS = {Certainty.TOLD: "→", Certainty.LIKELY: "⇢", Certainty.OPEN: "?"}
_NAMED = 12  # models without a link that are named


def tree_lines(document: TreeDocument, language: str) -> Iterator[Line]:
    """The headline, each family as a tree, and what was searched."""
    headline = printable(trees.summary(document, language), 2000)
    yield from lines(headline, "", Look.TITLE, NARROW)
    for label in document.labels:
        said = translated(document, label, language)
        yield from lines(printable(said, 1000), "", Look.WARNING, NARROW)
    for number, family in enumerate(document.families, 1):
        yield Line()
        said = text.say("tree.family", language, number=number, count=len(family))
        yield Line(f"  {said}", Look.ASIDE)
        for row in trees.rows_of(document, family):
            yield _line(document, row, language)
    alone = trees.unlinked_models(document)
    if alone:
        yield Line()
        names = ", ".join(document.models[at].title for at in alone[:_NAMED])
        more = len(alone) - _NAMED
        names += text.say("identify.more", language, count=more) if more > 0 else ""
        yield from lines(
            printable(text.say("tree.alone", language, names=names), 2000), "", width=NARROW
        )
    yield Line()
    if document.edges:
        arrows = {str(one): arrow for one, arrow in _ARROWS.items()}
        yield from lines(text.say("tree.arrows", language, **arrows), "", Look.ASIDE, NARROW)
    for said in trees.sentences(document, language):
        yield from lines(printable(said, 2000), width=NARROW)
    for one in document.failed:
        a, b = (document.models[at].title for at in (one.a, one.b))
        cause = translated(document, one.reason, language)
        said = text.say("tree.failed", language, a=a, b=b, cause=cause)
        yield from lines(printable(said, 1000), "", Look.WARNING, NARROW)
    for fault in document.left_out:
        said = translated(document, fault.reason, language)
        yield from lines(printable(said, 1000), "", Look.WARNING, NARROW)


def _line(document: TreeDocument, row: Row, language: str) -> Line:
    name = printable(document.models[row.model].title, 200)
    line = printable(trees.row_line(document, row, language), 500)
    said = f"{name}  ({line})" if line else name
    others = printable(trees.other_edges(document, row, language), 500)
    said = f"{said}, {others}" if others else said
    if row.edge is None:
        return Line(f"  {said}", Look.TITLE)
    before = "".join("    " if last else "│   " for last in row.last[:-1])
    branch = "└" if row.last[-1] else "├"
    return Line(f"  {before}{branch}{_ARROWS[trees.certainty(row.edge)]} {said}")
