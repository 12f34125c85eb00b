"""The page of a merge: which it was, what proves it, the recipe, and weights by role and layer.

Texts from models and files are data: they are shown, escaped and cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape
from msgspec import Struct

from kinprint.errors import printable
from kinprint.report import merging
from kinprint.report.numbers import NOTHING
from kinprint.report.schema import MergeGroup, MergeWeight, UnmergeDocument
from kinprint.report.translation import translated
from kinprint.report.views.html import frame, shapes
from kinprint.report.views.html.words import NAME, Say, cut, kept, speaker
from kinprint.text import in_percent, languages
from kinprint.titles import public_name, role_title

_ROWS = 400  # tensors in a list, and layers; the JSON has all
_RECIPE = 200_000  # letters


class WeightTable(Struct, frozen=True):
    """The nearest mixture, a row for each role or layer, a column for each source."""

    key: str
    title: Markup
    head: Markup
    rows: tuple[tuple[str, tuple[str, ...], str], ...]


def unmerge_page(document: UnmergeDocument, language: str = "en") -> str:
    """A merge as one HTML file in all languages; `language` shows first."""
    child = printable(document.child.title, NAME)
    titles, bodies = {}, {}
    for one in languages():
        titles[one] = shapes.flat(speaker(one)("unmerge.title", child=child))
        bodies[one] = _body(document, one)
    running = " · ".join(filter(None, (child, document.read.date)))
    return frame.assemble(titles, bodies, language, running)


def _body(document: UnmergeDocument, language: str) -> Markup:
    say = speaker(language)
    rest = merging.unmeasured(document, language)
    return frame.render(
        "unmerge.html.j2",
        language,
        title=say("unmerge.title", child=kept(document.child.title)),
        summary=merging.summary(document, language),
        sentences=list(merging.sentences(document, language)),
        weights=[(name, _weight(one)) for name, one in merging.weight_rows(document)],
        recipe=_recipe(document),
        sources=[cut(printable(one.title, NAME)) for one in document.sources],
        tables=list(_tables(document, language, say)),
        missing=rest[:_ROWS],
        more_missing=max(len(rest) - _ROWS, 0),
        labels=[translated(document, one, language) for one in document.labels],
        command=frame.whole(document.made.command),
        facts=list(_facts(document, say)),
        version=document.made.kinprint,
    )


def _recipe(document: UnmergeDocument) -> Markup:
    """The recipe line by line, without the folders of whoever made the page."""
    yaml = "" if document.recipe is None else document.recipe.yaml[:_RECIPE]
    for one in sorted(document.sources, key=lambda one: -len(one.given)):
        yaml = yaml.replace(one.given, public_name(one.given, one.title))
    return Markup("\n").join(escape(printable(line, 2000)) for line in yaml.splitlines())


def _tables(document: UnmergeDocument, language: str, say: Say) -> Iterator[WeightTable]:
    for key, groups in (("role", document.roles), ("layer", document.layers)):
        rows = tuple(_row(one, len(document.sources), language) for one in groups[:_ROWS])
        if rows:
            head = say("diff.column.role") if key == "role" else say("report.parts.layer")
            yield WeightTable(key, say(f"unmerge.table.{key}s"), head, rows)


def _row(one: MergeGroup, count: int, language: str) -> tuple[str, tuple[str, ...], str]:
    name = f"{one.layer}" if one.role is None else role_title(one.role.partition(":")[0])[language]
    left = NOTHING if one.residual is None else in_percent(one.residual, 2)
    return printable(name, NAME), _cells(one.weights, count), left


def _cells(weights: Sequence[MergeWeight], count: int) -> tuple[str, ...]:
    """A cell for each source; those of which only the sum is known share it."""
    cells = [NOTHING] * count
    for one in weights:
        for at in one.sources:
            shared = "" if len(one.sources) == 1 else " Σ"
            cells[at] = _weight(one) + shared
    return tuple(cells)


def _weight(one: MergeWeight) -> str:
    value, between = merging.weight_words(one)
    return f"{value} ({between})"


def _facts(document: UnmergeDocument, say: Say) -> Iterator[tuple[Markup | str, str]]:
    for one in (document.child, *document.sources):
        yield one.title, one.commit or public_name(one.name, one.title)
    yield say("page.again.versions"), document.made.versions
