"""The 182-sigma method over many models: how many pairs it would accuse.

Nothing answers a claim about one pair like the same claim about pairs that share nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from kinprint import text
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Band, Lines, Series
from kinprint.studies.derivation.baseline import (
    Claim,
    claim_table,
    claims_about,
    measured,
    needed,
    share_above,
    share_words,
)
from kinprint.studies.pairing import tell_gaps, wanted_roles
from kinprint.studies.results import Fact, Result
from kinprint.studies.scene import OK, Item, Scene
from kinprint.studies.titles import role_title


def _pairs(scene: Scene) -> list[tuple[int, int]]:
    """Every pair in both orders, for the baseline is that of the second alone."""
    return list(permutations(range(len(scene.models)), 2))


def _needs(study: Study, scene: Scene) -> list[Item]:
    return needed(study, scene, _pairs(scene))


def _run(study: Study, scene: Scene) -> Result:
    pairs = _pairs(scene)
    claims = claims_about(study, scene, measured(study, scene, pairs), pairs)
    table = claim_table(scene, claims)
    facts: dict[str, Fact] = {
        role: share_above([one for one in claims if one.role == role])
        for role in wanted_roles(scene, study.roles)
    }
    warning = text.words("study.baseline-claim-refuted.finding")
    return Result(
        study.name,
        scene.names,
        (table,),
        facts,
        (_sigma_chart(claims),),
        (*share_words(claims), warning, *tell_gaps(table.column("status"))),
        scene.labels,
    )


def _sigma_chart(claims: Sequence[Claim]) -> Lines:
    series = []
    for role in dict.fromkeys(one.role for one in claims):
        known = sorted(one.effect.sigma for one in claims if one.role == role and one.status == OK)
        ranks = tuple(float(at + 1) for at in range(len(known)))
        series.append(Series(role_title(role), ranks, tuple(known), "pair"))
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
