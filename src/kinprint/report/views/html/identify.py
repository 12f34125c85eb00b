"""The page of a search: what a model is built on, what links each parent, and who else was asked.

Texts from models and files are data: they are shown, escaped and cut.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from markupsafe import Markup
from msgspec import Struct

from kinprint.errors import printable
from kinprint.records import Relation
from kinprint.report import identifying
from kinprint.report.numbers import NOTHING, fixed, likeness_of_models, p_value
from kinprint.report.relations import words_for
from kinprint.report.schema import AtlasModel, IdentifyDocument, RelativePart, UnlinkedPart
from kinprint.report.translation import translated
from kinprint.report.views.html import frame, shapes
from kinprint.report.views.html.words import NAME, Say, cut, kept, speaker
from kinprint.text import languages
from kinprint.titles import public_name

_ROWS = 400  # models of a table; the JSON has all


class _ParentView(Struct, frozen=True):
    relation: Relation
    glyph: Markup
    name: str
    says: tuple[Markup, ...]
    command: Markup


class _TableView(Struct, frozen=True):
    """Models one below another; `numbers` are places of columns with numbers."""

    key: str
    title: Markup
    says: Markup | str
    heads: tuple[Markup, ...]
    numbers: tuple[int, ...]
    rows: tuple[tuple[Markup | str, ...], ...]
    more: int


def identify_page(document: IdentifyDocument, language: str = "en") -> str:
    """A search as one HTML file in all languages; `language` shows first."""
    model = printable(document.model.title, NAME)
    titles, bodies = {}, {}
    for one in languages():
        titles[one] = shapes.flat(speaker(one)("identify.page.title", model=model))
        bodies[one] = _body(document, one)
    running = " · ".join(filter(None, (model, document.read.date)))
    return frame.assemble(titles, bodies, language, running)


def _body(document: IdentifyDocument, language: str) -> Markup:
    say = speaker(language)
    linked = [one.relation for _, one in identifying.linked(document)]
    nothing = Relation.UNTESTABLE if identifying.undecided(document) else Relation.NO_EVIDENCE
    return frame.render(
        "identify.html.j2",
        language,
        relation=linked[0] if linked else nothing,
        title=say("identify.page.title", model=kept(document.model.title)),
        summary=identifying.summary(document, language),
        sentences=[shapes.powers(one) for one in identifying.sentences(document, language)],
        labels=[translated(document, one, language) for one in document.labels],
        parents=[_parent(document, one, language) for one in document.parents],
        tables=[one for one in (_linked(document, language), _unlinked(document, language)) if one],
        faults=list(identifying.faults(document, language)),
        command=frame.whole(document.made.command),
        facts=list(_facts(document, say)),
        version=document.made.kinprint,
    )


def _parent(document: IdentifyDocument, one: RelativePart, language: str) -> _ParentView:
    both = (_typed(document.model), _typed(one))
    return _ParentView(
        one.relation,
        shapes.glyph(one.relation, "glyph-small"),
        _name(one),
        tuple(map(shapes.powers, identifying.parent_says(document, one, language))),
        frame.whole(shlex.join(["kinprint", "compare", *both])),
    )


def _linked(document: IdentifyDocument, language: str) -> _TableView | None:
    say, found = speaker(language), list(identifying.linked(document))
    if not found:
        return None
    columns = ("model", "kin", "relation", "p", "likeness", "first")
    rows = tuple(
        (
            _name(one),
            say(f"identify.kin.{kin}"),
            words_for(one.relation)[language],
            NOTHING if one.log10_p is None else shapes.powers(p_value(one.log10_p)),
            likeness_of_models(one.likeness, one.relation),
            say(f"identify.first.{one.direction}"),
        )
        for kin, one in found[:_ROWS]
    )
    return _TableView(
        "linked",
        say("identify.table"),
        "",
        tuple(say(f"identify.column.{one}") for one in columns),
        (3, 4),
        rows,
        max(len(found) - _ROWS, 0),
    )


def _unlinked(document: IdentifyDocument, language: str) -> _TableView | None:
    say, found = speaker(language), document.unlinked
    if not found:
        return None
    columns = ("model", "relation", "effect")
    return _TableView(
        "unlinked",
        say("identify.page.unlinked"),
        say("identify.page.unlinked-says"),
        tuple(say(f"identify.column.{one}") for one in columns),
        (2,),
        tuple(_unlinked_row(one, language) for one in found[:_ROWS]),
        max(len(found) - _ROWS, 0),
    )


def _unlinked_row(one: UnlinkedPart, language: str) -> tuple[str, ...]:
    effect = NOTHING if one.effect is None else fixed(one.effect, 2)
    return _name(one), words_for(one.relation)[language], effect


def _facts(document: IdentifyDocument, say: Say) -> Iterator[tuple[Markup | str, str]]:
    for one in (document.model, *document.parents):
        yield _name(one), one.commit or public_name(one.name, one.title)
    yield say("identify.page.atlas"), document.atlas
    yield say("page.again.versions"), document.made.versions


def _name(one: AtlasModel) -> str:
    return cut(printable(one.title, NAME))


def _typed(one: AtlasModel) -> str:
    """A model as it is typed in a command, without the folders of whoever made the page."""
    return public_name(one.given, one.title)
