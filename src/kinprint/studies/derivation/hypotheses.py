"""Alternative hypotheses with what speaks for and against each, from measured numbers.

The hypotheses and arguments are data; here numbers decide which arguments apply. It sorts
what was measured and chooses nothing: a choice needs a null.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from kinprint import text
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Flow, Step
from kinprint.studies.derivation import configuration, tensor_types
from kinprint.studies.derivation.baseline import claims_about, measured, needed
from kinprint.studies.derivation.pairwise import (
    NORMS,
    A,
    B,
    Row,
    by_role,
    rounded,
    spread_of,
)
from kinprint.studies.pairing import spread, tell_gaps
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.scene import MISMATCH, Item, Scene
from kinprint.studies.titles import role_title
from kinprint.text import Words

ATTENTION = ("q", "k", "v", "o")
# A centred correlation above this is far from what unrelated models give, and kept weights
# of published descendants lie above the second.
HIGH, KEPT = 0.2, 0.5
_PAIR = ((A, B),)


@dataclass(frozen=True, slots=True)
class Numbers:
    """What the arguments speak of; None where it could not be measured."""

    cosine: float | None
    shuffled: float | None
    norms: float | None
    matrices: float | None
    attention: float | None
    sigma: float | None
    limit: float  # what unrelated norms reach, and matrices in the next
    matrix_limit: float
    equal: int
    sizes: int

    @property
    def states(self) -> frozenset[str]:
        """The conditions that hold, as the table of arguments names them."""
        return frozenset(
            {
                "always",
                f"norms:{_state(self.norms, self.limit)}",
                f"matrices:{_state(self.matrices, self.matrix_limit)}",
            }
        )

    @property
    def shown(self) -> dict[str, str]:
        """All of them as they stand in sentences."""
        return {
            "cosine": rounded(self.cosine),
            "shuffled": rounded(self.shuffled),
            "norms": rounded(self.norms),
            "matrices": rounded(self.matrices),
            "attention": rounded(self.attention),
            "sigma": rounded(self.sigma, 0),
            "limit": rounded(self.limit, 2),
            "equal": str(self.equal),
            "sizes": str(self.sizes),
            "equal_share": rounded(self.equal / self.sizes if self.sizes else None, 2),
        }

    def value(self, name: str) -> float | None:
        """One number by name."""
        if name == "equal_share":
            return self.equal / self.sizes if self.sizes else None
        found: float | None = getattr(self, name)
        return found


@cache
def arguments() -> Mapping[str, Any]:
    """Hypotheses and the report's evidence, as they are written down."""
    table = (files("kinprint.studies.derivation") / "hypotheses.toml").read_text("utf-8")
    return tomllib.loads(table)


def _needs(study: Study, scene: Scene) -> list[Item]:
    return [
        *tensor_types.needed(study, scene),
        *needed(replace(study, roles=NORMS), scene, _PAIR),
    ]


def _run(study: Study, scene: Scene) -> Result:
    rows, _ = tensor_types.type_rows(study, scene)
    sizes = configuration.differences(configuration.sizes(scene, A), configuration.sizes(scene, B))
    numbers = _numbers(study, scene, rows, sizes)
    tables = _hypothesis_table(numbers), _evidence_table(numbers), _tensor_table(rows)
    facts: dict[str, Fact] = {
        "norm_mean_cosine": numbers.cosine,
        "norm_shuffled_cosine": numbers.shuffled,
        "norm_mean_pearson": numbers.norms,
        "matrix_mean_pearson": numbers.matrices,
        "attention_mean_cosine": numbers.attention,
        "sigma": numbers.sigma,
        "equal_sizes": numbers.equal,
        "sizes": numbers.sizes,
    }
    return Result(
        study.name,
        scene.names,
        tables,
        facts,
        (_flow(scene, rows, sizes),),
        (*_findings(numbers), *tell_gaps(tables[2].column("status"))),
        scene.labels,
    )


def _numbers(
    study: Study, scene: Scene, rows: Sequence[Row], sizes: Sequence[configuration.Difference]
) -> Numbers:
    norms = [row for row in rows if row.role in NORMS]
    rest = [row for row in rows if row.role not in NORMS]
    own = replace(study, roles=NORMS)
    claims = claims_about(own, scene, measured(own, scene, _PAIR), _PAIR)
    sigma = claims[0].effect.sigma if claims else float("nan")
    return Numbers(
        cosine=spread_of(norms, "cosine").mean,
        shuffled=spread_of(norms, "shuffled_cosine").mean,
        norms=spread_of(norms, "pearson").mean,
        matrices=spread_of(rest, "pearson").mean,
        attention=spread_of([row for row in rest if row.role in ATTENTION], "cosine").mean,
        sigma=spread([sigma]).mean,
        limit=_limit(norms),
        matrix_limit=_limit(rest),
        equal=sum(one.change == configuration.EQUAL for one in sizes),
        sizes=len(sizes),
    )


def _limit(rows: Sequence[Row]) -> float:
    """Three deviations of the correlation of two unrelated vectors of n values, 3/√(n−1).

    The mean over layers scatters less, but not by the root of their number: layers of one
    model are not independent of each other.
    """
    sizes = [row.a.values.size for row in rows if row.a.values is not None]
    return 3 / (min(sizes) - 1) ** 0.5 if sizes and min(sizes) > 1 else HIGH


