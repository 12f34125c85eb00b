"""A merge as lines of a terminal: the headline, its proof, weights, and the recipe."""

from __future__ import annotations

from collections.abc import Iterator

from kinprint import text
from kinprint.errors import printable
from kinprint.report import merging
from kinprint.report.schema import UnmergeDocument
from kinprint.report.translation import translated
from kinprint.report.views.terminal.comparison import NARROW
from kinprint.report.views.terminal.layout import Line, Look, lines
from kinprint.text.lines import columns_of, padded

_SHOWN = 5  # tensors that could not be measured


def unmerge_lines(document: UnmergeDocument, language: str) -> Iterator[Line]:
    """The headline, what proves it, the weights of the whole, the recipe, and what is missing."""
    headline = printable(merging.summary(document, language), 2000)
    yield from lines(headline, "", Look.TITLE, NARROW)
    for label in document.labels:
        yield from lines(translated(document, label, language), "", Look.WARNING, NARROW)
    for said in merging.sentences(document, language):
        yield from lines(printable(said, 2000), width=NARROW)
    yield from _weights(document, language)
    if document.recipe is not None:
        yield Line()
        for line in document.recipe.yaml.rstrip().splitlines():
            yield Line(f"  {printable(line, 1000)}")
        yield Line()
    rest = merging.unmeasured(document, language)
    for name, why in rest[:_SHOWN]:
        yield from lines(printable(f"- {name}: {why}", 1000), "  ", Look.ASIDE, NARROW)
    if len(rest) > _SHOWN:
        more = text.say("unmerge.more", language, count=len(rest) - _SHOWN)
        yield Line(f"  {more}", Look.ASIDE)


def _weights(document: UnmergeDocument, language: str) -> Iterator[Line]:
    rows = [(printable(name, 200), one) for name, one in merging.weight_rows(document)]
    if not rows:
        return
    head = text.say("unmerge.column.model", language)
    width = 2 + max(columns_of(name) for name in (head, *(name for name, _ in rows)))
    weight, interval = (
        text.say(f"unmerge.column.{one}", language) for one in ("weight", "interval")
    )
    yield Line()
    yield Line(text.say("unmerge.table.weights", language), Look.TITLE)
    yield Line("  " + padded(head, width) + padded(weight, 10) + interval, Look.TITLE)
    for name, one in rows:
        value, between = merging.weight_words(one)
        yield Line(f"  {padded(name, width)}{padded(value, 10)}{between}")
