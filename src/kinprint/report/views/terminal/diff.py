"""A diff as lines of a terminal: the headline, what shows it, and what changed most."""

from __future__ import annotations

from collections.abc import Iterator

from kinprint import text
from kinprint.errors import printable
from kinprint.report import changes
from kinprint.report.schema import DiffDocument
from kinprint.report.translation import translated
from kinprint.report.views.terminal.comparison import NARROW, beyond_lines
from kinprint.report.views.terminal.layout import Line, Look, answer_look, lines
from kinprint.text.lines import columns_of, padded

_SHOWN = 8  # tensors in the table of a terminal
_MISSING = 5  # that were not compared
_NAME = 36  # columns of a tensor's name


def diff_lines(document: DiffDocument, language: str) -> Iterator[Line]:
    """The headline, the operations with their evidence, the map, and the largest changes."""
    look = answer_look(document.relation)
    yield from lines(printable(changes.summary(document, language), 2000), "", look, NARROW)
    for label in document.labels:
        yield from lines(translated(document, label, language), "", Look.WARNING, NARROW)
    yield Line()
    yield from lines(changes.totals_say(document, language), width=NARROW)
    for words, evidence in changes.evidence_of(document, language):
        yield from lines(printable(f"- {words}: {evidence}", 1000), "  ", width=NARROW)
    for said in changes.came_first(document, language):
        yield from lines(printable(said, 1000), "", Look.ASIDE, NARROW)
    for said in changes.map_lines(document, language):
        yield from lines(printable(f"- {said}", 1000), "  ", Look.ASIDE, NARROW)
    yield from _table(document, language)
    yield from _missing(document, language)
    if document.beyond is not None:
        yield from beyond_lines(document, document.beyond, language)
    for note in document.notes:
        said = printable(translated(document, note, language), 1000)
        yield from lines(f"- {said}", "  ", Look.ASIDE, NARROW)


def _table(document: DiffDocument, language: str) -> Iterator[Line]:
    top = changes.top_changes(document.tensors)
    if not top:
        return
    yield Line()
    head = [text.say(f"diff.column.{name}", language) for name in ("tensor", "relative", "changed")]
    numbers = "".join(" " * (11 - columns_of(name)) + name for name in head[1:])
    yield Line("  " + padded(head[0], _NAME) + numbers, Look.TITLE)
    for one in top[:_SHOWN]:
        assert one.relative is not None and one.changed is not None
        name = padded(_fitted(changes.tensor_name(one, language)), _NAME)
        size = "–" if one.relative.value is None else text.in_percent(one.relative.value, 2)
        share = text.in_percent(one.changed.value or 0, 1)
        yield Line(f"  {name}{size:>11}{share:>11}")
    more = len(top) - _SHOWN
    if more > 0:
        yield Line("  " + text.say("diff.more", language, count=more), Look.ASIDE)


def _fitted(name: str) -> str:
    """As much of a name as there is room for."""
    shown = printable(name, 200)
    while columns_of(shown) > _NAME - 1:
        shown = shown.removesuffix("…")[:-1] + "…"
    return shown


def _missing(document: DiffDocument, language: str) -> Iterator[Line]:
    rest = changes.not_compared(document, language)
    for name, why in rest[:_MISSING]:
        yield from lines(f"- {printable(name, 200)}: {why}", "  ", Look.ASIDE, NARROW)
    if len(rest) > _MISSING:
        more = text.say("diff.more-missing", language, count=len(rest) - _MISSING)
        yield Line("  " + more, Look.ASIDE)
