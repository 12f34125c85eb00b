"""What is true of a crafted pair, what a comparison claims about it, and which claims are false.

Truth is written from how a pair was made: a fact for each part, and the relations that are true to
say after reading norms alone, a sample, or everything. `claims_of` is the one place that knows how
a document of `kinprint.compare` says things; `falsehoods` holds its claims against the truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace


class Fact(StrEnum):
    """What is true of a part of two models.

    Equal: the same numbers. Rounded: the same after rounding to the coarser grid. Kin: taken over
    and changed, or renumbered, and to be found when everything is read. Hidden: taken over so that
    a silent test proves nothing. Initial: only first weights are common. Arranged: numbered alike
    on purpose, no weight is common. Foreign: nothing is common. Open: nothing is asserted.
    """

    EQUAL = "equal"
    ROUNDED = "rounded"
    KIN = "kin"
    HIDDEN = "hidden"
    INITIAL = "initial"
    ARRANGED = "arranged"
    FOREIGN = "foreign"
    OPEN = "open"


TAKEN_OVER = frozenset({Fact.EQUAL, Fact.ROUNDED, Fact.KIN, Fact.HIDDEN})
_FOUND = {
    Fact.EQUAL: frozenset({"equal"}),
    Fact.ROUNDED: frozenset({"equal", "rounded"}),
    Fact.KIN: frozenset({"equal", "rounded", "shared"}),
}
_LINKED = frozenset({"equal", "rounded", "shared"})


_NEARLY = 0.02  # how far off a share may be

OUTSIDE = -1
"""The layer of what belongs to none."""


class Reach(StrEnum):
    """How much of two models a comparison can see at a level and within a budget."""

    NORMS = "norms"
    SAMPLE = "sample"
    WHOLE = "whole"


class Where(Struct, frozen=True):
    """Some parts of a model: components, layers of the first one, a tower; None means any."""

    components: frozenset[str] | None = None
    layers: frozenset[int] | None = None
    tower: str | None = None

    def __str__(self) -> str:
        names = [] if self.components is None else ["+".join(sorted(self.components))]
        if self.layers is not None:
            names.append("layer " + ",".join(map(str, sorted(self.layers))))
        return " ".join([*([self.tower] if self.tower else []), *names]) or "all"


class Truth(Struct, frozen=True):
    """What is true of a pair.

    Attributes
    ----------
    norms, sample, whole : relations that are true to say at each reach.
    facts : facts by part of the first model; the first that fits counts.
    rest : the fact of all other parts.
    swapped : facts by part of the second model, where its layers have other numbers.
    layers : the share of the layers' matrices that is linked, where nearly that must be said after
        reading everything.
    """

    norms: frozenset[str]
    sample: frozenset[str]
    whole: frozenset[str]
    facts: tuple[tuple[Where, Fact], ...] = ()
    rest: Fact = Fact.FOREIGN
    swapped: tuple[tuple[Where, Fact], ...] | None = None
    layers: float | None = None

    def seen_from(self, swapped: bool) -> Truth:
        """The same truth with the models in the order of a reading."""
        if not swapped or self.swapped is None:
            return self
        return replace(self, facts=self.swapped, swapped=self.facts)

    def relations(self, reach: Reach) -> frozenset[str]:
        """Relations that are true to say."""
        return {Reach.NORMS: self.norms, Reach.SAMPLE: self.sample, Reach.WHOLE: self.whole}[reach]

    @property
    def linked(self) -> bool:
        """Whether labels of anything depend on each other, or may."""
        return any(fact is not Fact.FOREIGN for fact in self.all_facts)

    @property
    def taken_over(self) -> bool:
        """Whether weights of the one are in the other."""
        return any(fact in TAKEN_OVER for fact in self.all_facts)

    @property
    def all_facts(self) -> tuple[Fact, ...]:
        """Facts of all parts."""
        return (*(fact for _, fact in self.facts), self.rest)

    def facts_about(self, claim: PartClaim) -> set[Fact]:
        """Facts of the parts that a claim covers: one, or several where it names no layer."""
        covered: set[Fact] = set()
        for where, fact in self.facts:
            if not _meets(where, claim):
                continue
            covered.add(fact)
            all_layers = where.layers is None or claim.layer is not None
            if all_layers and (where.tower is None or claim.tower is not None):
                return covered
        return covered | {self.rest}


class PartClaim(Struct, frozen=True):
    """What a document says about a part.

    Without a layer it speaks of all layers together, without a tower of any. Layer -1 is outside
    the layers. `state` has the words of `PartState`; `learnt` is whether the part is said to be
    taken over as trained, None where nothing is said about that; `likeness` is how alike it is.
    `of_second` says that it is a part of the second model, to which none of the first answers.
    """

    component: str
    state: str
    layer: int | None = None
    tower: str | None = None
    learnt: bool | None = None
    likeness: float | None = None
    of_second: bool = False

    def __str__(self) -> str:
        place = "" if self.layer is None else f" {self.layer}"
        return f"{self.tower + ' ' if self.tower else ''}{self.component}{place} {self.state}"


class Claims(Struct, frozen=True):
    """What a document says that can be true or false.

    Attributes
    ----------
    relation : the word for the whole.
    linked : whether a link is said to be beyond chance.
    log10_p : of the link, None where there is none.
    parts : what is said about parts.
    by_part : whether parts are spoken of one by one, so that silence about one is telling.
    would_have_seen : whether it says without a condition that shared weights would have shown.
    planned : bytes that it says it reads at most.
    layers : the share of the layers' matrices that it says is linked.
    """

    relation: str
    linked: bool
    log10_p: float | None
    parts: tuple[PartClaim, ...] = ()
    by_part: bool = False
    would_have_seen: bool = False
    planned: int = 0
    layers: float | None = None

    @property
    def most_alike(self) -> dict[str, float]:
        """How alike the most alike part of each kind is, where something is linked."""
        most: dict[str, float] = {}
        for one in self.parts:
            if one.likeness is not None:
                most[one.component] = max(one.likeness, most.get(one.component, -1.0))
        return most


class Reading(Struct, frozen=True):
    """A level and a budget, what is within reach there, and whether the models were swapped."""

    level: str
    budget: int | None
    reach: Reach
    swapped: bool = False

    def __str__(self) -> str:
        budget = "" if self.budget is None else f" {self.budget / 1e6:g} MB"
        return f"{self.level}{budget}{' swapped' if self.swapped else ''}"


_LAYER_COMPONENTS = ("attention", "feed-forward")
_COMPONENTS = ("norms", "embedding", *_LAYER_COMPONENTS)


def claims_of(document: Mapping[str, Any]) -> Claims:
    """What a comparison's document says, whatever version of the schema it has."""
    verdict = document["verdict"]
    relation, link = str(verdict["relation"]), verdict.get("link", verdict)
    log10_p = link["log10_p"]
    by_part = isinstance(verdict.get("parts"), list)
    return Claims(
        relation=relation,
        linked=log10_p is not None and log10_p <= math.log10(link["alpha"]),
        log10_p=log10_p,
        parts=tuple(_stated(verdict["parts"]) if by_part else _implied(document)),
        by_part=by_part,
        would_have_seen=not by_part and relation == "no-evidence" and bool(verdict.get("power")),
        planned=int(document["plan"]["bytes_at_most"]),
        layers=(verdict.get("amount") or {}).get("layers"),
    )


