"""The page of a diff: what was done, what shows it, and every tensor that changed.

The grid of roles and layers comes as a table whose cells are shaded; the table of tensors can be
sorted. Texts from models and files are data: they are shown, escaped and cut.
"""

from __future__ import annotations

from collections.abc import Iterator

from markupsafe import Markup
from msgspec import Struct

from kinprint.errors import printable
from kinprint.report import changes
from kinprint.report.numbers import NOTHING, telling
from kinprint.report.schema import DiffDocument, TensorChangePart
from kinprint.report.translation import translated
from kinprint.report.views.html import frame, shapes
from kinprint.report.views.html.beyond import beyond_view
from kinprint.report.views.html.words import Say, speaker
from kinprint.text import in_percent, languages
from kinprint.titles import public_name, role_title

_ROWS = 400  # tensors in the table; the JSON has all
_NAME = 80
_SHADES = 9
_UNRELATED = 1.41  # the relative change of unrelated weights: the darkest shade


class TensorView(Struct, frozen=True):
    """A line of the table of tensors."""

    name: str
    shape: str
    formats: str
    changed: str
    relative: str
    size: float
    largest: str
    directions: str


def diff_page(document: DiffDocument, language: str = "en") -> str:
    """A diff as one HTML file in all languages; `language` shows first."""
    titles, bodies = {}, {}
    a, b = (printable(one.title, _NAME) for one in document.models)
    for one in languages():
        titles[one] = shapes.flat(speaker(one)("diff.title", a=a, b=b))
        bodies[one] = _body(document, one)
    running = " · ".join(filter(None, (f"{a} → {b}", document.read.date)))
    return frame.assemble(titles, bodies, language, running)


def _body(document: DiffDocument, language: str) -> Markup:
    say = speaker(language)
    a, b = (printable(one.title, _NAME) for one in document.models)
    top = changes.top_changes(document.tensors)
    rest = changes.not_compared(document, language)
    return frame.render(
        "diff.html.j2",
        language,
        title=say("diff.title", a=a, b=b),
        relation=document.relation,
        summary=changes.summary(document, language),
        totals=changes.totals_say(document, language),
        operations=changes.evidence_of(document, language),
        came_first=changes.came_first(document, language),
        hub=[one.hub for one in document.operations if one.hub],
        map=list(changes.map_lines(document, language)),
        grid=_grid(document, language),
        tensors=[_tensor(one, language) for one in top[:_ROWS]],
        more=max(len(top) - _ROWS, 0),
        missing=rest[:_ROWS],
        more_missing=max(len(rest) - _ROWS, 0),
        beyond=beyond_view(document, language, say),
        labels=[translated(document, one, language) for one in document.labels],
        notes=[translated(document, one, language) for one in document.notes],
        command=frame.whole(document.made.command),
        facts=list(_facts(document, say)),
        version=document.made.kinprint,
    )


def _facts(document: DiffDocument, say: Say) -> Iterator[tuple[Markup | str, str]]:
    for one in document.models:
        yield one.title, one.commit or public_name(one.name, one.title)
    yield say("page.again.versions"), document.made.versions


class GridView(Struct, frozen=True):
    """Roles by layer: shades from 0 to 9, and what a cell says."""

    layers: tuple[int, ...]
    rows: tuple[tuple[str, tuple[tuple[int | None, str], ...]], ...]


def _grid(document: DiffDocument, language: str) -> GridView | None:
    grid = changes.change_grid(document.tensors)
    if grid is None:
        return None
    rows = tuple(
        (role_title(role)[language], tuple(_cell(value) for value in values))
        for role, values in zip(grid.roles, grid.values, strict=True)
    )
    return GridView(grid.layers, rows)


def _cell(value: float | None) -> tuple[int | None, str]:
    if value is None:
        return None, NOTHING
    shade = min(_SHADES, round(_SHADES * (value / _UNRELATED) ** 0.5))
    return shade, in_percent(value, 1 if value < 1 else 0)


def _tensor(one: TensorChangePart, language: str) -> TensorView:
    formats = " → ".join(dict.fromkeys(filter(None, (one.a_format, one.b_format))))
    relative = one.relative.value if one.relative else None
    return TensorView(
        changes.tensor_name(one, language),
        " × ".join(map(str, one.shape)),
        formats,
        changes.share_says(one.changed),
        changes.share_says(one.relative),
        relative if relative is not None else 1e9,
        NOTHING if one.largest is None else telling(one.largest, 3),
        _directions(one),
    )


def _directions(one: TensorChangePart) -> str:
    found = one.directions
    if found is None:
        return NOTHING
    return str(found.rank) if found.rank is not None else f"≈ {found.effective:.0f}"
