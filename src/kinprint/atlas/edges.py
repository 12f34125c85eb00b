"""Edges of a family tree: who names whom as its parent, and what tells which of them came first.

An edge has a direction where something tells it:

- traces: two of different kind say who came first (`diff/direction.py`);
- between: the model's numbers lie between those of its parents, as a merge's do, and as those of a
  model do that others were extrapolated from;
- rounded: one holds the other's numbers rounded, a single trace that can be arranged;
- central: more of the family are nearest to one than to the other. That is the shape of a family
  and no more: the base of a model that much else was built on looks like one of these;
- one parent: one of the two has another parent already, and names no other.

Where traces contradict, or there would be a circle, the edge has none. An edge to a model that was
named by its elder alone goes, where that model has parents of its own: everybody names somebody.
The elder is known by the edge's direction, or because parents of a mixture name it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.atlas.naming import Named, NamedParent
from kinprint.atlas.pairs import groups
from kinprint.atlas.parents import equal_weights, likeness_by_parts, seen_from_second
from kinprint.diff.direction import Direction, TraceFound
from kinprint.records import (
    TAKEN_OVER,
    ClaimedEdge,
    DirectionBasis,
    Precedence,
    Relation,
    Trace,
    Verdict,
    VerdictReason,
)

CENTRAL = 3
"""Others that must name a model first, so that it is called the likely parent."""
CLEARLY = 2
"""Times as many as name its partner that these must be."""

Places = tuple[int, int]


class Edge(Struct, frozen=True):
    """Two models of which one names the other as its parent; A came first, or neither is known to.

    Attributes
    ----------
    a, b
        Their numbers.
    verdict
        Their relation; A is the first.
    likeness
        Mean correlation of what is linked, times the share of parts that are.
    log10_p
        The p-value of the link, paid for all pairs of the atlas.
    basis
        What tells the direction; None where nothing does.
    traces
        What each trace says of who came first.
    votes
        How many other models name A, and B, first.
    weight
        The share of A in the mixture of its parents that is nearest to B, where B is a mixture.
    claim
        How it stands to what the two declare.
    """

    a: int
    b: int
    verdict: Verdict
    likeness: float
    log10_p: float
    basis: DirectionBasis | None = None
    traces: tuple[TraceFound, ...] = ()
    votes: tuple[int, int] = (0, 0)
    weight: float | None = None
    claim: ClaimedEdge = ClaimedEdge.SILENT


def edges_of(
    linked: Mapping[Places, Verdict],
    named: Mapping[int, Named],
    place: Mapping[str, int],
) -> list[Edge]:
    """Who names whom, with a direction where something tells it and no circle comes of it.

    Parameters
    ----------
    linked : verdicts on linked pairs, by the numbers of their models.
    named : whom each model names.
    place : numbers of all models, by their names.
    """
    said: dict[Places, dict[int, NamedParent]] = {}
    for own, answer in named.items():
        for each in (*answer.parents, *answer.tied, *answer.later):
            if each.weight is None or each.weight > 0:  # else it is what another was mixed with
                to = place[each.name]
                said.setdefault((min(own, to), max(own, to)), {})[own] = each
    between = {own for own, answer in named.items() if lies_between(answer)}
    said = {
        (one, other): views
        for (one, other), views in said.items()
        if not _by_elder(one, other, said, between) and not _by_elder(other, one, said, between)
    }
    first = {own: place[each.parents[0].name] for own, each in named.items() if each.parents}
    tied = {own: {place[one.name] for one in each.tied} for own, each in named.items()}
    told_apart = {own: chosen for own, chosen in first.items() if not tied[own]}
    for both in _joining(linked, said, {own: first[own] for own in between}, len(place)):
        said[both] = {}
    equal = {frozenset(both) for both, one in linked.items() if same_numbers(one)}
    edges = []
    for (one, other), views in sorted(said.items()):
        verdict = linked.get((one, other)) or seen_from_second(linked[other, one])
        alike = likeness_by_parts(verdict)
        seen = [
            view.direction if own == one else view.direction.swapped for own, view in views.items()
        ]
        direction = next((each for each in seen if each.traces), Direction(Precedence.UNDECIDED))
        votes = (_votes(one, other, told_apart, equal), _votes(other, one, told_apart, equal))
        same = same_numbers(verdict)
        merged = {
            Precedence.B_FIRST if child == one else Precedence.A_FIRST
            for child in views.keys() & between
        }
        came_first, basis = _told(direction, (0, 0) if same else votes, merged)
        edge = Edge(one, other, verdict, alike, 0.0, basis, direction.traces, votes)
        edge = _swapped(edge) if came_first is Precedence.B_FIRST else edge
        mixed = basis is not None and edge.b in views.keys() & between
        edges.append(replace(edge, weight=views[edge.b].weight if mixed else None))
    several = {own for own, answer in named.items() if len(answer.parents) > 1}
    parents = {own: {place[each.name] for each in named[own].parents} for own in between}
    edges = _with_whole_mixtures(_without_circles(edges, len(place)), parents)
    either = {
        frozenset((own, to)) for own, some in tied.items() if some for to in (first[own], *some)
    }
    edges = _with_one_parent(edges, several, either, len(place))
    told = {one.b for one in edges if one.basis is not None and _names(one.b, one.a, said)}
    return [
        one
        for one in edges
        if not (one.basis and one.b in told and _names_alone(one.a, one.b, said))
    ]


_Said = Mapping[Places, Mapping[int, NamedParent]]


def _names(own: int, other: int, said: _Said) -> bool:
    """Whether a model names another."""
    return own in said.get((min(own, other), max(own, other)), {})


def _names_alone(own: int, other: int, said: _Said) -> bool:
    return _names(own, other, said) and not _names(other, own, said)


def _by_elder(own: int, other: int, said: _Said, between: Collection[int]) -> bool:
    """Whether a model names a mixture of models that name itself, for want of a nearer one."""
    if other not in between or not _names_alone(own, other, said):
        return False
    pairs = (both for both, views in said.items() if other in views)
    return any(_names(sum(both) - other, own, said) for both in pairs)


def _joining(
    linked: Mapping[Places, Verdict], said: _Said, mixed: Mapping[int, int], count: int
) -> Iterator[Places]:
    """The most alike links between branches of a family in which all name each other.

    A mixture belongs to the branch of its first parent (`mixed`) and joins no others to it. Links
    of rounded copies come last: what these were made from is as near.
    """
    branches = [
        both for both in said if all(mixed.get(own, sum(both) - own) in both for own in said[both])
    ]
    group = {at: number for number, some in enumerate(groups(branches, count)) for at in some}
    rounded = {
        own if view.direction.first_by(Trace.ROUNDING) is Precedence.B_FIRST else sum(both) - own
        for both, views in said.items()
        for own, view in views.items()
        if view.direction.first_by(Trace.ROUNDING) is not None
    }
    able = [
        (both, one)
        for both, one in linked.items()
        if one.relation in TAKEN_OVER and not mixed.keys() & {*both}
    ]
    for (one, other), _ in sorted(
        able, key=lambda each: (not rounded & {*each[0]}, _rank(each[1])), reverse=True
    ):
        if group[one] != group[other]:
            yield min(one, other), max(one, other)
            gone, kept = group[other], group[one]
            group = {at: kept if own == gone else own for at, own in group.items()}


def _with_whole_mixtures(
    edges: Sequence[Edge], parents: Mapping[int, Collection[int]]
) -> list[Edge]:
    """Edges, without weights and what they tell where not all parents of a mixture have one."""
    shown: dict[int, set[int]] = {}
    for one in edges:
        if one.weight is not None:
            shown.setdefault(one.b, set()).add(one.a)
    return [
        one
        if one.weight is None or shown[one.b] == parents[one.b]
        else replace(
            one,
            weight=None,
            basis=None if one.basis is DirectionBasis.BETWEEN else one.basis,
        )
        for one in edges
    ]


def _with_one_parent(
    edges: Sequence[Edge], several: Collection[int], either: Collection[frozenset[int]], count: int
) -> list[Edge]:
    """Edges, with a direction away from models that have another parent; not from those that name
    `several`, not between a model and those of which `either` may be its parent, and not where a
    circle comes of it. Of several that would be a model's parent it is the most alike, or none: the
    order of models tells nothing."""
    found, asked = list(edges), set(either)
    while True:
        told = (one for one in found if one.basis is not None)
        children = {one.b for one in told if not same_numbers(one.verdict)} - set(several)
        able: dict[int, list[int]] = {}
        for at, one in enumerate(found):
            if (
                frozenset((one.a, one.b)) not in asked
                and one.basis is None
                and not _objections(one)
                and (one.a in children) != (one.b in children)
            ):
                able.setdefault(one.b if one.a in children else one.a, []).append(at)
        if not able:
            return found
        tried = list(found)
        for child, some in able.items():
            asked |= {frozenset((found[at].a, found[at].b)) for at in some}
            highest = max(_rank(found[at].verdict) for at in some)
            at, *others = (at for at in some if _rank(found[at].verdict) == highest)
            if not others:
                edge = found[at] if found[at].b == child else _swapped(found[at])
                tried[at] = replace(edge, basis=DirectionBasis.ONE_PARENT)
        kept = _without_circles(tried, count)
        found = [
            new if new.basis is one.basis else old
            for old, new, one in zip(found, tried, kept, strict=True)
        ]


def _rank(verdict: Verdict) -> tuple[float, int]:
    """How alike two models are, and how many of their weights lie in equal parts."""
    return likeness_by_parts(verdict), equal_weights(verdict)


def _objections(edge: Edge) -> bool:
    """Whether traces say something of an edge, which does not suffice to decide it, or the two
    hold the same numbers."""
    return same_numbers(edge.verdict) or any(one.trace.counted for one in edge.traces)


def same_numbers(verdict: Verdict) -> bool:
    """Whether two models hold the very same numbers, as far as both were read."""
    if verdict.relation is Relation.SAME_WEIGHTS:
        return VerdictReason.SAME_NUMBERS in verdict.reasons
    return verdict.relation is Relation.IDENTICAL


def lies_between(one: Named) -> bool:
    """Whether a model is a mixture of its parents in which all of them have a positive part."""
    weights = [each.weight for each in one.parents]
    return len(weights) > 1 and all(weight is not None and weight > 0 for weight in weights)


def _votes(
    named: int, partner: int, first: Mapping[int, int], equal: Collection[frozenset[int]]
) -> int:
    """How many models other than its partner and its equals name a model first."""
    return sum(
        chosen == named and own != partner and frozenset((own, named)) not in equal
        for own, chosen in first.items()
    )


def _told(
    direction: Direction, votes: tuple[int, int], merged: Collection[Precedence]
) -> tuple[Precedence, DirectionBasis | None]:
    """Who came first, and what tells it: traces; or else, where nothing contradicts."""
    if direction.answer is not Precedence.UNDECIDED:
        return direction.answer, DirectionBasis.TRACES
    traced = {one.speaks for one in direction.traces if one.trace.counted}
    rounded = direction.first_by(Trace.ROUNDING)
    for basis, said in (
        (DirectionBasis.BETWEEN, merged),
        (DirectionBasis.ROUNDED, [] if rounded is None else [rounded]),
        (DirectionBasis.CENTRAL, _central(votes)),
    ):
        if said:
            (one,) = said if len(said) == 1 else (Precedence.UNDECIDED,)
            agreed = one is not Precedence.UNDECIDED and traced <= {one}
            return (one, basis) if agreed else (Precedence.UNDECIDED, None)
    return Precedence.UNDECIDED, None


def _central(votes: tuple[int, int]) -> list[Precedence]:
    """Which of two models is the more central one of its family, if that is clear."""
    (fewer, more), (one, other) = sorted(votes), votes
    if more < max(CENTRAL, CLEARLY * fewer):
        return []
    return [Precedence.A_FIRST if one > other else Precedence.B_FIRST]


def _swapped(edge: Edge) -> Edge:
    """The same with the other model called A."""
    traces = tuple(one.swapped for one in edge.traces)
    return replace(
        edge,
        a=edge.b,
        b=edge.a,
        verdict=seen_from_second(edge.verdict),
        traces=traces,
        votes=(edge.votes[1], edge.votes[0]),
    )


def _without_circles(edges: Sequence[Edge], count: int) -> list[Edge]:
    """Edges, less the direction of those from which arrows lead back to where they begin."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    told = [(one.a, one.b) for one in edges if one.basis is not None]
    ends = tuple(np.array(told, np.int64).reshape(-1, 2).T)
    graph = coo_array((np.ones(len(told), np.int8), ends), (count, count))
    _, label = connected_components(graph.tocsr(), connection="strong")
    return [
        replace(one, basis=None, weight=None) if label[one.a] == label[one.b] else one
        for one in edges
    ]
