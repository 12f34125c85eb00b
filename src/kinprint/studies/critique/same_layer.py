"""All pairs of models at the same layer: one layer, several, or all; norms or any weight.

What the critique counted. A pair whose widths differ is a row that says so, and a gap in
every picture.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Bar, Bars, Chart, Heatmap, Lines, Series, Values
from kinprint.studies.pairing import (
    compare,
    spread,
    tell_gaps,
    wanted_measures,
    wanted_roles,
)
from kinprint.studies.pairs import (
    SHUFFLED,
    Met,
    Pair,
    Spot,
    bar_of,
    chart_name,
    compare_pairs,
    items_of,
    layers_for,
    leading,
    number,
    pair_table,
    shuffled_band,
    shuffled_note,
    spread_of,
    sum_up,
)
from kinprint.studies.results import Fact, Result
from kinprint.studies.scene import Item, Scene
from kinprint.studies.titles import measure_title, role_title
from kinprint.text import Words

Draw = Callable[[Scene, Sequence[str], Sequence[Met], str], list[Chart]]


def pairs_of(study: Study, scene: Scene) -> list[Pair]:
    """All pairs of models for each role and layer; a study without layers takes all."""
    layers = layers_for(study, scene) if study.layers else scene.layers()
    return [
        Pair(Spot(a, layer), Spot(b, layer), role, "cross")
        for role in wanted_roles(scene, study.roles)
        for layer in layers
        for a, b in combinations(range(len(scene.models)), 2)
    ]


def _needs(study: Study, scene: Scene) -> list[Item]:
    return items_of(pairs_of(study, scene))


def _procedure(draw: Draw) -> Procedure:
    def run(study: Study, scene: Scene) -> Result:
        names, roles = wanted_measures(scene, study.measures), wanted_roles(scene, study.roles)
        met = compare_pairs(scene, pairs_of(study, scene), names)
        title = text.words("study.same-layer.table")
        table = pair_table(scene, study.name, title, met, names)
        facts: dict[str, Fact] = {role: _by_layer(met, role, names) for role in roles}
        findings = (*_findings(met, roles), *tell_gaps(table.statuses))
        charts = tuple(draw(scene, roles, met, leading(names)))
        return Result(study.name, scene.names, (table,), facts, charts, findings, scene.labels)

    return Procedure(_needs, run)


def of_role(met: Sequence[Met], role: str) -> list[Met]:
    """The pairs of one role."""
    return [each for each in met if each.pair.role == role]


def layers_of(met: Sequence[Met]) -> tuple[int, ...]:
    """Layers that the pairs speak of, in their order."""
    return tuple(dict.fromkeys(each.pair.a.layer for each in met))


def _at(met: Sequence[Met], layer: int) -> list[Met]:
    return [each for each in met if each.pair.a.layer == layer]


def _by_layer(met: Sequence[Met], role: str, names: Sequence[str]) -> Fact:
    """Moments for each layer and over all; the deviation of the layers' means, as published."""
    mine = of_role(met, role)
    layers: dict[str, Fact] = {
        str(layer): sum_up(_at(mine, layer), names) for layer in layers_of(mine)
    }
    between: dict[str, Fact] = {
        name: spread(spread_of(_at(mine, layer), name).mean for layer in layers_of(mine)).std
        for name in names
    }
    return {"layers": layers, "all": sum_up(mine, names), "std_of_layer_means": between}


def model_map(scene: Scene, name: str, met: Sequence[Met], measure: str) -> Heatmap:
    """A matrix of models at the first of the pairs' layers."""
    mine = _at(met, met[0].pair.a.layer) if met else []
    found: dict[tuple[int, int], float | None] = {}
    for each in mine:
        a, b = each.pair.a.model, each.pair.b.model
        found[a, b] = each.value(measure)
        found[b, a] = each.value(measure) if measures()[measure].symmetric else None
        for spot in (each.pair.a, each.pair.b):
            own = scene.get(spot.item(each.pair.role))
            found[spot.model, spot.model] = compare(own, own, (measure,)).value(measure)
    which = range(len(scene.models))
    grid: tuple[Values, ...] = tuple(tuple(found.get((a, b)) for b in which) for a in which)
    known = [value for row in grid for value in row if value is not None]
    bounded = measures()[measure].range == (-1, 1)
    low, high = (-1.0, 1.0) if bounded else (0.0, max(known, default=0.0) or 1.0)
    if measure == "cosine":  # raw cosines crowd near one; the scale is printed beside them
        low = min((*known, 0.9))
    layer = met[0].pair.a.layer if met else 0
    title = text.words("study.common.models-at-layer", layer=layer)
    return Heatmap(
        name, title, scene.names, scene.names, grid, measure_title(measure), low, high,
        bounded and measure != "cosine", note=shuffled_note(mine) if measure == "cosine" else None,
    )  # fmt: skip


def _maps(scene: Scene, roles: Sequence[str], met: Sequence[Met], measure: str) -> list[Chart]:
    return [
        model_map(scene, chart_name("exp3_moe_heatmap", role, roles), of_role(met, role), measure)
        for role in roles
    ]


def pair_name(scene: Scene, pair: Pair) -> str:
    """Both models' names."""
    return f"{scene.names[pair.a.model]} ↔ {scene.names[pair.b.model]}"


