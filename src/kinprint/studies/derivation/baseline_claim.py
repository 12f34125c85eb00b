"""The 182-sigma claim, computed as it was published, with what is wrong with it beside it.

Models beyond the first two are controls: if models that share nothing give as many sigmas,
sigmas of this kind say nothing. One that comes from either of the two is a positive control: what
a measure gives for it is what derivation looks like.
"""

from __future__ import annotations

from collections.abc import Sequence

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.studies.charts import Band, Bar, Bars, Panels
from kinprint.studies.derivation.baseline import (
    Claim,
    claim_table,
    claims_about,
    claims_by_role,
    is_kin,
    is_within,
    measure_names,
    measured,
    needed,
    numbers_of,
    share_above,
    share_words,
)
from kinprint.studies.derivation.pairwise import A, B, TensorPair, mark_among, spread_of
from kinprint.studies.kin import kin_of
from kinprint.studies.pairs import largest, shuffled_band
from kinprint.studies.results import Fact, Output, RowStatus, Table
from kinprint.studies.study import Procedure, StudyInput, TensorRows
from kinprint.studies.summary import rounded
from kinprint.text import Words
from kinprint.titles import role_title


def _pairs(inputs: StudyInput) -> list[tuple[int, int]]:
    """The pair that is asked about, then each of the two with each control.

    One that comes from either of them is compared with that one alone.
    """
    controls = range(2, len(inputs.models))
    return [
        (A, B),
        *(
            (model, control)
            for control in controls
            for model in (A, B)
            if kin_of(inputs, A + B - model, control) is None
        ),
    ]


def _needs(inputs: StudyInput) -> list[TensorRows]:
    return needed(inputs, _pairs(inputs))


def _run(inputs: StudyInput) -> Output:
    pairs = _pairs(inputs)
    lines = measured(inputs, pairs)
    claims = claims_about(inputs, lines, pairs)
    asked = [claim for claim in claims if _is_asked(claim)]
    controls = [claim for claim in claims if not _is_asked(claim) and not is_kin(inputs, claim)]
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
    """A panel a role and measure, for each role has a shuffled baseline of its own."""
    panels = []
    for role, mine in claims_by_role(claims).items():
        measure = inputs.measures[0]
        crossed = (line.comparison for line in lines if line.role == role and not is_within(line))
        label = text.message("study.baseline-claim.band")
        panels.append(
            Bars(
                f"definitive_evidence_{role}",
                role_title(role),
                measures()[measure].title,
                tuple(bar for claim in mine for bar in _bars_of_claim(inputs, claim)),
                shuffled_band(crossed, label) if measure == "cosine" else (),
                most=largest(measure),
            )
        )
        panels += _centred_bars(inputs, role, lines)
    return Panels(
        "definitive_evidence",
        text.words("study.baseline-claim.chart"),
        tuple(panels),
        across=2,
        note=text.words("study.baseline-claim.chart.note"),
    )


def _centred_bars(inputs: StudyInput, role: str, lines: Sequence[TensorPair]) -> list[Bars]:
    """The same pairs without their means: Pearson, with a band of two deviations of chance."""
    if "pearson" not in inputs.measures[1:]:
        return []
    crossed: dict[tuple[int, int], list[TensorPair]] = {}
    for line in lines:
        if line.role == role and not is_within(line):
            crossed.setdefault((line.first.model, line.second.model), []).append(line)
    bars = []
    for (a, b), mine in crossed.items():
        known = spread_of(mine, "pearson")
        label = _pair_label(inputs, a, b, known.count)
        kin = kin_of(inputs, a, b) is not None
        kind = "pair" if (a, b) == (A, B) else "related" if kin else "other"
        mark = mark_among(mine, "pearson")
        bars.append(Bar(label, known.mean, known.deviation, kind, mark=mark))
    sizes = [
        line.a.values.size
        for mine in crossed.values()
        for line in mine
        if line.a.values is not None
    ]
    reach = 2 / (min(sizes) - 1) ** 0.5 if sizes and min(sizes) > 1 else None
    band = text.words("study.layers.band")
    return [
        Bars(
            f"definitive_evidence_{role}_pearson",
            text.words("study.baseline-claim.chart.centred", role=role_title(role)),
            measures()["pearson"].title,
            tuple(bars),
            () if reach is None else (Band(band, 0.0, -reach, reach),),
            digits=4,
            most=largest("pearson"),
        )
    ]


def _pair_label(inputs: StudyInput, a: int, b: int, count: int) -> Words:
    """Two models and how many layers of them a mean is over: not all models are equally deep."""
    names = {"a": inputs.names[a], "b": inputs.names[b]}
    return text.words("study.baseline-claim.bar.pair", **names, count=count)


def _bars_of_claim(inputs: StudyInput, claim: Claim) -> list[Bar]:
    """The bar of a pair; before that of the pair asked about, both models with themselves."""
    a, b = inputs.names[claim.a], inputs.names[claim.b]
    pair = _pair_label(inputs, claim.a, claim.b, claim.cross.count)
    kind = "pair" if _is_asked(claim) else "related" if is_kin(inputs, claim) else "other"
    bars = [Bar(pair, claim.cross.mean, claim.cross.deviation, kind, mark=claim.mark)]
    if not _is_asked(claim):
        return bars
    inside = [
        Bar(
            text.words("study.baseline-claim.bar.inside", name=name),
            known.mean,
            known.deviation,
            "within",
            mark=claim.mark,
        )
        for name, known in ((a, claim.own), (b, claim.within))
    ]
    return [*inside, *bars]


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
