"""Alternative hypotheses with what speaks for and against each, from measured numbers.

The hypotheses and arguments are data (`hypotheses.toml`, and their sentences in the catalogues
under `study.hypotheses`); here numbers decide which arguments apply. It sorts what was measured
and chooses nothing: a choice needs a null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kinprint import text
from kinprint.studies.charts import Flow, Step
from kinprint.studies.comparing import SHUFFLED
from kinprint.studies.derivation import tensor_types
from kinprint.studies.derivation.baseline import claims_about, measured, needed
from kinprint.studies.derivation.configuration import Change, Difference, differences, sizes
from kinprint.studies.derivation.pairwise import NORMS, A, B, TensorPair, by_role, spread_of
from kinprint.studies.results import Cell, Fact, Output, RowStatus, Table
from kinprint.studies.study import Procedure, StudyInput, TensorRows
from kinprint.studies.summary import rounded, spread
from kinprint.tables import read_table
from kinprint.text import Words
from kinprint.titles import role_title

ATTENTION = ("q", "k", "v", "o")
# A centred correlation above this is far from what unrelated models give, and kept weights
# of published descendants lie above the second.
HIGH, KEPT = 0.2, 0.5
_PAIR = ((A, B),)


class Numbers(Struct, frozen=True):
    """What the arguments speak of; None where it could not be measured.

    `limit` and `matrix_limit` are what unrelated norms and matrices reach.
    """

    cosine: float | None
    shuffled: float | None
    norms: float | None
    matrices: float | None
    attention: float | None
    sigma: float | None
    limit: float
    matrix_limit: float
    equal: int
    sizes: int

    @property
    def equal_share(self) -> float | None:
        """Which part of the sizes is equal."""
        return self.equal / self.sizes if self.sizes else None

    @property
    def states(self) -> frozenset[str]:
        """The conditions that hold, as the table of arguments names them."""
        norms, matrices = (
            _state(self.norms, self.limit), _state(self.matrices, self.matrix_limit),
        )  # fmt: skip
        return frozenset({"always", f"norms:{norms}", f"matrices:{matrices}"})

    @property
    def written(self) -> dict[str, str]:
        """All of them as they stand in sentences."""
        return {
            "cosine": rounded(self.cosine),
            "shuffled": rounded(self.shuffled),
            "norms": rounded(self.norms),
            "matrices": rounded(self.matrices),
            "attention": rounded(self.attention),
            "sigma": rounded(self.sigma, 0),
            "limit": rounded(self.limit, 2),
            "equal": str(self.equal),
            "sizes": str(self.sizes),
            "equal_share": rounded(self.equal_share, 2),
        }


class Argued(Struct, frozen=True):
    """A hypothesis with everything that applies: for it, against it, and what leaves it open."""

    key: str
    title: Words
    report: Words
    pro: Words
    con: Words
    open: Words


@cache
def _arguments() -> Mapping[str, Any]:
    """Hypotheses and the report's evidence, as they are written down."""
    return read_table(Path(__file__).with_name("hypotheses.toml"))


def _of_norms(inputs: StudyInput) -> StudyInput:
    """The same models, with norms as what the study looks at."""
    return replace(inputs, study=replace(inputs.study, roles=NORMS))


def _needs(inputs: StudyInput) -> list[TensorRows]:
    return [*tensor_types.needed(inputs), *needed(_of_norms(inputs), _PAIR)]


def _run(inputs: StudyInput) -> Output:
    pairs, _ = tensor_types.compare_types(inputs)
    meaning = differences(sizes(inputs, A), sizes(inputs, B))
    numbers = _numbers(inputs, pairs, meaning)
    argued = _argue(numbers)
    tensors = _tensor_table(pairs)
    facts: dict[str, Fact] = {
        "norm_mean_cosine": numbers.cosine,
        "norm_shuffled_cosine": numbers.shuffled,
        "norm_mean_pearson": numbers.norms,
        "matrix_mean_pearson": numbers.matrices,
        "attention_mean_cosine": numbers.attention,
        "sigma": numbers.sigma,
        "equal_sizes": numbers.equal,
        "sizes": numbers.sizes,
    }
    return Output(
        (_hypothesis_table(argued), _evidence_table(numbers), tensors),
        facts,
        (_flow(inputs, pairs, meaning),),
        (*map(_finding, argued), *tensors.gaps),
    )


def _numbers(
    inputs: StudyInput, pairs: Sequence[TensorPair], meaning: Sequence[Difference]
) -> Numbers:
    norms = [pair for pair in pairs if pair.role in NORMS]
    rest = [pair for pair in pairs if pair.role not in NORMS]
    only_norms = _of_norms(inputs)
    counted = [one for one in meaning if not isinstance(one.a or one.b, str)]  # names are no sizes
    claims = claims_about(only_norms, measured(only_norms, _PAIR), _PAIR)
    return Numbers(
        cosine=spread_of(norms, "cosine").mean,
        shuffled=spread_of(norms, SHUFFLED).mean,
        norms=spread_of(norms, "pearson").mean,
        matrices=spread_of(rest, "pearson").mean,
        attention=spread_of([pair for pair in rest if pair.role in ATTENTION], "cosine").mean,
        sigma=spread(claim.effect.sigma for claim in claims[:1]).mean,
        limit=_limit(norms),
        matrix_limit=_limit(rest),
        equal=sum(one.change is Change.EQUAL for one in counted),
        sizes=len(counted),
    )


def _limit(pairs: Sequence[TensorPair]) -> float:
    """Three deviations of the correlation of two unrelated vectors of n values, 3/√(n−1).

    The mean over layers scatters less, but not by the root of their number: layers of one
    model are not independent of each other.
    """
    lengths = [pair.a.values.size for pair in pairs if pair.a.values is not None]
    return 3 / (min(lengths) - 1) ** 0.5 if lengths and min(lengths) > 1 else HIGH


