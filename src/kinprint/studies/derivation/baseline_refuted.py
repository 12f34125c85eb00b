"""The 182-sigma method over many models: how many pairs it would accuse.

Nothing answers a claim about one pair like the same claim about pairs that share nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from kinprint import text
from kinprint.studies.charts import Band, Lines, Series
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
from kinprint.studies.marks import worst
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


def _sigma_chart(inputs: StudyInput, claims: Sequence[Claim]) -> Lines:
    """The sigmas of each role in rising order, those of kin apart."""
    series = []
    for role, mine in claims_by_role(claims).items():
        done = [claim for claim in mine if claim.status is RowStatus.OK]
        for kin in (False, True):
            chosen = [claim for claim in done if is_kin(inputs, claim) is kin]
            known = sorted(claim.effect.sigma for claim in chosen)
            ranks = tuple(float(at + 1) for at in range(len(known)))
            if known or not kin:
                kind = "related" if kin else "pair"
                mark = worst(claim.mark for claim in chosen)
                series.append(Series(role_title(role), ranks, tuple(known), kind, mark=mark))
    return Lines(
        "baseline_claim_refuted",
        text.words("study.baseline-claim-refuted.chart"),
        text.words("study.baseline-claim-refuted.axis.pair"),
        text.words("study.baseline-claim-refuted.axis.sigma"),
        tuple(series),
        (Band(text.words("study.baseline-claim-refuted.band"), 0.0, -3.0, 3.0),),
        points=True,
    )


REFUTATION = Procedure(_needs, _run)
