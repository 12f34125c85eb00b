"""All pairs of models at the same layer: one layer, several, or all; norms or any weight.

What the critique counted. A pair whose widths differ is a row that says so, and a gap in
every picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.records import Mark
from kinprint.studies.charts import Bar, Bars, Chart, Heatmap, Lines, Series, Values
from kinprint.studies.comparing import SHUFFLED, compare
from kinprint.studies.pairs import (
    ComparedPair,
    ComparedPairs,
    LayerPair,
    ModelLayer,
    chart_name,
    compare_pairs,
    counted,
    kin_findings,
    layers_for,
    leading,
    measure_bars,
    pair_table,
    tensors_of,
)
from kinprint.studies.results import Fact, Output
from kinprint.studies.study import Procedure, StudyInput, TensorRows
from kinprint.studies.summary import Spread, spread
from kinprint.text import Words
from kinprint.titles import role_title

Bounds = tuple[float | None, float | None]
Draw = Callable[[StudyInput, str, ComparedPairs, str], Chart]
"""A picture from the models, its name, the pairs of one role, and the measure to show."""


def pairs_of(inputs: StudyInput) -> list[LayerPair]:
    """All pairs of models for each role and layer; a study without layers takes all."""
    layers = layers_for(inputs) if inputs.study.layers else inputs.stored_layers()
    return [
        LayerPair(ModelLayer(a, layer), ModelLayer(b, layer), role, "cross")
        for role in inputs.roles
        for layer in layers
        for a, b in combinations(range(len(inputs.models)), 2)
    ]


def _needs(inputs: StudyInput) -> list[TensorRows]:
    return tensors_of(pairs_of(inputs))


def _output(inputs: StudyInput, pairs: ComparedPairs, charts: Iterable[Chart]) -> Output:
    table = pair_table(inputs, text.words("study.same-layer.table"), pairs)
    facts = {role: _by_layer(inputs, pairs.only(role=role)) for role in inputs.roles}
    findings = (*_findings(inputs, pairs), *kin_findings(inputs, pairs), *table.gaps)
    return Output((table,), facts, tuple(charts), findings)


def _picture_a_role(name: str, draw: Draw) -> Procedure:
    """A study that draws the pairs of each role by themselves."""

    def run(inputs: StudyInput) -> Output:
        pairs, measure = compare_pairs(inputs, pairs_of(inputs)), leading(inputs.measures)
        charts = (
            draw(inputs, chart_name(name, role, inputs.roles), pairs.only(role=role), measure)
            for role in inputs.roles
        )
        return _output(inputs, pairs, charts)

    return Procedure(_needs, run)


def _by_layer(inputs: StudyInput, pairs: ComparedPairs) -> Fact:
    """Moments for each layer and over all; the deviation of the layers' means, as published."""
    names = inputs.measures
    layers: dict[str, Fact] = {
        str(layer): pairs.only(layer=layer).facts(names) for layer in pairs.layers
    }
    between: dict[str, Fact] = {
        name: spread(pairs.only(layer=layer).spread(name).mean for layer in pairs.layers).std
        for name in names
    }
    facts: dict[str, Fact] = {
        "layers": layers, "all": pairs.facts(names), "std_of_layer_means": between,
    }  # fmt: skip
    if len(pairs.related):
        facts["all_without_kin"] = pairs.unrelated.facts(names)
    return facts


def model_map(inputs: StudyInput, name: str, pairs: ComparedPairs, measure: str) -> Heatmap:
    """A matrix of models at the first of the pairs' layers."""
    layer = next(iter(pairs.layers), 0)
    mine = pairs.only(layer=layer)
    found: dict[tuple[int, int], float | None] = {}
    for each in mine:
        a, b = each.pair.a.model, each.pair.b.model
        found[a, b] = each.value(measure)
        found[b, a] = each.value(measure) if measures()[measure].symmetric else None
        for rows in each.pair.tensors:
            own = inputs.get(rows)
            found[rows.model, rows.model] = compare(own, own, (measure,)).value(measure)
    which = range(len(inputs.models))
    grid: tuple[Values, ...] = tuple(tuple(found.get((a, b)) for b in which) for a in which)
    known = [value for row in grid for value in row if value is not None]
    bounded = measures()[measure].range == (-1, 1)
    low, high = (-1.0, 1.0) if bounded else (0.0, max(known, default=0.0) or 1.0)
    if measure == "cosine":  # raw cosines crowd near one; the scale is printed beside them
        low = min((*known, 0.9))
    return Heatmap(
        name,
        text.words("study.common.models-at-layer", layer=layer),
        inputs.names,
        inputs.names,
        grid,
        measures()[measure].title,
        low,
        high,
        bounded and measure != "cosine",
        note=mine.note(measure),
        mark=mine.mark(measure),
    )


