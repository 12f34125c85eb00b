"""Mixtures of experts against dense models: does the architecture explain the similarity?"""

from __future__ import annotations

from collections.abc import Sequence

from kinprint import text
from kinprint.model.model import Model
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Bars, Chart, Heatmap, Values
from kinprint.studies.critique import same_layer
from kinprint.studies.pairing import tell_gaps, wanted_measures, wanted_roles
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
from kinprint.studies.scene import Scene
from kinprint.studies.titles import measure_title
from kinprint.text import Words

MOE, DENSE = "MoE", "dense"
GROUPS = {
    "MoE-MoE": text.message("study.architectures.group.MoE-MoE"),
    "MoE-dense": text.message("study.architectures.group.MoE-dense"),
    "dense-dense": text.message("study.architectures.group.dense-dense"),
}


def kind_of(model: Model) -> str:
    """A model with a router, or whose configuration counts several experts, is a mixture."""
    routed = any(one.role == "router" for one in model.places)
    return MOE if routed or (model.geometry.experts or 0) > 1 else DENSE


def pairs_of(study: Study, scene: Scene) -> list[Pair]:
    """All pairs of models at the study's layers, grouped by what kinds of model meet."""
    kinds = [kind_of(model) for model in scene.models]
    return [
        Pair(one.a, one.b, one.role, _group(kinds[one.a.model], kinds[one.b.model]))
        for one in same_layer.pairs_of(study, scene)
    ]


def run(study: Study, scene: Scene) -> Result:
    """Moments by group; every model's kind; the whole matrix."""
    names, roles = wanted_measures(scene, study.measures), wanted_roles(scene, study.roles)
    met = compare_pairs(scene, pairs_of(study, scene), names)
    title = text.words("study.architectures.table.pairs")
    table = pair_table(scene, study.name, title, met, names)
    facts: dict[str, Fact] = {}
    charts: list[Chart] = []
    for role in roles:
        mine = same_layer.of_role(met, role)
        facts[role] = {group: sum_up(_of_group(mine, group), names) for group in GROUPS}
        charts.append(group_bars(chart_name(_BARS, role, roles), mine, leading(names)))
        charts.append(_ordered(scene, chart_name(_MAP, role, roles), mine, leading(names)))
    findings = (*_findings(met, roles), *tell_gaps(table.statuses))
    tables = (_kinds(scene), _moments(met, roles, names), table)
    return Result(study.name, scene.names, tables, facts, tuple(charts), findings, scene.labels)


def group_bars(name: str, met: Sequence[Met], measure: str) -> Bars:
    """Three bars: how similar models are by the kinds that meet."""
    bars = tuple(
        bar_of(label.words(), _of_group(met, group), measure, "pair")
        for group, label in GROUPS.items()
    )
    title = text.words("study.architectures.chart.groups")
    bands = shuffled_band(met) if measure == "cosine" else ()
    return Bars(name, title, measure_title(measure), bars, bands, digits=4)


def _group(one: str, other: str) -> str:
    return "-".join(sorted((one, other), key=(MOE, DENSE).index))


def _of_group(met: Sequence[Met], group: str) -> list[Met]:
    return [each for each in met if each.pair.group == group]


def _kinds(scene: Scene) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name, model in zip(scene.names, scene.models, strict=True):
        known = model.geometry
        rows.append((name, kind_of(model), known.hidden, known.layers, known.experts))
    title = text.words("study.architectures.table.models")
    return Table("models", title, ("model", "kind", "hidden", "layers", "experts"), tuple(rows))


def _moments(met: Sequence[Met], roles: Sequence[str], names: Sequence[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for role in roles:
        for group in GROUPS:
            mine = _of_group(same_layer.of_role(met, role), group)
            for name in names:
                found = spread_of(mine, name)
                rows.append((role, group, name, found.mean, found.std, found.count, len(mine)))
    title = text.words("study.architectures.table.groups")
    columns = ("role", "group", "measure", "mean", "std", "count", "pairs")
    return Table("groups", title, columns, tuple(rows))


def _ordered(scene: Scene, name: str, met: Sequence[Met], measure: str) -> Heatmap:
    """The matrix of all models, mixtures first, so that the groups are blocks of it."""
    plain = same_layer.model_map(scene, name, met, measure)
    kinds = [kind_of(model) for model in scene.models]
    order = sorted(range(len(kinds)), key=lambda at: (MOE, DENSE).index(kinds[at]))
    labels = tuple(f"{scene.names[at]} ({kinds[at]})" for at in order)
    grid: tuple[Values, ...] = tuple(tuple(plain.values[a][b] for b in order) for a in order)
    return Heatmap(
        name, plain.title, labels, labels, grid, plain.measure, plain.low, plain.high,
        plain.diverging, note=plain.note,
    )  # fmt: skip


def _findings(met: Sequence[Met], roles: Sequence[str]) -> list[Words]:
    found = []
    for role in roles:
        for group, label in GROUPS.items():
            mine = _of_group(same_layer.of_role(met, role), group)
            cosine = spread_of(mine, "cosine")
            if cosine.mean is None:
                continue
            found.append(
                text.words(
                    "study.architectures.finding",
                    role=role,
                    group=label,
                    mean=number(cosine.mean),
                    std=number(cosine.std),
                    count=cosine.count,
                    pairs=len(mine),
                )
            )
    return found


_BARS, _MAP = "exp5_architecture_comparison", "exp5_full_heatmap"
ARCHITECTURES = Procedure(lambda study, scene: items_of(pairs_of(study, scene)), run)
