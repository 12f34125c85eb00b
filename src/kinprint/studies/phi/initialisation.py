"""What the start of a norm vector does to its cosine, on networks trained here and now.

Their independence is beyond doubt, so whatever similarity they show needs no ancestry to
explain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct

from kinprint import text
from kinprint.measure.measures import measure, measures
from kinprint.studies.charts import Band, Bar, Chart, Lines, Panels, Series
from kinprint.studies.pairs import (
    ComparedPairs,
    LayerPair,
    ModelLayer,
    compare_pairs,
    layers_for,
    measure_bars,
    pair_table,
    tensors_of,
)
from kinprint.studies.phi.tiny_network import ONES, RANDOM, Shape, Trained, train
from kinprint.studies.results import Cell, Fact, Output, Table
from kinprint.studies.study import Procedure, StudyInput
from kinprint.studies.summary import Spread, rounded, spread
from kinprint.text import Words

NETWORKS = 4
INDEPENDENT, CHILD = "independent", "child"
CONTINUED = "0 continued"
"""What tables call the child, which is the first network trained further."""
_STARTS = {
    ONES: text.message("study.initialisation.start.ones"),
    RANDOM: text.message("study.initialisation.start.random"),
}
_RELATIONS = {
    INDEPENDENT: text.message("study.initialisation.relation.independent"),
    CHILD: text.message("study.initialisation.relation.child"),
}


class Family(Struct, frozen=True):
    """Networks of one kind of start from different seeds, and a child of the first."""

    start: str
    networks: tuple[Trained, ...]
    child: Trained


def raise_family(start: str, shape: Shape, seed: int) -> Family:
    """Train `NETWORKS` networks from nothing, then the first one further on other examples."""
    networks = tuple(train(shape, seed + at, start) for at in range(NETWORKS))
    child = train(shape, seed, start, begun=networks[0].weights, data=1)
    return Family(start, networks, child)


def pairs_of(inputs: StudyInput) -> list[LayerPair]:
    """All pairs of the given models, at each layer, for each role; none without models."""
    return [
        LayerPair(ModelLayer(a, layer), ModelLayer(b, layer), role, "given")
        for layer in layers_for(inputs)
        for role in inputs.roles
        for a, b in combinations(range(len(inputs.models)), 2)
    ]


def run(inputs: StudyInput, shape: Shape | None = None) -> Output:
    """Train, compare, and put the given models beside."""
    shape = shape or Shape()
    names = inputs.measures
    families = [raise_family(start, shape, inputs.request.seed) for start in (ONES, RANDOM)]
    networks = _network_table(families, shape, names)
    pairs = compare_pairs(inputs, pairs_of(inputs))
    title = text.words("study.initialisation.table.given")
    given = [pair_table(inputs, title, pairs, "given")] if len(pairs) else []
    facts: dict[str, Fact] = {"networks": NETWORKS, "width": shape.width, "steps": shape.steps}
    for family in families:
        facts[f"norms_start_{family.start}"] = _summary(networks, family, names)
    charts: tuple[Chart, ...] = (_bars(networks, pairs, shape, names), _losses(families))
    gaps = [words for table in given for words in table.gaps]
    findings = (*_findings(networks, families), *gaps)
    return Output((networks, _loss_table(families), *given), facts, charts, findings)


def _network_table(families: Sequence[Family], shape: Shape, names: Sequence[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for family in families:
        numbered = list(enumerate(family.networks))
        pairs = [
            (INDEPENDENT, str(a), str(b), x, y) for (a, x), (b, y) in combinations(numbered, 2)
        ]
        pairs.append((CHILD, "0", CONTINUED, family.networks[0], family.child))
        for relation, a, b, x, y in pairs:
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
        names = [*map(str, range(len(family.networks))), CONTINUED]
        for name, network in zip(names, (*family.networks, family.child), strict=True):
            rows.append((family.start, name, *ends(network)))
    title = text.words("study.initialisation.table.losses")
    return Table("losses", title, ("start", "network", "loss_first", "loss_last"), tuple(rows))


def ends(network: Trained) -> tuple[float, float]:
    """Mean loss over the first and over the last tenth of training."""
    losses = network.losses
    tenth = max(len(losses) // 10, 1)
    return float(np.mean(losses[:tenth])), float(np.mean(losses[-tenth:]))


def _spread(networks: Table, start: str, relation: str, name: str) -> Spread:
    """A measure over all networks of one start that are so related."""
    at = networks.columns.index(name)
    found = (row[at] for row in networks.rows if row[:2] == (start, relation))
    return spread(value for value in found if isinstance(value, float))


def _summary(networks: Table, family: Family, names: Sequence[str]) -> Fact:
    summary: dict[str, Fact] = {}
    for relation in (INDEPENDENT, CHILD):
        for name in names:
            found = _spread(networks, family.start, relation, name)
            summary[f"{relation}_{name}_mean"] = found.mean
            summary[f"{relation}_{name}_std"] = found.std
    firsts, lasts = zip(*map(ends, family.networks), strict=True)
    summary["loss_first"], summary["loss_last"] = float(np.mean(firsts)), float(np.mean(lasts))
    return summary


def _bars(networks: Table, pairs: ComparedPairs, shape: Shape, names: Sequence[str]) -> Panels:
    """One panel a measure: every start and relation, and the given models."""
    charts = []
    for name in names:
        bars = []
        for start, start_label in _STARTS.items():
            for relation, label in _RELATIONS.items():
                found = _spread(networks, start, relation, name)
                words = text.words("study.initialisation.bar", start=start_label, relation=label)
                kind = "control" if relation == INDEPENDENT else "related"
                bars.append(Bar(words, found.mean, found.std, kind))
        if len(pairs):
            bars.append(pairs.bar(text.words("study.initialisation.given"), name, "pair"))
        # Vectors drawn apart about zero have both measures within 1/√d of zero.
        reach = 1 / float(np.sqrt(shape.width))
        random = text.words("study.initialisation.band")
        bands = (Band(random, 0.0, -reach, reach),) if name in ("cosine", "pearson") else ()
        title = measures()[name].title
        charts.append(measure_bars(f"initialisation_{name}", title, name, bars, bands))
    title = text.words("study.initialisation.chart.similarity")
    return Panels("initialisation", title, tuple(charts))


def _losses(families: Sequence[Family]) -> Lines:
    series = []
    for family in families:
        for at, network in enumerate(family.networks):
            label = text.words(
                "study.initialisation.network", start=_STARTS[family.start], number=at
            )
            tens = range(0, len(network.losses) // 10 * 10, 10)
            y = tuple(float(np.mean(network.losses[step : step + 10])) for step in tens)
            series.append(Series(label, tuple(map(float, tens)), y, "control"))
    return Lines(
        "initialisation_loss",
        text.words("study.initialisation.chart.losses"),
        text.words("study.initialisation.axis.step"),
        text.words("study.initialisation.axis.loss"),
        tuple(series),
    )


def _findings(networks: Table, families: Sequence[Family]) -> list[Words]:
    if not {"cosine", "pearson"} <= set(networks.columns):
        return []
    found = []
    for family in families:
        means = {
            f"{relation}_{name}": rounded(_spread(networks, family.start, relation, name).mean, 4)
            for relation in (INDEPENDENT, CHILD)
            for name in ("cosine", "pearson")
        }
        found.append(text.words(f"study.initialisation.finding.{family.start}", **means))
    return found


INITIALISATION = Procedure(lambda inputs: tensors_of(pairs_of(inputs)), run)
