"""Mixtures of experts against dense models: does the architecture explain the similarity?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kinprint import text
from kinprint.model.model import Model
from kinprint.studies.charts import Bar, Bars, Chart, Heatmap, Values
from kinprint.studies.critique import same_layer
from kinprint.studies.pairs import (
    ComparedPairs,
    LayerPair,
    chart_name,
    compare_pairs,
    counted,
    kin_findings,
    leading,
    measure_bars,
    pair_table,
    tensors_of,
)
from kinprint.studies.results import Cell, Fact, Output, Table
from kinprint.studies.study import Procedure, StudyInput
from kinprint.text import Message, Words
from kinprint.titles import role_title

MOE, DENSE = "MoE", "dense"
GROUPS = {
    "MoE-MoE": text.message("study.architectures.group.MoE-MoE"),
    "MoE-dense": text.message("study.architectures.group.MoE-dense"),
    "dense-dense": text.message("study.architectures.group.dense-dense"),
}


def kind_of(model: Model) -> str:
    """A model with a router, or whose configuration counts several experts, is a mixture."""
    routed = any(address.role == "router" for address in model.places)
    return MOE if routed or (model.geometry.experts or 0) > 1 else DENSE


def pairs_of(inputs: StudyInput) -> list[LayerPair]:
    """All pairs of models at the study's layers, grouped by what kinds of model meet."""
    kinds = [kind_of(model) for model in inputs.models]
    return [
        LayerPair(pair.a, pair.b, pair.role, _group(kinds[pair.a.model], kinds[pair.b.model]))
        for pair in same_layer.pairs_of(inputs)
    ]


def run(inputs: StudyInput) -> Output:
    """Moments by group; every model's kind; the whole matrix."""
    names, roles = inputs.measures, inputs.roles
    pairs = compare_pairs(inputs, pairs_of(inputs))
    table = pair_table(inputs, text.words("study.architectures.table.pairs"), pairs)
    facts: dict[str, Fact] = {}
    charts: list[Chart] = []
    for role in roles:
        mine = pairs.only(role=role)
        every: dict[str, Fact] = {group: mine.only(group=group).facts(names) for group in GROUPS}
        strangers = mine.unrelated
        without: Fact = {group: strangers.only(group=group).facts(names) for group in GROUPS}
        facts[role] = {**every, "without_kin": without}
        charts.append(_group_bars(chart_name(_BARS, role, roles), mine, leading(names)))
        charts.append(_ordered_map(inputs, chart_name(_MAP, role, roles), mine, leading(names)))
    tables = (_model_table(inputs), _group_table(pairs, roles, names), table)
    words = (*_findings(pairs, roles), *_left_out(inputs, pairs))
    findings = (*words, *kin_findings(inputs, pairs), *table.gaps)
    return Output(tables, facts, tuple(charts), findings)


def _group(one: str, other: str) -> str:
    return "-".join(sorted((one, other), key=(MOE, DENSE).index))


def _group_bars(name: str, pairs: ComparedPairs, measure: str) -> Bars:
    """How similar models are by the kinds that meet; again without kin where there are any."""
    bars = []
    for group, label in GROUPS.items():
        mine = pairs.only(group=group)
        bars.append(_bar(mine, "study.architectures.bar", label, measure))
        if len(mine.related.known(measure)):
            bars.append(_bar(mine.unrelated, "study.architectures.bar.without-kin", label, measure))
    title = text.words("study.architectures.chart.groups")
    return measure_bars(name, title, measure, bars, pairs.bands(measure))


def _bar(pairs: ComparedPairs, key: str, group: Message, measure: str) -> Bar:
    count = len(pairs.known(measure))
    return pairs.bar(text.words(key, group=group, count=count), measure, "pair")


def _model_table(inputs: StudyInput) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, model in zip(inputs.names, inputs.models, strict=True):
        known = model.geometry
        rows.append((name, kind_of(model), known.hidden, known.layers, known.experts))
    title = text.words("study.architectures.table.models")
    return Table("models", title, ("model", "kind", "hidden", "layers", "experts"), tuple(rows))


def _group_table(pairs: ComparedPairs, roles: Sequence[str], names: Sequence[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for role in roles:
        for group in GROUPS:
            mine = pairs.only(role=role, group=group)
            for name in names:
                for chosen, kin in ((mine, "with"), (mine.unrelated, "without")):
                    found = chosen.spread(name)
                    mark = chosen.mark(name) if found.count else ""
                    rows.append(
                        (
                            role, group, name, kin, found.mean, found.deviation, found.count,
                            len(chosen), mark,
                        )
                    )  # fmt: skip
    title = text.words("study.architectures.table.groups")
    columns = ("role", "group", "measure", "kin", "mean", "std", "count", "pairs", "mark")
    return Table("groups", title, columns, tuple(rows))


def _ordered_map(inputs: StudyInput, name: str, pairs: ComparedPairs, measure: str) -> Heatmap:
    """The matrix of all models, mixtures first, so that the groups are blocks of it."""
    plain = same_layer.model_map(inputs, name, pairs, measure)
    kinds = [kind_of(model) for model in inputs.models]
    order = sorted(range(len(kinds)), key=lambda at: (MOE, DENSE).index(kinds[at]))
    labels = tuple(f"{inputs.names[at]} ({kinds[at]})" for at in order)
    grid: tuple[Values, ...] = tuple(tuple(plain.values[a][b] for b in order) for a in order)
    return Heatmap(
        name, plain.title, labels, labels, grid, plain.measure, plain.low, plain.high,
        plain.diverging, note=plain.note, mark=plain.mark,
    )  # fmt: skip


def _findings(pairs: ComparedPairs, roles: Sequence[str]) -> list[Words]:
    found = []
    for role in roles:
        for group, label in GROUPS.items():
            mine = pairs.only(role=role, group=group)
            cosine = mine.spread("cosine")
            if cosine.mean is None:
                continue
            found.append(
                text.words(
                    "study.architectures.finding",
                    role=role_title(role),
                    group=label,
                    mean=counted(cosine),
                    pairs=len(mine),
                )
            )
    return found


def _left_out(inputs: StudyInput, pairs: ComparedPairs) -> Iterator[Words]:
    """Models of which no pair could be compared."""
    for at, name in enumerate(inputs.names):
        mine = [one for one in pairs if at in (one.pair.a.model, one.pair.b.model)]
        if mine and not any(one.comparison.ok for one in mine):
            yield text.words("study.architectures.finding.left-out", model=name, pairs=len(mine))


_BARS, _MAP = "exp5_architecture_comparison", "exp5_full_heatmap"
ARCHITECTURES = Procedure(lambda inputs: tensors_of(pairs_of(inputs)), run)
