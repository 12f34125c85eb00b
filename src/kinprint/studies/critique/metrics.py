"""Cosine, Pearson and L2 side by side, against vectors drawn at random.

A measure tells something only where related and random differ: each is shown for random
vectors, between models, within a model, and from a model's first layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from kinprint import text
from kinprint.measure.baselines import Baseline, random_baseline
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Band, Bar, Bars, Chart, Panels
from kinprint.studies.pairing import tell_gaps, wanted_measures, wanted_roles
from kinprint.studies.pairs import (
    Met,
    Pair,
    Spot,
    bar_of,
    chart_name,
    compare_pairs,
    items_of,
    layers_for,
    number,
    pair_table,
    spread_of,
    sum_up,
)
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.scene import OK, Scene
from kinprint.studies.titles import measure_title
from kinprint.text import Words

MEAN, STD, DRAWS = 1.0, 0.1, 400
"""The critique's random vectors, and how many pairs of them are drawn."""
_GROUPS = {
    "between": (text.message("study.common.between-models"), "pair"),
    "within": (text.message("study.metrics.group.within"), "within"),
    "layer_zero": (text.message("study.metrics.group.layer-zero"), "within"),
}


def pairs_of(study: Study, scene: Scene) -> list[Pair]:
    """Between models at one layer, within each from there to the next, and from layer 0.

    The layers are the first two other than 0 of those asked for, or of the study's own.
    Within a model they are fitted to its depth alone.
    """
    count = range(len(scene.models))
    pairs: list[Pair] = []
    for role in wanted_roles(scene, study.roles):
        for layer in _deep(layers_for(study, scene))[:1]:
            both = combinations(count, 2)
            pairs += [Pair(Spot(a, layer), Spot(b, layer), role, "between") for a, b in both]
        for at in count:
            near, *further = _deep(layers_for(study, scene, at))[:2] or (0,)
            pairs += [Pair(Spot(at, near), Spot(at, far), role, "within") for far in further]
            if near:
                pairs.append(Pair(Spot(at, 0), Spot(at, near), role, "layer_zero"))
    return pairs


def run(study: Study, scene: Scene) -> Result:
    """All groups by all measures, beside the random baseline for each length met."""
    names, roles = wanted_measures(scene, study.measures), wanted_roles(scene, study.roles)
    met = compare_pairs(scene, pairs_of(study, scene), names)
    title = text.words("study.metrics.table.pairs")
    table = pair_table(scene, study.name, title, met, names)
    facts: dict[str, Fact] = {}
    charts: list[Chart] = []
    drawn: dict[int, list[Baseline]] = {}
    for role in roles:
        mine = [each for each in met if each.pair.role == role]
        lengths = _lengths(scene, mine)
        for length in lengths:
            if length not in drawn:
                drawn[length] = draw(names, length, scene.request.seed)
        facts[role] = {group: sum_up(_of_group(mine, group), names) for group in _GROUPS}
        picture = chart_name("exp6_metric_comparison", role, roles)
        charts.append(_panels(picture, mine, names, drawn[lengths[0]] if lengths else []))
    facts["random"] = {
        str(length): {one.measure: _moments(one) for one in found}
        for length, found in drawn.items()
    }
    findings = (*_findings(met, roles, drawn), *tell_gaps(table.statuses))
    tables = (_random_table(drawn), table)
    return Result(study.name, scene.names, tables, facts, tuple(charts), findings, scene.labels)


def draw(names: Sequence[str], length: int, seed: int) -> list[Baseline]:
    """Each measure over the same pairs of random vectors."""
    return [random_baseline(name, DRAWS, MEAN, STD, length, seed) for name in names]


def _deep(layers: Sequence[int]) -> list[int]:
    return [layer for layer in layers if layer != 0]


def _lengths(scene: Scene, met: Sequence[Met]) -> list[int]:
    """How many values the compared tensors have, the most frequent first."""
    items = (spot.item(each.pair.role) for each in met for spot in (each.pair.a, each.pair.b))
    taken = [scene.get(item) for item in dict.fromkeys(items)]
    found = [one.values.size for one in taken if one.status == OK and one.values is not None]
    lengths, counts = np.unique(np.array(found, int), return_counts=True)
    return [int(lengths[at]) for at in np.argsort(-counts, kind="stable")]


def _of_group(met: Sequence[Met], group: str) -> list[Met]:
    return [each for each in met if each.pair.group == group]


def _moments(one: Baseline) -> dict[str, Fact]:
    return {"pairs": one.pairs, "mean": one.mean, "std": one.std}


def _random_table(drawn: dict[int, list[Baseline]]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (length, one.measure, one.mean, one.std, one.pairs)
        for length, found in drawn.items()
        for one in found
    ]
    title = text.words("study.metrics.table.random", mean=MEAN, std=STD)
    return Table("random", title, ("length", "measure", "mean", "std", "pairs"), tuple(rows))


def _panels(
    name: str, met: Sequence[Met], names: Sequence[str], drawn: Sequence[Baseline]
) -> Panels:
    charts = []
    chance = text.words("study.metrics.random")
    for measure in names:
        random = next((one for one in drawn if one.measure == measure), None)
        bars, bands = [], []
        if random is not None:
            bars.append(Bar(chance, random.mean, random.std, "random"))
            low, high = random.mean - random.std, random.mean + random.std
            bands.append(Band(chance, random.mean, low, high))
        for group, (label, kind) in _GROUPS.items():
            bars.append(bar_of(label.words(), _of_group(met, group), measure, kind))
        title = measure_title(measure)
        charts.append(Bars(f"{name}_{measure}", title, title, tuple(bars), tuple(bands), digits=4))
    title = text.words("study.metrics.chart")
    return Panels(name, title, tuple(charts), across=3)


def _findings(
    met: Sequence[Met], roles: Sequence[str], drawn: dict[int, list[Baseline]]
) -> list[Words]:
    found = [
        text.words(
            "study.metrics.finding.random",
            length=length,
            measure=measure_title(one.measure),
            mean=number(one.mean),
            std=number(one.std),
        )
        for length, baselines in drawn.items()
        for one in baselines
    ]
    for role in roles:
        for group, (label, _) in _GROUPS.items():
            mine = [each for each in _of_group(met, group) if each.pair.role == role]
            cosine, pearson = spread_of(mine, "cosine"), spread_of(mine, "pearson")
            if cosine.mean is None or pearson.mean is None:
                continue
            means = {"cosine": number(cosine.mean), "pearson": number(pearson.mean)}
            found.append(text.words("study.metrics.finding.group", role=role, group=label, **means))
    return found


METRICS = Procedure(lambda study, scene: items_of(pairs_of(study, scene)), run)
