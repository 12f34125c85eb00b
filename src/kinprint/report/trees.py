"""Families of an atlas as all views show them: who hangs below whom, what is said of an edge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from kinprint import text
from kinprint.report.numbers import fixed, likeness_of_models, p_claim, rounded_up
from kinprint.report.relations import words_for
from kinprint.report.schema import TreeDocument, TreeEdge, TreeLink
from kinprint.studies.results import Table


class Certainty(StrEnum):
    """How sure the direction of an edge is: told, likely, or open."""

    TOLD = "told"
    LIKELY = "likely"
    OPEN = "open"


class Row(Struct, frozen=True):
    """A model of a family, as it stands in a list that reads as a tree.

    Attributes
    ----------
    model
        Its place in the document.
    depth
        How many models it hangs below.
    edge
        What it hangs by; None for one that hangs below nobody.
    last
        Of each model that it hangs below, and of itself, whether it is the last one there.
    link
        Of a model without any edge, its nearest link: why it is in the family.
    others
        Edges to its other parents, the most alike first.
    beside
        Edges without a direction by which no model hangs, the most alike first; each is told at the
        later of its two models.
    """

    model: int
    depth: int
    edge: TreeEdge | None
    last: tuple[bool, ...] = ()
    link: TreeLink | None = None
    others: tuple[TreeEdge, ...] = ()
    beside: tuple[TreeEdge, ...] = ()


def certainty(edge: TreeEdge) -> Certainty:
    """How sure the direction of an edge is."""
    if edge.basis is None:
        return Certainty.OPEN
    return Certainty.LIKELY if edge.basis.likely else Certainty.TOLD


def rows_of(document: TreeDocument, family: Sequence[int]) -> list[Row]:
    """The models of a family in an order that reads as a tree.

    A model hangs below the most alike of its parents. One without any hangs by an edge that has no
    direction, if it has one to a model that stands already; otherwise it begins a tree of its own.
    """
    inside = set(family)
    edges = [one for one in document.edges if {one.a, one.b} <= inside]
    edges.sort(key=lambda one: -one.likeness)
    above: dict[int, TreeEdge] = {}
    for edge in edges:
        if edge.basis is not None:
            above.setdefault(edge.b, edge)
    below: dict[int, list[tuple[int, TreeEdge]]] = {at: [] for at in family}
    for at, edge in above.items():
        below[edge.a].append((at, edge))
    title = {at: document.models[at].title for at in family}
    met = Counter(at for edge in edges for at in (edge.a, edge.b))
    waiting = sorted(
        (at for at in family if at not in above),
        key=lambda at: (-len(below[at]), -met[at], title[at]),
    )
    tops: list[int] = []
    placed: set[int] = set()
    while waiting:
        hung = next(
            (
                (at, edge)
                for edge in edges
                if edge.basis is None
                for at, to in ((edge.a, edge.b), (edge.b, edge.a))
                if at in waiting and to in placed
            ),
            None,
        )
        at = waiting[0] if hung is None else hung[0]
        waiting.remove(at)
        if hung is None:
            tops.append(at)
        else:
            below[hung[1].a + hung[1].b - at].append((at, hung[1]))
        placed |= _reached(at, below)
    rows: list[Row] = []
    links = links_by_model(document)
    lone = {at: links[at][0] for at in tops if not met[at] and at in links}
    others = {
        at: tuple(one for one in edges if one.b == at and one.basis and one is not above.get(at))
        for at in family
    }
    stack = [Row(at, 0, None, link=lone.get(at)) for at in reversed(tops)]
    while stack:
        row = stack.pop()
        rows.append(row)
        ordered = sorted(below[row.model], key=lambda one: title[one[0]], reverse=True)
        stack += [
            Row(at, row.depth + 1, edge, (*row.last, number == 0), others=others[at])
            for number, (at, edge) in enumerate(ordered)
        ]
    drawn = {id(row.edge) for row in rows}
    place = {row.model: number for number, row in enumerate(rows)}
    beside: dict[int, list[TreeEdge]] = {}
    for edge in edges:
        if edge.basis is None and id(edge) not in drawn and {edge.a, edge.b} <= place.keys():
            beside.setdefault(max(place[edge.a], place[edge.b]), []).append(edge)
    return [replace(row, beside=tuple(beside.get(number, ()))) for number, row in enumerate(rows)]


def _reached(top: int, below: Mapping[int, Sequence[tuple[int, TreeEdge]]]) -> set[int]:
    """A model, and all that hang below it."""
    found, left = {top}, [top]
    while left:
        new = [at for at, _ in below[left.pop()] if at not in found]
        found |= set(new)
        left += new
    return found


def edges_by_model(document: TreeDocument) -> dict[int, list[TreeEdge]]:
    """All edges of each model, the most alike first."""
    found: dict[int, list[TreeEdge]] = {}
    for edge in sorted(document.edges, key=lambda one: -one.likeness):
        for at in (edge.a, edge.b):
            found.setdefault(at, []).append(edge)
    return found


def links_by_model(document: TreeDocument) -> dict[int, list[TreeLink]]:
    """Linked models without an edge, of each model, the most alike first."""
    found: dict[int, list[TreeLink]] = {}
    for link in sorted(document.links, key=lambda one: -one.likeness):
        for at in (link.a, link.b):
            found.setdefault(at, []).append(link)
    return found


def unlinked_models(document: TreeDocument) -> list[int]:
    """Places of models that are in no family."""
    inside = {at for family in document.families for at in family}
    return [at for at in range(len(document.models)) if at not in inside]


def summary(document: TreeDocument, language: str) -> str:
    """The headline."""
    models, families = len(document.models), len(document.families)
    if models < 2:
        return text.say("tree.summary.empty", language)
    if not document.compared:
        return text.say("tree.summary.none-compared", language, models=models, pairs=document.pairs)
    if not families and document.failed:
        counts = {"compared": document.compared, "pairs": document.pairs}
        return text.say("tree.summary.failed", language, models=models, **counts)
    if not families:
        return text.say("tree.summary.nothing", language, models=models)
    return text.say(
        f"tree.summary.{'one' if families == 1 else 'several'}",
        language,
        models=models,
        families=families,
        linked=sum(map(len, document.families)),
        edges=len(document.edges),
        told=sum(one.basis is not None for one in document.edges),
    )


def line_of(edge: TreeLink, language: str) -> str:
    """An edge in a few words: relation and likeness, and the weight of a merge."""
    said = text.say(
        "tree.line",
        language,
        relation=words_for(edge.relation)[language],
        likeness=likeness_of_models(edge.likeness, edge.relation),
    )
    weight = edge.weight if isinstance(edge, TreeEdge) else None
    if weight is None:
        return said
    return text.say("tree.line-weight", language, said=said, weight=fixed(weight, 2))


def row_line(document: TreeDocument, row: Row, language: str) -> str:
    """What stands behind the name of a model: the edge that it hangs by, or its nearest link."""
    if row.edge is not None:
        return line_of(row.edge, language)
    if row.link is None:
        return ""
    other = document.models[row.link.a + row.link.b - row.model].title
    return text.say("tree.line-link", language, model=other, said=line_of(row.link, language))


def other_edges(document: TreeDocument, row: Row, language: str) -> str:
    """From whom else a model was made, with the weights of a merge, and further edges."""

    def named(edge: TreeEdge) -> str:
        name = document.models[edge.a].title
        if edge.weight is None:
            return name
        weight = fixed(edge.weight, 2)
        return text.say("tree.parent-weight", language, model=name, weight=weight)

    partners = [document.models[one.a + one.b - row.model].title for one in row.beside]
    said = (("tree.also-from", list(map(named, row.others))), ("tree.also-with", partners))
    return ", ".join(text.say(key, language, models=", ".join(some)) for key, some in said if some)


def edge_says(document: TreeDocument, edge: TreeEdge, language: str) -> Iterator[str]:
    """What there is to know of an edge: link, amount, direction, and what is declared."""

    def say(key: str, **fields: object) -> str:
        return text.say(key, language, **fields)

    a, b = (document.models[at].title for at in (edge.a, edge.b))
    relation = words_for(edge.relation)[language]
    if edge.log10_p is None:
        yield say("identify.link-without-p", relation=relation)
    else:
        yield say("tree.link", relation=relation, p=p_claim(edge.log10_p), pairs=document.pairs)
    amount = say("identify.likeness", likeness=likeness_of_models(edge.likeness, edge.relation))
    if edge.weight is not None:
        amount += " " + say("tree.weight", a=a, b=b, weight=fixed(edge.weight, 2))
    yield amount
    if edge.parts:
        states = ", ".join(
            f"{count} {say(f'report.state.{state}')}" for state, count in edge.parts.items()
        )
        yield say("identify.parts", states=states)
    yield say(
        f"tree.basis.{edge.basis or 'none'}", a=a, b=b, votes=edge.votes[0], fewer=edge.votes[1]
    )
    yield say(f"tree.claim.{edge.declared}")


def sentences(document: TreeDocument, language: str) -> Iterator[str]:
    """What there is to know of the search: coverage, power, who took no part."""

    def say(key: str, **fields: object) -> str:
        return text.say(f"tree.{key}", language, **fields)

    if document.pairs:
        yield say("coverage", compared=document.compared, pairs=document.pairs,
                  family=f"{100 * document.family:g} %")  # fmt: skip
    readable = math.comb(len(document.models), 2)
    by_keys = readable - document.compared - len(document.failed)
    if by_keys > 0:
        yield say("by-keys", count=by_keys)
    seen = document.unlinked - document.silent
    if seen and document.effect is not None:
        yield say("power", count=seen, effect=fixed(rounded_up(document.effect, 2), 2))
    if document.silent:
        yield say("no-power", count=document.silent)
    for one in document.models:
        if one.copies:
            yield say("copies", name=one.title, count=len(one.copies))
    if document.other_seeds:
        yield say("other-seeds", count=document.other_seeds, seed=document.seed)


def table_of(document: TreeDocument) -> Table:
    """All edges and links, a row each."""
    columns = ("kind", "a", "b", "relation", "log10_p", "likeness", "basis", "weight", "declared")
    names = [one.name for one in document.models]
    rows = tuple(
        ("edge", names[one.a], names[one.b], one.relation.value, one.log10_p, one.likeness,
         one.basis.value if one.basis else None, one.weight, one.declared.value)
        for one in document.edges
    ) + tuple(
        ("link", names[one.a], names[one.b], one.relation.value, one.log10_p, one.likeness,
         None, None, None)
        for one in document.links
    )  # fmt: skip
    return Table("edges", text.words("tree.table"), columns, rows)
