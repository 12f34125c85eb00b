"""What is said of a search in an atlas: decided once for all views."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from kinprint import text
from kinprint.records import TAKEN_OVER, Level, Precedence, Relation
from kinprint.report.numbers import fixed, likeness_of_models, p_claim, rounded_up
from kinprint.report.relations import words_for
from kinprint.report.schema import IdentifyDocument, RelativePart
from kinprint.report.translation import translated
from kinprint.studies.results import Table

_NAMED = 5  # relatives that a sentence names


def summary(document: IdentifyDocument, language: str) -> str:
    """The headline."""

    def say(key: str, **fields: object) -> str:
        return text.say(f"identify.summary.{key}", language, model=document.model.title, **fields)

    if not document.searched:
        return say("empty")
    if not document.compared:
        return say("none-compared", searched=document.searched)
    if not document.parents:
        return _without_parents(document, say)
    names = ", ".join(one.title for one in document.parents)
    tied = ", ".join(one.title for one in document.relatives if one.tied)
    if document.parents[0].relation is Relation.IDENTICAL:
        return say("same-numbers", parents=", ".join(filter(None, (names, tied))))
    said = say(_how_built(document.parents), parents=names)
    if not tied:
        return said
    return said + " " + say("tied", parent=document.parents[0].title, others=tied)


def _how_built(parents: Sequence[RelativePart]) -> str:
    """Which sentence tells of parents; of weights that are shared only where all of theirs are."""
    if any(one.relation not in TAKEN_OVER for one in parents):
        return "undecided-kind"
    told = all(one.direction is Precedence.B_FIRST for one in parents)
    return f"{'several' if len(parents) > 1 else 'one'}-{'told' if told else 'open'}"


def _without_parents(document: IdentifyDocument, say: Callable[..., str]) -> str:
    """The headline where no model shows as a parent."""
    if document.relatives or document.descendants:
        return say("relatives", searched=document.searched)
    left_open = undecided(document)
    if not left_open:
        return say("nothing", searched=document.searched)
    if all(one.relation is Relation.UNTESTABLE for one in document.unlinked):
        return say("untested", searched=document.searched)
    return say("undecided", searched=document.searched, open=left_open)


def undecided(document: IdentifyDocument) -> int:
    """How many models could not be tested: they are neither linked nor cleared."""
    untestable = sum(one.relation is Relation.UNTESTABLE for one in document.unlinked)
    return untestable + len(document.left_out)


def parent_says(document: IdentifyDocument, one: RelativePart, language: str) -> Iterator[str]:
    """What there is to know of one parent: relation and link, amount, parts, direction."""

    def say(key: str, **fields: object) -> str:
        return text.say(f"identify.{key}", language, **fields)

    relation = words_for(one.relation)[language]
    if one.log10_p is None or one.relation is Relation.IDENTICAL:
        yield say("link-without-p", relation=relation)
    else:
        yield say("link", relation=relation, p=p_claim(one.log10_p), searched=document.searched)
    amount = say("likeness", likeness=likeness_of_models(one.likeness, one.relation))
    if one.weight is not None:
        amount += " " + say("weight", weight=fixed(one.weight, 2))
    yield amount
    counts = Counter(part.state for part in one.parts)
    if counts:
        states = ", ".join(
            f"{count} {text.say(f'report.state.{state}', language)}"
            for state, count in counts.items()
        )
        yield say("parts", states=states)
    yield say(f"direction.{one.direction}")
    yield say("declared" if one.declared else "undeclared")


def sentences(document: IdentifyDocument, language: str) -> Iterator[str]:
    """What there is to know of the search: others that are linked, coverage, power, faults."""

    def say(key: str, **fields: object) -> str:
        return text.say(f"identify.{key}", language, **fields)

    for key, some in (("relatives", document.relatives), ("descendants", document.descendants)):
        if some:
            names = ", ".join(one.title for one in some[:_NAMED])
            more = say("more", count=len(some) - _NAMED) if len(some) > _NAMED else ""
            yield say(key, names=names + more)
    for declared in document.declared:
        claim = declared.claim
        yield say(f"claim.{declared.state}", model=claim.model, where=claim.where)
    if document.searched:
        yield say("coverage", compared=document.compared, searched=document.searched,
                  family=f"{100 * document.family:g} %")  # fmt: skip
    levels = [one.level for _, one in linked(document)]
    levels += [one.level for one in document.unlinked]
    deep = levels.count(Level.DEEP)
    if deep:
        yield say("deep", count=deep)
    by_keys = document.searched - document.compared - len(document.left_out)
    if by_keys > 0:
        yield say("by-keys", count=by_keys)
    effects = [one.effect for one in document.unlinked if one.effect is not None]
    if effects:
        yield say("power", count=len(effects), effect=fixed(rounded_up(max(effects), 2), 2))
    silent = len(document.unlinked) - len(effects)
    if silent:
        yield say("no-power", count=silent)
    for one in document.same:
        yield say("same", name=one.title)
    if document.other_seeds:
        yield say("other-seeds", count=document.other_seeds)


def faults(document: IdentifyDocument, language: str) -> Iterator[str]:
    """Why fingerprints could not be used, and models not be read from their files."""
    yield from (translated(document, one.reason, language) for one in document.left_out)
    compared = [one for _, one in linked(document)] + list(document.unlinked)
    titles = {one.entry: one.title for one in compared}
    for one in document.not_deep:
        yield text.say(
            "identify.not-deep",
            language,
            name=titles.get(one.entry, one.name),
            reason=translated(document, one.reason, language),
        )


def linked(document: IdentifyDocument) -> Iterator[tuple[str, RelativePart]]:
    """All linked models, parents first, and which kind of kin each is.

    Nobody is called a parent of whom it is not decided that weights were taken over.
    """
    for one in document.parents:
        yield "parent" if one.relation in TAKEN_OVER else "undecided", one
    yield from (("descendant", one) for one in document.descendants)
    yield from (("relative", one) for one in document.relatives)


def table_of(document: IdentifyDocument) -> Table:
    """All linked models, parents first."""
    columns = ("role", "name", "commit", "relation", "log10_p", "likeness", "weight", "direction")
    rows = tuple(
        (kin, one.name, one.commit, one.relation.value, one.log10_p, one.likeness, one.weight,
         one.direction.value)
        for kin, one in linked(document)
    )  # fmt: skip
    return Table("relatives", text.words("identify.table"), columns, rows)
