"""The critique at a glance: its three baselines side by side, and four panels in one picture."""

from __future__ import annotations

from collections.abc import Sequence

from kinprint import text
from kinprint.studies.catalogue import Procedure, Study, study_named
from kinprint.studies.charts import Bars, Chart, Heatmap, Lines, Panels
from kinprint.studies.critique import depths, same_layer
from kinprint.studies.pairing import Spread, spread, tell_gaps, wanted_measures, wanted_roles
from kinprint.studies.pairs import (
    Met,
    Pair,
    bar_of,
    chart_name,
    compare_pairs,
    items_of,
    leading,
    number,
    pair_table,
    shuffled_band,
    spread_of,
    sum_up,
)
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.scene import Item, Scene
from kinprint.studies.titles import measure_title
from kinprint.text import Words

_BARS = {
    "layer_zero": (text.message("study.baselines.group.layer-zero"), "within"),
    "fair": (text.message("study.baselines.group.fair"), "within"),
    "cross": (text.message("study.common.between-models"), "pair"),
}
# The studies whose first pictures make up the summary, in its order.
_PANELS = ("layer-zero", "fair-baseline", "same-layer", "architectures")


def pairs_of(study: Study, scene: Scene) -> list[Pair]:
    """What the studies of layer 0, of equal distances and of one layer compare."""
    return [
        *depths.from_first(study_named("layer-zero"), scene),
        *depths.equal_steps(study_named("fair-baseline"), scene),
        *same_layer.pairs_of(study_named("same-layer"), scene),
    ]


def run_baselines(study: Study, scene: Scene) -> Result:
    """Three bars, and how far the fair baseline and layer 0 are from other models."""
    names = wanted_measures(scene, study.measures)
    met = compare_pairs(scene, pairs_of(study, scene), names)
    title = text.words("study.baselines.table")
    table = pair_table(scene, study.name, title, met, names)
    roles = tuple(dict.fromkeys(each.pair.role for each in met))
    facts: dict[str, Fact] = {}
    charts: list[Chart] = []
    findings: list[Words] = []
    for role in roles:
        mine = same_layer.of_role(met, role)
        groups = {group: [one for one in mine if one.pair.group == group] for group in _BARS}
        facts[role] = _differences(groups, names)
        charts.append(_bars(chart_name("baseline_comparison", role, roles), groups, leading(names)))
        findings += _tell(role, {group: spread_of(of, "cosine") for group, of in groups.items()})
    told = (*findings, *tell_gaps(table.statuses))
    return Result(study.name, scene.names, (table,), facts, tuple(charts), told, scene.labels)


def _differences(groups: dict[str, list[Met]], names: Sequence[str]) -> Fact:
    facts: dict[str, Fact] = {group: sum_up(met, names) for group, met in groups.items()}
    for group in ("fair", "layer_zero"):
        facts[f"{group}_minus_cross"] = {
            name: _minus(spread_of(groups[group], name), spread_of(groups["cross"], name))
            for name in names
        }
    return facts


def _minus(one: Spread, other: Spread) -> float | None:
    return None if one.mean is None or other.mean is None else one.mean - other.mean


def _bars(name: str, groups: dict[str, list[Met]], measure: str) -> Bars:
    bars = tuple(
        bar_of(label.words(), groups[group], measure, kind)
        for group, (label, kind) in _BARS.items()
    )
    bands = shuffled_band(groups["cross"]) if measure == "cosine" else ()
    title = text.words("study.baselines.chart")
    return Bars(name, title, measure_title(measure), bars, bands, digits=4)


def _tell(role: str, found: dict[str, Spread]) -> list[Words]:
    fair, zero = _minus(found["fair"], found["cross"]), _minus(found["layer_zero"], found["cross"])
    if fair is None or zero is None:
        return []
    means = {group: number(of.mean) for group, of in found.items()}
    points, far = f"{100 * fair:+.1f}", f"{100 * zero:+.1f}"
    return [text.words("study.baselines.finding", role=role, points=points, far=far, **means)]


def _needs_summary(study: Study, scene: Scene) -> list[Item]:
    parts = (study_named(name) for name in _PANELS)
    return [item for part in parts for item in part.load().needs(part, scene)]


def run_summary(study: Study, scene: Scene) -> Result:
    """Do the four studies and show one picture of each in one, for the first of the roles."""
    parts = [study_named(name) for name in _PANELS]
    results = [part.load().run(part, scene) for part in parts]
    names = wanted_measures(scene, study.measures)
    role = wanted_roles(scene, study.roles)[0]
    depth = [
        (depths.from_first(parts[0], scene), "summary_layer_zero", depths.FROM_FIRST),
        (depths.equal_steps(parts[1], scene), "summary_fair", depths.EQUAL_STEPS),
    ]
    charts: list[Lines | Bars | Heatmap] = []
    for pairs, name, heading in depth:  # a bar a model: one for each layer would fill a page
        met = compare_pairs(scene, [pair for pair in pairs if pair.role == role], names)
        charts.append(depths.model_bars(scene, name, heading.words(), met, leading(names)))
    first = (one.charts[0] for one in results[2:] if one.charts)
    charts += [chart for chart in first if isinstance(chart, Lines | Bars | Heatmap)]
    title = text.words("study.summary.chart")
    panels = Panels("summary_comparison", title, tuple(charts))
    facts: dict[str, Fact] = {one.study: dict(one.facts) for one in results}
    told = tuple(dict.fromkeys(words for one in results for words in one.findings))
    table = _gathered(results)
    return Result(study.name, scene.names, (table,), facts, (panels,), told, scene.labels)


def _gathered(results: Sequence[Result]) -> Table:
    """Mean and deviation of what each study compared, by group and measure."""
    rows: list[tuple[Cell, ...]] = []
    for result in results:
        table = result.table(result.study)
        for group, role in dict.fromkeys(zip(*map(table.column, ("group", "role")), strict=True)):
            mine = [row for row in table.rows if row[:2] == (group, role)]
            for name in ("cosine", "pearson"):
                if name not in table.columns:
                    continue
                at = table.columns.index(name)
                values = (row[at] for row in mine)
                found = spread(one for one in values if isinstance(one, float))
                rows.append(
                    (result.study, group, role, name, found.mean, found.std, found.count, len(mine))
                )
    title = text.words("study.summary.table")
    columns = ("study", "group", "role", "measure", "mean", "std", "count", "pairs")
    return Table("summary", title, columns, tuple(rows))


BASELINES = Procedure(lambda study, scene: items_of(pairs_of(study, scene)), run_baselines)
SUMMARY = Procedure(_needs_summary, run_summary)
