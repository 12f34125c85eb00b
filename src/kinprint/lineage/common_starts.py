"""Diagonals that matrices of one model have from a start that is no chance, found in it alone.

Weights may start from the identity in place of chance (ZerO, IDInit, residual starts). Strangers
that did so have it in common, at equal places and with equal signs, and no relabelling of theirs is
as likely as what is seen. So diagonals are taken out of a matrix, and the rest of it is compared.
The zeros that they leave are a mask, where they are many, which tests treat as any other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.lineage.reading.sample import Attention, Floats, Indices, Sample, Units
from kinprint.nulls.diagonals import (
    DEVIATIONS,
    FEWEST_COLUMNS,
    FEWEST_ROWS,
    diagonals,
    lean,
    without_diagonal,
    without_means,
)

_UNITS, _HEADS = ("gate", "up", "down"), ("q", "k", "v", "o")
_ALONE = 0.5  # more deviations that a single matrix needs than those of all layers together


class _Matrix(Struct, frozen=True):
    """Rows of one matrix with their numbers among so many; None where that is not known."""

    rows: Floats
    numbers: Indices
    total: int | None

    @property
    def width(self) -> int:
        return int(self.rows.shape[1])


Place = tuple[int, int]  # layer, expert
Matrices = dict[str, dict[Place, _Matrix]]


def without_common_starts(sample: Sample) -> Sample:
    """The sample without diagonals; the same sample where there are none."""
    matrices = _matrices(sample)
    changed: dict[tuple[str, Place], Floats] = {}
    for role, parts in matrices.items():
        for place, rows in _without_diagonals(parts):
            changed[role, place] = rows
    return _with(sample, changed) if changed else sample


def _matrices(sample: Sample) -> Matrices:
    """All matrices by role and place."""
    found: Matrices = {}

    def add(role: str, place: Place, rows: Floats, numbers: Indices, total: int | None) -> None:
        if rows.size and rows.any():
            found.setdefault(role, {})[place] = _Matrix(rows, numbers, total)

    units = {(layer, -1): part for layer, part in sample.units.items()} | dict(sample.experts)
    for place, part in sorted(units.items()):
        for role in _UNITS:
            rows = getattr(part, role)
            if rows is not None:
                add(role, place, rows, part.index, part.total)
    for layer, heads in sorted(sample.attention.items()):
        for role in _HEADS:
            rows = getattr(heads, role)
            if rows is not None:
                numbers, total = _numbers_of_heads(heads, role, sample.facts.rope)
                add(role, (layer, -1), rows.reshape(-1, rows.shape[-1]), numbers, total)
    for layer, router in sorted(sample.routers.items()):
        add("router", (layer, -1), router, np.arange(len(router)), len(router))
    table = sample.embedding
    if table is not None:
        add("embed", (-1, -1), table.rows, table.ids, None)
    return found


def _numbers_of_heads(part: Attention, role: str, rope: str | None) -> tuple[Indices, int | None]:
    """The numbers of a head's rows as they are stored, and of how many if all were read."""
    rows = getattr(part, role)
    heads = part.query_heads if role in ("q", "o") else part.groups
    within = np.arange(rows.shape[1])
    if rope == "interleaved" and role in ("q", "k"):
        half = part.rotated // 2
        within[:half], within[half : 2 * half] = 2 * within[:half], 2 * within[:half] + 1
    starts = (np.arange(len(rows)) if heads is None else heads) * rows.shape[1]
    total = rows.shape[0] * rows.shape[1] if heads is None else None
    return (starts[:, None] + within).reshape(-1), total


def _without_diagonals(parts: Mapping[Place, _Matrix]) -> Iterator[tuple[Place, Floats]]:
    """Matrices of one role that lean to a diagonal, each or all together, without it."""
    for places in _of_equal_rows(parts):
        one = parts[places[0]]
        if one.width < FEWEST_COLUMNS or len(one.rows) < FEWEST_ROWS:
            continue
        columns = diagonals(one.numbers, one.total, one.width)
        leans = _leaning([parts[place].rows for place in places], columns)
        if leans.any():  # rows that share a direction have large columns, which are no diagonal
            leans &= _leaning([without_means(parts[place].rows) for place in places], columns)
        either = leans[:, 0] | leans[:, 1]
        for place, which in zip(places, either, strict=True):
            rows = parts[place].rows
            for at in np.flatnonzero(which).tolist():
                rows = without_diagonal(rows, one.numbers, one.total, at)
            if which.any():
                yield place, rows


def _leaning(matrices: Sequence[Floats], columns: Indices) -> NDArray[np.bool_]:
    """Which matrices lean to which diagonals, with their sign or without it."""
    found = lean(matrices, columns)
    together = np.abs(found.sum(axis=0)) / math.sqrt(len(matrices))
    return np.asarray((together > DEVIATIONS) | (np.abs(found) > DEVIATIONS + _ALONE))


def _of_equal_rows(parts: Mapping[Place, _Matrix]) -> list[list[Place]]:
    """Places of the matrices with rows of the same numbers, together."""
    found: dict[tuple[Any, ...], list[Place]] = {}
    for place, part in parts.items():
        key = part.total, part.width, part.numbers.tobytes()
        found.setdefault(key, []).append(place)
    return list(found.values())


def _with(sample: Sample, changed: Mapping[tuple[str, Place], Floats]) -> Sample:
    """The sample with other numbers in some of its matrices."""

    def new(one: Units | Attention, place: Place, roles: Sequence[str]) -> dict[str, Any]:
        return {
            role: changed[role, place].reshape(getattr(one, role).shape)
            for role in roles
            if (role, place) in changed
        }

    embedding = sample.embedding
    if embedding is not None and ("embed", (-1, -1)) in changed:
        embedding = replace(embedding, rows=changed["embed", (-1, -1)])
    return replace(
        sample,
        units={at: replace(one, **new(one, (at, -1), _UNITS)) for at, one in sample.units.items()},
        experts={at: replace(one, **new(one, at, _UNITS)) for at, one in sample.experts.items()},
        attention={
            at: replace(one, **new(one, (at, -1), _HEADS)) for at, one in sample.attention.items()
        },
        routers={
            at: changed.get(("router", (at, -1)), rows) for at, rows in sample.routers.items()
        },
        embedding=embedding,
    )
