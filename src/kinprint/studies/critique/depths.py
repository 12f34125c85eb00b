"""A model against itself at two depths: from its first layer, and at equal distances.

The first is the baseline that the derivation report chose, the second the one that the
critique called fair: its layers are as far apart, and none of them is the odd first one.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from kinprint import text
from kinprint.records import Mark
from kinprint.studies.charts import Bar, Bars
from kinprint.studies.comparing import SHUFFLED
from kinprint.studies.pairs import (
    ComparedPairs,
    LayerPair,
    ModelLayer,
    chart_name,
    compare_pairs,
    layers_for,
    leading,
    measure_bars,
    pair_table,
    tensors_of,
)
from kinprint.studies.results import Fact, Output
from kinprint.studies.study import Procedure, StudyInput, TensorRows
from kinprint.text import Message, Words
from kinprint.titles import role_title

FROM_FIRST = text.message("study.layer-zero.chart")
EQUAL_STEPS = text.message("study.fair-baseline.chart")


def from_first(inputs: StudyInput) -> list[LayerPair]:
    """Layer 0 of each model against its deeper layers.

    A study's own layers are fitted to each model by itself, so that a shallow one does not
    move the layers of the others.
    """
    return [
        LayerPair(ModelLayer(at, 0), ModelLayer(at, layer), role, "layer_zero")
        for role in inputs.roles
        for at in range(len(inputs.models))
        for layer in layers_for(inputs, at)
        if layer != 0
    ]


def equal_steps(inputs: StudyInput) -> list[LayerPair]:
    """Each model's layers against the next one chosen, leaving out layer 0."""
    return [
        LayerPair(ModelLayer(at, layer), ModelLayer(at, following), role, "fair")
        for role in inputs.roles
        for at in range(len(inputs.models))
        for layer, following in pairwise(_steps(inputs, at))
    ]


def _steps(inputs: StudyInput, model: int) -> list[int]:
    """Layers at equal distance: where the study's own do not fit, the step is scaled."""
    own = inputs.study.layers
    layers = [layer for layer in sorted(layers_for(inputs, model)) if layer != 0]
    if inputs.request.layers is not None or tuple(layers) == own or not layers:
        return layers
    step = max(inputs.depth(model) // (len(own) + 1), 1)
    return [step * (at + 1) for at in range(len(own))]


def _procedure(
    pairs_of: Callable[[StudyInput], list[LayerPair]], chart: str, title: Message
) -> Procedure:
    def needs(inputs: StudyInput) -> list[TensorRows]:
        return tensors_of(pairs_of(inputs))

    def run(inputs: StudyInput) -> Output:
        pairs = compare_pairs(inputs, pairs_of(inputs))
        by_role = {role: pairs.only(role=role) for role in inputs.roles}
        table = pair_table(inputs, title.words(), pairs)
        facts = {role: _by_model(inputs, mine) for role, mine in by_role.items()}
        charts = tuple(
            _layer_bars(inputs, chart_name(chart, role, inputs.roles), title.words(), mine)
            for role, mine in by_role.items()
        )
        return Output((table,), facts, charts, (*_findings(inputs, pairs), *table.gaps))

    return Procedure(needs, run)


def _by_model(inputs: StudyInput, pairs: ComparedPairs) -> Fact:
    """For each model every pair of layers, and mean and deviation over them."""
    facts: dict[str, Fact] = {}
    for at, model in enumerate(inputs.names):
        mine = pairs.only(model=at)
        summary = mine.facts(inputs.measures)
        for each in mine:
            found: dict[str, Fact] = {name: each.value(name) for name in inputs.measures}
            summary[f"{each.pair.a.layer}-{each.pair.b.layer}"] = found
        facts[model] = summary
    return facts


def _layer_bars(inputs: StudyInput, name: str, title: Words, pairs: ComparedPairs) -> Bars:
    """One bar a pair of layers, grouped by model."""
    measure = leading(inputs.measures)
    bars = (
        Bar(
            text.plain(f"{each.pair.a.layer} ↔ {each.pair.b.layer}"),
            each.value(measure),
            kind="within",
            group=inputs.names[each.pair.a.model],
            mark=each.comparison.mark(measure) or Mark.MEASURED,
        )
        for each in pairs
    )
    return measure_bars(name, title, measure, bars, pairs.bands(measure))


def model_bars(inputs: StudyInput, name: str, title: Words, pairs: ComparedPairs) -> Bars:
    """One bar a model: the mean over its pairs of layers, with their deviation."""
    measure = leading(inputs.measures)
    bars = (
        pairs.only(model=at).bar(text.plain(model), measure, "within")
        for at, model in enumerate(inputs.names)
    )
    return measure_bars(name, title, measure, bars, pairs.bands(measure))


def _findings(inputs: StudyInput, pairs: ComparedPairs) -> list[Words]:
    found = []
    for role in inputs.roles:
        for at, model in enumerate(inputs.names):
            mine = pairs.only(role=role, model=at)
            if mine.spread("cosine").mean is None:
                continue
            found.append(
                text.words(
                    "study.layer-zero.finding",
                    model=model,
                    role=role_title(role),
                    cosine=mine.written_mean("cosine"),
                    shuffled=mine.written_mean(SHUFFLED),
                    pearson=mine.written_mean("pearson"),
                )
            )
    return found


LAYER_ZERO = _procedure(from_first, "exp1_layer0_outlier", FROM_FIRST)
FAIR = _procedure(equal_steps, "exp2_fair_baseline", EQUAL_STEPS)
