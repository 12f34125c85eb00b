"""Every layer of one model against every layer of the other: the diagonal, and depth.

If layers had been carried over, each would be most like its own counterpart, and centred
measures would show it; size and scatter alone make near layers a little alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kinprint import text
from kinprint.model.places import Address
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.charts import Heatmap, Values
from kinprint.studies.crossing import cross
from kinprint.studies.derivation.pairwise import A, B, addresses, rounded
from kinprint.studies.pairing import (
    UNDEFINED,
    Compared,
    all_layers,
    own,
    spread,
    tell_gaps,
    wanted_roles,
)
from kinprint.studies.results import Fact, Result, Table
from kinprint.studies.scene import MISMATCH, OK, Item, Scene
from kinprint.text import Words

MEASURES = ("cosine", "pearson", "shuffled_cosine")


@dataclass(frozen=True, slots=True)
class Cross:
    """One layer of the first model against one of the second, averaged over roles."""

    a: int
    b: int
    status: str
    reason: str
    means: tuple[float | None, ...]  # in the order of MEASURES

    def mean(self, name: str) -> float | None:
        """One measure's mean."""
        return self.means[MEASURES.index(name)]


def _needs(study: Study, scene: Scene) -> list[Item]:
    found = addresses(scene, wanted_roles(scene, study.roles), all_layers(scene))
    return [Item(model, one) for one in found for model in (A, B)]


def _run(study: Study, scene: Scene) -> Result:
    roles = wanted_roles(scene, study.roles)
    crossed = _crossed(scene, roles, all_layers(scene, A), all_layers(scene, B))
    table = _table(crossed)
    facts = _facts(crossed)
    return Result(
        study.name,
        scene.names,
        (table,),
        facts,
        _charts(scene, crossed),
        (*_findings(facts), *tell_gaps(table.column("status"))),
        scene.labels,
    )


def _crossed(
    scene: Scene, roles: Sequence[str], first: Sequence[int], second: Sequence[int]
) -> list[Cross]:
    """Every layer of the one model with every layer of the other, over all roles."""
    tables = [
        cross(
            [own(scene, Item(A, Address(role, layer))) for layer in first],
            [own(scene, Item(B, Address(role, layer))) for layer in second],
            MEASURES,
        )
        for role in roles
    ]
    return [
        _summed(a, b, [table[i][j] for table in tables])
        for i, a in enumerate(first)
        for j, b in enumerate(second)
    ]


def _summed(a: int, b: int, found: Sequence[Compared]) -> Cross:
    measured = [one for one in found if one.ok]
    means = tuple(spread(one.value(name) for one in measured).mean for name in MEASURES)
    reasons = "; ".join(dict.fromkeys(one.reason for one in found if one.reason))
    return Cross(a, b, OK if measured else _status(found), reasons, means)


def _status(found: Sequence[Compared]) -> str:
    """The most telling of several failures."""
    statuses = [one.status for one in found]
    return next((one for one in (MISMATCH, UNDEFINED) if one in statuses), statuses[0])


def _table(crossed: Iterable[Cross]) -> Table:
    rows = tuple((one.a, one.b, one.status, *one.means, one.reason) for one in crossed)
    title = text.words("study.decay.table")
    columns = ("layer_A", "layer_B", "status", *MEASURES, "reason")
    return Table("decay_pairs", title, columns, rows)


def _facts(crossed: Sequence[Cross]) -> dict[str, Fact]:
    diagonal = [one for one in crossed if one.a == one.b]
    off = [one for one in crossed if one.a != one.b]

    def mean(which: Iterable[Cross], name: str = "cosine") -> float | None:
        return spread(one.mean(name) for one in which).mean

    known = [one for one in diagonal if one.mean("cosine") is not None]
    half = len(known) // 2
    early, late = (mean(known[:half]), mean(known[half:])) if half else (None, None)
    layers: list[Fact] = [{"layer": one.a, "sim": one.mean("cosine")} for one in diagonal]
    return {
        "diagonal_mean": mean(diagonal),
        "off_diagonal_mean": mean(off),
        "diagonal_dominance": _less(mean(diagonal), mean(off)),
        "early_layers_sim": early,
        "late_layers_sim": late,
        "decay": _less(early, late),
        "pearson_mean": mean(diagonal, "pearson"),
        "off_diagonal_pearson_mean": mean(off, "pearson"),
        "shuffled_diagonal_mean": mean(diagonal, "shuffled_cosine"),
        "shuffled_off_diagonal_mean": mean(off, "shuffled_cosine"),
        "layerwise_similarity": layers,
    }


def _less(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b


def _charts(scene: Scene, crossed: Sequence[Cross]) -> tuple[Heatmap, ...]:
    rows = tuple(dict.fromkeys(one.a for one in crossed))
    columns = tuple(dict.fromkeys(one.b for one in crossed))
    if not rows or not columns:
        return ()
    shuffled = spread(one.mean("shuffled_cosine") for one in crossed)
    a, b = scene.names[A], scene.names[B]

    def heatmap(name: str, measure: str, title: Words, label: Words) -> Heatmap:
        at = {(one.a, one.b): one.mean(measure) for one in crossed}
        values: tuple[Values, ...] = tuple(
            tuple(at[row, column] for column in columns) for row in rows
        )
        known = spread(one.mean(measure) for one in crossed)
        centred = measure == "pearson"
        return Heatmap(
            name,
            title,
            tuple(map(str, rows)),
            tuple(map(str, columns)),
            values,
            label,
            -1.0 if centred else min(known.least or 0.0, 0.9),
            1.0,
            diverging=centred,
            annotate=len(rows) * len(columns) <= 100,
            row_label=text.words("study.decay.axis", model=a),
            column_label=text.words("study.decay.axis", model=b),
            note=None
            if centred
            else text.words("study.decay.chart.note", mean=rounded(shuffled.mean)),
        )

    return (
        heatmap(
            "decay_heatmap",
            "cosine",
            text.words("study.decay.chart.cosine"),
            text.words("study.common.cosine"),
        ),
        heatmap(
            "decay_heatmap_pearson",
            "pearson",
            text.words("study.decay.chart.pearson"),
            text.words("study.common.pearson"),
        ),
    )


def _findings(facts: dict[str, Fact]) -> tuple[Words, ...]:
    numbers = {
        name: rounded(value if isinstance(value, float) else None)
        for name, value in facts.items()
        if name != "layerwise_similarity"
    }
    if facts["diagonal_mean"] is None:
        return ()
    return (
        text.words("study.decay.finding.diagonal", **numbers),
        text.words("study.decay.finding.depth", **numbers),
    )


DECAY = Procedure(_needs, _run)