def _stated(parts: Iterable[Mapping[str, Any]]) -> Iterator[PartClaim]:
    """Parts as documents with findings by part have them."""
    for one in parts:
        part = one["part"] if isinstance(one.get("part"), dict) else one
        yield PartClaim(
            component=str(part["component"]),
            state=str(one["state"]),
            layer=OUTSIDE if part.get("layer") is None else int(part["layer"]),
            tower=str(part.get("tower") or ""),
            learnt=one.get("learnt"),
            likeness=one.get("likeness"),
            of_second=bool(one.get("of_second")),
        )


def _implied(document: Mapping[str, Any]) -> Iterator[PartClaim]:
    """Parts as the sentences of the first schema speak of them.

    `partial` says that no trace was found in the rest that was read, and so do some reasons.
    """
    verdict = document["verdict"]
    shared, reasons = set(verdict["roles"]), list(verdict["reasons"])
    for component in verdict["roles"]:
        yield PartClaim(component, "shared")
    traceless = {reason.partition(":")[2] for reason in reasons if reason.startswith("unshared:")}
    if "layers-unshared" in reasons:
        traceless |= {one for one in _LAYER_COMPONENTS if _was_read(document, one)}
    if verdict["relation"] == "partial":
        traceless |= {one for one in _COMPONENTS if _was_read(document, one)}
    for component in sorted(traceless - shared):
        yield PartClaim(component, "no-trace")


