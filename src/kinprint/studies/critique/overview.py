"""The critique at a glance: its three baselines side by side, and four panels in one picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kinprint import text
from kinprint.studies.charts import Bars, Chart, Heatmap, Lines, Panels
from kinprint.studies.critique import depths, same_layer
from kinprint.studies.pairs import (
    ComparedPairs,
    LayerPair,
    chart_name,
    compare_pairs,
    leading,
    measure_bars,
    pair_table,
    tensors_of,
)
from kinprint.studies.registry import study_named
from kinprint.studies.results import Cell, Fact, Output, Table
from kinprint.studies.study import Procedure, StudyInput, TensorRows
from kinprint.studies.summary import difference, spread
from kinprint.text import Words
from kinprint.titles import role_title

_BARS = {
    "layer_zero": (text.message("study.baselines.group.layer-zero"), "within"),
    "fair": (text.message("study.baselines.group.fair"), "within"),
    "cross": (text.message("study.common.between-models"), "pair"),
}
# The studies whose first pictures make up the summary: experiments 1, 3, 4 and 5.
_PANELS = ("layer-zero", "same-layer", "many-layers", "architectures")


def _part(inputs: StudyInput, name: str) -> StudyInput:
    """The same models for another study."""
    return replace(inputs, study=study_named(name))


def pairs_of(inputs: StudyInput) -> list[LayerPair]:
    """What the studies of layer 0, of equal distances and of one layer compare."""
    return [
        *depths.from_first(_part(inputs, "layer-zero")),
        *depths.equal_steps(_part(inputs, "fair-baseline")),
        *same_layer.pairs_of(_part(inputs, "same-layer")),
    ]


def run_baselines(inputs: StudyInput) -> Output:
    """Three bars, and how far the fair baseline and layer 0 are from other models."""
    names = inputs.measures
    pairs = compare_pairs(inputs, pairs_of(inputs))
    table = pair_table(inputs, text.words("study.baselines.table"), pairs)
    roles = tuple(dict.fromkeys(each.pair.role for each in pairs))
    facts: dict[str, Fact] = {}
    charts: list[Chart] = []
    findings: list[Words] = []
    for role in roles:
        groups = {group: pairs.only(role=role, group=group) for group in _BARS}
        facts[role] = _differences(groups, names)
        charts.append(_bars(chart_name("baseline_comparison", role, roles), groups, leading(names)))
        findings += _finding(role, groups)
    return Output((table,), facts, tuple(charts), (*findings, *table.gaps))


def _differences(groups: Mapping[str, ComparedPairs], names: Sequence[str]) -> Fact:
    facts: dict[str, Fact] = {group: pairs.facts(names) for group, pairs in groups.items()}
    for group in ("fair", "layer_zero"):
        facts[f"{group}_minus_cross"] = {name: _from_cross(groups, group, name) for name in names}
    return facts


def _from_cross(groups: Mapping[str, ComparedPairs], group: str, name: str) -> float | None:
    """How far the mean of a group is from that between models."""
    return difference(groups[group].spread(name).mean, groups["cross"].spread(name).mean)


def _bars(name: str, groups: Mapping[str, ComparedPairs], measure: str) -> Bars:
    bars = (
        groups[group].bar(label.words(), measure, kind) for group, (label, kind) in _BARS.items()
    )
    title, bands = text.words("study.baselines.chart"), groups["cross"].bands(measure)
    return measure_bars(name, title, measure, bars, bands)


def _finding(role: str, groups: Mapping[str, ComparedPairs]) -> list[Words]:
    fair, zero = (_from_cross(groups, group, "cosine") for group in ("fair", "layer_zero"))
    if fair is None or zero is None:
        return []
    means = {group: pairs.written_mean("cosine") for group, pairs in groups.items()}
    points, far = f"{100 * fair:+.1f}", f"{100 * zero:+.1f}"
    return [
        text.words(
            "study.baselines.finding", role=role_title(role), points=points, far=far, **means
        )
    ]


def _summary_needs(inputs: StudyInput) -> list[TensorRows]:
    parts = [_part(inputs, name) for name in _PANELS]
    return [rows for part in parts for rows in part.study.load().needs(part)]


def run_summary(inputs: StudyInput) -> Output:
    """Do the four studies and show one picture of each in one, for the first of the roles."""
    parts = {name: _part(inputs, name) for name in _PANELS}
    outputs = {name: part.study.load().run(part) for name, part in parts.items()}
    first = depths.from_first(parts["layer-zero"])
    shown = compare_pairs(inputs, [pair for pair in first if pair.role == inputs.roles[0]])
    # A bar a model: one for each layer would fill a page.
    title = depths.FROM_FIRST.words()
    charts: list[Lines | Bars | Heatmap] = [
        depths.model_bars(inputs, "summary_layer_zero", title, shown)
    ]
    charts += [
        chart
        for name in _PANELS[1:]
        for chart in outputs[name].charts[:1]
        if isinstance(chart, Lines | Bars | Heatmap)
    ]
    panels = Panels("summary_comparison", text.words("study.summary.chart"), tuple(charts))
    facts: dict[str, Fact] = {name: dict(output.facts) for name, output in outputs.items()}
    findings = dict.fromkeys(words for output in outputs.values() for words in output.findings)
    return Output((_summary_table(outputs),), facts, (panels,), tuple(findings))


def _summary_table(outputs: Mapping[str, Output]) -> Table:
    """Mean and deviation of what each study compared, by group and measure."""
    rows: list[tuple[Cell, ...]] = []
    for study, output in outputs.items():
        table = next(table for table in output.tables if table.name == study)
        for group, role in dict.fromkeys(zip(*map(table.column, ("group", "role")), strict=True)):
            mine = [row for row in table.rows if row[:2] == (group, role)]
            for name in ("cosine", "pearson"):
                if name not in table.columns:
                    continue
                at = table.columns.index(name)
                found = spread(value for row in mine if isinstance(value := row[at], float))
                marks = {row[table.columns.index("mark")] for row in mine} - {""}
                mark = "; ".join(sorted(map(str, marks)))
                numbers = found.mean, found.deviation, found.count, len(mine)
                rows.append((study, group, role, name, *numbers, mark))
    columns = ("study", "group", "role", "measure", "mean", "std", "count", "pairs", "mark")
    return Table("summary", text.words("study.summary.table"), columns, tuple(rows))


BASELINES = Procedure(lambda inputs: tensors_of(pairs_of(inputs)), run_baselines)
SUMMARY = Procedure(_summary_needs, run_summary)