def _over_layers(inputs: StudyInput, name: str, pairs: ComparedPairs, measure: str) -> Lines:
    """Every pair as a line over the layers, and their mean with its deviation.

    The mean is over the pairs that have a value at every layer: over others at each, its course
    would be that of the sets.
    """
    lines = _by_models(inputs, pairs)
    whole = [mine for mine in lines.values() if None not in [one.value(measure) for one in mine]]
    always = ComparedPairs(tuple(one for mine in whole for one in mine))
    by_layer = [always.only(layer=layer) for layer in pairs.layers]
    means = [mine.spread(measure) for mine in by_layer]
    mean_title = text.words("study.many-layers.mean", pairs=len(whole))
    series = [_summed(pairs, means, [_around(one) for one in means], mean_title, "pair")]
    if measure == "cosine":
        left = [mine.spread(SHUFFLED) for mine in by_layer]
        bounds = [(one.least, one.greatest) for one in left]
        title = text.words("study.common.places-shuffled")
        # First, so that the mean is drawn over it and both are seen.
        series.insert(0, _summed(pairs, left, bounds, title, "random"))
    x = tuple(map(float, pairs.layers))
    series += [
        Series(
            text.plain(both),
            x,
            tuple(one.value(measure) for one in mine),
            "related" if mine[0].kin else "pair",
            mark=ComparedPairs(tuple(mine)).mark(measure),
        )
        for both, mine in lines.items()
    ]
    title, layer = text.words("study.many-layers.chart"), text.words("study.common.layer")
    return Lines(name, title, layer, measures()[measure].title, tuple(series))


def _summed(
    pairs: ComparedPairs, spreads: list[Spread], bounds: list[Bounds], title: Words, kind: str
) -> Series:
    """A line of means, one a layer, with what lies around them."""
    x, y = tuple(map(float, pairs.layers)), tuple(one.mean for one in spreads)
    low, high = tuple(low for low, _ in bounds), tuple(high for _, high in bounds)
    return Series(title, x, y, kind, low, high, pairs.mark("cosine"))


def _around(found: Spread) -> Bounds:
    if found.mean is None or found.std is None:
        return None, None
    return found.mean - found.std, found.mean + found.std


def _by_models(inputs: StudyInput, pairs: ComparedPairs) -> dict[str, list[ComparedPair]]:
    """The pairs by the names of their models."""
    found: dict[str, list[ComparedPair]] = {}
    for each in pairs:
        a, b = each.pair.a.model, each.pair.b.model
        found.setdefault(f"{inputs.names[a]} ↔ {inputs.names[b]}", []).append(each)
    return found


def _pair_bars(inputs: StudyInput, name: str, pairs: ComparedPairs, measure: str) -> Bars:
    """A bar a pair, a gap where the two cannot be compared."""
    grouped = len(pairs.layers) > 1
    names = inputs.names
    bars = tuple(
        Bar(
            text.plain(f"{names[one.pair.a.model]} ↔ {names[one.pair.b.model]}"),
            one.value(measure),
            kind="related" if one.kin else "pair",
            group=f"layer {one.pair.a.layer}" if grouped else "",
            mark=one.comparison.mark(measure) or Mark.MEASURED,
        )
        for one in pairs
    )
    title, note = text.words("study.multi-model.chart"), text.words("study.multi-model.gap")
    return measure_bars(name, title, measure, bars, pairs.bands(measure), note)


def _layer_map(inputs: StudyInput, name: str, pairs: ComparedPairs, measure: str) -> Heatmap:
    """Pairs of models down, layers across."""
    rows = _by_models(inputs, pairs)
    grid: tuple[Values, ...] = tuple(
        tuple(one.value(measure) for one in mine) for mine in rows.values()
    )
    least, greatest = measures()[measure].range
    known = [value for row in grid for value in row if value is not None]
    low, high = max(least, min(known, default=0.0)), min(greatest, max(known, default=1.0))
    return Heatmap(
        name,
        text.words("study.all-layers.chart"),
        tuple(rows),
        tuple(map(str, pairs.layers)),
        grid,
        measures()[measure].title,
        low,
        high if high > low else low + 1.0,
        annotate=False,
        column_label=text.words("study.common.layer"),
        note=pairs.note(measure),
        mark=pairs.mark(measure),
    )


def _run_weights(inputs: StudyInput) -> Output:
    """One bar a role: the mean over all pairs, with its deviation."""
    pairs, measure = compare_pairs(inputs, pairs_of(inputs)), leading(inputs.measures)
    bars = tuple(
        pairs.only(role=role).bar(role_title(role), measure, "pair") for role in inputs.roles
    )
    title, bands = text.words("study.weights.chart"), pairs.bands(measure)
    chart = measure_bars("weights_comparison", title, measure, bars, bands)
    return _output(inputs, pairs, [chart])


def _findings(inputs: StudyInput, pairs: ComparedPairs) -> list[Words]:
    found = []
    for role in inputs.roles:
        mine = pairs.only(role=role)
        cosine = mine.spread("cosine")
        if cosine.mean is None:
            continue
        found.append(
            text.words(
                "study.same-layer.finding",
                role=role_title(role),
                mean=counted(cosine),
                shuffled=mine.written_mean(SHUFFLED),
                pearson=mine.written_mean("pearson"),
            )
        )
    return found


SAME_LAYER = _picture_a_role("exp3_moe_heatmap", model_map)
MANY_LAYERS = _picture_a_role("exp4_multi_layer", _over_layers)
MULTI_MODEL = _picture_a_role("multi_model_comparison", _pair_bars)
ALL_LAYERS = _picture_a_role("all_layers_heatmap", _layer_map)
WEIGHTS = Procedure(_needs, _run_weights)
