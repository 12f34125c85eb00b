"""From evidence to a relation: one rule for all comparisons, pure, and it never says who copied.

A small p-value says that labels or signs of two models depend on each other: common origin,
direction unknown. Which kind of origin that is, `origin.py` reads from sizes of effects; what
would have been seen where nothing was, `power.py` tells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kinprint.lineage.charge import Charge
from kinprint.lineage.origin import PARTS, Case, relation_of
from kinprint.lineage.power import detectable_effects
from kinprint.lineage.tests.registry import Likeness, registered_test
from kinprint.records import Evidence, Verdict

__all__ = ["FLAG", "FLAG_EFFECT", "PARTS", "decide"]

FLAG, FLAG_EFFECT, FLAG_GRAM = 0.05, 0.25, 0.75
"""A calibrated p-value at most this large is worth a remark, if the likeness is twice what any
known strangers have: models trained for longer match better, whoever trained them."""


def decide(evidence: Sequence[Evidence], charge: Charge, *, identical: bool = False) -> Verdict:
    """The relation that evidence supports after paying for the menu and the stage.

    Parameters
    ----------
    evidence
        What the tests gave. Every exact test stands on the charge's menu, once; calibrated
        evidence never rejects.
    charge
        The shares of menu and stage, and the error of the comparison.
    identical
        Whether all numbers that were read are equal. It is believed only together with a
        rejection, since constant tensors are equal everywhere.
    """
    exact = charge.paid_for(evidence)
    found = [one for one in exact if charge.significant(one)]
    if not found:
        return _silent(evidence, exact, charge)
    case = Case(evidence, exact, found)
    relation, reasons = ("identical", ["same-numbers"]) if identical else relation_of(case)
    return Verdict(
        relation,
        charge.combined(exact),
        charge.alpha,
        case.parts,
        detectable_effects(exact, charge),
        tuple(reasons),
    )


def _silent(evidence: Sequence[Evidence], exact: Sequence[Evidence], charge: Charge) -> Verdict:
    able = [one for one in exact if charge.could_reject(one)]
    combined, alpha = charge.combined(exact), charge.alpha
    if not able:
        missing = [one.reason for one in evidence if one.tier == "exact" and one.reason]
        reasons = ["nothing-testable", *(f"missing:{why}" for why in dict.fromkeys(missing))]
        return Verdict("untestable", combined, alpha, reasons=tuple(reasons))
    reasons = ["nothing-found"]
    if any(_is_flag(one) for one in evidence):
        reasons.append("laundering-flag")
    power = detectable_effects(able, charge)
    return Verdict("no-evidence", combined, alpha, power=power, reasons=tuple(reasons))


def _is_flag(one: Evidence) -> bool:
    """Whether calibrated evidence is extreme: rare among strangers, and large if a size is told."""
    rare = one.tier == "calibrated" and one.status == "ok" and one.log10_p <= math.log10(FLAG)
    limit = FLAG_GRAM if registered_test(one).likeness is Likeness.GRAM else FLAG_EFFECT
    return rare and (one.effect is None or one.effect >= limit)
