"""Values of two vectors index by index: before any number, what there is to be seen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from kinprint import text
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Lines, Panels, Series, Values
from kinprint.studies.pairing import tell_gaps, wanted_measures, wanted_roles
from kinprint.studies.pairs import (
    Met,
    Pair,
    Spot,
    compare_pairs,
    items_of,
    layers_for,
    number,
    pair_table,
    spread_of,
    stem,
)
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.scene import OK, Scene, Taken
from kinprint.studies.titles import role_title
from kinprint.text import Words

SHOWN = 1024
"""Most values of one vector that a picture shows: more dots than pixels tell nothing."""


def pairs_of(study: Study, scene: Scene) -> list[Pair]:
    """All pairs of models, at each layer, for each role."""
    return [
        Pair(Spot(a, layer), Spot(b, layer), role)
        for a, b in combinations(range(len(scene.models)), 2)
        for layer in layers_for(study, scene)
        for role in wanted_roles(scene, study.roles)
    ]


def run(study: Study, scene: Scene) -> Result:
    """Tabulate all values, and draw each pair with as many as a picture can show."""
    names = wanted_measures(scene, study.measures)
    pairs = pairs_of(study, scene)
    met = compare_pairs(scene, pairs, names)
    title = text.words("study.common.pairs-table")
    table = pair_table(scene, study.name, title, met, names)
    charts = []
    for a, b in combinations(range(len(scene.models)), 2):
        mine = [pair for pair in pairs if (pair.a.model, pair.b.model) == (a, b)]
        charts.append(_panels(scene, a, b, mine))
    values = tuple(
        _values(scene, layer, role)
        for role, layer in dict.fromkeys((pair.role, pair.a.layer) for pair in pairs)
    )
    counts: dict[str, Fact] = {one.name: len(one.rows) for one in values}
    facts: dict[str, Fact] = {"shown_at_most": SHOWN, "values": counts}
    findings = (*_findings(met), *tell_gaps(table.statuses))
    return Result(
        study.name, scene.names, (table, *values), facts, tuple(charts),
        findings, scene.labels,
    )  # fmt: skip


def _findings(met: Sequence[Met]) -> list[Words]:
    """For each role and layer, over all pairs, how far apart values are."""
    found = []
    for role, layer in dict.fromkeys((each.pair.role, each.pair.a.layer) for each in met):
        mine = [each for each in met if (each.pair.role, each.pair.a.layer) == (role, layer)]
        apart = spread_of(mine, "mean_abs_diff")
        if apart.mean is None:
            continue
        numbers = number(apart.mean), number(spread_of(mine, "pearson").mean)
        values = dict(zip(("apart", "pearson"), numbers, strict=True))
        found.append(
            text.words(
                "study.elementwise.finding", role=role, layer=layer, count=apart.count, **values
            )
        )
    return found


def _values(scene: Scene, layer: int, role: str) -> Table:
    """One row an index, one column a model; a model without the tensor has none."""
    taken = [scene.get(Spot(at, layer).item(role)) for at in range(len(scene.models))]
    columns = [_flat(one) for one in taken]
    length = max(map(len, columns), default=0)
    rows: list[tuple[Cell, ...]] = [
        (at, *(column[at] if at < len(column) else None for column in columns))
        for at in range(length)
    ]
    title = text.words("study.elementwise.table.values", role=role, layer=layer)
    return Table(f"values_{stem(role)}_layer{layer}", title, ("index", *scene.names), tuple(rows))


def _panels(scene: Scene, a: int, b: int, pairs: list[Pair]) -> Panels:
    one, other = scene.names[a], scene.names[b]
    name = f"elementwise/{stem(one)}_vs_{stem(other)}"
    charts = tuple(_lines(scene, name, pair) for pair in pairs)
    return Panels(name, text.words("study.elementwise.chart", a=one, b=other), charts)


def _lines(scene: Scene, name: str, pair: Pair) -> Lines:
    role = role_title(pair.role)
    series, total, shown = [], 0, 0
    for spot in (pair.a, pair.b):
        values = _flat(scene.get(spot.item(pair.role)))
        picked = thin(len(values))
        total, shown = max(total, len(values)), max(shown, len(picked))
        chosen: Values = tuple(values[at] for at in picked)
        x = tuple(float(at) for at in picked)
        series.append(Series(text.plain(scene.names[spot.model]), x, chosen))
    note = text.words("study.elementwise.chart.note", shown=shown, total=total)
    return Lines(
        f"{name}_{stem(pair.role)}_layer{pair.a.layer}",
        text.words("study.elementwise.chart.role", role=role, layer=pair.a.layer),
        text.words("study.elementwise.axis.index"),
        text.words("study.elementwise.axis.value"),
        tuple(series),
        points=True,
        note=note if shown < total else None,
    )


def thin(length: int, most: int = SHOWN) -> list[int]:
    """Indices of an even choice, first and last among them; all if they are few."""
    if length <= most:
        return list(range(length))
    return [int(at) for at in np.linspace(0, length - 1, most).round()]


def _flat(taken: Taken) -> list[float | None]:
    """All values in order; those that are no numbers are gaps."""
    if taken.status != OK or taken.values is None:
        return []
    flat = taken.values.reshape(-1)
    return [
        float(value) if known else None
        for value, known in zip(flat.tolist(), np.isfinite(flat).tolist(), strict=True)
    ]


ELEMENTWISE = Procedure(lambda study, scene: items_of(pairs_of(study, scene)), run)
