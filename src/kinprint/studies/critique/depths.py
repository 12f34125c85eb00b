"""A model against itself at two depths: from its first layer, and at equal distances.

The first is the baseline that the derivation report chose, the second the one that the
critique called fair: its layers are as far apart, and none of them is the odd first one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from kinprint import text
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Bar, Bars, Chart
from kinprint.studies.pairing import depth_of, tell_gaps, wanted_measures, wanted_roles
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
    spread_of,
    sum_up,
)
from kinprint.studies.results import Fact, Result
from kinprint.studies.scene import Item, Scene
from kinprint.studies.titles import measure_title
from kinprint.text import Message, Words

PairsOf = Callable[[Study, Scene], list[Pair]]

FROM_FIRST = text.message("study.layer-zero.chart")
EQUAL_STEPS = text.message("study.fair-baseline.chart")


def from_first(study: Study, scene: Scene) -> list[Pair]:
    """Layer 0 of each model against its deeper layers.

    A study's own layers are fitted to each model by itself, so that a shallow one does not
    move the layers of the others.
    """
    return [
        Pair(Spot(at, 0), Spot(at, layer), role, "layer_zero")
        for role in wanted_roles(scene, study.roles)
        for at in range(len(scene.models))
        for layer in layers_for(study, scene, at)
        if layer != 0
    ]


def equal_steps(study: Study, scene: Scene) -> list[Pair]:
    """Each model's layers against the next one chosen, leaving out layer 0."""
    return [
        Pair(Spot(at, one), Spot(at, other), role, "fair")
        for role in wanted_roles(scene, study.roles)
        for at in range(len(scene.models))
        for one, other in pairwise(_steps(study, scene, at))
    ]


def _steps(study: Study, scene: Scene, model: int) -> list[int]:
    """Layers at equal distance: where the study's own do not fit, the step is scaled."""
    layers = [layer for layer in sorted(layers_for(study, scene, model)) if layer != 0]
    if scene.request.layers is not None or tuple(layers) == study.layers or not layers:
        return layers
    step = max(depth_of(scene, model) // (len(study.layers) + 1), 1)
    return [step * (at + 1) for at in range(len(study.layers))]


def _procedure(pairs_of: PairsOf, chart: str, name: Message) -> Procedure:
    def needs(study: Study, scene: Scene) -> list[Item]:
        return items_of(pairs_of(study, scene))

    def run(study: Study, scene: Scene) -> Result:
        names, roles = wanted_measures(scene, study.measures), wanted_roles(scene, study.roles)
        met = compare_pairs(scene, pairs_of(study, scene), names)
        title = name.words()
        table = pair_table(scene, study.name, title, met, names)
        facts: dict[str, Fact] = {}
        charts: list[Chart] = []
        for role in roles:
            mine = [each for each in met if each.pair.role == role]
            facts[role] = _by_model(scene, mine, names)
            charts.append(_bars(scene, chart_name(chart, role, roles), title, mine, leading(names)))
        findings = (*_findings(scene, met, roles), *tell_gaps(table.statuses))
        return Result(
            study.name, scene.names, (table,), facts, tuple(charts), findings, scene.labels
        )

    return Procedure(needs, run)


def _by_model(scene: Scene, met: Sequence[Met], names: Sequence[str]) -> Fact:
    """For each model every pair of layers, and mean and deviation over them."""
    facts: dict[str, Fact] = {}
    for at, model in enumerate(scene.names):
        mine = [each for each in met if each.pair.a.model == at]
        summary = sum_up(mine, names)
        for each in mine:
            found: dict[str, Fact] = {name: each.value(name) for name in names}
            summary[f"{each.pair.a.layer}-{each.pair.b.layer}"] = found
        facts[model] = summary
    return facts


def _bars(scene: Scene, name: str, title: Words, met: Sequence[Met], measure: str) -> Bars:
    bars = tuple(
        Bar(
            text.plain(f"{each.pair.a.layer} ↔ {each.pair.b.layer}"),
            each.value(measure),
            kind="within",
            group=scene.names[each.pair.a.model],
        )
        for each in met
    )
    bands = shuffled_band(met) if measure == "cosine" else ()
    return Bars(name, title, measure_title(measure), bars, bands, digits=4)


def model_bars(scene: Scene, name: str, title: Words, met: Sequence[Met], measure: str) -> Bars:
    """One bar a model: the mean over its pairs of layers, with their deviation."""
    bars = tuple(
        bar_of(text.plain(model), [one for one in met if one.pair.a.model == at], measure, "within")
        for at, model in enumerate(scene.names)
    )
    bands = shuffled_band(met) if measure == "cosine" else ()
    return Bars(name, title, measure_title(measure), bars, bands, digits=4)


def _findings(scene: Scene, met: Sequence[Met], roles: Sequence[str]) -> list[Words]:
    found = []
    for role in roles:
        for at, model in enumerate(scene.names):
            mine = [one for one in met if one.pair.role == role and one.pair.a.model == at]
            if spread_of(mine, "cosine").mean is None:
                continue
            means = {
                "cosine": number(spread_of(mine, "cosine").mean),
                "shuffled": number(spread_of(mine, SHUFFLED).mean),
                "pearson": number(spread_of(mine, "pearson").mean),
            }
            found.append(text.words("study.layer-zero.finding", model=model, role=role, **means))
    return found


LAYER_ZERO = _procedure(from_first, "exp1_layer0_outlier", FROM_FIRST)
FAIR = _procedure(equal_steps, "exp2_fair_baseline", EQUAL_STEPS)