_TESTS = {
    "norms": ("E1", "E6.norms"),
    "embedding": ("E3", "S3"),
    "attention": ("E4", "S2", "S4"),
    "feed-forward": ("U1", "S1"),
}


def _was_read(document: Mapping[str, Any], component: str) -> bool:
    """Whether an exact test of a component had a result."""
    return any(
        one["status"] == "ok"
        and one["tier"] == "exact"
        and one["test"].startswith(_TESTS[component])
        for one in document["evidence"]
    )


def falsehoods(claims: Claims, truth: Truth, reading: Reading) -> list[str]:
    """What a document says that is not true of the pair, in a few words each."""
    false: list[str] = []
    truth = truth.seen_from(reading.swapped)
    allowed = truth.relations(reading.reach)
    nothing_read = all(one.state == "not-read" for one in claims.parts)
    too_little = reading.budget is not None and claims.relation == "untestable" and nothing_read
    if claims.relation not in allowed and not too_little:
        false.append(f"said {claims.relation}")
    if claims.linked and not truth.linked:
        false.append("a link between strangers")
    if claims.would_have_seen and truth.taken_over:
        false.append("said that it would have seen what is there")
    if reading.budget is not None and claims.planned > reading.budget:
        false.append(f"reads {claims.planned} bytes")
    wrong = (
        _false_part(claim, truth.seen_from(claim.of_second).facts_about(claim))
        for claim in claims.parts
    )
    false.extend(filter(None, wrong))
    if reading.reach is Reach.WHOLE and truth.layers is not None:
        said = claims.layers or 0.0
        if abs(said - truth.layers) > _NEARLY:
            false.append(f"{said:.0%} of the layers' matrices, is {truth.layers:.0%}")
    if claims.by_part and reading.reach is Reach.WHOLE and claims.relation != "identical":
        false.extend(_missing(claims, truth))
    return false


def _false_part(claim: PartClaim, facts: set[Fact]) -> str | None:
    """Why what is said about a part is false, None where it is not."""
    if Fact.OPEN in facts:
        return None
    if claim.state == "no-trace" and facts & (TAKEN_OVER | {Fact.INITIAL}):
        return str(claim)
    if claim.state in _LINKED and facts == {Fact.FOREIGN}:
        return str(claim)
    if claim.state in ("equal", "rounded") and not facts & TAKEN_OVER:
        return str(claim)
    if claim.learnt and not facts & TAKEN_OVER:
        return f"{claim}, learnt together"
    return None


def _missing(claims: Claims, truth: Truth) -> Iterator[str]:
    """Parts that everything was read of and that are not said to be what they are."""
    rules = (*truth.facts, (Where(), truth.rest))
    for number, (where, fact) in enumerate(rules):
        wanted = _FOUND.get(fact)
        if wanted is None:
            continue
        earlier = [one for one, _ in rules[:number]]
        about = [
            claim
            for claim in claims.parts
            if not (claim.of_second and truth.swapped is not None)
            and _meets(where, claim)
            and not any(_meets(one, claim) for one in earlier)
        ]
        wrong = [claim for claim in about if claim.state not in wanted]
        if not about:
            yield f"nothing about {where}"
        elif (wrong and fact is not Fact.KIN) or len(wrong) == len(about):
            yield f"{wrong[0]}, is {fact}"


def _meets(where: Where, claim: PartClaim) -> bool:
    """Whether a claim speaks of any of these parts."""
    if where.components is not None and claim.component not in where.components:
        return False
    if None not in (where.tower, claim.tower) and where.tower != claim.tower:
        return False
    return where.layers is None or claim.layer is None or claim.layer in where.layers
