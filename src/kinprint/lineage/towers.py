"""Several towers: which of two models meet, at what price, and what they say together.

A multimodal model has a tower for pictures beside its language model, a translation model an
encoder beside its decoder. Any of them may have been taken over alone. Pairs are told by headers,
and each has an equal share of the error before a weight is read, so that looking at all of them
costs no validity.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from kinprint.lineage.charge import Charge
from kinprint.lineage.identity import same_numbers
from kinprint.lineage.kind import amount_of, kind_of_relation
from kinprint.lineage.parts.findings import Sharing, joined
from kinprint.lineage.parts.taken_over import MATRICES
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.verdict import decide
from kinprint.records import (
    Evidence,
    Relation,
    Verdict,
    VerdictReason,
)

TowerEvidence = tuple[tuple[Evidence, ...], Sharing]
"""What each test gave for two towers, and what is known about each part."""
_WHOLE = (Relation.SAME_WEIGHTS, Relation.DERIVED)


class TowerComparison(Struct, frozen=True):
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


def joined_verdict(
    main: Verdict, sharing: Sharing, besides: Sequence[TowerComparison], lone: Sharing
) -> Verdict:
    """What all towers say about the models together.

    The link is that of any of them, and the kind is read from the parts of all, those of towers
    that were compared with none too.

    Parameters
    ----------
    main : the verdict on the main towers, as if there were no others.
    sharing : what is known about their parts.
    besides : other towers that met.
    lone : what is known about the parts of towers that met none.
    """
    if not besides and not lone.parts:
        return main
    met = joined([sharing, *(one.sharing for one in besides)]) if besides else sharing
    whole = met.beside(lone)
    verdicts = [main, *(one.verdict for one in besides)]
    linked = [verdict for verdict in verdicts if verdict.relation.linked]
    found = replace(main, parts=whole.parts, amount=amount_of(whole.parts, whole.hidden))
    if not linked or main.relation is Relation.IDENTICAL:
        return found
    if all(verdict.relation is Relation.LAUNDERED for verdict in linked):
        return replace(found, relation=Relation.LAUNDERED, reasons=linked[0].reasons)
    kind = kind_of_relation(whole.parts, whole.arranged)
    relation = kind.relation
    only_besides: tuple[VerdictReason, ...] = ()
    layers = any(one.state.linked and one.part.component in MATRICES for one in sharing.own)
    if not layers and linked != [main]:  # however large the other towers are, they alone are common
        only_besides = (VerdictReason.TOWERS_SHARED,)
        relation = Relation.PARTIAL if relation in _WHOLE else relation
    return replace(
        found,
        relation=relation,
        log10_p=min(verdict.log10_p for verdict in linked),
        reasons=(*only_besides, *kind.reasons),
    )
