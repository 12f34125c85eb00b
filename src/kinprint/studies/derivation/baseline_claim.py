"""The 182-sigma claim, computed as it was published, with what is wrong with it beside it.

Models beyond the first two are controls: if models that share nothing give as many sigmas,
sigmas of this kind say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.studies.charts import Bar, Bars, Panels
from kinprint.studies.derivation.baseline import (
    Claim,
    claim_table,
    claims_about,
    claims_by_role,
    is_within,
    measure_names,
    measured,
    needed,
    numbers_of,
    share_above,
    share_words,
)
from kinprint.studies.derivation.pairwise import A, B, TensorPair
from kinprint.studies.pairs import shuffled_band
from kinprint.studies.results import Fact, Output, RowStatus, Table
from kinprint.studies.study import Procedure, StudyInput, TensorRows
from kinprint.studies.summary import rounded
from kinprint.text import Words
from kinprint.titles import role_title


def _pairs(inputs: StudyInput) -> list[tuple[int, int]]:
    """The pair that is asked about, then each of the two with each control."""
    controls = range(2, len(inputs.models))
    return [(A, B), *((model, control) for control in controls for model in (A, B))]


def _needs(inputs: StudyInput) -> list[TensorRows]:
    return needed(inputs, _pairs(inputs))


def _run(inputs: StudyInput) -> Output:
    pairs = _pairs(inputs)
    lines = measured(inputs, pairs)
    claims = claims_about(inputs, lines, pairs)
    asked = [claim for claim in claims if _is_asked(claim)]
    controls = [claim for claim in claims if not _is_asked(claim)]
    table = _line_table(inputs, lines)
    return Output(
        (table, claim_table(inputs, claims)),
        _facts(asked, controls),
        (_chart(inputs, claims, lines),),
        (*_findings(inputs, asked, controls), *table.gaps),
    )


def _is_asked(claim: Claim) -> bool:
    """Whether it is about the pair in question, and not about a control."""
    return (claim.a, claim.b) == (A, B)


def _line_table(inputs: StudyInput, lines: Sequence[TensorPair]) -> Table:
    names = measure_names(inputs)
    rows = tuple(
        (
            line.role,
            "within" if is_within(line) else "cross",
            inputs.names[line.first.model],
            line.layer,
            inputs.names[line.second.model],
            line.second.address.layer,
            line.status,
            *line.values(names),
            line.comparison.marked,
            line.comparison.reason,
        )
        for line in lines
    )
    title = text.words("study.baseline-claim.table.lines")
    columns = ("role", "kind", "model_a", "layer_a", "model_b", "layer_b", "status")
    return Table("baseline_lines", title, (*columns, *names, "mark", "reason"), rows)


def _facts(asked: Sequence[Claim], controls: Sequence[Claim]) -> dict[str, Fact]:
    names = (
        "within_a_mean", "within_b_mean", "within_b_std", "cross_mean", "cross_std",
        "difference", "sigma", "log10_p", "least_p",
    )  # fmt: skip
    facts: dict[str, Fact] = {}
    for claim in asked:
        numbers: dict[str, Fact] = dict(zip(names, numbers_of(claim), strict=True))
        facts[claim.role] = {"status": claim.status, "mark": claim.mark, **numbers}
    if controls:
        grouped = claims_by_role(controls)
        facts["controls"] = {role: share_above(mine) for role, mine in grouped.items()}
    return facts


def _chart(inputs: StudyInput, claims: Sequence[Claim], lines: Sequence[TensorPair]) -> Panels:
    """One panel a role, for each role has a shuffled baseline of its own."""
    measure = inputs.measures[0]
    panels = []
    for role, mine in claims_by_role(claims).items():
        crossed = (line.comparison for line in lines if line.role == role and not is_within(line))
        label = text.message("study.baseline-claim.band")
        panels.append(
            Bars(
                f"definitive_evidence_{role}",
                role_title(role),
                measures()[measure].title,
                tuple(bar for claim in mine for bar in _bars_of_claim(inputs, claim)),
                shuffled_band(crossed, label) if measure == "cosine" else (),
            )
        )
    return Panels(
        "definitive_evidence",
        text.words("study.baseline-claim.chart"),
        tuple(panels),
        across=1,
        note=text.words("study.baseline-claim.chart.note"),
    )


def _bars_of_claim(inputs: StudyInput, claim: Claim) -> list[Bar]:
    """The bar of a pair; before that of the pair asked about, both models with themselves."""
    a, b, e = inputs.names[claim.a], inputs.names[claim.b], claim.effect
    pair = text.words("study.baseline-claim.bar.pair", a=a, b=b)
    kind = "pair" if _is_asked(claim) else "other"
    bars = [Bar(pair, _number(e.cross_mean), _number(e.cross_std), kind, mark=claim.mark)]
    if not _is_asked(claim):
        return bars
    inside = ((a, claim.own, None), (b, e.within_mean, e.within_std))
    return [
        *(
            Bar(
                text.words("study.baseline-claim.bar.inside", name=name),
                _number(mean),
                _number(std),
                "within",
                mark=claim.mark,
            )
            for name, mean, std in inside
        ),
        *bars,
    ]


def _number(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def _findings(inputs: StudyInput, asked: Sequence[Claim], controls: Sequence[Claim]) -> list[Words]:
    lonely = text.words("study.baseline-claim.finding.no-controls")
    return [
        *(_claim_words(inputs, claim) for claim in asked if claim.status is RowStatus.OK),
        text.words("study.baseline-claim.finding.wrong"),
        *(share_words(controls) if controls else [lonely]),
    ]


def _claim_words(inputs: StudyInput, claim: Claim) -> Words:
    e = claim.effect
    return text.words(
        "study.baseline-claim.finding.sigma",
        role=role_title(claim.role),
        b=inputs.names[B],
        within=rounded(e.within_mean),
        cross=rounded(e.cross_mean),
        gap=rounded(e.difference),
        sigma=f"{e.sigma:.1f}",
        log=f"{e.log10_p:.1f}",
    )


CLAIM = Procedure(_needs, _run)
