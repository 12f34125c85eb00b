"""Published numbers beside those found now: the same key leads to both."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from kinprint.studies.derivation.layerwise import PUBLISHED_NAMES
from kinprint.studies.results import Cell, Fact, Result, Table

# How close a replica must come where the published statistics determine a number.
TOLERANCE = 0.002
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
# What replicas cannot have: their matrices are holes, and they bring no tokenizer.
_HOLES = ("embeddings/", "tokenizers/", "raw-bytes/")
_NORMS = ("norm_in", "norm_post_attn")
_SUMS_OF_NORMS = (
    "baseline/", "layer-zero/", "fair-baseline/", "same-layer/", "many-layers/", "architectures/",
    "baselines/", "tensor-types/mean_cosine/norm", "decay/diagonal_mean", "decay/early",
    "decay/late", "decay/pearson",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Published:
    """One number that one of the analyses published."""

    seed: str
    key: str
    text: str  # as it was printed
    source: str

    @property
    def value(self) -> float:
        """The number that was printed."""
        return float(self.text)


class NumberStatus(StrEnum):
    """What a number found now is worth beside a published one.

    By construction: a replica gives back what it was made from. Not determined: the figures that
    a replica was made from leave it open. Not in the replica: it has no such tensors.
    """

    MEASURED = "measured"
    BY_CONSTRUCTION = "by construction"
    NOT_DETERMINED = "not determined"
    NOT_IN_REPLICA = "not in the replica"
    NOT_FOUND = "not found"


@dataclass(frozen=True, slots=True)
class ComparedNumber:
    """A published number and the one found now."""

    published: Published
    found: float | None
    status: NumberStatus

    @property
    def difference(self) -> float | None:
        """Found less published."""
        return None if self.found is None else self.found - self.published.value


@cache
def published() -> tuple[Published, ...]:
    """Every published number, in the order of its source."""
    table = (files("kinprint.studies.reproduction") / "published.csv").read_text("utf-8")
    return tuple(
        Published(row["seed"], row["key"], row["value"], row["source"])
        for row in csv.DictReader(table.splitlines())
    )


def compare_published(
    results: Mapping[str, Result], numbers: Mapping[str, tuple[str, tuple[str, ...]]], replica: bool
) -> tuple[ComparedNumber, ...]:
    """Each published number with the one that the results have for it.

    `numbers` says for keys that sum up which step's facts hold them, and where.
    """
    found = dict(_pairs(results))
    for key, (step, path) in numbers.items():
        value = _fact(results[step].facts, path) if step in results else None
        if value is not None:
            found[key] = value
    return tuple(_compared(number, found, replica) for number in published())


def _compared(number: Published, found: Mapping[str, float], replica: bool) -> ComparedNumber:
    key = number.key
    value = found.get(key, found.get(_turned(key)))
    if replica and (value is None or key.startswith(_HOLES)):
        return ComparedNumber(number, None, NumberStatus.NOT_IN_REPLICA)
    if value is None:
        return ComparedNumber(number, None, NumberStatus.NOT_FOUND)
    if not replica or key.startswith("metrics/random/"):
        return ComparedNumber(number, value, NumberStatus.MEASURED)
    status = NumberStatus.BY_CONSTRUCTION if fixed(key) else NumberStatus.NOT_DETERMINED
    return ComparedNumber(number, value, status)


def fixed(key: str) -> bool:
    """Whether published statistics of norms determine a number, so that a replica has it."""
    parts = key.split("/")
    pair = parts[0] in _FIXED and parts[1] in _NORMS
    return pair or key.startswith(_SUMS_OF_NORMS)


def _turned(key: str) -> str:
    """The key with its two tensors exchanged, where that is the same number."""
    parts = key.split("/")
    if len(parts) != 4 or parts[0] not in _TURNED:
        return key
    return "/".join((parts[0], parts[1], parts[3], parts[2]))


def _pairs(results: Mapping[str, Result]) -> Iterator[tuple[str, float]]:
    for result in results.values():
        for table in result.tables:
            yield from _from_table(result, table)


def _from_table(result: Result, table: Table) -> Iterator[tuple[str, float]]:
    columns = {name: at for at, name in enumerate(table.columns)}
    for row in table.rows:
        place = _place(result, table, row, columns)
        if place is None:
            continue
        role, first, second = place
        for name, at in columns.items():
            value = row[at]
            if isinstance(value, float):
                yield f"{_OTHER_NAMES.get(name, name)}/{role}/{first}/{second}", value
        for name, where in (("A", first), ("B", second)):
            for moment in ("mean", "std"):
                at = columns.get(f"{moment}_{name}", -1)
                value = row[at] if at >= 0 else None
                if isinstance(value, float):
                    yield f"{moment}/{role}/{where}", value


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


def _fact(facts: Mapping[str, Fact], path: tuple[str, ...]) -> float | None:
    found: object = facts
    for key in path:
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = found[key]
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None