def _state(value: float | None, limit: float) -> str:
    if value is None:
        return "unknown"
    if abs(value) <= limit:
        return "low"
    return "high" if abs(value) > HIGH else "some"


def _argue(numbers: Numbers) -> list[Argued]:
    """Every hypothesis with the arguments that hold for these numbers."""
    found = []
    for entry in _arguments()["hypothesis"]:
        key = f"study.hypotheses.{entry['key']}"
        pro, con, neither = (
            text.joined(
                text.words(f"{key}.{side}.{_condition_key(needs)}", **numbers.written)
                for needs in entry.get(side, ())
                if numbers.states.issuperset(needs)
            )
            for side in ("for", "against", "open")
        )
        title, report = text.words(f"{key}.title"), text.words(f"{key}.report")
        found.append(Argued(entry["key"], title, report, pro, con, neither))
    return found


def _condition_key(needs: Sequence[str]) -> str:
    """What an argument needs, as its key in the catalogues has it."""
    return "+".join(needs).replace(":", "-")


def _hypothesis_table(argued: Sequence[Argued]) -> Table:
    columns = ("hypothesis", "for", "against", "open", "report_of_2026")
    rows = tuple(
        (one.key, *_in_all_languages(one.title, one.pro, one.con, one.open, one.report))
        for one in argued
    )
    title = text.words("study.hypotheses.table.hypotheses")
    return Table("hypotheses", title, ("key", *_columns(*columns)), rows)


def _evidence_table(numbers: Numbers) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for entry in _arguments()["evidence"]:
        key = f"study.hypotheses.evidence.{entry['key']}"
        title, remark = text.words(f"{key}.title"), text.words(f"{key}.remark", **numbers.written)
        value, stars = getattr(numbers, entry["fact"]), "★" * entry["strength"]
        rows.append(
            (entry["key"], *_in_all_languages(title), value, stars, *_in_all_languages(remark))
        )
    columns = ("key", *_columns("test"), "value", "strength_in_2026", *_columns("remark"))
    title = text.words("study.hypotheses.table.evidence")
    return Table("evidence_strength", title, columns, tuple(rows))


def _columns(*names: str) -> tuple[str, ...]:
    """A column for each name and language."""
    return tuple(f"{name}_{language}" for name in names for language in text.languages())


def _in_all_languages(*words: Words) -> tuple[str, ...]:
    return tuple(one[language] for one in words for language in text.languages())


def _tensor_table(pairs: Sequence[TensorPair]) -> Table:
    rows = tuple(
        (
            pair.role,
            pair.layer,
            pair.status,
            *pair.values(("cosine", "pearson")),
            pair.comparison.sample,
            pair.comparison.reason,
        )
        for pair in pairs
    )
    columns = ("role", "layer", "status", "cosine", "pearson", "sample", "reason")
    title = text.words("study.hypotheses.table.tensors")
    return Table("hypotheses_tensors", title, columns, rows)


def _flow(inputs: StudyInput, pairs: Sequence[TensorPair], meaning: Sequence[Difference]) -> Flow:
    """What would have been done to the second model: types of tensor, sizes, configuration."""
    found = {role: _tensor_step(role, group) for role, group in by_role(pairs).items()}
    config = differences(dict(inputs.models[A].config), dict(inputs.models[B].config))
    steps = [
        *(step for step in found.values() if step is not None),
        *(
            Step("changed", text.plain(f"{one.key}: {one.b} → {one.a}"))
            for one in meaning
            if one.change is Change.CHANGED
        ),
        *(
            Step(one.change, text.plain(f"{one.key}: {value}"))
            for one in config
            for change, value in ((Change.ADDED, one.a), (Change.REMOVED, one.b))
            if one.change is change
        ),
    ]
    return Flow(
        "presumed_transformation",
        text.words("study.hypotheses.chart"),
        inputs.names[B],
        inputs.names[A],
        tuple(steps),
        _flow_note([role_title(role) for role, step in found.items() if step is None]),
    )


def _flow_note(silent: Sequence[Words]) -> Words:
    note = text.words("study.hypotheses.chart.note")
    if not silent:
        return note
    roles = text.joined(silent, ", ")
    return text.words("study.hypotheses.chart.note-silent", note=note, roles=roles)


def _tensor_step(role: str, group: Sequence[TensorPair]) -> Step | None:
    """What became of one type of tensor; None where nothing can be said."""
    title = role_title(role)
    cosine, pearson = spread_of(group, "cosine").mean, spread_of(group, "pearson").mean
    if pearson is None:
        if not any(pair.status is RowStatus.SHAPE_MISMATCH for pair in group):
            return None
        return Step("changed", text.words("study.hypotheses.step.shapes", role=title))
    kept = pearson > KEPT
    state = text.message(f"study.hypotheses.step.{'kept' if kept else 'not-kept'}")
    means = {"cosine": rounded(cosine), "pearson": rounded(pearson)}
    words = text.words("study.hypotheses.step", role=title, state=state, **means)
    return Step("kept" if kept else "retrained", words)


def _finding(argued: Argued) -> Words:
    nothing = text.words("study.hypotheses.finding.nothing")
    pro, con = (side if str(side) else nothing for side in (argued.pro, argued.con))
    sides = {"hypothesis": argued.title, "pro": pro, "con": con}
    if not str(argued.open):
        return text.words("study.hypotheses.finding", **sides)
    return text.words("study.hypotheses.finding.open", **sides, open=argued.open)


HYPOTHESES = Procedure(_needs, _run)
