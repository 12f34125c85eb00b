"""Values of two vectors index by index: before any number, what there is to be seen."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from kinprint import text
from kinprint.records import Mark
from kinprint.studies.charts import Lines, Panels, Series
from kinprint.studies.pairs import (
    ComparedPairs,
    LayerPair,
    ModelLayer,
    compare_pairs,
    layers_for,
    pair_table,
    stem,
    tensors_of,
)
from kinprint.studies.results import Cell, Fact, Output, Table
from kinprint.studies.study import Procedure, ReadTensor, StudyInput
from kinprint.text import Words
from kinprint.titles import role_title

SHOWN = 1024
"""Most values of one vector that a picture shows: more dots than pixels tell nothing."""


def pairs_of(inputs: StudyInput) -> list[LayerPair]:
    """All pairs of models, at each layer, for each role."""
    return [
        LayerPair(ModelLayer(a, layer), ModelLayer(b, layer), role)
        for a, b in combinations(range(len(inputs.models)), 2)
        for layer in layers_for(inputs)
        for role in inputs.roles
    ]


def run(inputs: StudyInput) -> Output:
    """Tabulate all values, and draw each pair with as many as a picture can show."""
    wanted = pairs_of(inputs)
    pairs = compare_pairs(inputs, wanted)
    table = pair_table(inputs, text.words("study.common.pairs-table"), pairs)
    by_models: dict[tuple[int, int], list[LayerPair]] = {}
    for pair in wanted:
        by_models.setdefault((pair.a.model, pair.b.model), []).append(pair)
    charts = tuple(_panels(inputs, *both, mine) for both, mine in by_models.items())
    values = tuple(
        _value_table(inputs, layer, role)
        for role, layer in dict.fromkeys((pair.role, pair.a.layer) for pair in wanted)
    )
    counts: dict[str, Fact] = {one.name: len(one.rows) for one in values}
    facts: dict[str, Fact] = {"shown_at_most": SHOWN, "values": counts}
    return Output((table, *values), facts, charts, (*_findings(pairs), *table.gaps))


def _findings(pairs: ComparedPairs) -> list[Words]:
    """For each role and layer, over all pairs, how far apart values are."""
    found = []
    for role, layer in dict.fromkeys((one.pair.role, one.pair.a.layer) for one in pairs):
        mine = pairs.only(role=role, layer=layer)
        apart = mine.spread("mean_abs_diff")
        if apart.mean is None:
            continue
        found.append(
            text.words(
                "study.elementwise.finding",
                role=role_title(role),
                layer=layer,
                count=apart.count,
                apart=mine.written_mean("mean_abs_diff"),
                pearson=mine.written_mean("pearson"),
            )
        )
    return found


def _value_table(inputs: StudyInput, layer: int, role: str) -> Table:
    """One row an index, one column a model; a model without the tensor has none."""
    read = [inputs.get(ModelLayer(at, layer).tensor(role)) for at in range(len(inputs.models))]
    columns = [_flat(tensor) for tensor in read]
    length = max(map(len, columns), default=0)
    rows: list[tuple[Cell, ...]] = [
        (at, *(column[at] if at < len(column) else None for column in columns))
        for at in range(length)
    ]
    title = text.words("study.elementwise.table.values", role=role_title(role), layer=layer)
    return Table(f"values_{stem(role)}_layer{layer}", title, ("index", *inputs.names), tuple(rows))


def _panels(inputs: StudyInput, a: int, b: int, pairs: Sequence[LayerPair]) -> Panels:
    """Two models, one panel a role and layer."""
    one, other = inputs.names[a], inputs.names[b]
    name = f"elementwise/{stem(one)}_vs_{stem(other)}"
    charts = tuple(_lines(inputs, name, pair) for pair in pairs)
    return Panels(name, text.words("study.elementwise.chart", a=one, b=other), charts)


def _lines(inputs: StudyInput, name: str, pair: LayerPair) -> Lines:
    series, total, shown = [], 0, 0
    for rows in pair.tensors:
        values = _flat(inputs.get(rows))
        picked = thin(len(values))
        total, shown = max(total, len(values)), max(shown, len(picked))
        x, y = tuple(map(float, picked)), tuple(values[at] for at in picked)
        made_up = inputs.get(rows).origin is not None  # single values of replicas are
        mark = Mark.INVENTED if made_up else Mark.MEASURED
        series.append(Series(text.plain(inputs.names[rows.model]), x, y, mark=mark))
    role, layer = role_title(pair.role), pair.a.layer
    note = text.words("study.elementwise.chart.note", shown=shown, total=total)
    return Lines(
        f"{name}_{stem(pair.role)}_layer{layer}",
        text.words("study.elementwise.chart.role", role=role, layer=layer),
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


def _flat(tensor: ReadTensor) -> list[float | None]:
    """All values in order; those that are no numbers are gaps."""
    if tensor.values is None:
        return []
    flat = tensor.values.reshape(-1)
    return [
        float(value) if known else None
        for value, known in zip(flat.tolist(), np.isfinite(flat).tolist(), strict=True)
    ]


ELEMENTWISE = Procedure(lambda inputs: tensors_of(pairs_of(inputs)), run)