def _state(value: float | None, limit: float) -> str:
    if value is None:
        return "unknown"
    if abs(value) <= limit:
        return "low"
    return "high" if abs(value) > HIGH else "some"


def _sides(hypothesis: Mapping[str, Any], numbers: Numbers) -> dict[str, Words]:
    """Everything that applies for and against one hypothesis, each side as one text."""
    found: dict[str, Words] = {}
    for side in ("for", "against"):
        found[side] = text.joined(
            text.words(_argument_key(hypothesis["key"], one), **numbers.shown)
            for one in hypothesis["argument"]
            if one["side"] == side and numbers.states.issuperset(one["when"])
        )
    return found


def _argument_key(hypothesis: str, argument: Mapping[str, Any]) -> str:
    """Arguments are told apart by their side and by when they apply."""
    when = "+".join(argument["when"]).replace(":", "-")
    return f"study.hypotheses.{hypothesis}.{argument['side']}.{when}"


def _hypothesis_table(numbers: Numbers) -> Table:
    rows = []
    for one in arguments()["hypothesis"]:
        sides = _sides(one, numbers)
        title, report = (
            text.words(f"study.hypotheses.{one['key']}.{part}") for part in ("title", "report")
        )
        cells = (title, sides["for"], sides["against"], report)
        rows.append((one["key"], *(said for words in cells for said in words.values())))
    columns = ("hypothesis", "for", "against", "report_of_2026")
    spelled = tuple(f"{name}_{language}" for name in columns for language in text.languages())
    title = text.words("study.hypotheses.table.hypotheses")
    return Table("hypotheses", title, ("key", *spelled), tuple(rows))


def _evidence_table(numbers: Numbers) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in arguments()["evidence"]:
        key = f"study.hypotheses.evidence.{one['key']}"
        title, remark = text.words(f"{key}.title"), text.words(f"{key}.remark", **numbers.shown)
        value = numbers.value(one["fact"])
        stars = "★" * one["strength"]
        rows.append((one["key"], *title.values(), value, stars, *remark.values()))
    tests, remarks = (
        tuple(f"{name}_{language}" for language in text.languages()) for name in ("test", "remark")
    )
    columns = ("key", *tests, "value", "strength_in_2026", *remarks)
    heading = text.words("study.hypotheses.table.evidence")
    return Table("evidence_strength", heading, columns, tuple(rows))


def _tensor_table(rows: Sequence[Row]) -> Table:
    lines = tuple(
        (
            row.role,
            row.layer,
            row.found.status,
            row.found.value("cosine"),
            row.found.value("pearson"),
            row.found.sample,
            row.found.reason,
        )
        for row in rows
    )
    title = text.words("study.hypotheses.table.tensors")
    columns = ("role", "layer", "status", "cosine", "pearson", "sample", "reason")
    return Table("hypotheses_tensors", title, columns, lines)


def _flow(scene: Scene, rows: Sequence[Row], sizes: Sequence[configuration.Difference]) -> Flow:
    found = {role: _tensor_step(role, group) for role, group in by_role(rows).items()}
    steps = [step for step in found.values() if step is not None]
    silent = [role_title(role) for role, step in found.items() if step is None]
    steps += [
        Step("changed", text.plain(f"{one.key}: {one.b} → {one.a}"))
        for one in sizes
        if one.change == configuration.CHANGED
    ]
    config = configuration.differences(dict(scene.models[A].config), dict(scene.models[B].config))
    for one in config:
        if one.change in (configuration.ADDED, configuration.REMOVED):
            value = one.a if one.change == configuration.ADDED else one.b
            steps.append(Step(one.change, text.plain(f"{one.key}: {value}")))
    return Flow(
        "presumed_transformation",
        text.words("study.hypotheses.chart"),
        scene.names[B],
        scene.names[A],
        tuple(steps),
        _flow_note(silent),
    )


def _flow_note(silent: Sequence[Words]) -> Words:
    note = text.words("study.hypotheses.chart.note")
    if not silent:
        return note
    roles = text.joined(silent, ", ")
    return text.words("study.hypotheses.chart.note-silent", note=note, roles=roles)


def _tensor_step(role: str, group: Sequence[Row]) -> Step | None:
    """What became of one type of tensor; None where nothing can be said."""
    title = role_title(role)
    cosine, pearson = spread_of(group, "cosine").mean, spread_of(group, "pearson").mean
    if pearson is None:
        if not any(row.found.status == MISMATCH for row in group):
            return None
        return Step("changed", text.words("study.hypotheses.step.shapes", role=title))
    kept = pearson > KEPT
    state = text.message(f"study.hypotheses.step.{'kept' if kept else 'not-kept'}")
    means = {"cosine": rounded(cosine), "pearson": rounded(pearson)}
    told = text.words("study.hypotheses.step", role=title, state=state, **means)
    return Step("kept" if kept else "retrained", told)


def _findings(numbers: Numbers) -> tuple[Words, ...]:
    told: list[Words] = []
    nothing = text.words("study.hypotheses.finding.nothing")
    for one in arguments()["hypothesis"]:
        pro, con = (side if str(side) else nothing for side in _sides(one, numbers).values())
        title = text.message(f"study.hypotheses.{one['key']}.title")
        told.append(text.words("study.hypotheses.finding", hypothesis=title, pro=pro, con=con))
    return tuple(told)


HYPOTHESES = Procedure(_needs, _run)
