"""Published numbers beside those found now: the same key leads to both."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from msgspec import Struct

from kinprint.records import Mark, NumberStatus
from kinprint.studies.derivation.layerwise import PUBLISHED_NAMES
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.summary import spread

# Measures of one pair of tensors that do not change when the pair is turned round.
_TURNED = frozenset({
    "cosine", "centred_cosine", "pearson", "mean_abs_diff", "p99_gap", "l2",
    "variation_difference", "shuffled_cosine", "aligned_cosine",
})  # fmt: skip
_ROLES = {name: role for role, name in PUBLISHED_NAMES.items()}
_OTHER_NAMES = {"rel_rmse": "relative_rmse", "aligned_expert_cosine": "aligned_cosine"}
# What the figures that replicas are made from fix: moments and correlations of norms.
_FIXED = frozenset({
    "mean", "std", "cosine", "centred_cosine", "pearson", "l2", "relative_l2", "relative_rmse",
    "variation_difference",
})  # fmt: skip
_REPOSITORIES = {
    "derivation": "sionic-ai/solar-vs-glm@ff47427",
    "vs-phi": "hyunwoongko/solar-vs-glm-vs-phi@6ce4da8",
    "critique": "chahero/solar-vs-glm-critique@61cffeb",
    "sanity-check": "ANLGBOY/solar-vs-glm-sanity-check@b131c11",
}
"""Where each folder of sources was published, at the commit that was read."""
_NORMS = ("norm_in", "norm_post_attn")
_SUMS_OF_NORMS = (
    "baseline/", "layer-zero/", "fair-baseline/", "same-layer/", "many-layers/", "architectures/",
    "baselines/", "tensor-types/mean_cosine/norm", "decay/diagonal_mean", "decay/decay",
    "decay/early", "decay/late", "decay/pearson",
)  # fmt: skip


class Published(Struct, frozen=True):
    """One number that one of the analyses published."""

    seed: str
    key: str
    text: str  # as it was printed
    source: str

    @property
    def value(self) -> float:
        """The number that was printed."""
        return float(self.text)

    @property
    def cited(self) -> str:
        """Repository, commit and file that it was published in."""
        folder, _, rest = self.source.partition("/")
        kept = folder in _REPOSITORIES
        return f"{_REPOSITORIES[folder if kept else self.seed]}: {rest}"


class Pairs(Struct, frozen=True):
    """The pairs that an average was taken over, of how many that were published.

    `same` is the published average over those pairs, where their numbers were published; `digits`
    is how many decimals it has.
    """

    names: tuple[str, ...]
    published: int
    same: float | None = None
    digits: int = 0

    @property
    def complete(self) -> bool:
        """Whether all of the published pairs are there."""
        return len(self.names) == self.published


class ComparedNumber(Struct, frozen=True):
    """A published number and the one found now.

    `pairs` is what an average was taken over; `interval` holds the value with 95 % where rows were
    sampled; `mark` says where it comes from.
    """

    published: Published
    found: float | None
    status: NumberStatus
    mark: Mark | None = None
    pairs: Pairs | None = None
    interval: tuple[float, float] | None = None

    @property
    def difference(self) -> float | None:
        """Found less published, where both are of the same pairs."""
        if self.found is None or self.status is NumberStatus.OTHER_PAIRS:
            return None
        return self.found - self.published.value


class Summary(Struct, frozen=True):
    """Where results have a number that sums up: the step, and the way into its facts.

    `pairs` is how many pairs the published number was taken over, and `over` the way to the facts
    that name those it is taken over now.
    """

    step: str
    path: tuple[str, ...]
    pairs: int | None = None
    over: tuple[str, ...] = ()


@cache
def published() -> tuple[Published, ...]:
    """Every published number, in the order of its source."""
    table = (files("kinprint.studies.reproduction") / "published.csv").read_text("utf-8")
    return tuple(
        Published(row["seed"], row["key"], row["value"], row["source"])
        for row in csv.DictReader(table.splitlines())
    )


def compare_published(
    results: Mapping[str, Result],
    numbers: Mapping[str, Summary],
    missing: Collection[str] = (),
) -> tuple[ComparedNumber, ...]:
    """Each published number with the one that the results have for it.

    `numbers` says for keys that sum up which step's facts hold them, and where; `missing` are
    models that could not be had.
    """
    cells = dict(_cells(results))
    replica = any(result.labels for result in results.values())
    found = []
    for number in published():
        summary = numbers.get(number.key)
        if summary is None:
            cell = cells.get(number.key) or cells.get(_turned(number.key))
            found.append(_compared(number, cell, replica and not _of(number.key, missing)))
        else:
            found.append(_summed(number, summary, results, replica))
    return tuple(found)


class _Cell(Struct, frozen=True):
    """A number of a table, with what stands beside it."""

    value: float
    mark: Mark
    interval: tuple[float, float] | None = None


def _compared(
    number: Published, cell: _Cell | None, replica: bool, pairs: Pairs | None = None
) -> ComparedNumber:
    if cell is None:
        status = NumberStatus.NOT_IN_REPLICA if replica else NumberStatus.NOT_FOUND
        return ComparedNumber(number, None, status, pairs=pairs)
    status = NumberStatus.MEASURED
    if pairs is not None and not pairs.complete:
        status = NumberStatus.OTHER_PAIRS
    elif cell.mark is Mark.RECONSTRUCTED and fixed(number.key):
        status = NumberStatus.BY_CONSTRUCTION
    elif cell.mark is not Mark.MEASURED:
        status = NumberStatus.NOT_DETERMINED
    return ComparedNumber(number, cell.value, status, cell.mark, pairs, cell.interval)


def _summed(
    number: Published, summary: Summary, results: Mapping[str, Result], replica: bool
) -> ComparedNumber:
    result = results.get(summary.step)
    facts = {} if result is None else result.facts
    value = _number(_fact(facts, summary.path))
    replica = replica and result is not None
    pairs = None
    if summary.pairs is not None:
        names = _fact(facts, (*summary.over, "set"))
        known = tuple(map(str, names)) if isinstance(names, list) else ()
        pairs = _pairs_of(known, summary)
    if value is None:
        return _compared(number, None, replica, pairs)
    return _compared(number, _Cell(value, _mark(facts, summary, result)), replica, pairs)


def _mark(facts: Mapping[str, Fact], summary: Summary, result: Result | None) -> Mark:
    """The mark beside a number, or beside what it is part of."""
    way = summary.over or summary.path[:-1]
    for end in range(len(way), -1, -1):
        told = _fact(facts, (*way[:end], "mark"))
        if isinstance(told, str):
            return Mark(told)
    labelled = result is not None and result.labels and "random" not in summary.path
    return Mark.RECONSTRUCTED if labelled else Mark.MEASURED


def _pairs_of(names: tuple[str, ...], summary: Summary) -> Pairs:
    """The pairs of an average, with what was published of those that are there."""
    moment = summary.path[-1]
    if len(names) == summary.pairs or not names or moment not in ("mean", "std"):
        return Pairs(names, summary.pairs or 0)
    measure, role = summary.path[-2], summary.path[0]
    cells = [_finest(f"{measure}/{role}/{name}") for name in names]
    if not all(cells):
        return Pairs(names, summary.pairs or 0)
    values = spread(float(cell) for cell in cells)
    same = values.mean if moment == "mean" else values.deviation
    digits = min(len(cell.partition(".")[2]) for cell in cells)
    return Pairs(names, summary.pairs or 0, same, digits)


@cache
def _finest(key: str) -> str:
    """The most digits that were published of a number; empty where it was not."""
    texts = [one.text for one in published() if one.key in (key, _turned(key))]
    return max(texts, key=len, default="")


def fixed(key: str) -> bool:
    """Whether published statistics of norms determine a number, so that a replica has it."""
    parts = key.split("/")
    pair = parts[0] in _FIXED and parts[1] in _NORMS
    return pair or key.startswith(_SUMS_OF_NORMS)


def _of(key: str, models: Collection[str]) -> bool:
    """Whether a number is of a tensor of one of the models."""
    return any(part.partition("[")[0] in models for part in key.split("/"))


def _turned(key: str) -> str:
    """The key with its two tensors exchanged, where that is the same number."""
    parts = key.split("/")
    if len(parts) != 4 or parts[0] not in _TURNED:
        return key
    return "/".join((parts[0], parts[1], parts[3], parts[2]))


def _cells(results: Mapping[str, Result]) -> Iterator[tuple[str, _Cell]]:
    for result in results.values():
        for table in result.tables:
            yield from _from_table(result, table)


def _from_table(result: Result, table: Table) -> Iterator[tuple[str, _Cell]]:
    columns = {name: at for at, name in enumerate(table.columns)}
    for row in table.rows:
        place = _place(result, table, row, columns)
        if place is None:
            continue
        role, first, second = place
        marked = str(row[columns["mark"]]) if "mark" in columns else ""
        for name, at in columns.items():
            value = row[at]
            if isinstance(value, float):
                bounds = tuple(row[columns.get(f"{name}_{end}", at)] for end in ("low", "high"))
                sampled = f"{name}_low" in columns and None not in bounds
                interval = tuple(map(_number, bounds)) if sampled else None
                key = f"{_OTHER_NAMES.get(name, name)}/{role}/{first}/{second}"
                yield key, _Cell(value, _marked(marked, name), interval)  # type: ignore[arg-type]
        for name, where in (("A", first), ("B", second)):
            for moment in ("mean", "std"):
                at = columns.get(f"{moment}_{name}", -1)
                value = row[at] if at >= 0 else None
                if isinstance(value, float):
                    yield f"{moment}/{role}/{where}", _Cell(value, _marked(marked, moment))


def _marked(told: str, name: str) -> Mark:
    """The mark of a measure, in what a row says of its marks."""
    usual, *apart = told.split("; ")
    named = dict(one.split(": ") for one in apart)
    return Mark(named.get(name, usual or Mark.MEASURED))


def _place(
    result: Result, table: Table, row: tuple[Cell, ...], columns: Mapping[str, int]
) -> tuple[str, str, str] | None:
    """Role and the two tensors of a row, or None for rows of another kind."""

    def get(name: str) -> Any:
        return row[columns[name]] if name in columns else None

    if {"model_a", "layer_a", "model_b", "layer_b", "role"} <= columns.keys():
        first = f"{get('model_a')}[{get('layer_a')}]"
        return get("role"), first, f"{get('model_b')}[{get('layer_b')}]"
    if len(result.models) != 2 or table.name.startswith("aligned"):
        return None
    a, b = result.models
    if "category" in columns:
        role = _ROLES.get(get("category"), get("category"))
        return role, f"{a}[{get('layer_A')}]", f"{b}[{get('layer_B')}]"
    if "rel_rmse" in columns and get("expert") is None:
        return get("role"), f"{a}[{get('layer')}]", f"{b}[{get('layer')}]"
    return None


def _fact(facts: Mapping[str, Fact], path: tuple[str, ...]) -> Fact:
    found: object = facts
    for key in path:
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return found  # type: ignore[return-value]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
