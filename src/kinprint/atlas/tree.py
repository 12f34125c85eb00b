"""Family trees of an atlas: which models belong together, and who was plausibly made from whom.

Linked pairs make families. Every model names its parents among those that it is linked with, as
`identify` has it; whoever is named makes an edge. Branches of a family in which all name each
other, or that a mixture alone joins, are joined by their most alike link (`edges.py`). Of models
that hold the very same numbers one stands for all: it alone names and is named, and each of the
others has an edge to it, or to another that has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.atlas.declared import declared_in
from kinprint.atlas.edges import Edge, Places, edges_of, lies_between, same_numbers
from kinprint.atlas.fingerprint import LEVEL
from kinprint.atlas.identify import alpha_for, is_named, may_be_named
from kinprint.atlas.naming import Named
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
from kinprint.errors import KinprintError
from kinprint.lineage.about.claims import Claim
from kinprint.lineage.matrix import Clock, Teller, silent
from kinprint.lineage.results import Settings
from kinprint.records import (
    ClaimedEdge,
    DeclaredState,
    Precedence,
    Step,
    Trace,
    Verdict,
)
from kinprint.text import Message

_ASKED = 24  # of its linked models, the most alike ones that a model chooses its parents from


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
    labels
        What models that were compared say they are not, as replicas do.
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
    labels: tuple[Message, ...] = ()


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
    stands_for = _stand_ins(found.linked)
    once = _each_once(found.linked, stands_for)
    copied = _with_stand_ins(found.linked, stands_for)
    by_model = _by_model(once) | {one: {to: each} for (one, to), each in copied.items()}
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
    edges = edges_of(
        {(place[one], place[other]): each for (one, other), each in (once | copied).items()},
        {place[name]: one for name, one in named.items()},
        place,
    )
    joined = {frozenset((one.a, one.b)) for one in edges}
    unlinked = {frozenset(place[each] for each in one.both) for one in found.unlinked}
    met = {frozenset(both) for both in linked}
    return Tree(
        tuple(
            replace(node, declared=_declared(number, nodes, met, unlinked))
            for number, node in enumerate(nodes)
        ),
        tuple(tuple(one) for one in groups(linked, len(nodes)) if len(one) > 1),
        tuple(
            replace(one, log10_p=_paid(one.verdict, pairs), claim=_claim(one, nodes))
            for one in edges
        ),
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
        found.labels,
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
        tuple(sorted({each for one in found for each in one.labels}, key=str)),
    )


def _stand_ins(linked: Mapping[Both, Verdict]) -> dict[str, str]:
    """Models that hold the numbers of another, each with the one that stands for all of them."""
    near = _of_same_numbers(linked)
    found: dict[str, str] = {}
    for name in sorted(near):
        if name not in found:
            found |= dict.fromkeys(_reached(name, near), name)
    return found


def _of_same_numbers(linked: Mapping[Both, Verdict]) -> dict[str, list[str]]:
    """Of each model those that were compared with it and hold its numbers."""
    found: dict[str, list[str]] = {}
    for one, other in sorted(both for both, verdict in linked.items() if same_numbers(verdict)):
        found.setdefault(one, []).append(other)
        found.setdefault(other, []).append(one)
    return found


def _reached(start: str, near: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """All that is joined to a model, each with the one by which it is, the nearest first."""
    found, ends = {start: start}, [start]
    for end in ends:
        for name in near[end]:
            if name not in found:
                found[name] = end
                ends.append(name)
    return {name: by for name, by in found.items() if name != start}


def _each_once(
    linked: Mapping[Both, Verdict], stands_for: Mapping[str, str]
) -> dict[Both, Verdict]:
    """Links between models of which one stands for all that hold its numbers: its own, or else
    one of theirs."""
    found: dict[Both, Verdict] = {}
    for both in sorted(linked, key=lambda both: bool(stands_for.keys() & {*both})):
        one, other = (stands_for.get(name, name) for name in both)
        if one != other and (other, one) not in found:
            found.setdefault((one, other), linked[both])
    return found


def _with_stand_ins(
    linked: Mapping[Both, Verdict], stands_for: Mapping[str, str]
) -> dict[Both, Verdict]:
    """Links of models with the one that stands for them, or with one that leads there, which is
    the second."""
    turned = {(other, one): seen_from_second(each) for (one, other), each in linked.items()}
    known, near = turned | dict(linked), _of_same_numbers(linked)
    ways = (_reached(name, near) for name in sorted({*stands_for.values()}))
    return {both: known[both] for way in ways for both in way.items()}


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
        if lies_between(answer):
            for one in answer.parents:
                made.setdefault(one.name, set()).update({name}, rounded.get(name, ()))
    return {
        name: {other: each for other, each in linked[name].items() if other not in made[name]}
        for name in linked
        if name in made
    }


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
