"""Which layer, group and head of the other model's attention: matched by sizes of products.

The product of two rotary planes is a complex number that a half turn of a plane negates and
a quarter turn multiplies by i; its size knows neither. So heads may be matched by sizes for
free, and the signs are left for the test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.alignment.residual import IDENTITY, Residual
from kinprint.lineage.alignment.units import Aligned
from kinprint.lineage.preparation import Heads
from kinprint.lineage.reading.sample import Floats

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GroupMatch:
    """A key-value group of the first model and the one it was matched with.

    `queries` pairs the query heads inside; `planes` are the products of rotary planes, the mean
    over k and the queries of the group; `rest` those of rows that do not rotate.
    """

    layer: int
    partner_layer: int
    group: int
    partner: int
    queries: tuple[tuple[int, int], ...]
    planes: NDArray[np.complex128]
    rest: Doubles


def align_heads(
    first: Sequence[Heads], second: Sequence[Heads], maps: Iterable[Residual]
) -> Aligned | None:
    """Choose a residual map and a partner layer for the attention of every layer."""
    best: tuple[float, Residual, Doubles] | None = None
    for residual in maps:
        table = _layer_qualities(first, second, residual)
        if table is None:
            return None
        value = float(table.max(axis=1).mean())
        if best is None or value > best[0]:
            best = value, residual, table
    if best is None:
        return None
    return Aligned(best[1], tuple(best[2].argmax(axis=1).tolist()), best[0])


def numbered_groups(first: Sequence[Heads], second: Sequence[Heads]) -> Iterator[GroupMatch]:
    """Groups paired as they are numbered, in layers and heads of equal shape only."""
    theirs = {one.layer: one for one in second}
    for one in first:
        other = theirs.get(one.layer)
        if other is None or not _same_shape(one, other):
            continue
        keys = None if one.k is None or other.k is None else _equal_places(one.k, other.k)
        asked = None if one.q is None or other.q is None else _equal_places(one.q, other.q)
        for group in range(one.groups):
            inside = _queries(one)
            pairs = tuple((at, at) for at in range(group * inside, (group + 1) * inside))
            planes, rest = np.empty(0, np.complex128), np.empty(0)
            if keys is not None and asked is not None:
                planes = (keys[group] + sum(asked[i] for i, _ in pairs)) / (1 + inside)
                rest = _rest(one, other, IDENTITY, group, group, pairs)
            yield GroupMatch(one.layer, one.layer, group, group, pairs, planes, rest)


def match_groups(
    first: Sequence[Heads], second: Sequence[Heads], aligned: Aligned
) -> Iterator[GroupMatch]:
    """Match every key-value group of the first model, and the query heads inside it."""
    for one, partner in zip(first, aligned.partners, strict=True):
        other = second[partner]
        if one.q is None or one.k is None or other.q is None or other.k is None:
            yield from _match_by_values(one, other, aligned.residual)
            continue
        if one.k.shape[1] != other.k.shape[1]:
            yield from _match_by_values(one, other, aligned.residual)
            continue
        keys = products(aligned.residual.carry(one.k), other.k)
        asked = products(aligned.residual.carry(one.q), other.q)
        near_k, near_q = np.abs(keys).mean(axis=2), np.abs(asked).mean(axis=2)
        inside, outside = len(one.q) // len(one.k), len(other.q) // len(other.k)
        blocks = near_q.reshape(len(one.k), inside, len(other.k), outside)
        chosen = (near_k + blocks.max(axis=3).mean(axis=1)).argmax(axis=1)
        for group, to in enumerate(chosen.tolist()):
            best = blocks[group, :, to].argmax(axis=1)
            pairs = tuple(
                (group * inside + at, to * outside + int(best[at])) for at in range(inside)
            )
            planes = (keys[group, to] + sum(asked[i, j] for i, j in pairs)) / (1 + inside)
            rest = _rest(one, other, aligned.residual, group, to, pairs)
            yield GroupMatch(one.layer, other.layer, group, to, pairs, planes, rest)


def products(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.complex128]:
    """Products of planes with the same place in every two heads: heads × heads × places."""
    table = one.transpose(1, 0, 2) @ other.conj().transpose(1, 2, 0)
    return np.asarray(table.transpose(1, 2, 0), np.complex128)


def _equal_places(one: NDArray[Any], other: NDArray[Any]) -> NDArray[np.complex128]:
    """Products of planes at equal places of equal heads: heads × places."""
    return np.asarray(np.einsum("hjd,hjd->hj", one, other.conj()), np.complex128)


def _queries(one: Heads) -> int:
    """Query heads in a group."""
    if one.q is not None:
        return len(one.q) // one.groups
    return 1 if one.o is None else int(one.o.shape[1])


def _same_shape(one: Heads, other: Heads) -> bool:
    return all(
        x is not None and y is not None and x.shape == y.shape if x is not y else True
        for x, y in ((getattr(one, role), getattr(other, role)) for role in ("q", "k", "v"))
    )


def value_scores(match: GroupMatch, one: Heads, other: Heads, residual: Residual) -> Floats | None:
    """Cosines of value rows plus those of their output rows, every dimension with every one."""
    if one.v is None or other.v is None:
        return None
    table: Floats = residual.carry(one.v[match.group]) @ other.v[match.partner].T
    if one.o is not None and other.o is not None:
        inside, outside = one.o.shape[1], other.o.shape[1]
        for i, j in match.queries:
            mine = residual.carry(one.o[match.group, i % inside])
            table = table + mine @ other.o[match.partner, j % outside].T / len(match.queries)
    return table


def _layer_qualities(
    first: Sequence[Heads], second: Sequence[Heads], residual: Residual
) -> Doubles | None:
    """Mean over heads of the first of the best likeness among the second's, layer by layer."""
    total: Doubles = np.zeros((len(first), len(second)))
    found = False
    for role in ("q", "k"):
        mine, theirs = _stack(first, role), _stack(second, role)
        if mine is None or theirs is None or mine.shape[1] != theirs.shape[1]:
            continue
        found = True
        near = np.abs(products(residual.carry(mine), theirs)).mean(axis=2)
        near = near.reshape(len(first), -1, len(second), len(theirs) // len(second))
        total += near.max(axis=3).mean(axis=1)
    if found:
        return total
    mine, theirs = _stack(first, "v"), _stack(second, "v")
    if mine is None or theirs is None:
        return None
    carried = residual.carry(mine).reshape(-1, theirs.shape[2])
    near = np.abs(carried @ theirs.reshape(-1, theirs.shape[2]).T)
    near = near.reshape(len(first), -1, len(second), near.shape[1] // len(second))
    return np.asarray(near.max(axis=3).mean(axis=1), np.float64)


def _stack(parts: Sequence[Heads], role: str) -> NDArray[Any] | None:
    """Heads of all layers one after the other; None unless all layers have as many."""
    rows = [getattr(one, role) for one in parts]
    if not rows or any(one is None or one.shape != rows[0].shape for one in rows):
        return None
    return np.concatenate(rows)


def _rest(
    one: Heads,
    other: Heads,
    residual: Residual,
    group: int,
    to: int,
    pairs: Sequence[tuple[int, int]],
) -> Doubles:
    parts = (one.q_rest, one.k_rest, other.q_rest, other.k_rest)
    q1, k1, q2, k2 = parts
    if q1 is None or k1 is None or q2 is None or k2 is None or q1.shape[1] != q2.shape[1]:
        return np.empty(0)
    found = np.einsum("jd,jd->j", residual.carry(k1[group]), k2[to])
    for i, j in pairs:
        found = found + np.einsum("jd,jd->j", residual.carry(q1[i]), q2[j])
    return np.asarray(found / (1 + len(pairs)), np.float64)


def _match_by_values(one: Heads, other: Heads, residual: Residual) -> Iterator[GroupMatch]:
    """Groups matched by their value rows, query heads in their order."""
    if one.v is None or other.v is None:
        return
    width = other.v.shape[2]
    table = np.abs(residual.carry(one.v).reshape(-1, width) @ other.v.reshape(-1, width).T)
    near = table.reshape(len(one.v), -1, len(other.v), other.v.shape[1]).max(axis=3).mean(axis=1)
    inside, outside = _queries(one), _queries(other)
    for group, to in enumerate(near.argmax(axis=1).tolist()):
        pairs = tuple((group * inside + i, to * outside + i) for i in range(min(inside, outside)))
        none = np.empty(0)
        yield GroupMatch(one.layer, other.layer, group, to, pairs, none.astype(np.complex128), none)
