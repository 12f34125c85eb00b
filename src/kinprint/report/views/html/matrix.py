"""All pairs of some models as a page: which are linked, in which groups, and what is said of each.

Groups come first. The matrix is a real table whose cells hold letters, group by group, and lead to
what is said of their pair; sentences about single pairs are folded away until somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace

from kinprint.errors import printable
from kinprint.reader.sizes import in_words
from kinprint.records import Relation
from kinprint.report import answer
from kinprint.report.matrix import (
    Group,
    Places,
    error_says,
    group_name,
    group_says,
    groups_of,
    joints,
    ordered,
    overview,
    pairs_by_place,
    seen_relations,
    tree_order,
    unlinked_names,
)
from kinprint.report.numbers import finite, likeness_of_models, share_in_words
from kinprint.report.relations import SIGNS, words_for
from kinprint.report.schema import MatrixDocument
from kinprint.report.translation import translated
from kinprint.report.views.html import frame, shapes
from kinprint.report.views.html.pair import made_by
from kinprint.report.views.html.words import Say, named, speaker
from kinprint.text import languages
from kinprint.titles import public_name

_FULL = 200  # pairs with all that is said of them; of further ones there is a line
_LINES = 6000  # lines of pairs; the data have all
_ROW, _TREE, _NAMES = 18, 300, 330  # pixels of the tree's picture
_TITLE = 46  # letters of a name there
_WIDE = 34  # models from which on the matrix is printed on a page lying down
_PRINTED = 120  # linked pairs up to which they are listed on paper
_WITHOUT_P = (Relation.LAUNDERED, Relation.UNTESTABLE)  # exact tests do not speak of them
_FAILED = "!"


class _Cell(Struct, frozen=True):
    """A cell: its style, its letter, where it leads to, and what it says if it leads nowhere."""

    style: str
    mark: str = ""
    to: str = ""
    more: str = ""


class _Row(Struct, frozen=True):
    number: int
    name: str
    first: bool
    cells: tuple[_Cell, ...]


class _PairView(Struct, frozen=True):
    """A pair in a line, and what its line unfolds: the headline and the five statements."""

    key: str
    relation: str
    mark: str
    names: str
    line: str
    says: Markup | str = ""
    statements: tuple[tuple[str, Markup], ...] = ()


class _GroupView(Struct, frozen=True):
    """Models that are linked, what links them, and their linked pairs: some whole, others short."""

    name: str
    says: str
    members: tuple[tuple[int, str], ...]
    count: int
    whole: tuple[_PairView, ...]
    brief: tuple[_PairView, ...]


def matrix_page(document: MatrixDocument, language: str = "en") -> str:
    """All pairs as one HTML file in both languages; `language` shows first."""
    titles, bodies = {}, {}
    for one in languages():
        titles[one] = shapes.flat(speaker(one)("page.matrix.title", count=len(document.models)))
        bodies[one] = _Body(document, one).render()
    running = " · ".join(filter(None, (titles.get(language), document.read.date)))
    return frame.assemble(titles, bodies, language, running)


class _Body:
    """The page in one language."""

    def __init__(self, document: MatrixDocument, language: str) -> None:
        self.document, self.language, self.say = document, language, speaker(language)
        self.names = [printable(one.title or one.given, 200) for one in document.models]
        self.groups, self.pairs = groups_of(document), pairs_by_place(document)
        self.order = ordered(document)
        self.number = {at: number for number, at in enumerate(self.order, 1)}
        unlinked = [both for both, pair in self.pairs.items() if not pair.relation.linked]
        self.unlinked = len(unlinked)
        self.listed = dict.fromkeys(sorted(unlinked, key=self._row_and_column)[:_LINES])
        self.room = _FULL

    def render(self) -> Markup:
        """All of it."""
        document, language = self.document, self.language
        headline, *more = overview(document, self.groups, language)
        groups = [self._group(one) for one in self.groups]
        linked = sum(one.count for one in groups)
        seen = seen_relations(document)
        return frame.render(
            "matrix.html.j2",
            language,
            count=len(self.names),
            headline=headline,
            made=made_by(document, self.say),
            more=more,
            error=shapes.powers(error_says(document, language)) if document.pairs else "",
            groups=groups,
            alone=unlinked_names(document, self.groups, self.names, language),
            labels=[translated(document, one, language) for one in document.labels],
            heads=[(self.number[at], self.names[at]) for at in self.order],
            rows=list(self._rows()),
            wide=len(self.names) > _WIDE,
            printed=linked <= _PRINTED,
            letters=[
                (
                    name,
                    sign.mark,
                    shapes.glyph(name, "glyph-small"),
                    words_for(name)[language],
                    self.say(f"page.matrix.means.{name}"),
                )
                for name, sign in SIGNS.items()
                if name in seen
            ],
            failed_mark=_FAILED,
            shows_not=answer.not_shown(seen, language),
            tree=_tree(document, tree_order(document), self.names, self.say, language),
            unlinked=[self._brief(both) for both in self.listed],
            unlinked_count=f"{self.unlinked:,}",
            unlinked_more=self.unlinked - len(self.listed),
            unread=[
                (public_name(one.given), answer.error(document, one, language))
                for one in document.unread
            ],
            failed=[
                (self._called(one.a), self._called(one.b), answer.error(document, one, language))
                for one in document.failed[:_LINES]
            ],
            models=[document.models[at] for at in self.order],
            size=in_words,
            command=frame.whole(document.made.command),
            facts=_facts(document, self.say),
            notes=[translated(document, note, language) for note in document.notes],
            version=document.made.kinprint,
        )

    def _rows(self) -> Iterator[_Row]:
        own = _Cell("own", more=shapes.flat(self.say("page.matrix.itself")))
        failed = {(one.a, one.b) for one in self.document.failed}
        known = {both: self._cell(both) for both in self.pairs}
        first = self._first()
        given = [one.given for one in self.document.models]
        for one in self.order:
            cells = []
            for other in self.order:
                both = (given[one], given[other])
                gap = both in failed or both[::-1] in failed
                empty = _Cell("empty", _FAILED, "failed") if gap else _Cell("empty")
                cell = own if one == other else known.get(_sorted(one, other), empty)
                cells.append(replace(cell, style=f"{cell.style} g") if other in first else cell)
            yield _Row(self.number[one], self.names[one], one in first, tuple(cells))

    def _first(self) -> set[int]:
        """Models with which a group begins, the first one aside."""
        starts = {group.places[0] for group in self.groups[1:]}
        grouped = {at for group in self.groups for at in group.places}
        alone = [at for at in self.order if at not in grouped]
        return starts | set(alone[:1] if grouped else ())

    def _cell(self, both: Places) -> _Cell:
        """A cell that leads to its pair; most cells of a large matrix need no style."""
        pair = self.pairs[both]
        style = "" if pair.relation is Relation.NO_EVIDENCE else f"rel-{pair.relation}"
        led = pair.relation.linked or both in self.listed
        return _Cell(style, SIGNS[pair.relation].mark, self._key(both) if led else "")

    def _group(self, group: Group) -> _GroupView:
        places = {id(pair): both for both, pair in group.pairs.items()}
        linked = [places[id(pair)] for pair in group.linked]
        whole, brief = linked[: self.room], linked[self.room :]
        self.room -= len(whole)
        return _GroupView(
            group_name(group, self.names, self.language),
            group_says(self.document, group, self.language),
            tuple((self.number[at], self.names[at]) for at in group.places),
            len(linked),
            tuple(self._whole(both) for both in whole),
            tuple(self._brief(both) for both in brief),
        )

    def _whole(self, both: Places) -> _PairView:
        pair, language = self.pairs[both], self.language
        return replace(
            self._brief(both),
            says=shapes.powers(answer.summary(self.document, pair, language)),
            statements=tuple(
                (one.title, shapes.powers(one.says))
                for one in answer.statements(self.document, pair, language)
            ),
        )

    def _brief(self, both: Places) -> _PairView:
        """A pair in a line: who, how, with which p-value, how alike."""
        pair = self.pairs[both]
        told = [words_for(pair.relation)[self.language]]
        if pair.log10_p is not None and pair.relation not in _WITHOUT_P:
            told.append(shapes.flat(shapes.claim(pair.log10_p)))
        likeness = finite(pair.amount.likeness)
        if pair.relation.linked and likeness is not None:
            shown = likeness_of_models(likeness, pair.relation)
            share = share_in_words(pair.amount.linked or 0.0)
            said = self.say("page.matrix.line-likeness", likeness=shown, share=share)
            told.append(shapes.flat(said))
        mark = SIGNS[pair.relation].mark
        names = f"{self.names[both[0]]} × {self.names[both[1]]}"
        return _PairView(self._key(both), pair.relation, mark, names, " · ".join(told))

    def _called(self, given: str) -> str:
        """A model by its name on this page, where it has one."""
        names = (
            name
            for one, name in zip(self.document.models, self.names, strict=True)
            if one.given == given
        )
        return next(names, public_name(given))

    def _key(self, both: Places) -> str:
        """Where a pair stands on the page, by the numbers of its row and its column."""
        one, other = self._row_and_column(both)
        return f"{one}-{other}"

    def _row_and_column(self, both: Places) -> Places:
        return _sorted(self.number[both[0]], self.number[both[1]])


def _sorted(one: int, other: int) -> Places:
    return min(one, other), max(one, other)


def _tree(
    document: MatrixDocument, order: Sequence[int], names: Sequence[str], say: Say, language: str
) -> Markup | None:
    """The tree as a picture: the root on the left, models on the right."""
    limbs = joints(document.tree, order)
    if not limbs:
        return None
    highest = max(limb.height for limb in limbs) or 1.0

    def across(height: float) -> float:
        return 10 + (_TREE - 10) * (1 - height / highest)

    drawn = []
    for limb in limbs:
        (one, other), (low, high) = limb.places, limb.heights
        at = across(limb.height)
        points = ((across(low), one), (at, one), (at, other), (across(high), other))
        drawn.append(shapes.path([(x, 20 + y * _ROW) for x, y in points], "limb"))
    for row, place in enumerate(order):
        y = 20 + (row + 0.5) * _ROW + 4
        drawn.append(shapes.label(_TREE + 8, y, _short(names[place]), "inked", "start"))
    drawn.append(shapes.label(10, 12, say("page.matrix.unlike"), None, "start"))
    drawn.append(shapes.label(_TREE, 12, say("page.matrix.alike"), None, "end"))
    listed = ", ".join(names[at] for at in order[:40]) + ("…" if len(order) > 40 else "")
    return shapes.picture(
        f"{language}-tree",
        (_TREE + _NAMES, 26 + _ROW * len(order)),
        say("page.matrix.tree-title", count=len(order)),
        say("page.matrix.tree-says", names=listed),
        *drawn,
    )


def _facts(document: MatrixDocument, say: Say) -> list[tuple[Markup, object]]:
    read, asked, made = document.read, document.asked, document.made
    cost = say(
        "page.again.cost-of" if read.requests else "page.again.cost-none",
        bytes=in_words(read.bytes),
        count=read.requests,
        seconds=f"{read.seconds:.1f}",
    )
    found: list[tuple[Markup, object]] = [
        (say("page.again.cost"), cost),
        (say("page.again.level"), named(say, "page.level.", asked.level)),
        (say("page.again.alpha"), f"{asked.alpha:g}"),
        (say("page.again.seed"), asked.seed),
        (say("page.again.versions"), made.versions),
    ]
    if asked.budget is not None:
        found.insert(1, (say("page.again.budget"), in_words(asked.budget)))
    if asked.base is not None:
        found.insert(1, (say("page.again.base"), asked.base))
    return found


def _short(name: str) -> str:
    if len(name) <= _TITLE:
        return name
    return f"{name[: _TITLE // 2]}…{name[-_TITLE // 2 + 1 :]}"
