"""What the start of a norm vector does to its cosine, on networks trained here and now.

Their independence is beyond doubt, so whatever similarity they show needs no ancestry to
explain it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from kinprint.measure.measures import measure
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Band, Bar, Bars, Chart, Lines, Panels, Series
from kinprint.studies.pairing import (
    spread,
    tell_gaps,
    wanted_measures,
    wanted_roles,
)
from kinprint.studies.pairs import (
    Met,
    Pair,
    Spot,
    bar_of,
    compare_pairs,
    items_of,
    layers_for,
    number,
    pair_table,
)
from kinprint.studies.phi.tiny_network import ONES, RANDOM, Shape, Trained, train
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.scene import Scene
from kinprint.studies.titles import measure_title
from kinprint.text import Words

NETWORKS = 4
INDEPENDENT, CHILD = "independent", "child"
_STARTS = {
    ONES: Words("norms started at one", "norm을 1로 초기화"),
    RANDOM: Words("norms started at random", "norm을 무작위로 초기화"),
}
_RELATIONS = {
    INDEPENDENT: Words("different seeds", "서로 다른 시드"),
    CHILD: Words("parent and child", "부모와 자식"),
}


@dataclass(frozen=True, slots=True)
class Family:
    """Networks of one kind of start from different seeds, and a child of the first."""

    start: str
    networks: tuple[Trained, ...]
    child: Trained


def raise_family(start: str, shape: Shape, seed: int = 0, count: int = NETWORKS) -> Family:
    """Train `count` networks from nothing, then the first one further on other examples."""
    networks = tuple(train(shape, seed + at, start) for at in range(count))
    child = train(shape, seed, start, begun=networks[0].weights, data=1)
    return Family(start, networks, child)


def pairs_of(study: Study, scene: Scene) -> list[Pair]:
    """All pairs of the given models, at each layer, for each role; none without models."""
    return [
        Pair(Spot(a, layer), Spot(b, layer), role, "given")
        for layer in layers_for(study, scene)
        for role in wanted_roles(scene, study.roles)
        for a, b in combinations(range(len(scene.models)), 2)
    ]


def run(study: Study, scene: Scene, shape: Shape | None = None) -> Result:
    """Train, compare, and put the given models beside."""
    shape = shape or Shape()
    names = wanted_measures(scene, study.measures)
    families = [raise_family(start, shape, scene.request.seed) for start in (ONES, RANDOM)]
    table = _compared(families, shape, names)
    met = compare_pairs(scene, pairs_of(study, scene), names)
    given = Words("Norm vectors of the given models", "주어진 모델들의 norm 벡터")
    beside = (pair_table(scene, "given", given, met, names),) if met else ()
    facts: dict[str, Fact] = {"networks": NETWORKS, "width": shape.width, "steps": shape.steps}
    for family in families:
        facts[f"norms_start_{family.start}"] = _summary(table, family, names)
    findings = (*_findings(table, families), *tell_gaps(beside[0].statuses if beside else {}))
    charts: tuple[Chart, ...] = (_bars(table, met, shape, names), _losses(families))
    tables = (table, _loss_table(families), *beside)
    return Result(study.name, scene.names, tables, facts, charts, findings, scene.labels)


def _compared(families: Sequence[Family], shape: Shape, names: Sequence[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for family in families:
        numbered = list(enumerate(family.networks))
        met = [(INDEPENDENT, str(a), str(b), x, y) for (a, x), (b, y) in combinations(numbered, 2)]
        met.append((CHILD, "0", "0 continued", family.networks[0], family.child))
        for relation, a, b, x, y in met:
            for norm in shape.norms:
                found = [measure(name, x.weights[norm], y.weights[norm]) for name in names]
                values = (one.value if one.ok else None for one in found)
                rows.append((family.start, relation, a, b, norm, *values))
    title = Words("Norm vectors of the trained networks", "학습한 신경망들의 norm 벡터")
    columns = ("start", "relation", "network_a", "network_b", "norm", *names)
    return Table("networks", title, columns, tuple(rows))


def _loss_table(families: Sequence[Family]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for family in families:
        told = [*map(str, range(len(family.networks))), "0 continued"]
        for name, one in zip(told, (*family.networks, family.child), strict=True):
            first, last = ends(one)
            rows.append((family.start, name, first, last))
    title = Words("Loss before and after training", "학습 전후의 손실")
    return Table("losses", title, ("start", "network", "loss_first", "loss_last"), tuple(rows))


def ends(one: Trained) -> tuple[float, float]:
    """Mean loss over the first and over the last tenth of training."""
    tenth = max(len(one.losses) // 10, 1)
    return float(np.mean(one.losses[:tenth])), float(np.mean(one.losses[-tenth:]))


def _values(table: Table, start: str, relation: str, name: str) -> list[float | None]:
    at = table.columns.index(name)
    found = [row[at] for row in table.rows if row[:2] == (start, relation)]
    return [float(one) if isinstance(one, float) else None for one in found]


def _summary(table: Table, family: Family, names: Sequence[str]) -> Fact:
    summary: dict[str, Fact] = {}
    for relation in (INDEPENDENT, CHILD):
        for name in names:
            found = spread(_values(table, family.start, relation, name))
            summary[f"{relation}_{name}_mean"] = found.mean
            summary[f"{relation}_{name}_std"] = found.std
    firsts, lasts = zip(*map(ends, family.networks), strict=True)
    summary["loss_first"], summary["loss_last"] = float(np.mean(firsts)), float(np.mean(lasts))
    return summary


def _bars(table: Table, met: Sequence[Met], shape: Shape, names: Sequence[str]) -> Panels:
    charts = []
    for name in names:
        bars = []
        for start, start_words in _STARTS.items():
            for relation, words in _RELATIONS.items():
                found = spread(_values(table, start, relation, name))
                label = Words(f"{start_words.en}, {words.en}", f"{start_words.ko}, {words.ko}")
                kind = "control" if relation == INDEPENDENT else "related"
                bars.append(Bar(label, found.mean, found.std, kind))
        if met:
            bars.append(bar_of(Words("given models", "주어진 모델들"), met, name, "pair"))
        # Vectors drawn apart about zero have both measures within 1/√d of zero.
        reach = 1 / float(np.sqrt(shape.width))
        random = Words("vectors drawn at random about zero", "0을 중심으로 무작위로 뽑은 벡터")
        bands = (Band(random, 0.0, -reach, reach),) if name in ("cosine", "pearson") else ()
        charts.append(
            Bars(
                f"initialisation_{name}",
                measure_title(name),
                measure_title(name),
                tuple(bars),
                bands,
                digits=4,
            )
        )
    title = Words("What the start does to the similarity", "초깃값이 유사도에 미치는 영향")
    return Panels("initialisation", title, tuple(charts))


def _losses(families: Sequence[Family]) -> Lines:
    series = []
    for family in families:
        for at, one in enumerate(family.networks):
            words = _STARTS[family.start]
            label = Words(f"{words.en}, network {at}", f"{words.ko}, 신경망 {at}")
            tens = range(0, len(one.losses) // 10 * 10, 10)
            y = tuple(float(np.mean(one.losses[step : step + 10])) for step in tens)
            series.append(Series(label, tuple(float(step) for step in tens), y, "control"))
    return Lines(
        "initialisation_loss", Words("The networks learn", "신경망은 실제로 학습합니다"),
        Words("step", "스텝"), Words("loss, mean of ten steps", "손실(10스텝 평균)"), tuple(series),
    )  # fmt: skip


def _findings(table: Table, families: Sequence[Family]) -> list[Words]:
    found = []
    for family in families:
        words = _STARTS[family.start]
        numbers = {
            f"{relation}_{name}": number(spread(_values(table, family.start, relation, name)).mean)
            for relation in (INDEPENDENT, CHILD)
            for name in ("cosine", "pearson")
            if name in table.columns
        }
        if len(numbers) < 4:
            continue
        text = Words(
            words.en.capitalize() + ": different seeds give a cosine of {independent_cosine} and a "
            "Pearson correlation of {independent_pearson}; a network and its child give "
            "{child_cosine} and {child_pearson}.",
            words.ko + ": 서로 다른 시드끼리는 코사인 {independent_cosine}, Pearson 상관 "
            "{independent_pearson}이고, 한 신경망과 그 자식은 각각 {child_cosine}, "
            "{child_pearson}입니다.",
        )
        found.append(text.format(**numbers))
    return found


INITIALISATION = Procedure(lambda study, scene: items_of(pairs_of(study, scene)), run)
