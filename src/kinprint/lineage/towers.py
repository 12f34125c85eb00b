"""Several towers: which of two models meet, at what price, and what they say together.

A multimodal model has a tower for pictures beside its language model, a translation model an
encoder beside its decoder. Any of them may have been taken over alone. Pairs are told by headers,
and each has an equal share of the error before a weight is read, so that looking at all of them
costs no validity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from kinprint.lineage.charge import Charge
from kinprint.lineage.identity import same_numbers
from kinprint.lineage.kind import amount_of, kind_of_relation
from kinprint.lineage.parts import Sharing
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.verdict import decide
from kinprint.records import (
    Evidence,
    Part,
    PartFinding,
    PartState,
    Relation,
    Verdict,
    VerdictReason,
)

TowerEvidence = tuple[tuple[Evidence, ...], Sharing]
"""What each test gave for two towers, and what is known about each part."""
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
    sharing
        What is known about each part.
    """

    a: str
    b: str
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    charge: Charge
    sharing: Sharing = field(default_factory=Sharing)


def compared_towers(
    labels: Sequence[tuple[str, str]], evidence: Sequence[TowerEvidence], charge: Charge
) -> tuple[TowerComparison, ...]:
    """Pairs of towers with what their evidence supports, each for itself."""
    return tuple(
        TowerComparison(*both, decide(tests, charge, sharing), tests, charge, sharing)
        for both, (tests, sharing) in zip(labels, evidence, strict=True)
    )


def same_towers(ones: Sequence[Sample], others: Sequence[Sample]) -> bool:
    """Whether two models that were read whole have the same towers with the same numbers."""
    if len(ones) != len(others):
        return False
    return all(
        one.tower == other.tower and same_numbers(one, other)
        for one, other in zip(ones, others, strict=True)
    )


def joined_verdict(main: Verdict, sharing: Sharing, besides: Sequence[TowerComparison]) -> Verdict:
    """What all towers say about the models together.

    The link is that of any of them, and the kind is read from the parts of all.
    """
    if not besides:
        return main
    parts = _joined_parts([main.parts, *(one.verdict.parts for one in besides)])
    verdicts = [main, *(one.verdict for one in besides)]
    linked = [verdict for verdict in verdicts if verdict.relation not in _UNLINKED]
    main = replace(main, parts=parts, amount=amount_of(parts))
    if not linked or main.relation is Relation.IDENTICAL:
        return main
    kind = kind_of_relation(
        parts, max(sharing.arranged, *(one.sharing.arranged for one in besides))
    )
    only_besides = (VerdictReason.TOWERS_SHARED,) if verdicts[0] not in linked else ()
    return replace(
        main,
        relation=kind.relation,
        log10_p=min(verdict.log10_p for verdict in linked),
        reasons=(*only_besides, *kind.reasons),
    )


def _joined_parts(found: Sequence[Sequence[PartFinding]]) -> tuple[PartFinding, ...]:
    """One finding a part: a tower meets several, and the one that says most about a part counts."""
    best: dict[Part, PartFinding] = {}
    for one in (finding for findings in found for finding in findings):
        known = best.get(one.part)
        if known is None or _says(one) < _says(known):
            best[one.part] = one
    return tuple(best.values())


def _says(finding: PartFinding) -> tuple[int, float]:
    order = tuple(PartState).index(finding.state)
    return order, 0.0 if finding.log10_p is None else finding.log10_p
