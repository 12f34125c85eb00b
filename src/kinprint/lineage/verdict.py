"""From evidence to a relation: one rule for all comparisons, pure, and it never says who copied.

A small p-value says that labels or signs of two models depend on each other: they are linked by a
common origin, direction unknown. `decide` finds out whether they are, and pays for everything that
could have been tried (`charge.py`). What is shared, `parts/` has found; of which kind that is,
`kind.py` reads from the parts; what would have been seen where nothing was, `power.py` tells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kinprint.lineage.charge import Charge
from kinprint.lineage.kind import Kind, amount_of, kind_of_relation
from kinprint.lineage.parts.findings import Sharing
from kinprint.lineage.power import detectable_effects
from kinprint.records import Evidence, Reason, Relation, Tier, Verdict, VerdictReason

_UNKNOWN = Sharing()
# What tests need that serve models of different widths in place of others: nothing is missing.
_FOR_OTHER_WIDTHS = (Reason.MODELS_OF_DIFFERENT_WIDTH, Reason.FEED_FORWARDS_OF_DIFFERENT_WIDTH)


def decide(
    evidence: Sequence[Evidence],
    charge: Charge,
    sharing: Sharing = _UNKNOWN,
    *,
    identical: bool = False,
) -> Verdict:
    """The relation that evidence supports after paying for the menu and the stage.

    Parameters
    ----------
    evidence
        What the tests gave. Every exact test stands on the charge's menu, once. Evidence of the
        invariants' tier has no p-value: where exact tests are silent it gives a relation of its
        own.
    charge
        The shares of menu and stage, and the error of the comparison.
    sharing
        What is known about each part; nothing, where only the link is asked for.
    identical
        Whether all numbers of both models were read and are equal. It is believed only together
        with a rejection, since constant tensors are equal everywhere.
    """
    exact = charge.paid_for(evidence)
    equal = _equality(sharing, charge)
    if equal is None and not any(charge.significant(one) for one in exact):
        return _without_link(evidence, exact, charge, sharing)
    kind = kind_of_relation(sharing.parts, sharing.arranged)
    if identical:
        kind = Kind(Relation.IDENTICAL, (VerdictReason.SAME_NUMBERS,))
    return Verdict(
        kind.relation,
        min(charge.combined(exact), 0.0 if equal is None else equal),
        charge.alpha,
        sharing.parts,
        amount_of(sharing.parts, sharing.hidden),
        detectable_effects(exact, charge),
        kind.reasons,
    )


def _equality(sharing: Sharing, charge: Charge) -> float | None:
    """The log10 p of equal numbers in any part; None where none are equal.

    Paid for every pair of parts that could have met, and for the stage.
    """
    price = math.log10(sharing.pairs) - math.log10(charge.stage)
    known = [
        one.log10_p + price
        for one in sharing.own
        if one.log10_p is not None
        and (one.state.same or one.learnt or one.untrained or (one.state.linked and not one.tests))
    ]
    best = min(known, default=0.0)
    return best if best <= math.log10(charge.alpha) else None


def _without_link(
    evidence: Sequence[Evidence], exact: Sequence[Evidence], charge: Charge, sharing: Sharing
) -> Verdict:
    """Exact tests found nothing, or could not have; the invariants' tier may still speak."""
    able = [one for one in exact if charge.could_reject(one)]
    combined, amount = charge.combined(exact), amount_of(sharing.parts, sharing.hidden)
    if _invariants_speak(evidence):
        # Where no exact test could have spoken, their silence is no sign of a disguise.
        unable = () if able else (VerdictReason.NOTHING_TESTABLE,)
        return Verdict(
            Relation.LAUNDERED,
            combined,
            charge.alpha,
            sharing.parts,
            amount,
            detectable_effects(able, charge),
            (*unable, VerdictReason.INVARIANTS_AGREE),
        )
    if not able:
        needed = {
            str(one.reason): one.reason
            for one in evidence
            if one.tier == Tier.EXACT
            and one.reason is not None
            and one.reason.key not in _FOR_OTHER_WIDTHS
        }
        return Verdict(
            Relation.UNTESTABLE,
            combined,
            charge.alpha,
            sharing.parts,
            amount,
            reasons=(VerdictReason.NOTHING_TESTABLE,),
            missing=tuple(needed.values()),
        )
    return Verdict(
        Relation.NO_EVIDENCE,
        combined,
        charge.alpha,
        sharing.parts,
        amount,
        detectable_effects(able, charge),
        (VerdictReason.NOTHING_FOUND,),
    )


def _invariants_speak(evidence: Sequence[Evidence]) -> bool:
    """Whether what no relabelling can change agrees beyond what strangers reach."""
    return any(one.agreement is not None and one.agreement.speaks for one in evidence)