def _over_layers(
    scene: Scene, roles: Sequence[str], met: Sequence[Met], measure: str
) -> list[Chart]:
    """Every pair as a line over the layers, and their mean with its deviation."""
    charts: list[Chart] = []
    for role in roles:
        mine = of_role(met, role)
        layers = layers_of(mine)
        x = tuple(float(layer) for layer in layers)
        title = text.words("study.many-layers.mean")
        spreads = [spread_of(_at(mine, layer), measure) for layer in layers]
        sides = [_around(one.mean, one.std) for one in spreads]
        summed = [Series(title, x, tuple(one.mean for one in spreads), "pair", *_turn(sides))]
        if measure == "cosine":
            title = text.words("study.common.places-shuffled")
            spreads = [spread_of(_at(mine, layer), SHUFFLED) for layer in layers]
            sides = [(one.least, one.greatest) for one in spreads]
            means = tuple(one.mean for one in spreads)
            # First, so that the mean is drawn over it and both are seen.
            summed.insert(0, Series(title, x, means, "random", *_turn(sides)))
        names = dict.fromkeys(pair_name(scene, each.pair) for each in mine)
        lines = [
            Series(
                text.plain(name), x,
                tuple(one.value(measure) for one in mine if pair_name(scene, one.pair) == name),
            )
            for name in names
        ]  # fmt: skip
        title = text.words("study.many-layers.chart")
        name = chart_name("exp4_multi_layer", role, roles)
        charts.append(
            Lines(
                name,
                title,
                text.words("study.common.layer"),
                measure_title(measure),
                (*summed, *lines),
            )
        )
    return charts


def _turn(sides: Sequence[tuple[float | None, float | None]]) -> tuple[Values, Values]:
    return tuple(low for low, _ in sides), tuple(high for _, high in sides)


def _around(mean: float | None, std: float | None) -> tuple[float | None, float | None]:
    return (None, None) if mean is None or std is None else (mean - std, mean + std)


def _pair_bars(scene: Scene, roles: Sequence[str], met: Sequence[Met], measure: str) -> list[Chart]:
    """A bar a pair, a gap where the two cannot be compared."""
    title = text.words("study.multi-model.chart")
    note = text.words("study.multi-model.gap")
    charts: list[Chart] = []
    for role in roles:
        mine = of_role(met, role)
        bars = tuple(
            Bar(
                text.plain(pair_name(scene, one.pair)),
                one.value(measure),
                group=f"layer {one.pair.a.layer}" if len(layers_of(mine)) > 1 else "",
            )
            for one in mine
        )
        bands = shuffled_band(mine) if measure == "cosine" else ()
        name = chart_name("multi_model_comparison", role, roles)
        charts.append(Bars(name, title, measure_title(measure), bars, bands, digits=4, note=note))
    return charts


def _layer_maps(
    scene: Scene, roles: Sequence[str], met: Sequence[Met], measure: str
) -> list[Chart]:
    """Pairs of models down, layers across."""
    charts: list[Chart] = []
    for role in roles:
        mine = of_role(met, role)
        layers = layers_of(mine)
        rows = tuple(dict.fromkeys(pair_name(scene, each.pair) for each in mine))
        grid: tuple[Values, ...] = tuple(
            tuple(one.value(measure) for one in mine if pair_name(scene, one.pair) == row)
            for row in rows
        )
        least, greatest = measures()[measure].range
        known = [value for row in grid for value in row if value is not None]
        low, high = max(least, min(known, default=0.0)), min(greatest, max(known, default=1.0))
        charts.append(
            Heatmap(
                chart_name("all_layers_heatmap", role, roles),
                text.words("study.all-layers.chart"),
                rows, tuple(map(str, layers)), grid, measure_title(measure), low,
                high if high > low else low + 1.0, annotate=False,
                column_label=text.words("study.common.layer"),
                note=shuffled_note(mine) if measure == "cosine" else None,
            )
        )  # fmt: skip
    return charts


def _role_bars(scene: Scene, roles: Sequence[str], met: Sequence[Met], measure: str) -> list[Chart]:
    """One bar a role: the mean over all pairs, with its deviation."""
    title = text.words("study.weights.chart")
    bars = tuple(bar_of(role_title(role), of_role(met, role), measure, "pair") for role in roles)
    bands = shuffled_band(met) if measure == "cosine" else ()
    return [Bars("weights_comparison", title, measure_title(measure), bars, bands, digits=4)]


def _findings(met: Sequence[Met], roles: Sequence[str]) -> list[Words]:
    found = []
    for role in roles:
        mine = of_role(met, role)
        cosine = spread_of(mine, "cosine")
        if cosine.mean is not None:
            values = {
                "count": cosine.count, "mean": number(cosine.mean), "std": number(cosine.std),
                "shuffled": number(spread_of(mine, SHUFFLED).mean),
                "pearson": number(spread_of(mine, "pearson").mean),
            }  # fmt: skip
            found.append(text.words("study.same-layer.finding", role=role, **values))
    return found


SAME_LAYER = _procedure(_maps)
MANY_LAYERS = _procedure(_over_layers)
MULTI_MODEL = _procedure(_pair_bars)
ALL_LAYERS = _procedure(_layer_maps)
WEIGHTS = _procedure(_role_bars)
