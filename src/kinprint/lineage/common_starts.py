"""What matrices of one model have from a start that is no chance, found in that model alone.

Weights may start from something public in place of chance: the identity (ZerO, IDInit, residual
starts), Hadamard's matrices, cosines, one table for all layers. Strangers that did so have it in
common, at equal places and with equal signs, and no relabelling of theirs is as likely as what is
seen. Diagonals are taken out of a matrix, and the rest of it is left to be compared. Whatever else
there is stands in every layer at the same places, whereas chance numbers the units of each layer
anew: a matrix whose rows of equal number are alike from layer to layer says nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.lineage.alignment.blocks import common_blocks
from kinprint.lineage.reading.sample import Attention, Floats, Indices, Sample, Units
from kinprint.measure.diagonals import (
    DEVIATIONS,
    FEWEST_COLUMNS,
    diagonals,
    lean,
    without_diagonal,
)
from kinprint.nulls.blocks import BLOCK, block_log10_p
from kinprint.nulls.exchangeability import LEVEL
from kinprint.nulls.preparation import normalise_rows
from kinprint.nulls.result import Ints
from kinprint.nulls.signs import sign_log10_p

_UNITS, _HEADS = ("gate", "up", "down"), ("q", "k", "v", "o")
_ALONE = 0.5  # more deviations that a single matrix needs than those of all layers together
_STRIDES = (1, 2)  # layers apart: one that was copied is like its copy, and not like all others
_LAYERS = 12  # that are held against each other
_FEWEST_ROWS, _NUMBERS = 256, 1 << 18  # rows and numbers of a matrix that are
_DOUBTED = 2.5  # deviations below which no p-value is asked for


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
    """The sample without diagonals, and with zeros for matrices that are alike in all layers."""
    matrices = _matrices(sample)
    changed: dict[tuple[str, Place], Floats] = {}
    for role, parts in matrices.items():
        for place, rows in _without_diagonals(parts):
            changed[role, place] = rows
            parts[place] = replace(parts[place], rows=rows)
    for role in _repeated_roles(matrices, sample):
        for place, part in matrices[role].items():
            changed[role, place] = np.zeros_like(part.rows)
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
    wide = {place: part for place, part in parts.items() if part.width >= FEWEST_COLUMNS}
    found = {
        place: lean(part.rows, diagonals(part.numbers, part.total, part.width))
        for place, part in wide.items()
    }
    for shape in {one.shape for one in found.values()}:
        alike = [place for place, one in found.items() if one.shape == shape]
        together = np.sum([found[place] for place in alike], axis=0) / math.sqrt(len(alike))
        common = (np.abs(together[0]) > DEVIATIONS) | (together[1] > DEVIATIONS)
        for place in alike:
            signed, size = np.abs(found[place][0]), found[place][1]
            leans = common | (np.maximum(signed, size) > DEVIATIONS + _ALONE)
            part, rows = wide[place], wide[place].rows
            for which in np.flatnonzero(leans).tolist():
                rows = without_diagonal(rows, part.numbers, part.total, which)
            if leans.any():
                yield place, rows


def _repeated_roles(matrices: Matrices, sample: Sample) -> set[str]:
    """Roles whose matrices are alike at equal places from layer to layer, each or all of a kind.

    Matrices of a kind share labels or coins, so that their scores are added up.
    """
    found = set[str]()
    for roles in (_UNITS, ("v", "o"), ("router",), ("q", "k")):
        apart = {
            role: _alike(matrices[role], sample if role in ("q", "k") else None)
            for role in roles
            if role in matrices
        }
        found |= {role for role, distances in apart.items() if _is_repeated(distances)}
        shapes = {tuple(one.values.shape for one in distances) for distances in apart.values()}
        if len(apart) > 1 and len(shapes) == 1:
            together = [_Alike.summed(some) for some in zip(*apart.values(), strict=True)]
            found |= set(apart) if _is_repeated(together) else set()
    return found


class _Alike(Struct, frozen=True):
    """How alike rows of equal number are in layers at one distance.

    Scores of rows in blocks of the number (blocks × 4 × 4) with the sizes of blocks; or coins,
    where rows have no free labels.
    """

    values: np.ndarray
    sizes: Ints | None

    @classmethod
    def summed(cls, some: Sequence[_Alike]) -> _Alike:
        """Scores of several matrices whose rows belong together."""
        return cls(np.sum([one.values for one in some], axis=0), some[0].sizes)

    @property
    def beyond_chance(self) -> bool:
        """Whether they are more alike than their neighbours, or than coins would make them."""
        values = self.values
        if self.sizes is None:
            deviations = values.sum() / max(math.sqrt(np.square(values).sum()), 1e-300)
        else:
            centred = values - values.mean(axis=1, keepdims=True)
            centred -= centred.mean(axis=2, keepdims=True)
            chance = math.sqrt(np.square(centred).sum() / (BLOCK - 1))
            deviations = centred.trace(axis1=1, axis2=2).sum() / max(chance, 1e-300)
        if deviations < _DOUBTED:
            return False
        if self.sizes is None:
            return float(sign_log10_p(values[None])[0]) <= math.log10(LEVEL)
        return float(block_log10_p(values, self.sizes)[0]) <= math.log10(LEVEL)


def _is_repeated(distances: Sequence[_Alike]) -> bool:
    return bool(distances) and all(one.beyond_chance for one in distances)


def _alike(parts: Mapping[Place, _Matrix], coins_of: Sample | None) -> list[_Alike]:
    """Matrices of one role at each distance of layers, as far as there are layers.

    Layers of one distance form chains, in which each has labels and coins of its own: those of one
    relative to those of the next are independent of all others.
    """
    found = []
    experts = sorted({expert for _, expert in parts})
    chains = [
        [place for place in sorted(parts) if place[1] == expert][:_LAYERS] for expert in experts
    ]
    ready = {place: _ready(parts[place]) for chain in chains for place in chain}
    for stride in _STRIDES:
        values, sizes = [], []
        for chain in chains:
            for one, other in zip(chain, chain[stride:], strict=False):
                if ready[one].width != ready[other].width:
                    continue
                if coins_of is not None:
                    values.append(_coins(ready[one], ready[other], coins_of.attention[one[0]]))
                    continue
                blocks = common_blocks(ready[one].numbers, ready[other].numbers)
                values.append(blocks.products(ready[one].rows, ready[other].rows))
                sizes.append(blocks.sizes)
        if values and sum(map(len, values)):
            lengths = None if coins_of is not None else np.concatenate(sizes)
            found.append(_Alike(np.concatenate(values), lengths))
    return found


def _ready(part: _Matrix) -> _Matrix:
    """Some blocks of neighbouring rows, less their means and of length one."""
    most = max(_FEWEST_ROWS, _NUMBERS // part.width)
    at = np.arange(len(part.rows))
    if len(at) > most:
        blocks = part.numbers // BLOCK
        different = np.unique(blocks)
        some = np.linspace(0, len(different) - 1, most // BLOCK).astype(np.int64)
        at = np.flatnonzero(np.isin(blocks, different[some]))
    rows = part.rows[at].astype(np.float64)
    rows -= rows.mean(axis=1, keepdims=True)
    return _Matrix(normalise_rows(rows).astype(np.float32), part.numbers[at], part.total)


def _coins(one: _Matrix, other: _Matrix, heads: Attention) -> np.ndarray:
    """Products of equal rows of q or k, added up where they share a coin.

    Planes of all queries of a group turn together. Where groups are not known, all heads are one.
    """
    if not np.array_equal(one.numbers, other.numbers):
        return np.empty(0)
    stored = heads.q if heads.q is not None and heads.q.size == one.rows.size else heads.k
    assert stored is not None
    products = np.einsum("nd,nd->n", one.rows, other.rows, dtype=np.float64)
    table = products.reshape(stored.shape[:2])
    half = heads.rotated // 2
    planes = table[:, :half] + table[:, half : 2 * half]
    table = np.concatenate([planes, table[:, 2 * half :]], axis=1)
    groups = 1 if heads.k is None or len(table) % len(heads.k) else len(heads.k)
    return np.asarray(table.reshape(groups, -1, table.shape[1]).sum(axis=1).reshape(-1))


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
