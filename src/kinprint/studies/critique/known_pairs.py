"""The pair in question beside one that is known to be derived and ones that are not related.

All models are compared with the first, layer by layer, raw and centred. A measure is worth
something only if it tells the derived pair from the others; whether the pair in question then
looks like the one or like the other is to be read off the picture.
"""

from __future__ import annotations

from kinprint import text
from kinprint.measure.measures import measures
from kinprint.studies.charts import Band, Lines, Panels, Series
from kinprint.studies.kin import kin_of, kin_words
from kinprint.studies.pairs import (
    ComparedPairs,
    LayerPair,
    ModelLayer,
    compare_pairs,
    counted,
    pair_table,
    stem,
    tensors_of,
)
from kinprint.studies.results import Fact, Output
from kinprint.studies.study import Procedure, StudyInput
from kinprint.text import Words
from kinprint.titles import role_title

ORIGIN = 0  # the model that all others are compared with


def pairs_of(inputs: StudyInput) -> list[LayerPair]:
    """Every other model with the first, at each layer that both count as their own."""
    own = inputs.own_layers(ORIGIN)
    return [
        LayerPair(ModelLayer(at, layer), ModelLayer(ORIGIN, layer), role, _kind(inputs, at))
        for role in inputs.roles
        for at in range(1, len(inputs.models))
        for layer in own
        if layer in inputs.own_layers(at)
    ]


def _kind(inputs: StudyInput, model: int) -> str:
    """Known to be derived, asked about (the first of the others), or given beside them."""
    if kin_of(inputs, model, ORIGIN) is not None:
        return "related"
    asked = next(at for at in range(1, len(inputs.models)) if kin_of(inputs, at, ORIGIN) is None)
    return "pair" if model == asked else "other"


def run(inputs: StudyInput) -> Output:
    """One curve a pair, a panel a role and measure."""
    pairs = compare_pairs(inputs, pairs_of(inputs))
    table = pair_table(inputs, text.words("study.common.pairs-table"), pairs)
    facts: dict[str, Fact] = {}
    findings: list[Words] = []
    for role in inputs.roles:
        by_model: dict[str, Fact] = {}
        for at in range(1, len(inputs.models)):
            mine = pairs.only(role=role, model=at)
            by_model[inputs.names[at]] = {"kind": _kind(inputs, at), **mine.facts(inputs.measures)}
            findings += _finding(inputs, role, at, mine)
        facts[role] = by_model
    panels = tuple(
        _lines(inputs, role, measure, pairs.only(role=role))
        for role in inputs.roles
        for measure in inputs.measures
    )
    chart = Panels("known_pairs", text.words("study.known-pairs.chart"), panels)
    return Output((table,), facts, (chart,), (*findings, *kin_words(inputs), *table.gaps))


def _lines(inputs: StudyInput, role: str, measure: str, pairs: ComparedPairs) -> Lines:
    series = []
    for at in range(1, len(inputs.models)):
        mine = pairs.only(model=at)
        x = tuple(float(one.pair.a.layer) for one in mine)
        y = tuple(one.value(measure) for one in mine)
        label = text.plain(f"{inputs.names[at]} – {inputs.names[ORIGIN]}")
        series.append(Series(label, x, y, _kind(inputs, at), mark=mine.mark(measure)))
    widths = {
        tensor.values.size
        for tensor in (inputs.get(rows) for one in pairs for rows in one.pair.tensors)
        if tensor.values is not None
    }
    bands: tuple[Band, ...] = ()
    if measure == "pearson" and widths and min(widths) > 1:
        reach = 2 / (min(widths) - 1) ** 0.5
        bands = (Band(text.words("study.layers.band"), 0.0, -reach, reach),)
    return Lines(
        f"known_pairs_{stem(role)}_{measure}",
        text.words(
            "study.known-pairs.panel", role=role_title(role), measure=measures()[measure].title
        ),
        text.words("study.common.layer"),
        measures()[measure].title,
        tuple(series),
        bands,
    )


def _finding(inputs: StudyInput, role: str, model: int, pairs: ComparedPairs) -> list[Words]:
    means = {name: pairs.spread(name) for name in inputs.measures}
    if any(one.mean is None for one in means.values()):
        return []
    told = text.joined(
        (
            text.words("study.known-pairs.mean", measure=measures()[name].title, mean=counted(one))
            for name, one in means.items()
        ),
        "; ",
    )
    names = {"a": inputs.names[model], "b": inputs.names[ORIGIN]}
    key = f"study.known-pairs.finding.{_kind(inputs, model)}"
    return [text.words(key, role=role_title(role), told=told, **names)]


KNOWN_PAIRS = Procedure(lambda inputs: tensors_of(pairs_of(inputs)), run)
