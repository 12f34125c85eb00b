"""Family trees of an atlas: which models belong together, and who was plausibly made from whom.

Linked pairs make families. Every model names its parents among those that it is linked with, as
`identify` has it; whoever is named makes an edge. Branches of a family in which all name each
other, or that a mixture alone joins, are joined by their most alike link. An edge has a direction
where something tells it:

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

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.atlas.declared import declared_in
from kinprint.atlas.fingerprint import LEVEL
from kinprint.atlas.identify import alpha_for, is_named, may_be_named
from kinprint.atlas.naming import Named, NamedParent
from kinprint.atlas.pairs import (
    SHORTLIST,
    Both,
    Compared,
    Comparing,
    Household,
    Naming,
    Piece,
    candidate_pairs,
    groups,
    households,
    pieces,
)
from kinprint.atlas.parents import likeness_by_parts, seen_from_second
from kinprint.atlas.pools import Pool, here
from kinprint.atlas.store import Atlas, Entry, Index
from kinprint.diff.direction import Direction, TraceFound
from kinprint.errors import KinprintError
from kinprint.lineage.about.claims import Claim
from kinprint.lineage.matrix import Clock, Teller, silent
from kinprint.lineage.results import Settings
from kinprint.records import (
    TAKEN_OVER,
    ClaimedEdge,
    DeclaredState,
    DirectionBasis,
    Precedence,
    Relation,
    Step,
    Trace,
    Verdict,
)

CENTRAL = 3
"""Others that must name a model first, so that it is called the likely parent."""
CLEARLY = 2
"""Times as many as name its partner that these must be."""
_ASKED = 24  # of its linked models, the most alike ones that a model chooses its parents from

Places = tuple[int, int]


class Node(Struct, frozen=True):
    """A model of the tree.

    Attributes
    ----------
    entry
        The model.
    copies
        Other entries with the very same files.
    declared
        Origins that it declares, and what became of them in the atlas.
    """

    entry: Entry
    copies: tuple[Entry, ...] = ()
    declared: tuple[tuple[Claim, DeclaredState], ...] = ()


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


class Link(Struct, frozen=True):
    """Two linked models without an edge; the first is A."""

    a: int
    b: int
    verdict: Verdict
    likeness: float
    log10_p: float


class Tree(Struct, frozen=True):
    """The families of an atlas.

    Attributes
    ----------
    nodes
        Its models, each once.
    families
        Numbers of models that are linked, directly or through others; the largest family first.
    edges
        Who names whom.
    links
        Linked pairs without an edge.
    pairs
        How many pairs there are; all of them are paid for.
    compared
        How many of them were compared.
    effects
        Of pairs that were compared without a link, the smallest effects that a test would have
        seen; None where none could be run.
    alpha
        The error of each comparison.
    seed
        Chose which rows were read.
    other_seeds
        How many models were read with other seeds, and take no part.
    failed
        Pairs that could not be compared, and why.
    broken
        Fingerprints that cannot be used, by digest, and why.
    """

    nodes: tuple[Node, ...]
    families: tuple[tuple[int, ...], ...]
    edges: tuple[Edge, ...]
    links: tuple[Link, ...]
    pairs: int
    compared: int
    effects: tuple[float | None, ...]
    alpha: float
    seed: int
    other_seeds: int = 0
    failed: tuple[tuple[Places, KinprintError], ...] = ()
    broken: tuple[tuple[str, KinprintError], ...] = ()


def tree_of(
    atlas: Atlas,
    seed: int | None = None,
    shortlist: int = SHORTLIST,
    pool: Pool = here,
    tell: Teller = silent,
    declared: str | None = None,
) -> Tree:
    """The families of all models of an atlas.

    Parameters
    ----------
    atlas
        The models.
    seed
        Models that were read with another are left out; that of most models if None.
    shortlist
        How many models each is compared with at most, by its own keys.
    pool
        Where the work is done.
    tell
        Told how many pieces of work are done.
    declared
        A table of what models of a hub declare (`declared.py`), beside what their own files say.
    """
    index, faults = atlas.index()
    told = {} if declared is None else declared_in(declared, set(index.column("name")))
    seeds = Counter(index.column("seed"))
    chosen = seed if seed is not None else min(seeds, key=lambda one: (-seeds[one], one), default=0)
    copies = _copies(index, chosen)
    allowed = np.zeros(len(index), bool)
    allowed[list(copies)] = True
    pairs = math.comb(len(copies), 2)
    settings = Settings(LEVEL, alpha_for(pairs), seed=chosen)
    names = index.column("id")
    candidates, damaged = candidate_pairs(atlas, index, allowed, shortlist)
    task = Comparing(atlas.address, settings)
    found = _compare(list(pieces(candidates, names)), task, pool, tell)
    by_model = _by_model(found.linked)
    asked = list(households(by_model))
    naming = Naming(atlas.address, settings)
    named = _name(asked, naming, pool, tell)
    again = list(households(_without_mixtures(by_model, named)))
    named |= _name(again, naming, pool, tell)
    broken = {str(one.fields["entry"]): one for one in (*faults, *damaged)} | dict(found.broken)
    kept = [at for at in copies if names[at] not in broken]
    nodes = [
        Node(_with_claims(index.entry(at), told), tuple(map(index.entry, copies[at])))
        for at in kept
    ]
    place = {node.entry.id: number for number, node in enumerate(nodes)}
    linked = {(place[one], place[other]): each for (one, other), each in found.linked.items()}
    edges = _edges(nodes, linked, {place[name]: one for name, one in named.items()}, place)
    joined = {frozenset((one.a, one.b)) for one in edges}
    unlinked = {frozenset(place[each] for each in one.both) for one in found.unlinked}
    met = {frozenset(both) for both in linked}
    return Tree(
        tuple(
            replace(node, declared=_declared(number, nodes, met, unlinked))
            for number, node in enumerate(nodes)
        ),
        tuple(tuple(one) for one in groups(linked, len(nodes)) if len(one) > 1),
        tuple(replace(one, log10_p=_paid(one.verdict, pairs)) for one in edges),
        tuple(
            Link(*both, verdict, likeness_by_parts(verdict), _paid(verdict, pairs))
            for both, verdict in linked.items()
            if frozenset(both) not in joined
        ),
        pairs,
        len(linked) + len(unlinked),
        tuple(one.effect for one in found.unlinked),
        settings.alpha,
        chosen,
        len(index) - seeds[chosen],
        tuple(((place[one], place[other]), error) for (one, other), error in found.failed),
        tuple(broken.items()),
    )


def _with_claims(entry: Entry, told: Mapping[str, tuple[Claim, ...]]) -> Entry:
    """An entry with what a table declares of it beside what its own files say."""
    return replace(entry, claims=(*entry.claims, *told.get(entry.ref.name, ())))


def _copies(index: Index, seed: int) -> dict[int, list[int]]:
    """Models of a seed, each with others that have the same files and keys."""
    first: dict[tuple[str, bytes], int] = {}
    found: dict[int, list[int]] = {}
    seeds, files = index.column("seed"), index.column("files")
    ends = [*index.firsts.tolist(), len(index.keys)]
    for at, start in enumerate(ends[:-1]):
        if seeds[at] == seed:
            own = first.setdefault((files[at], index.keys[start : ends[at + 1]].tobytes()), at)
            found.setdefault(own, []).extend([at] if own != at else [])
    return found


def _compare(given: Sequence[Piece], task: Comparing, pool: Pool, tell: Teller) -> Compared:
    """What all pieces of work gave together; of one that was lost all pairs have failed."""
    found: list[Compared] = []
    clock = Clock(sum(len(piece.pairs) for piece in given), tell)
    for piece, outcome in pool(task, given):
        if isinstance(outcome, KinprintError):
            outcome = Compared({}, failed=tuple((both, outcome) for both in piece.pairs))
        found.append(outcome)
        clock.done(len(piece.pairs))
    broken = {name: error for one in found for name, error in one.broken}
    return Compared(
        dict(sorted((both, each) for one in found for both, each in one.linked.items())),
        tuple(sorted((each for one in found for each in one.unlinked), key=lambda one: one.both)),
        tuple(
            sorted(
                (each for one in found for each in one.failed if not {*each[0]} & broken.keys()),
                key=lambda one: one[0],
            )
        ),
        tuple(sorted(broken.items())),
    )


def _by_model(linked: Mapping[Both, Verdict]) -> dict[str, dict[str, Verdict]]:
    """For each model those that it is linked with, the most alike first, as seen from it; models
    of one family follow one another."""
    found: dict[str, dict[str, Verdict]] = {}
    for (one, other), verdict in linked.items():
        found.setdefault(one, {})[other] = verdict
        found.setdefault(other, {})[one] = seen_from_second(verdict)
    names = list(found)
    place = {name: at for at, name in enumerate(names)}
    families = groups([(place[one], place[other]) for one, other in linked], len(names))
    return {
        names[at]: dict(
            sorted(found[names[at]].items(), key=lambda one: -likeness_by_parts(one[1]))[:_ASKED]
        )
        for family in families
        for at in family
    }


def _name(given: Sequence[Household], task: Naming, pool: Pool, tell: Teller) -> dict[str, Named]:
    """Whom each model names; one that could not be asked names nobody."""
    found: dict[str, Named] = {}
    done = 0
    for household, answer in pool(task, given):
        found |= {} if isinstance(answer, KinprintError) else answer
        done += len(household.models)
        tell(Step.NAMING, "", done, sum(len(one.models) for one in given))
    return dict(sorted(found.items()))


def _without_mixtures(
    linked: Mapping[str, Mapping[str, Verdict]], named: Mapping[str, Named]
) -> dict[str, dict[str, Verdict]]:
    """Models that others are mixtures of, and their links without these and their rounded copies: a
    mixture of several is nearer to each of them than what they come from."""
    rounded: dict[str, set[str]] = {}
    for name, answer in named.items():
        for one in answer.parents:
            if one.direction.first_by(Trace.ROUNDING) is Precedence.B_FIRST:
                rounded.setdefault(one.name, set()).add(name)
    made: dict[str, set[str]] = {}
    for name, answer in named.items():
        if _lies_between(answer):
            for one in answer.parents:
                made.setdefault(one.name, set()).update({name}, rounded.get(name, ()))
    return {
        name: {other: each for other, each in linked[name].items() if other not in made[name]}
        for name in linked
        if name in made
    }


def _edges(
    nodes: Sequence[Node],
    linked: Mapping[Places, Verdict],
    named: Mapping[int, Named],
    place: Mapping[str, int],
) -> tuple[Edge, ...]:
    """Who names whom, with a direction where something tells it and no circle comes of it."""
    said: dict[Places, dict[int, NamedParent]] = {}
    for own, answer in named.items():
        for each in (*answer.parents, *answer.later):
            if each.weight is None or each.weight > 0:  # else it is what another was mixed with
                to = place[each.name]
                said.setdefault((min(own, to), max(own, to)), {})[own] = each
    between = {own for own, answer in named.items() if _lies_between(answer)}
    said = {
        (one, other): views
        for (one, other), views in said.items()
        if not _by_elder(one, other, said, between) and not _by_elder(other, one, said, between)
    }
    first = {own: place[each.parents[0].name] for own, each in named.items() if each.parents}
    for both in _joining(linked, said, {own: first[own] for own in between}, len(nodes)):
        said[both] = {}
    equal = {frozenset(both) for both, one in linked.items() if one.relation is Relation.IDENTICAL}
    edges = []
    for (one, other), views in sorted(said.items()):
        verdict = linked.get((one, other)) or seen_from_second(linked[other, one])
        alike = likeness_by_parts(verdict)
        seen = [
            view.direction if own == one else view.direction.swapped for own, view in views.items()
        ]
        direction = next((each for each in seen if each.traces), Direction(Precedence.UNDECIDED))
        votes = (_votes(one, other, first, equal), _votes(other, one, first, equal))
        same = verdict.relation is Relation.IDENTICAL
        merged = {
            Precedence.B_FIRST if child == one else Precedence.A_FIRST
            for child in views.keys() & between
        }
        came_first, basis = _told(direction, (0, 0) if same else votes, merged)
        edge = Edge(one, other, verdict, alike, 0.0, basis, direction.traces, votes)
        edge = _swapped(edge) if came_first is Precedence.B_FIRST else edge
        mixed = edge.b in views.keys() & between
        edges.append(replace(edge, weight=views[edge.b].weight if mixed else None))
    several = {own for own, answer in named.items() if len(answer.parents) > 1}
    edges = _with_one_parent(_without_circles(edges, len(nodes)), several, len(nodes))
    told = {one.b for one in edges if one.basis is not None and _names(one.b, one.a, said)}
    kept = [
        one
        for one in edges
        if not (one.basis and one.b in told and _names_alone(one.a, one.b, said))
    ]
    return tuple(replace(one, claim=_claim(one, nodes)) for one in kept)


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
        able, key=lambda each: (bool(rounded & {*each[0]}), -likeness_by_parts(each[1]))
    ):
        if group[one] != group[other]:
            yield min(one, other), max(one, other)
            gone, kept = group[other], group[one]
            group = {at: kept if own == gone else own for at, own in group.items()}


def _with_one_parent(edges: Sequence[Edge], several: Collection[int], count: int) -> list[Edge]:
    """Edges, with a direction away from models that have another parent; not from those that name
    `several`, and not where a circle comes of it."""
    found, barred = list(edges), set[int]()
    while True:
        children = {one.b for one in found if one.basis is not None} - set(several)
        for at, one in enumerate(found):
            if (
                at not in barred
                and one.basis is None
                and not _objections(one)
                and (one.a in children) != (one.b in children)
            ):
                edge = one if one.a in children else _swapped(one)
                tried = [*found[:at], replace(edge, basis=DirectionBasis.ONE_PARENT)]
                tried += found[at + 1 :]
                if _without_circles(tried, count) == tried:
                    found = tried
                else:
                    barred.add(at)
                break
        else:
            return found


def _objections(edge: Edge) -> bool:
    """Whether traces say something of an edge, which does not suffice to decide it, or the two
    hold the same numbers."""
    same = edge.verdict.relation is Relation.IDENTICAL
    return same or any(one.trace.counted for one in edge.traces)


def _lies_between(one: Named) -> bool:
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
    return [replace(one, basis=None) if label[one.a] == label[one.b] else one for one in edges]


def _claim(edge: Edge, nodes: Sequence[Node]) -> ClaimedEdge:
    """How an edge stands to what its models declare; one without a direction fits either way."""
    first, second = nodes[edge.a], nodes[edge.b]
    forth, back = _names_it(second, first), _names_it(first, second)
    if forth or (back and edge.basis is None):
        return ClaimedEdge.AGREED
    declares = bool(second.entry.claims) or (edge.basis is None and bool(first.entry.claims))
    return ClaimedEdge.CONTRADICTED if back or declares else ClaimedEdge.SILENT


def _names_it(node: Node, other: Node) -> bool:
    """Whether a model declares another, or a copy of it, as its origin."""
    return any(
        may_be_named(claim.model, one.ref)
        for claim in node.entry.claims
        for one in (other.entry, *other.copies)
    )


def _declared(
    own: int,
    nodes: Sequence[Node],
    linked: Collection[frozenset[int]],
    unlinked: Collection[frozenset[int]],
) -> tuple[tuple[Claim, DeclaredState], ...]:
    """Origins that a model declares, and what became of them."""
    found = []
    for claim in nodes[own].entry.claims:
        meant, likely = (
            [
                frozenset((own, number))
                for number, node in enumerate(nodes)
                if number != own
                and any(is_meant(claim.model, one.ref) for one in (node.entry, *node.copies))
            ]
            for is_meant in (is_named, may_be_named)
        )
        state = DeclaredState.NOT_COMPARED if meant else DeclaredState.NOT_IN_ATLAS
        if any(both in unlinked for both in meant):
            state = DeclaredState.UNLINKED
        if any(both in linked for both in likely):
            state = DeclaredState.LINKED
        found.append((claim, state))
    return tuple(found)


def _paid(verdict: Verdict, pairs: int) -> float:
    """The log10 p of a link, paid for all pairs."""
    return min(verdict.log10_p + math.log10(max(pairs, 1)), 0.0)
