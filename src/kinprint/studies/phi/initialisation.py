"""What the start of a norm vector does to its cosine, on networks trained here and now.

Their independence is beyond doubt, so whatever similarity they show needs no ancestry to
explain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from kinprint import text
from kinprint.measure.measures import measure
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Band, Bar, Bars, Chart, Lines, Panels, Series
from kinprint.studies.pairing import (
    spread,
    tell_gaps,
    wanted_measures,
    wanted_roles,
)
from kinprint.studies.pairs import (
    Met,
    Pair,
    Spot,
    bar_of,
    compare_pairs,
    items_of,
    layers_for,
    number,
    pair_table,
)
from kinprint.studies.phi.tiny_network import ONES, RANDOM, Shape, Trained, train
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.scene import Scene
from kinprint.studies.titles import measure_title
from kinprint.text import Words

NETWORKS = 4
INDEPENDENT, CHILD = "independent", "child"
_STARTS = {
    ONES: text.message("study.initialisation.start.ones"),
    RANDOM: text.message("study.initialisation.start.random"),
}
_RELATIONS = {
    INDEPENDENT: text.message("study.initialisation.relation.independent"),
    CHILD: text.message("study.initialisation.relation.child"),
}


@dataclass(frozen=True, slots=True)
class Family:
    """Networks of one kind of start from different seeds, and a child of the first."""

    start: str
    networks: tuple[Trained, ...]
    child: Trained


def raise_family(start: str, shape: Shape, seed: int = 0, count: int = NETWORKS) -> Family:
    """Train `count` networks from nothing, then the first one further on other examples."""
    networks = tuple(train(shape, seed + at, start) for at in range(count))
    child = train(shape, seed, start, begun=networks[0].weights, data=1)
    return Family(start, networks, child)


def pairs_of(study: Study, scene: Scene) -> list[Pair]:
    """All pairs of the given models, at each layer, for each role; none without models."""
    return [
        Pair(Spot(a, layer), Spot(b, layer), role, "given")
        for layer in layers_for(study, scene)
        for role in wanted_roles(scene, study.roles)
        for a, b in combinations(range(len(scene.models)), 2)
    ]


def run(study: Study, scene: Scene, shape: Shape | None = None) -> Result:
    """Train, compare, and put the given models beside."""
    shape = shape or Shape()
    names = wanted_measures(scene, study.measures)
    families = [raise_family(start, shape, scene.request.seed) for start in (ONES, RANDOM)]
    table = _compared(families, shape, names)
    met = compare_pairs(scene, pairs_of(study, scene), names)
    given = text.words("study.initialisation.table.given")
    beside = (pair_table(scene, "given", given, met, names),) if met else ()
    facts: dict[str, Fact] = {"networks": NETWORKS, "width": shape.width, "steps": shape.steps}
    for family in families:
        facts[f"norms_start_{family.start}"] = _summary(table, family, names)
    findings = (*_findings(table, families), *tell_gaps(beside[0].statuses if beside else {}))
    charts: tuple[Chart, ...] = (_bars(table, met, shape, names), _losses(families))
    tables = (table, _loss_table(families), *beside)
    return Result(study.name, scene.names, tables, facts, charts, findings, scene.labels)


def _compared(families: Sequence[Family], shape: Shape, names: Sequence[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for family in families:
        numbered = list(enumerate(family.networks))
        met = [(INDEPENDENT, str(a), str(b), x, y) for (a, x), (b, y) in combinations(numbered, 2)]
        met.append((CHILD, "0", "0 continued", family.networks[0], family.child))
        for relation, a, b, x, y in met:
            for norm in shape.norms:
                found = [measure(name, x.weights[norm], y.weights[norm]) for name in names]
                values = (one.value if one.ok else None for one in found)
                rows.append((family.start, relation, a, b, norm, *values))
    title = text.words("study.initialisation.table.networks")
    columns = ("start", "relation", "network_a", "network_b", "norm", *names)
    return Table("networks", title, columns, tuple(rows))


def _loss_table(families: Sequence[Family]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for family in families:
        told = [*map(str, range(len(family.networks))), "0 continued"]
        for name, one in zip(told, (*family.networks, family.child), strict=True):
            first, last = ends(one)
            rows.append((family.start, name, first, last))
    title = text.words("study.initialisation.table.losses")
    return Table("losses", title, ("start", "network", "loss_first", "loss_last"), tuple(rows))


def ends(one: Trained) -> tuple[float, float]:
    """Mean loss over the first and over the last tenth of training."""
    tenth = max(len(one.losses) // 10, 1)
    return float(np.mean(one.losses[:tenth])), float(np.mean(one.losses[-tenth:]))


def _values(table: Table, start: str, relation: str, name: str) -> list[float | None]:
    at = table.columns.index(name)
    found = [row[at] for row in table.rows if row[:2] == (start, relation)]
    return [float(one) if isinstance(one, float) else None for one in found]


def _summary(table: Table, family: Family, names: Sequence[str]) -> Fact:
    summary: dict[str, Fact] = {}
    for relation in (INDEPENDENT, CHILD):
        for name in names:
            found = spread(_values(table, family.start, relation, name))
            summary[f"{relation}_{name}_mean"] = found.mean
            summary[f"{relation}_{name}_std"] = found.std
    firsts, lasts = zip(*map(ends, family.networks), strict=True)
    summary["loss_first"], summary["loss_last"] = float(np.mean(firsts)), float(np.mean(lasts))
    return summary


def _bars(table: Table, met: Sequence[Met], shape: Shape, names: Sequence[str]) -> Panels:
    charts = []
    for name in names:
        bars = []
        for start, start_words in _STARTS.items():
            for relation, words in _RELATIONS.items():
                found = spread(_values(table, start, relation, name))
                label = text.words("study.initialisation.bar", start=start_words, relation=words)
                kind = "control" if relation == INDEPENDENT else "related"
                bars.append(Bar(label, found.mean, found.std, kind))
        if met:
            bars.append(bar_of(text.words("study.initialisation.given"), met, name, "pair"))
        # Vectors drawn apart about zero have both measures within 1/√d of zero.
        reach = 1 / float(np.sqrt(shape.width))
        random = text.words("study.initialisation.band")
        bands = (Band(random, 0.0, -reach, reach),) if name in ("cosine", "pearson") else ()
        charts.append(
            Bars(
                f"initialisation_{name}",
                measure_title(name),
                measure_title(name),
                tuple(bars),
                bands,
                digits=4,
            )
        )
    title = text.words("study.initialisation.chart.similarity")
    return Panels("initialisation", title, tuple(charts))


def _losses(families: Sequence[Family]) -> Lines:
    series = []
    for family in families:
        for at, one in enumerate(family.networks):
            words = _STARTS[family.start]
            label = text.words("study.initialisation.network", start=words, number=at)
            tens = range(0, len(one.losses) // 10 * 10, 10)
            y = tuple(float(np.mean(one.losses[step : step + 10])) for step in tens)
            series.append(Series(label, tuple(float(step) for step in tens), y, "control"))
    return Lines(
        "initialisation_loss",
        text.words("study.initialisation.chart.losses"),
        text.words("study.initialisation.axis.step"),
        text.words("study.initialisation.axis.loss"),
        tuple(series),
    )


def _findings(table: Table, families: Sequence[Family]) -> list[Words]:
    found = []
    for family in families:
        numbers = {
            f"{relation}_{name}": number(spread(_values(table, family.start, relation, name)).mean)
            for relation in (INDEPENDENT, CHILD)
            for name in ("cosine", "pearson")
            if name in table.columns
        }
        if len(numbers) < 4:
            continue
        found.append(text.words(f"study.initialisation.finding.{family.start}", **numbers))
    return found


INITIALISATION = Procedure(lambda study, scene: items_of(pairs_of(study, scene)), run)
