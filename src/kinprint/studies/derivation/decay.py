"""Every layer of one model against every layer of the other: the diagonal, and depth.

If layers had been carried over, each would be most like its own counterpart, and centred
measures would show it; size and scatter alone make near layers a little alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from kinprint import text
from kinprint.records import Mark
from kinprint.studies.charts import Heatmap, Values
from kinprint.studies.comparing import SHUFFLED, TensorComparison, compare_all
from kinprint.studies.derivation.pairwise import A, B
from kinprint.studies.marks import worst
from kinprint.studies.pairs import ONCE, ModelLayer
from kinprint.studies.results import Fact, Output, RowStatus, Table
from kinprint.studies.study import Procedure, ReadTensor, StudyInput, TensorRows
from kinprint.studies.summary import difference, rounded, spread
from kinprint.text import Words

MEASURES = ("cosine", "pearson", SHUFFLED)


class CrossedLayers(Struct, frozen=True):
    """One layer of the first model against one of the second, averaged over roles."""

    a: int
    b: int
    status: RowStatus
    reason: str
    means: tuple[float | None, ...]  # in the order of MEASURES
    mark: str

    def mean(self, name: str) -> float | None:
        """One measure's mean."""
        return self.means[MEASURES.index(name)]


def _layered_roles(inputs: StudyInput) -> list[str]:
    """Roles that every layer has; the others have no place in a matrix of layers."""
    return [role for role in inputs.roles if role not in ONCE]


def _needs(inputs: StudyInput) -> list[TensorRows]:
    return [
        ModelLayer(model, layer).tensor(role)
        for layer in inputs.own_layers()
        for role in _layered_roles(inputs)
        for model in (A, B)
    ]


def _run(inputs: StudyInput) -> Output:
    crossed = _crossed(inputs)
    table = _table(crossed)
    facts = _facts(crossed)
    findings = (*_findings(facts), *table.gaps)
    return Output((table,), facts, _charts(inputs, crossed), findings)


def _crossed(inputs: StudyInput) -> list[CrossedLayers]:
    """Every layer of the one model with every layer of the other, over all roles."""
    first, second = inputs.own_layers(A), inputs.own_layers(B)

    def tensors(model: int, role: str, layers: Iterable[int]) -> list[ReadTensor]:
        return [inputs.get_own(ModelLayer(model, layer).tensor(role)) for layer in layers]

    tables = [
        compare_all(tensors(A, role, first), tensors(B, role, second), MEASURES)
        for role in _layered_roles(inputs)
    ]
    return [
        _over_roles(a, b, [table[i][j] for table in tables])
        for i, a in enumerate(first)
        for j, b in enumerate(second)
        if tables
    ]


def _over_roles(a: int, b: int, found: Sequence[TensorComparison]) -> CrossedLayers:
    measured = [one for one in found if one.ok]
    means = tuple(spread(one.value(name) for one in measured).mean for name in MEASURES)
    reasons = text.joined_sentences(one.reason for one in found if one.reason)
    status = RowStatus.OK if measured else _status(found)
    marks = (one.mark(name) for one in measured for name in MEASURES)
    mark = worst(one for one in marks if one is not None) if measured else ""
    return CrossedLayers(a, b, status, reasons, means, mark)


def _status(found: Sequence[TensorComparison]) -> RowStatus:
    """The most telling of several failures."""
    statuses = [one.status for one in found]
    telling = (RowStatus.SHAPE_MISMATCH, RowStatus.UNDEFINED)
    return next((status for status in telling if status in statuses), statuses[0])


def _table(crossed: Iterable[CrossedLayers]) -> Table:
    rows = tuple((one.a, one.b, one.status, *one.means, one.mark, one.reason) for one in crossed)
    columns = ("layer_A", "layer_B", "status", *MEASURES, "mark", "reason")
    return Table("decay_pairs", text.words("study.decay.table"), columns, rows)


def _facts(crossed: Sequence[CrossedLayers]) -> dict[str, Fact]:
    diagonal = [one for one in crossed if one.a == one.b]
    off = [one for one in crossed if one.a != one.b]

    def mean(which: Iterable[CrossedLayers], name: str = "cosine") -> float | None:
        return spread(one.mean(name) for one in which).mean

    known = [one for one in diagonal if one.mean("cosine") is not None]
    half = len(known) // 2
    early, late = (mean(known[:half]), mean(known[half:])) if half else (None, None)
    layers: list[Fact] = [{"layer": one.a, "sim": one.mean("cosine")} for one in diagonal]
    return {
        "mark": worst(Mark(one.mark) for one in crossed if one.mark),
        "diagonal_mean": mean(diagonal),
        "off_diagonal_mean": mean(off),
        "diagonal_dominance": difference(mean(diagonal), mean(off)),
        "early_layers_sim": early,
        "late_layers_sim": late,
        "decay": difference(early, late),
        "pearson_mean": mean(diagonal, "pearson"),
        "off_diagonal_pearson_mean": mean(off, "pearson"),
        "shuffled_diagonal_mean": mean(diagonal, SHUFFLED),
        "shuffled_off_diagonal_mean": mean(off, SHUFFLED),
        "layerwise_similarity": layers,
    }


def _charts(inputs: StudyInput, crossed: Sequence[CrossedLayers]) -> tuple[Heatmap, ...]:
    if not crossed:
        return ()
    shuffled = rounded(spread(one.mean(SHUFFLED) for one in crossed).mean)
    cosines = spread(one.mean("cosine") for one in crossed)
    return (
        _heatmap(
            inputs,
            crossed,
            "cosine",
            "decay_heatmap",
            low=min(cosines.least or 0.0, 0.9),
            note=text.words("study.decay.chart.note", mean=shuffled),
        ),
        _heatmap(inputs, crossed, "pearson", "decay_heatmap_pearson", low=-1.0, note=None),
    )


def _heatmap(
    inputs: StudyInput,
    crossed: Sequence[CrossedLayers],
    measure: str,
    name: str,
    low: float,
    note: Words | None,
) -> Heatmap:
    rows = tuple(dict.fromkeys(one.a for one in crossed))
    columns = tuple(dict.fromkeys(one.b for one in crossed))
    at = {(one.a, one.b): one.mean(measure) for one in crossed}
    values: tuple[Values, ...] = tuple(tuple(at[row, column] for column in columns) for row in rows)
    return Heatmap(
        name,
        text.words(f"study.decay.chart.{measure}"),
        tuple(map(str, rows)),
        tuple(map(str, columns)),
        values,
        text.words(f"study.common.{measure}"),
        low,
        1.0,
        diverging=measure == "pearson",
        annotate=len(rows) * len(columns) <= 100,
        row_label=text.words("study.decay.axis", model=inputs.names[A]),
        column_label=text.words("study.decay.axis", model=inputs.names[B]),
        note=note,
        mark=worst(Mark(one.mark) for one in crossed if one.mark),
    )


def _findings(facts: dict[str, Fact]) -> list[Words]:
    if facts["diagonal_mean"] is None:
        return []
    numbers = {name: rounded(value) for name, value in facts.items()}
    return [
        text.words("study.decay.finding.diagonal", **numbers),
        text.words("study.decay.finding.depth", **numbers),
    ]


DECAY = Procedure(_needs, _run)
