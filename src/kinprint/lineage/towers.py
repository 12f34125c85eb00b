"""Several towers: which of two models meet, at what price, and what they say together.

A multimodal model has a tower for pictures beside its language model, a translation model an
encoder beside its decoder. Any of them may have been taken over alone. Pairs are told by headers,
and each has an equal share of the error before a weight is read, so that looking at all of them
costs no validity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kinprint.lineage.charge import Charge
from kinprint.lineage.identity import same_numbers
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.verdict import decide
from kinprint.records import Evidence, Relation, Verdict, VerdictReason

_UNLINKED = (Relation.NO_EVIDENCE, Relation.UNTESTABLE)


@dataclass(frozen=True, slots=True)
class TowerComparison:
    """Two towers of two models and what was found about them.

    Attributes
    ----------
    a, b
        What the towers are called in their models; "" is the text model.
    verdict
        Their relation, as if there were no other towers.
    evidence
        What each test gave.
    charge
        What each test had to pay: the share of the towers is part of the stage's.
    """

    a: str
    b: str
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    charge: Charge


def compared_towers(
    labels: Sequence[tuple[str, str]], evidence: Sequence[tuple[Evidence, ...]], charge: Charge
) -> tuple[TowerComparison, ...]:
    """Pairs of towers with what their evidence supports, each for itself."""
    return tuple(
        TowerComparison(*both, decide(found, charge), found, charge)
        for both, found in zip(labels, evidence, strict=True)
    )


def same_towers(ones: Sequence[Sample], others: Sequence[Sample]) -> bool:
    """Whether two models that were read whole have the same towers with the same numbers."""
    if len(ones) != len(others):
        return False
    return all(
        one.tower == other.tower and same_numbers(one, other)
        for one, other in zip(ones, others, strict=True)
    )


def joined_verdict(main: Verdict, besides: Sequence[TowerComparison]) -> Verdict:
    """What all towers say about the models: the main ones decide, unless only others are linked."""
    linked = [one.verdict for one in besides if one.verdict.relation not in _UNLINKED]
    if not linked:
        return main
    log10_p = min(verdict.log10_p for verdict in (main, *linked))
    if main.relation not in _UNLINKED:
        return replace(main, log10_p=log10_p)
    components = dict.fromkeys(part for verdict in linked for part in verdict.parts)
    reasons = (VerdictReason.TOWERS_SHARED,)
    return Verdict(Relation.PARTIAL, log10_p, main.alpha, tuple(components), reasons=reasons)
