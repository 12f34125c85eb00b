"""A matrix as all views show it: the order of its models, its pairs, its groups and its tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from kinprint.report.relations import RANK, SIGNS
from kinprint.report.schema import MatrixDocument, Merge, PairPart


@dataclass(frozen=True, slots=True)
class Joint:
    """Where two branches meet: their places along the rows and their heights, then its own."""

    places: tuple[float, float]
    heights: tuple[float, float]
    height: float


def count_related(document: MatrixDocument) -> int:
    """How many pairs share trained weights; one initialisation is no relation."""
    return sum(SIGNS[one.relation].shares_training for one in document.pairs)


def linked_pairs(document: MatrixDocument) -> list[PairPart]:
    """Pairs that show something, the most telling relation first, then the smallest p."""
    linked = [one for one in document.pairs if SIGNS[one.relation].linked]
    return sorted(linked, key=lambda one: (RANK[one.relation], one.log10_p or 0.0))


def ordered(document: MatrixDocument) -> list[int]:
    """Places of the models as the tree orders them; as they were given where there is none."""
    places = range(len(document.models))
    return list(document.order) if sorted(document.order) == list(places) else list(places)


def pairs_by_place(document: MatrixDocument) -> Mapping[tuple[int, int], PairPart]:
    """Pairs by the places of their models, the smaller place first."""
    given = [one.given for one in document.models]
    places = list(combinations(range(len(given)), 2))
    if [(one.a, one.b) for one in document.pairs] == [(given[a], given[b]) for a, b in places]:
        return dict(zip(places, document.pairs, strict=True))  # one may be given twice
    place = {name: at for at, name in enumerate(given)}
    found: dict[tuple[int, int], PairPart] = {}
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


def groups_of(document: MatrixDocument) -> list[list[int]]:
    """Places of models that share trained weights, also through others; the largest first."""
    order = ordered(document)
    root = {at: at for at in order}

    def top(at: int) -> int:
        while root[at] != at:
            at = root[at]
        return at

    for (one, other), pair in pairs_by_place(document).items():
        if SIGNS[pair.relation].shares_training:
            root[top(other)] = top(one)
    found: dict[int, list[int]] = {}
    for at in order:
        found.setdefault(top(at), []).append(at)
    return sorted((one for one in found.values() if len(one) > 1), key=len, reverse=True)
