"""The 182-sigma method over many models: how many pairs it would accuse.

Nothing answers a claim about one pair like the same claim about pairs that share nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from kinprint import text
from kinprint.studies.charts import Band, Bar, Bars, Panels
from kinprint.studies.derivation.baseline import (
    Claim,
    claim_table,
    claims_about,
    claims_by_role,
    is_kin,
    measured,
    needed,
    share_above,
    share_words,
)
from kinprint.studies.kin import kin_words
from kinprint.studies.results import Fact, Output, RowStatus
from kinprint.studies.study import Procedure, StudyInput, TensorRows
from kinprint.titles import role_title


def _pairs(inputs: StudyInput) -> list[tuple[int, int]]:
    """Every pair in both orders, for the baseline is that of the second alone."""
    return list(permutations(range(len(inputs.models)), 2))


def _needs(inputs: StudyInput) -> list[TensorRows]:
    return needed(inputs, _pairs(inputs))


def _run(inputs: StudyInput) -> Output:
    pairs = _pairs(inputs)
    claims = claims_about(inputs, measured(inputs, pairs), pairs)
    grouped = claims_by_role(claims)
    table = claim_table(inputs, claims)
    strangers = [claim for claim in claims if not is_kin(inputs, claim)]
    facts: dict[str, Fact] = {
        role: share_above(mine)
        | {"without_kin": share_above([one for one in mine if not is_kin(inputs, one)])}
        for role, mine in grouped.items()
    }
    warning = text.words("study.baseline-claim-refuted.finding")
    findings = (*share_words(strangers), *kin_words(inputs), warning, *table.gaps)
    return Output((table,), facts, (_sigma_chart(inputs, claims),), findings)


def _sigma_chart(inputs: StudyInput, claims: Sequence[Claim]) -> Panels:
    """The sigma of every pair that has one, the largest first; a panel a role that has any."""
    band = Band(text.words("study.baseline-claim-refuted.band"), 0.0, -3.0, 3.0)
    panels = []
    for role, mine in claims_by_role(claims).items():
        done = [claim for claim in mine if claim.status is RowStatus.OK]
        done.sort(key=lambda claim: -claim.effect.sigma)
        panels.append(
            Bars(
                f"baseline_claim_refuted_{role}",
                role_title(role),
                text.words("study.baseline-claim-refuted.axis.sigma"),
                tuple(_bar(inputs, claim) for claim in done),
                (band,),
                digits=1,
            )
        )
    title = text.words("study.baseline-claim-refuted.chart")
    shown = [panel for panel in panels if panel.bars] or panels
    return Panels("baseline_claim_refuted", title, tuple(shown), across=1)


def _bar(inputs: StudyInput, claim: Claim) -> Bar:
    """One pair in one order: the baseline is that of the second model."""
    names = {"a": inputs.names[claim.a], "b": inputs.names[claim.b]}
    label = text.words("study.baseline-claim-refuted.pair", **names)
    kind = "related" if is_kin(inputs, claim) else "pair"
    return Bar(label, claim.effect.sigma, None, kind, mark=claim.mark)


REFUTATION = Procedure(_needs, _run)
