"""All pairs of some models as a page: which share weights, who is close to whom, and why.

The matrix is a real table whose cells hold letters, ordered by the tree so that kin stand
together; what a cell says in full is read by pointing at it or walking through it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kinprint.errors import printable
from kinprint.reader.sizes import in_words
from kinprint.records import Relation
from kinprint.report.answer import error, part_names, summary
from kinprint.report.matrix import (
    count_related,
    groups_of,
    joints,
    linked_pairs,
    ordered,
    pairs_by_place,
)
from kinprint.report.numbers import finite, reading
from kinprint.report.relations import RANK, SIGNS, words_for
from kinprint.report.schema import MatrixDocument, PairPart
from kinprint.report.translation import translated
from kinprint.report.views.html import frame, shapes
from kinprint.report.views.html.words import Say, named, speaker
from kinprint.text import languages

_PAIRS = 500  # sentences on the page; the data have all
_ROW, _TREE, _NAMES = 18, 300, 330  # pixels of the tree's picture
_TITLE = 46  # letters of a name there
_WIDE = 34  # models from which on the matrix is printed on a page lying down


@dataclass(frozen=True, slots=True)
class _Cell:
    style: str
    mark: str
    more: str


@dataclass(frozen=True, slots=True)
class _Row:
    number: int
    name: str
    cells: tuple[_Cell, ...]


@dataclass(frozen=True, slots=True)
class _Group:
    """Models that share trained weights, and by how many pairs of which relation."""

    title: Markup
    names: tuple[str, ...]
    counts: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class _Line:
    """A related pair in a sentence."""

    relation: str
    glyph: Markup
    word: str
    says: Markup | str
    rank: int
    p: Markup
    p_sort: str
    likeness: str


def matrix_page(document: MatrixDocument, language: str = "en") -> str:
    """All pairs as one HTML file in both languages; `language` shows first."""
    titles, bodies = {}, {}
    for one in languages():
        titles[one] = shapes.flat(speaker(one)("page.matrix.title", count=len(document.models)))
        bodies[one] = _body(document, one)
    return frame.assemble(titles, bodies, language)


def _body(document: MatrixDocument, language: str) -> Markup:
    say = speaker(language)
    order, pairs, close = ordered(document), pairs_by_place(document), linked_pairs(document)
    names = [printable(one.title or one.given, 200) for one in document.models]
    groups = groups_of(document)
    kin = {at for group in groups for at in group}
    alone = [names[at] for at in order if at not in kin]
    once = 1 / (document.asked.alpha * max(len(document.pairs), 1))
    seen = {pair.relation for pair in document.pairs}
    return frame.render(
        "matrix.html.j2",
        language,
        count=len(names),
        pairs=f"{len(document.pairs):,}",
        close=len(close),
        related=count_related(document),
        groups=[_group(at, one, names, pairs, language) for at, one in enumerate(groups, 1)],
        alone=alone,
        labels=[translated(document, one, language) for one in document.labels],
        alpha=shapes.level(document.asked.alpha),
        once=f"{once:,.0f}" if once >= 10 else None,
        heads=[(number, names[at]) for number, at in enumerate(order, 1)],
        rows=_rows(order, names, pairs, language),
        wide=len(names) > _WIDE,
        letters=[
            (name, sign.mark, shapes.glyph(name, "glyph-small"), words_for(name)[language])
            for name, sign in SIGNS.items()
            if name in seen
        ],
        tree=_tree(document, order, names, say, language),
        lines=[_line(document, one, language) for one in close[:_PAIRS]],
        more=len(close) - _PAIRS,
        unread=[(one.given, error(document, one, language)) for one in document.unread],
        failed=[(one.a, one.b, error(document, one, language)) for one in document.failed[:_PAIRS]],
        models=[document.models[at] for at in order],
        size=in_words,
        command=frame.whole(document.made.command),
        facts=_facts(document, say),
        notes=[translated(document, note, language) for note in document.notes],
        version=document.made.kinprint,
    )


def _rows(
    order: Sequence[int],
    names: Sequence[str],
    pairs: Mapping[tuple[int, int], PairPart],
    language: str,
) -> list[_Row]:
    say = speaker(language)
    own = _Cell("own", "", shapes.flat(say("page.matrix.itself")))
    gap = _Cell("empty", "", "")
    words = {relation: words_for(relation)[language] for relation in SIGNS}
    cells = {
        place: _Cell(
            _style(pair),
            SIGNS[pair.relation].mark,
            _told(pair, words[pair.relation], say, language),
        )
        for place, pair in pairs.items()
    }
    return [
        _Row(
            number,
            names[one],
            tuple(
                own if one == other else cells.get((min(one, other), max(one, other)), gap)
                for other in order
            ),
        )
        for number, one in enumerate(order, 1)
    ]


def _style(pair: PairPart) -> str:
    """The class of a cell; most cells of a large matrix show nothing and need none."""
    return "" if pair.relation == Relation.NO_EVIDENCE else f"rel-{pair.relation}"


def _told(pair: PairPart, word: str, say: Say, language: str) -> str:
    """What pointing at a cell says."""
    p = shapes.chance(pair.log10_p)
    if not SIGNS[pair.relation].linked:
        return shapes.flat(say("page.matrix.cell-nothing", word=word, p=p))
    parts, likeness = part_names(pair.components, language), reading(pair.likeness, 2)
    if not parts:
        return shapes.flat(say("page.matrix.cell", word=word, p=p, likeness=likeness))
    return shapes.flat(
        say("page.matrix.cell-parts", word=word, p=p, likeness=likeness, parts=parts)
    )


def _group(
    number: int,
    places: Sequence[int],
    names: Sequence[str],
    pairs: Mapping[tuple[int, int], PairPart],
    language: str,
) -> _Group:
    inside = set(places)
    counted = Counter(
        pair.relation
        for (one, other), pair in pairs.items()
        if one in inside and other in inside and SIGNS[pair.relation].linked
    )
    return _Group(
        speaker(language)("page.matrix.group", number=number, count=len(places)),
        tuple(names[at] for at in places),
        tuple(
            (relation, words_for(relation)[language], counted[relation])
            for relation in SIGNS
            if counted[relation]
        ),
    )


def _line(document: MatrixDocument, pair: PairPart, language: str) -> _Line:
    likeness = finite(pair.likeness)
    return _Line(
        pair.relation,
        shapes.glyph(pair.relation, "glyph-small"),
        words_for(pair.relation)[language],
        shapes.powers(summary(document, pair, language)),
        RANK[pair.relation],
        shapes.chance(pair.log10_p),
        "" if pair.log10_p is None else f"{pair.log10_p:.2f}",
        "" if likeness is None else f"{likeness:.2f}",
    )


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
        requests=f"{read.requests:,}",
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
