"""Cosine, Pearson and L2 side by side, against vectors drawn at random.

A measure tells something only where related and random differ: each is shown for random
vectors, between models, within a model, and from a model's first layer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from kinprint import text
from kinprint.measure.baselines import Baseline, random_baseline
from kinprint.measure.measures import measures
from kinprint.studies.charts import Band, Bar, Chart, Panels
from kinprint.studies.kin import kin_of
from kinprint.studies.pairs import (
    ComparedPairs,
    LayerPair,
    ModelLayer,
    chart_name,
    compare_pairs,
    counted,
    layers_for,
    measure_bars,
    pair_table,
    tensors_of,
)
from kinprint.studies.results import Cell, Fact, Output, Table
from kinprint.studies.study import Procedure, StudyInput
from kinprint.studies.summary import rounded
from kinprint.text import Words
from kinprint.titles import role_title

MEAN, STD, DRAWS = 1.0, 0.1, 400
"""The critique's random vectors, and how many pairs of them are drawn."""
_GROUPS = {
    "between": (text.message("study.common.between-models"), "pair"),
    "related": (text.message("study.metrics.group.related"), "related"),
    "within": (text.message("study.metrics.group.within"), "within"),
    "layer_zero": (text.message("study.metrics.group.layer-zero"), "within"),
}
Baselines = Mapping[int, Sequence[Baseline]]  # by the length of the vectors


def pairs_of(inputs: StudyInput) -> list[LayerPair]:
    """Between models at one layer, with their kin, and inside the first two as published.

    The layers are the first two other than 0 of those asked for, or of the study's own. Within a
    model they are fitted to its depth alone. A model that says it comes from an earlier one is
    compared with that alone: with the others it would count them twice.
    """
    models = range(len(inputs.models))
    pairs: list[LayerPair] = []

    def add(role: str, group: str, a: tuple[int, int], b: tuple[int, int]) -> None:
        pairs.append(LayerPair(ModelLayer(*a), ModelLayer(*b), role, group))

    for role in inputs.roles:
        for layer in _deep(layers_for(inputs))[:1]:
            for a, b in combinations(models, 2):
                if kin_of(inputs, a, b) is not None:
                    add(role, "related", (a, layer), (b, layer))
                elif not any(_declared(inputs, at) for at in (a, b)):
                    add(role, "between", (a, layer), (b, layer))
        for at in models[:2]:
            near, *further = _deep(layers_for(inputs, at))[:2] or (0,)
            for far in further:
                add(role, "within", (at, near), (at, far))
            if near:
                add(role, "layer_zero", (at, 0), (at, near))
    return pairs


def _declared(inputs: StudyInput, model: int) -> bool:
    """Whether a model says that it comes from one given before it."""
    return any(
        kin is not None and kin.declared
        for kin in (kin_of(inputs, before, model) for before in range(model))
    )


def _deep(layers: Sequence[int]) -> list[int]:
    return [layer for layer in layers if layer != 0]


def run(inputs: StudyInput) -> Output:
    """All groups by all measures, beside the random baseline for each length met."""
    names, roles = inputs.measures, inputs.roles
    pairs = compare_pairs(inputs, pairs_of(inputs))
    table = pair_table(inputs, text.words("study.metrics.table.pairs"), pairs)
    facts: dict[str, Fact] = {}
    charts: list[Chart] = []
    baselines: dict[int, list[Baseline]] = {}
    for role in roles:
        mine = pairs.only(role=role)
        lengths = _lengths(inputs, mine)
        for length in lengths:
            if length not in baselines:
                baselines[length] = draw(names, length, inputs.request.seed)
        facts[role] = {group: mine.only(group=group).facts(names) for group in _GROUPS}
        picture = chart_name("exp6_metric_comparison", role, roles)
        charts.append(_panels(picture, mine, names, baselines[lengths[0]] if lengths else []))
    facts["random"] = {
        str(length): {
            one.measure: {"pairs": one.pairs, "mean": one.mean, "std": one.std} for one in found
        }
        for length, found in baselines.items()
    }
    findings = (*_findings(pairs, roles, baselines), *table.gaps)
    return Output((_random_table(baselines), table), facts, tuple(charts), findings)


def draw(names: Sequence[str], length: int, seed: int) -> list[Baseline]:
    """Each measure over the same pairs of random vectors."""
    return [random_baseline(name, DRAWS, MEAN, STD, length, seed) for name in names]


def _lengths(inputs: StudyInput, pairs: ComparedPairs) -> list[int]:
    """How many values the compared tensors have, the most frequent first."""
    read = [inputs.get(rows) for rows in tensors_of(each.pair for each in pairs)]
    found = [tensor.values.size for tensor in read if tensor.values is not None]
    lengths, counts = np.unique(np.array(found, int), return_counts=True)
    return [int(lengths[at]) for at in np.argsort(-counts, kind="stable")]


def _random_table(baselines: Baselines) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (length, one.measure, one.mean, one.std, one.pairs)
        for length, found in baselines.items()
        for one in found
    ]
    title = text.words("study.metrics.table.random", mean=MEAN, std=STD)
    return Table("random", title, ("length", "measure", "mean", "std", "pairs"), tuple(rows))


def _panels(
    name: str, pairs: ComparedPairs, names: Sequence[str], baselines: Sequence[Baseline]
) -> Panels:
    """One panel a measure."""
    charts = []
    chance = text.words("study.metrics.random")
    for measure in names:
        random = next((one for one in baselines if one.measure == measure), None)
        bars, bands = [], []
        if random is not None:
            bars.append(Bar(chance, random.mean, random.std, "random"))
            low, high = random.mean - random.std, random.mean + random.std
            bands.append(Band(chance, random.mean, low, high))
        for group, (label, kind) in _GROUPS.items():
            mine = pairs.only(group=group)
            if not len(mine):
                continue
            count = len(mine.known(measure))
            named = text.words("study.metrics.bar", group=label, count=count)
            bars.append(mine.bar(named, measure, kind))
        title = measures()[measure].title
        charts.append(measure_bars(f"{name}_{measure}", title, measure, bars, tuple(bands)))
    return Panels(name, text.words("study.metrics.chart"), tuple(charts), across=3)


def _findings(pairs: ComparedPairs, roles: Sequence[str], baselines: Baselines) -> list[Words]:
    found = [
        text.words(
            "study.metrics.finding.random",
            length=length,
            measure=measures()[one.measure].title,
            mean=rounded(one.mean, 4),
            std=rounded(one.std, 4),
        )
        for length, drawn in baselines.items()
        for one in drawn
    ]
    for role in roles:
        for group, (label, _) in _GROUPS.items():
            mine = pairs.only(role=role, group=group)
            if any(mine.spread(name).mean is None for name in ("cosine", "pearson")):
                continue
            means = {name: counted(mine.spread(name)) for name in ("cosine", "pearson")}
            found.append(
                text.words(
                    "study.metrics.finding.group", role=role_title(role), group=label, **means
                )
            )
    return found


METRICS = Procedure(lambda inputs: tensors_of(pairs_of(inputs)), run)
