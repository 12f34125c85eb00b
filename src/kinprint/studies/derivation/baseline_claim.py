"""The 182-sigma claim, computed as it was published, with what is wrong with it beside it.

Models beyond the first two are controls: if models that share nothing give as many sigmas,
sigmas of this kind say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kinprint import text
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Band, Bar, Bars, Panels
from kinprint.studies.derivation.baseline import (
    SHUFFLED,
    Claim,
    Line,
    claim_table,
    claims_about,
    measure_names,
    measured,
    needed,
    numbers_of,
    share_above,
    share_words,
)
from kinprint.studies.derivation.pairwise import (
    A,
    B,
    rounded,
)
from kinprint.studies.pairing import Compared, spread, tell_gaps
from kinprint.studies.results import Fact, Result, Table
from kinprint.studies.scene import OK, Item, Scene
from kinprint.studies.titles import measure_title, role_title
from kinprint.text import Words


def _pairs(scene: Scene) -> list[tuple[int, int]]:
    """The pair that is asked about, then each of the two with each control."""
    controls = range(2, len(scene.models))
    return [(A, B), *((one, other) for other in controls for one in (A, B))]


def _needs(study: Study, scene: Scene) -> list[Item]:
    return needed(study, scene, _pairs(scene))


def _run(study: Study, scene: Scene) -> Result:
    pairs = _pairs(scene)
    lines = measured(study, scene, pairs)
    claims = claims_about(study, scene, lines, pairs)
    tables = _line_table(study, scene, lines), claim_table(scene, claims)
    return Result(
        study.name,
        scene.names,
        tables,
        _facts(claims),
        (_chart(study, scene, claims, lines),),
        (*_findings(scene, claims), *tell_gaps(tables[0].column("status"))),
        scene.labels,
    )


def _line_table(study: Study, scene: Scene, lines: Sequence[Line]) -> Table:
    names = measure_names(study, scene)
    rows = tuple(
        (
            line.role,
            "within" if line.within else "cross",
            scene.names[line.first.model],
            line.first.address.layer,
            scene.names[line.second.model],
            line.second.address.layer,
            line.found.status,
            *(line.found.value(name) for name in names),
            line.found.reason,
        )
        for line in lines
    )
    title = text.words("study.baseline-claim.table.lines")
    columns = ("role", "kind", "model_a", "layer_a", "model_b", "layer_b", "status")
    return Table("baseline_lines", title, (*columns, *names, "reason"), rows)


def _facts(claims: Sequence[Claim]) -> dict[str, Fact]:
    names = (
        "within_a_mean", "within_b_mean", "within_b_std", "cross_mean", "cross_std",
        "difference", "sigma", "log10_p", "least_p",
    )  # fmt: skip
    facts: dict[str, Fact] = {}
    for claim in claims:
        if (claim.a, claim.b) == (A, B):
            numbers: dict[str, Fact] = dict(zip(names, numbers_of(claim), strict=True))
            facts[claim.role] = {"status": claim.status, **numbers}
    controls = [one for one in claims if (one.a, one.b) != (A, B)]
    if controls:
        facts["controls"] = {
            role: dict(share_above([one for one in controls if one.role == role]))
            for role in dict.fromkeys(one.role for one in controls)
        }
    return facts


def _chart(study: Study, scene: Scene, claims: Sequence[Claim], lines: Sequence[Line]) -> Panels:
    """One panel a role, for each role has a shuffled baseline of its own."""
    lead = measure_names(study, scene)[0]
    panels = []
    for role in dict.fromkeys(claim.role for claim in claims):
        bars = [
            bar for claim in claims if claim.role == role for bar in _bars_of_claim(scene, claim)
        ]
        crossed = (line.found for line in lines if line.role == role and not line.within)
        bands = _shuffled_band(crossed) if lead == "cosine" else ()
        panels.append(
            Bars(
                f"definitive_evidence_{role}",
                role_title(role),
                measure_title(lead),
                tuple(bars),
                bands,
            )
        )
    return Panels(
        "definitive_evidence",
        text.words("study.baseline-claim.chart"),
        tuple(panels),
        across=1,
        note=text.words("study.baseline-claim.chart.note"),
    )


def _bars_of_claim(scene: Scene, claim: Claim) -> list[Bar]:
    """The bar of a pair; before that of the pair asked about, both models with themselves."""
    a, b = scene.names[claim.a], scene.names[claim.b]
    e = claim.effect
    asked = (claim.a, claim.b) == (A, B)
    inside = ((a, claim.own, None), (b, e.within_mean, e.within_std)) if asked else ()
    bars = [
        Bar(
            text.words("study.baseline-claim.bar.inside", name=name),
            _number(value),
            _number(std),
            "within",
        )
        for name, value, std in inside
    ]
    label = text.words("study.baseline-claim.bar.pair", a=a, b=b)
    kind = "pair" if asked else "other"
    return [*bars, Bar(label, _number(e.cross_mean), _number(e.cross_std), kind)]


def _shuffled_band(found: Iterable[Compared]) -> tuple[Band, ...]:
    middle = spread(one.value(SHUFFLED) for one in found)
    if middle.mean is None or middle.least is None or middle.greatest is None:
        return ()
    label = text.words("study.baseline-claim.band")
    return (Band(label, middle.mean, middle.least, middle.greatest),)


def _number(value: float | None) -> float | None:
    return None if value is None or value != value else value


def _findings(scene: Scene, claims: Sequence[Claim]) -> tuple[Words, ...]:
    told: list[Words] = []
    for claim in (one for one in claims if (one.a, one.b) == (A, B)):
        if claim.status != OK:
            continue
        e, role = claim.effect, role_title(claim.role)
        numbers = {
            "within": rounded(e.within_mean), "cross": rounded(e.cross_mean),
            "gap": rounded(e.difference), "sigma": f"{e.sigma:.1f}", "log": f"{e.log10_p:.1f}",
            "least": f"{e.least_p:.2g}", "b": scene.names[B],
        }  # fmt: skip
        told.append(text.words("study.baseline-claim.finding.sigma", role=role, **numbers))
    told.append(text.words("study.baseline-claim.finding.wrong"))
    controls = [one for one in claims if (one.a, one.b) != (A, B)]
    if controls:
        told += share_words(controls)
    else:
        told.append(text.words("study.baseline-claim.finding.no-controls"))
    return tuple(told)


CLAIM = Procedure(_needs, _run)
