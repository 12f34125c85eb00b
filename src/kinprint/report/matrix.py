"""A matrix as all views show it: the order of its models, its pairs, its groups and its tree."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from msgspec import Struct

from kinprint import text
from kinprint.records import Component, Relation, VerdictReason
from kinprint.report.answer import part_names, summary
from kinprint.report.numbers import level
from kinprint.report.relations import RANK, SIGNS, words_for
from kinprint.report.schema import MatrixDocument, Merge, PairPart

_NAMED = 3  # members in the name of a group
_OFTEN = 0.1  # false links from which on "once in so many" would say little
Places = tuple[int, int]


class Joint(Struct, frozen=True):
    """Where two branches meet: their places along the rows and their heights, then its own."""

    places: tuple[float, float]
    heights: tuple[float, float]
    height: float


class Group(Struct, frozen=True):
    """Models that are linked, directly or through others of the group.

    Attributes
    ----------
    places : of its models, such that those that are alike stand side by side.
    pairs : all pairs of them that were compared, by their places.
    """

    places: tuple[int, ...]
    pairs: Mapping[Places, PairPart]

    @property
    def linked(self) -> list[PairPart]:
        """Its pairs that are linked, the most telling relation first."""
        return telling(self.pairs.values())

    @property
    def central(self) -> list[int]:
        """Its models, those first that are most alike all others."""
        alike = dict.fromkeys(self.places, 0.0)
        for both, pair in self.pairs.items():
            for at in both:
                alike[at] += pair.likeness
        return sorted(self.places, key=lambda at: -alike[at])


def count_related(document: MatrixDocument) -> int:
    """How many pairs share trained weights; one initialisation is no relation."""
    return sum(SIGNS[one.relation].shares_training for one in document.pairs)


def seen_relations(document: MatrixDocument) -> list[Relation]:
    """The relations that pairs have, each once, in the order of all relations."""
    seen = {one.relation for one in document.pairs}
    return [relation for relation in SIGNS if relation in seen]


def telling(pairs: Iterable[PairPart]) -> list[PairPart]:
    """Pairs that are linked, the most telling relation first, then the smallest p."""
    linked = [one for one in pairs if one.relation.linked]
    return sorted(linked, key=lambda one: (RANK[one.relation], one.log10_p or 0.0))


def tree_order(document: MatrixDocument) -> list[int]:
    """Places of the models as the tree orders them; as they were given where there is none."""
    places = range(len(document.models))
    return list(document.order) if sorted(document.order) == list(places) else list(places)


def ordered(document: MatrixDocument) -> list[int]:
    """Places of the models as a picture shows them: group by group, then those without a link."""
    groups = groups_of(document)
    return [at for group in groups for at in group.places] + unlinked(document, groups)


def unlinked(document: MatrixDocument, groups: Sequence[Group]) -> list[int]:
    """Places of the models that are in no group."""
    inside = {at for group in groups for at in group.places}
    return [at for at in tree_order(document) if at not in inside]


def pairs_by_place(document: MatrixDocument) -> Mapping[Places, PairPart]:
    """Pairs by the places of their models, the smaller place first."""
    given = [one.given for one in document.models]
    places = list(combinations(range(len(given)), 2))
    if [(one.a, one.b) for one in document.pairs] == [(given[a], given[b]) for a, b in places]:
        return dict(zip(places, document.pairs, strict=True))  # one may be given twice
    place = {name: at for at, name in enumerate(given)}
    found: dict[Places, PairPart] = {}
    for pair in document.pairs:
        if pair.a in place and pair.b in place:
            one, other = sorted((place[pair.a], place[pair.b]))
            found[one, other] = pair
    return found


def joints(tree: Sequence[Merge], order: Sequence[int]) -> tuple[Joint, ...]:
    """The tree as lines to draw, by rows of the matrix."""
    count = len(order)
    rows: dict[int, tuple[float, float]] = {one: (at + 0.5, 0.0) for at, one in enumerate(order)}
    found: list[Joint] = []
    for at, merge in enumerate(tree):
        if merge.one not in rows or merge.other not in rows:  # a document made by hand
            continue
        (one, low), (other, high) = rows[merge.one], rows[merge.other]
        found.append(Joint((one, other), (low, high), merge.height))
        rows[count + at] = ((one + other) / 2, merge.height)
    return tuple(found)


def groups_of(document: MatrixDocument) -> list[Group]:
    """Models that are linked, also through others; the largest group first."""
    order, pairs = tree_order(document), pairs_by_place(document)
    root = {at: at for at in order}

    def top(at: int) -> int:
        while root[at] != at:
            at = root[at]
        return at

    for (one, other), pair in pairs.items():
        if pair.relation.linked:
            root[top(other)] = top(one)
    members: dict[int, list[int]] = {}
    for at in order:
        members.setdefault(top(at), []).append(at)
    inside: dict[int, list[Places]] = {}
    for places in pairs:
        if top(places[0]) == top(places[1]):
            inside.setdefault(top(places[0]), []).append(places)
    found = [
        Group(tuple(places), {both: pairs[both] for both in inside[at]})
        for at, places in members.items()
        if len(places) > 1
    ]
    return sorted(found, key=lambda group: -len(group.places))


def group_name(group: Group, names: Sequence[str], language: str) -> str:
    """A group by those of its members that are most alike the others."""
    shown = [names[at] for at in group.central]
    if len(shown) <= _NAMED + 1:
        return ", ".join(shown)
    rest = len(shown) - _NAMED
    first = ", ".join(shown[:_NAMED])
    return text.say("report.matrix.group-name", language, names=first, count=rest)


def group_says(document: MatrixDocument, group: Group, language: str) -> str:
    """What links the models of a group, in a sentence."""
    linked, count = group.linked, len(group.pairs)
    if count == 1:
        return summary(document, linked[0], language)
    kinds = "; ".join(
        text.say(
            f"report.matrix.kind{'-parts' if parts else ''}",
            language,
            word=words_for(relation)[language],
            count=number,
            parts=part_names(parts, language),
        )
        for relation, number, parts in _kinds(linked)
    )
    if count == 1:
        return text.say("report.matrix.group-pair", language, kinds=kinds)
    key = "report.matrix.group-all" if len(linked) == count else "report.matrix.group-some"
    return text.say(key, language, linked=len(linked), pairs=count, kinds=kinds)


def _kinds(linked: Sequence[PairPart]) -> Iterator[tuple[Relation, int, list[Component]]]:
    """Relations of pairs, how often each, and of those that share parts which parts these are."""
    for relation in SIGNS:
        pairs = [one for one in linked if one.relation is relation]
        known = {part for one in pairs for part in one.components}
        partial = relation is Relation.PARTIAL
        parts = [part for part in Component if part in known] if partial else []
        if pairs:
            yield relation, len(pairs), parts


def overview(document: MatrixDocument, groups: Sequence[Group], language: str) -> list[str]:
    """The answer in sentences: how many models are linked in how many groups, then the pairs."""
    count, linked = len(document.models), sum(len(group.places) for group in groups)
    key = "none" if not linked else "all" if linked == count else "some"
    headline = text.say(
        f"report.matrix.{key}-linked{'-one' if len(groups) == 1 else ''}",
        language,
        count=count,
        linked=linked,
        groups=len(groups),
        alone=count - linked,
    )
    found = Counter(pair.relation for pair in document.pairs)
    laundered, untested = found[Relation.LAUNDERED], found[Relation.UNTESTABLE]
    related = count_related(document)
    others = sum(found[one] for one in found if one.linked) - related - laundered
    said = (
        ("pairs-related", linked, {"related": related, "pairs": len(document.pairs)}),
        ("pairs-laundered", laundered, {"count": laundered}),
        ("pairs-linked", others, {"linked": others}),
        ("pairs-untested", untested, {"count": untested}),
    )
    pairs = [
        text.say(f"report.matrix.{name}", language, **fields)
        for name, number, fields in said
        if number
    ]
    return [headline, " ".join(pairs)] if pairs else [headline]


def unlinked_names(
    document: MatrixDocument, groups: Sequence[Group], names: Sequence[str], language: str
) -> list[str]:
    """Models in no group, each with how many of its pairs could not be tested."""
    untested = Counter(
        at
        for both, pair in pairs_by_place(document).items()
        if pair.relation is Relation.UNTESTABLE
        for at in both
    )
    return [
        text.say("report.matrix.alone-untested", language, name=names[at], count=untested[at])
        if untested[at]
        else names[at]
        for at in unlinked(document, groups)
    ]


def error_says(document: MatrixDocument, language: str) -> str:
    """What chance alone would claim in a matrix of so many pairs, rounded to the weaker claim."""
    expected = document.false_links
    if expected is None:  # a document of an earlier version, in which tests alone made links
        expected = document.asked.alpha * len(document.pairs)
    many = expected > _OFTEN
    said = text.say(
        "report.matrix.level-many" if many else "report.matrix.level",
        language,
        alpha=level(document.asked.alpha),
        pairs=f"{len(document.pairs):,}",
        number=f"{math.ceil(expected * 10) / 10:,.1f}",
        once=f"{_two_digits(1 / expected):,}",
    )
    if any(pair.relation is Relation.LAUNDERED for pair in document.pairs):
        said = f"{said} {text.say('report.matrix.level-laundered', language)}"
    short = sum(VerdictReason.SHORT_LOOK in pair.reasons for pair in document.pairs)
    if short:
        fields = {"count": f"{short:,}", "pairs": f"{len(document.pairs):,}"}
        said = f"{said} {text.say('report.matrix.screened', language, **fields)}"
    return said


def _two_digits(value: float) -> int:
    """A large number with two digits, rounded down."""
    step = round(10.0 ** max(math.floor(math.log10(value)) - 1, 0))
    return math.floor(value / step) * step
