"""The evidence of a comparison as all views show it: its order, its state and its words.

Pages, tables, pictures and the terminal ask here; none of them decides by itself what comes
first, what counts as found, or which p-value is shown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from kinprint import text
from kinprint.lineage.tests.registry import family_of
from kinprint.records import Relation, Status, Tier
from kinprint.report.numbers import finite, reading, shown
from kinprint.report.schema import ComparisonDocument, EvidencePart
from kinprint.report.translation import translated

NO_BOUND = "none"
"""What evidence without a p-value has for its bound."""
_WEAK = math.log10(0.001)
"""A p-value up to here is no chance to speak of, though the menu may ask for less."""


class State(StrEnum):
    """What a test that gave a number comes to."""

    FOUND = "found"
    """A link, after paying for menu and stages."""
    WEAK = "weak"
    """Rare by chance, but not rare enough after paying."""
    NOTHING = "nothing"
    """What chance gives."""
    CONTEXT = "context"
    """A rank among strangers, or a test of another package: it decides nothing."""
    RULE = "rule"
    """A size without a p-value that tells kinds of relation apart."""

    @property
    def tests_link(self) -> bool:
        """Whether it is about a link at all."""
        return self not in (State.CONTEXT, State.RULE)


class Finding(Struct, frozen=True):
    """One test and what it found.

    Attributes
    ----------
    part : the numbers.
    state : what they come to.
    p, adjusted : log10 of its p-value, by itself and after paying; None where it has none.
    title : what it is called.
    question : what it asks, if somebody has put that down.
    compares : what it compares, for tests of the menu.
    reading : where the pair falls among what chance gives, in a sentence or two.
    marks : what else to know about it at first sight.
    """

    part: EvidencePart
    state: State
    p: float | None
    adjusted: float | None
    title: text.Message | str
    question: text.Message | None
    compares: text.Message | None
    reading: tuple[text.Message, ...]
    marks: tuple[text.Message, ...]

    @property
    def test(self) -> str:
        """The name of the test."""
        return self.part.test

    @property
    def family(self) -> str:
        """The test of which it is a variant."""
        return family_of(self.test)

    @property
    def outcome(self) -> text.Message:
        """Its state in words."""
        return text.message(f"page.outcome.{self.state}")

    @property
    def words(self) -> text.Words:
        """What the test compares, in a few words; its title where it is not on the menu."""
        return compared(self.test)


def findings(document: ComparisonDocument) -> list[Finding]:
    """Tests that gave a number: exact ones first, the strongest before all."""
    spoken = [one for one in document.evidence if one.status == Status.OK]
    level = math.log10(document.verdict.link.alpha)
    return [_finding(one, level) for one in sorted(spoken, key=_strength)]


def link_is_elsewhere(document: ComparisonDocument, found: Sequence[Finding]) -> bool:
    """Whether a link with a p-value was found, and by none of the tests that a reader sees."""
    relation = document.verdict.relation
    exact = relation.linked and relation is not Relation.LAUNDERED
    return exact and not any(one.state is State.FOUND or one.test == "files" for one in found)


def silent(document: ComparisonDocument) -> list[EvidencePart]:
    """Tests that gave no number, in the order of the battery."""
    return [one for one in document.evidence if one.status != Status.OK]


def reason(document: ComparisonDocument, part: EvidencePart, language: str) -> str:
    """Why a test gave no number, in its own words."""
    return translated(document, part.reason, language)


def leading(found: Sequence[Finding], most: int) -> tuple[list[Finding], list[Finding]]:
    """The strongest test of each family, and all the others, both strongest first."""
    best: dict[str, Finding] = {}
    for one in found:
        if one.state.tests_link:
            best.setdefault(one.family, one)
    first = list(best.values())[:most] or list(found[:most])
    return first, [one for one in found if one not in first]


def title(test: str) -> text.Message | str:
    """What a test is called; its own name where nobody gave it another."""
    return _message(f"test.{test}.title") or test


def compared(test: str) -> text.Words:
    """What a test compares, in a few words; its title where it is not on the menu, else nothing."""
    for key in (f"test.{test}.compares", f"test.{test}.title"):
        if text.knows(key):
            return text.words(key)
    return text.Words(dict.fromkeys(text.languages(), ""))


def own_p(part: EvidencePart) -> float | None:
    """A test's log10 p to be shown; none for what has none, a rule or an invariant."""
    return None if part.tier == Tier.RULE or part.bound == NO_BOUND else part.log10_p


def _finding(part: EvidencePart, level: float) -> Finding:
    state = _state(part, level)
    marks = [text.message("page.mark.learnt")] if part.learnt else []
    if part.tier != Tier.EXACT:
        marks.append(text.message(f"page.mark.{part.tier}"))
    return Finding(
        part=part,
        state=state,
        p=own_p(part),
        adjusted=None if part.tier == Tier.RULE else part.adjusted,
        title=title(part.test),
        question=_message(f"test.{family_of(part.test)}.asks"),
        compares=_message(f"test.{part.test}.compares"),
        reading=_reading(part, state),
        marks=tuple(marks),
    )


def _strength(part: EvidencePart) -> tuple[bool, bool, float, float]:
    p = finite(part.adjusted)
    return part.tier != Tier.EXACT, p is None, p or 0.0, finite(part.log10_p) or 0.0


def _state(part: EvidencePart, level: float) -> State:
    if part.tier != Tier.EXACT:
        return State.RULE if part.tier == Tier.RULE else State.CONTEXT
    own = finite(part.log10_p)
    paid = finite(part.adjusted)  # what has not paid for the menu finds nothing
    if paid is not None and paid <= level:
        return State.FOUND
    return State.WEAK if own is not None and own <= _WEAK else State.NOTHING


def _reading(part: EvidencePart, state: State) -> tuple[text.Message, ...]:
    """Where this pair falls among what chance gives."""
    known = [value for value in part.null if value is not None and math.isfinite(value)]
    at = finite(part.statistic)
    if not known or at is None:
        return ()
    if part.bound == NO_BOUND and "largest of strangers" in part.details:
        return _agreement(part, at)
    if part.bound == "conformal":
        low, high = reading(min(known)), reading(max(known))
        return (text.message("page.evidence.known", low=low, high=high, at=reading(at)),)
    pairs = finite(part.details.get("pairs"))
    if pairs is not None and "fixed points" in part.bound:
        counts = {"number": at, "pairs": pairs, "draws": len(known), "most": max(known)}
        fields = {name: shown(value, 0) for name, value in counts.items()}
        return (text.message("page.evidence.counts", **fields),)
    if at > max(known):
        return (text.message("page.evidence.outside", draws=len(known)),)
    return (text.message("page.evidence.inside"),) if state is State.NOTHING else ()


def _agreement(part: EvidencePart, at: float) -> tuple[text.Message, ...]:
    """How many units agree in what no relabelling can change, beside strangers."""
    counts = {"count": "agreeing", "strangers": "strangers", "width": "width of strangers"}
    fields = {name: shown(part.details.get(key) or 0.0, 0) for name, key in counts.items()}
    largest = reading(part.details.get("largest of strangers") or 0.0)
    said = text.message(
        "page.evidence.agreement", number=shown(part.n, 0), at=reading(at), largest=largest,
        **fields,
    )  # fmt: skip
    control = finite(part.details.get("other layers"))
    if control is None:
        return (said,)
    return said, text.message("page.evidence.other-layers", control=reading(control))


def _message(key: str) -> text.Message | None:
    return text.message(key) if text.knows(key) else None
