"""Families of an atlas as a page and as a picture: a click on a model shows its edges and evidence.

The picture is a list that reads as a tree, so that names stay names and a phone can scroll it;
models are links to what is said of them. Texts from models are data: shown, escaped and cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from kinprint import text
from kinprint.errors import printable
from kinprint.records import Relation
from kinprint.report import trees
from kinprint.report.numbers import NOTHING
from kinprint.report.relations import SIGNS
from kinprint.report.schema import TreeDocument, TreeEdge
from kinprint.report.translation import translated, warning
from kinprint.report.trees import Certainty, Row
from kinprint.report.views.html import frame, shapes
from kinprint.report.views.html.words import NAME, Say, cut, speaker
from kinprint.text import languages
from kinprint.titles import public_name

_MODELS = 1200  # of all families on a page, and of those without a link
_DRAWN = 300  # models of a picture
_LINKS = 40  # of a model that are listed
_ROW, _STEP = 28, 26  # pixels of a row, and of a step to the right
_LETTER, _BOLD = 7.4, 8.4  # of a letter, and of one of a name
_LEFT, _HEAD = 16, 30
_CLASS = "families"


class _EdgeView(Struct, frozen=True):
    relation: Relation
    glyph: Markup
    title: Markup
    says: tuple[Markup, ...]
    traces: tuple[str, ...]


class _ModelView(Struct, frozen=True):
    """A model in a line, and what its line unfolds."""

    key: str
    name: str
    mark: str
    line: str
    relation: str
    edges: tuple[_EdgeView, ...]
    links: tuple[tuple[str, str, str], ...]
    declared: tuple[str, ...]
    facts: tuple[tuple[Markup, str], ...]


class _FamilyView(Struct, frozen=True):
    number: int
    title: Markup
    picture: Markup | None
    models: tuple[_ModelView, ...]
    more: int


def tree_page(document: TreeDocument, language: str = "en") -> str:
    """Families as one HTML file in all languages; `language` shows first."""
    titles, bodies = {}, {}
    for one in languages():
        titles[one] = shapes.flat(speaker(one)("tree.title", count=len(document.models)))
        bodies[one] = _Body(document, one).render()
    running = " · ".join(filter(None, (titles.get(language), document.read.date)))
    return frame.assemble(titles, bodies, language, running, frame.asset("tree.css"))


def tree_svg(document: TreeDocument, language: str = "en") -> str:
    """All families as one picture that stands alone."""
    say = speaker(language)
    parts: list[Markup] = []
    top, right = 10.0, 360.0
    for number, family in enumerate(document.families, 1):
        title = say("tree.family", number=number, count=len(family))
        rows = trees.rows_of(document, family)
        drawing = _Drawing(document, rows, language)
        parts.append(shapes.label(_LEFT, top + 18, title, "head", "start"))
        parts.append(shapes.tag("g", *drawing.parts, transform=f"translate(0 {top + _HEAD:g})"))
        top += _HEAD + drawing.height + 14
        right = max(right, drawing.width)
    summary = trees.summary(document, language)
    legend = shapes.flat(_legend(say)) if document.edges else ""
    told = warning(document, language)
    for line in [*(legend or summary).split(" · "), *([told] if told else [])]:
        parts.append(shapes.label(_LEFT, top + 18, line, None, "start"))
        right = max(right, 2 * _LEFT + _LETTER * _letters(line))
        top += 20
    style = frame.asset("tree.css") + frame.asset("tree-alone.css")
    drawn = shapes.picture(
        "families",
        (round(right), round(top + 10)),
        say("tree.title", count=len(document.models)),
        " ".join(filter(None, (summary, legend, told))),
        shapes.tag("style", Markup(style)),
        *parts,
        class_=_CLASS,
        xmlns="http://www.w3.org/2000/svg",
        width=f"{right:.0f}",
        height=f"{top + 10:.0f}",
    )
    return f"{drawn}\n"


class _Body:
    """The page in one language."""

    def __init__(self, document: TreeDocument, language: str) -> None:
        self.document, self.language, self.say = document, language, speaker(language)
        self.names = [cut(printable(one.title, NAME)) for one in document.models]
        self.edges = trees.edges_by_model(document)
        self.links = trees.links_by_model(document)
        self.room = _MODELS
        self.shown: set[int] = set()

    def render(self) -> Markup:
        """All of it."""
        document, language = self.document, self.language
        families = []
        for number, one in enumerate(document.families, 1):
            if self.room <= 0:
                break
            rows = trees.rows_of(document, one)
            self.shown |= {row.model for row in rows[: self.room]}
            self.room -= len(rows)
            families.append((number, rows))
        alone = trees.unlinked_models(document)
        return frame.render(
            "tree.html.j2",
            language,
            title=self.say("tree.title", count=len(document.models)),
            summary=trees.summary(document, language),
            sentences=[shapes.powers(one) for one in trees.sentences(document, language)],
            labels=[translated(document, one, language) for one in document.labels],
            legend=_legend(self.say),
            families=[self._family(number, rows) for number, rows in families],
            more_families=len(document.families) - len(families),
            alone=[self.names[at] for at in alone[:_MODELS]],
            more_alone=max(len(alone) - _MODELS, 0),
            faults=list(self._faults()),
            command=frame.whole(document.made.command),
            facts=[(self.say("page.again.versions"), document.made.versions)],
            version=document.made.kinprint,
        )

    def _family(self, number: int, rows: Sequence[Row]) -> _FamilyView:
        title = self.say("tree.family", number=number, count=len(rows))
        drawing = _Drawing(self.document, rows[:_DRAWN], self.language, f"{self.language}-")
        picture = shapes.picture(
            f"{self.language}-tree{number}",
            (round(drawing.width), round(drawing.height)),
            title,
            self.say("tree.page.shows"),
            *drawing.parts,
            class_=_CLASS,
            role="group",
            width=f"{drawing.width:.0f}",
            height=f"{drawing.height:.0f}",
        )
        models = tuple(self._model(row) for row in rows if row.model in self.shown)
        return _FamilyView(number, title, picture, models, len(rows) - len(models))

    def _model(self, row: Row) -> _ModelView:
        at, edge = row.model, row.edge
        model = self.document.models[at]
        place = public_name(model.name, model.title)
        facts = [
            (self.say("tree.page.name"), place),
            (self.say("tree.page.commit"), model.commit or NOTHING),
            (self.say("tree.page.architecture"), model.architecture or NOTHING),
            (self.say("tree.page.entry"), model.entry[:16]),
        ]
        if model.copies:
            copies = ", ".join(public_name(one.name, one.title) for one in model.copies)
            facts.append((self.say("tree.page.copies"), copies))
        return _ModelView(
            f"m{at}",
            self.names[at],
            "" if edge is None else SIGNS[edge.relation].mark,
            trees.row_line(self.document, row, self.language),
            "" if edge is None else edge.relation.value,
            tuple(self._edge(one) for one in self.edges.get(at, ())),
            tuple(
                (
                    f"m{to}" if to in self.shown else "",
                    self.names[to],
                    trees.line_of(one, self.language),
                )
                for one in self.links.get(at, ())[:_LINKS]
                for to in (one.a + one.b - at,)
            ),
            tuple(
                text.say(
                    f"identify.claim.{one.state}",
                    self.language,
                    model=one.claim.model,
                    where=one.claim.where,
                )
                for one in model.declared
            ),
            tuple(facts),
        )

    def _key(self, at: int) -> str:
        """Where a model stands on the page; empty where it does not."""
        return f"m{at}" if at in self.shown else ""

    def _edge(self, edge: TreeEdge) -> _EdgeView:
        key = trees.certainty(edge)
        title = self.say(f"tree.page.edge.{key}", a=self.names[edge.a], b=self.names[edge.b])
        return _EdgeView(
            edge.relation,
            shapes.glyph(edge.relation, "glyph-small"),
            title,
            tuple(map(shapes.powers, trees.edge_says(self.document, edge, self.language))),
            tuple(translated(self.document, one.says, self.language) for one in edge.traces),
        )

    def _faults(self) -> Iterator[str]:
        document = self.document
        for one in document.failed:
            cause = translated(document, one.reason, self.language)
            a, b = self.names[one.a], self.names[one.b]
            yield text.say("tree.failed", self.language, a=a, b=b, cause=cause)
        for fault in document.left_out:
            yield translated(document, fault.reason, self.language)


class _Drawing:
    """A family as parts of a picture, from its upper left corner on.

    `linked` is what addresses of models begin with, where they lead somewhere.
    """

    def __init__(
        self, document: TreeDocument, rows: Sequence[Row], language: str, linked: str = ""
    ) -> None:
        self._document, self._language, self._linked = document, language, linked
        self._names = {
            row.model: cut(printable(document.models[row.model].title, NAME)) for row in rows
        }
        self._places = {
            row.model: (_LEFT + row.depth * _STEP, 14 + at * _ROW) for at, row in enumerate(rows)
        }
        self._ends = {
            at: x + 14 + _BOLD * _letters(self._names[at]) for at, (x, _) in self._places.items()
        }
        self._column = max(self._ends.values(), default=0.0)
        self.height = _ROW * len(rows)
        self.width = self._column
        self.parts = [*self._lines(rows), *self._nodes(rows)]

    def _lines(self, rows: Sequence[Row]) -> Iterator[Markup]:
        hung = {(row.edge.a, row.edge.b) for row in rows if row.edge is not None}
        reached: dict[int, float] = {}  # by parent, how far down its line goes
        for row in rows:
            if row.edge is not None:
                parent = row.edge.a + row.edge.b - row.model
                start = reached.get(parent, self._places[parent][1] + 6)
                reached[parent] = self._places[row.model][1]
                yield self._branch(row.edge, row.model, start)
        for edge in self._document.edges:
            inside = edge.a in self._places and edge.b in self._places
            if inside and (edge.a, edge.b) not in hung:
                yield self._arc(edge)

    def _branch(self, edge: TreeEdge, child: int, start: float) -> Markup:
        """A line to a model, down from where that of its last sibling turned off."""
        x, (x2, y2) = self._places[edge.a + edge.b - child][0], self._places[child]
        sure = trees.certainty(edge)
        end = x2 - (12 if sure is not Certainty.OPEN else 6)
        drawn = [shapes.path([(x, start), (x, y2), (end, y2)], f"branch {sure}")]
        if sure is not Certainty.OPEN:
            drawn.append(_point(end, y2, sure))
        return shapes.tag("g", *drawn, class_=f"rel-{edge.relation}")

    def _arc(self, edge: TreeEdge) -> Markup:
        """A further parent: a bow from the end of its name to that of the child's."""
        sure = trees.certainty(edge)
        y, y2 = self._places[edge.a][1], self._places[edge.b][1]
        start, end = self._ends[edge.a], self._ends[edge.b]
        between = [stop for at, stop in self._ends.items() if self._is_between(at, y, y2)]
        widest = max((start, end, *between)) + 8 + 0.1 * abs(y2 - y)
        out = (widest - 0.125 * (start + end + 6)) / 0.75  # in its middle a bow has 3/4 of that
        told = f"M{shapes.num(start)} {shapes.num(y)} C{shapes.num(out)} {shapes.num(y)} "
        told += f"{shapes.num(out)} {shapes.num(y2)} {shapes.num(end + 6)} {shapes.num(y2)}"
        self._column = max(self._column, widest)
        drawn = [shapes.tag("path", d=told, class_=f"branch {sure}")]
        if sure is not Certainty.OPEN:
            drawn.append(_point(end + 6, y2, sure, back=True))
        return shapes.tag("g", *drawn, class_=f"rel-{edge.relation}")

    def _is_between(self, at: int, y: float, y2: float) -> bool:
        """Whether a model stands in a row between two others."""
        return min(y, y2) < self._places[at][1] < max(y, y2)

    def _nodes(self, rows: Sequence[Row]) -> Iterator[Markup]:
        for row in rows:
            x, y = self._places[row.model]
            name = shapes.label(x + 11, y + 4.5, self._names[row.model], "name", "start")
            drawn = [shapes.dot(x, y, 5.5, "node"), name]
            relation = "" if row.edge is None else f"rel-{row.edge.relation}"
            inside = shapes.tag("g", *drawn, class_=relation or None)
            if self._linked:
                inside = shapes.tag("a", inside, href=f"#{self._linked}m{row.model}")
            yield inside
            line = trees.row_line(self._document, row, self._language)
            if line:
                self.width = max(self.width, self._column + 12 + _LETTER * _letters(line))
                yield shapes.label(self._column + 8, y + 4.5, line, None, "start")


def _point(x: float, y: float, sure: Certainty, back: bool = False) -> Markup:
    """The head of an arrow, filled where the direction is told."""
    tip = x - 7 if back else x + 7
    told = " ".join(
        f"{shapes.num(at)},{shapes.num(to)}" for at, to in ((x, y - 4), (tip, y), (x, y + 4))
    )
    return shapes.tag("polygon", points=told, class_=f"point {sure}")


def _letters(name: str) -> float:
    """How many letters of usual width a text takes; those of East Asia take two."""
    return sum(1.75 if ord(one) > 0x1100 else 1.0 for one in name)


def _legend(say: Say) -> Markup:
    arrows = {"told": "──▶", "likely": "╌╌▷", "open": "····"}
    return say("tree.arrows", **arrows)
