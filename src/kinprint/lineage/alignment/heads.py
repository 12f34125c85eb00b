"""Which layer, group and head of the other model's attention: matched by sizes of products.

The product of two rotary planes is a complex number that a half turn of a plane negates and
a quarter turn multiplies by i; its size knows neither. So heads may be matched by sizes for
free, and the signs are left for the test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.lineage.alignment.residual import IDENTITY, ResidualMap
from kinprint.lineage.alignment.units import Matching, RatedMap
from kinprint.lineage.preparation import Heads
from kinprint.lineage.reading.sample import Floats

Doubles = NDArray[np.float64]
QueryPairs = tuple[tuple[int, int], ...]
_AS_GOOD = 0.98  # as a share of the best quality


class HeadGroupMatch(Struct, frozen=True):
    """A key-value group of the first model and the one it was matched with.

    `queries` pairs the query heads inside; `planes` are the products of rotary planes, the mean
    over k and the queries of the group; `rest` those of rows that do not rotate.
    """

    layer: int
    partner_layer: int
    group: int
    partner: int
    queries: QueryPairs
    planes: NDArray[np.complex128]
    rest: Doubles


def match_attention(
    first: Sequence[Heads], second: Sequence[Heads], maps: Iterable[RatedMap]
) -> Matching | None:
    """Choose a residual map and a partner layer for the attention of every layer.

    Sizes of products do not tell a map from its negative. Of maps that fit attention as well, the
    one in which units match best is taken; neither sees signs of planes or values.
    """
    found: list[tuple[float, Matching]] = []
    as_it_is: Doubles | None = None
    for rated in maps:
        kept = rated.residual.sign != 0.0
        known = as_it_is if kept else None
        table = _layer_qualities(first, second, rated.residual) if known is None else known
        if table is None:
            return None
        as_it_is = table if kept else as_it_is
        quality = float(table.max(axis=1).mean())
        partners = tuple(table.argmax(axis=1).tolist())
        found.append((rated.quality, Matching(rated.residual, partners, quality)))
    most = max((matching.quality for _, matching in found), default=0.0)
    as_good = [one for one in found if one[1].quality >= _AS_GOOD * most]
    return max(as_good, key=lambda one: one[0], default=(0.0, None))[1]


def numbered_head_groups(
    first: Sequence[Heads], second: Sequence[Heads]
) -> Iterator[HeadGroupMatch]:
    """Groups paired as they are numbered, in layers and heads of equal shape only."""
    by_layer = {heads.layer: heads for heads in second}
    for ours in first:
        theirs = by_layer.get(ours.layer)
        if theirs is None or not _same_shape(ours, theirs):
            continue
        keys = None if ours.k is None or theirs.k is None else _at_equal_places(ours.k, theirs.k)
        queries = None if ours.q is None or theirs.q is None else _at_equal_places(ours.q, theirs.q)
        for group in range(ours.groups):
            inside = ours.queries
            pairs = tuple((at, at) for at in range(group * inside, (group + 1) * inside))
            planes, rest = np.empty(0, np.complex128), np.empty(0)
            if keys is not None and queries is not None:
                planes = (keys[group] + sum(queries[i] for i, _ in pairs)) / (1 + inside)
                rest = _unrotated(ours, theirs, IDENTITY, group, group, pairs)
            yield HeadGroupMatch(ours.layer, ours.layer, group, group, pairs, planes, rest)


def match_head_groups(
    first: Sequence[Heads], second: Sequence[Heads], matching: Matching
) -> Iterator[HeadGroupMatch]:
    """Match every key-value group of the first model, and the query heads inside it."""
    for ours, partner in zip(first, matching.partners, strict=True):
        theirs = second[partner]
        if ours.q is None or ours.k is None or theirs.q is None or theirs.k is None:
            yield from _match_by_values(ours, theirs, matching.residual)
            continue
        if ours.k.shape[1] != theirs.k.shape[1]:
            yield from _match_by_values(ours, theirs, matching.residual)
            continue
        keys = plane_products(matching.residual.carry(ours.k), theirs.k)
        queries = plane_products(matching.residual.carry(ours.q), theirs.q)
        near_k, near_q = np.abs(keys).mean(axis=2), np.abs(queries).mean(axis=2)
        inside, outside = len(ours.q) // len(ours.k), len(theirs.q) // len(theirs.k)
        blocks = near_q.reshape(len(ours.k), inside, len(theirs.k), outside)
        chosen = (near_k + blocks.max(axis=3).mean(axis=1)).argmax(axis=1)
        for group, to in enumerate(chosen.tolist()):
            best = blocks[group, :, to].argmax(axis=1)
            pairs = tuple(
                (group * inside + at, to * outside + int(best[at])) for at in range(inside)
            )
            planes = (keys[group, to] + sum(queries[i, j] for i, j in pairs)) / (1 + inside)
            rest = _unrotated(ours, theirs, matching.residual, group, to, pairs)
            yield HeadGroupMatch(ours.layer, theirs.layer, group, to, pairs, planes, rest)


def other_group(match: HeadGroupMatch, first: Heads, second: Heads) -> HeadGroupMatch | None:
    """The same group with one that it does not belong to; None where there is no other.

    Half of all groups away, since copies of one head lie side by side.
    """
    if second.groups < 2:
        return None
    inside, to = second.queries, (match.partner + second.groups // 2) % second.groups
    pairs = tuple((i, to * inside + j % inside) for i, j in match.queries)
    planes = match.planes
    if planes.size:
        assert first.q is not None and first.k is not None
        assert second.q is not None and second.k is not None
        products = [_at_equal_places(first.k[match.group][None], second.k[to][None])]
        products += [_at_equal_places(first.q[i][None], second.q[j][None]) for i, j in pairs]
        planes = np.mean(products, axis=0)[0]
    return replace(match, partner=to, queries=pairs, planes=planes)


def plane_products(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.complex128]:
    """Products of planes with the same place in every two heads: heads × heads × places."""
    table = first.transpose(1, 0, 2) @ second.conj().transpose(1, 2, 0)
    return np.asarray(table.transpose(1, 2, 0), np.complex128)


def value_scores(
    match: HeadGroupMatch, first: Heads, second: Heads, residual: ResidualMap
) -> Floats | None:
    """Cosines of value rows plus those of their output rows, every dimension with every one."""
    if first.v is None or second.v is None:
        return None
    table: Floats = residual.carry(first.v[match.group]) @ second.v[match.partner].T
    if first.o is not None and second.o is not None:
        inside, outside = first.o.shape[1], second.o.shape[1]
        for i, j in match.queries:
            outputs = residual.carry(first.o[match.group, i % inside])
            table = table + outputs @ second.o[match.partner, j % outside].T / len(match.queries)
    return table


def _at_equal_places(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.complex128]:
    """Products of planes at equal places of equal heads: heads × places."""
    return np.asarray(np.einsum("hjd,hjd->hj", first, second.conj()), np.complex128)


def _same_shape(first: Heads, second: Heads) -> bool:
    return all(
        x is not None and y is not None and x.shape == y.shape if x is not y else True
        for x, y in ((getattr(first, role), getattr(second, role)) for role in ("q", "k", "v"))
    )


def _layer_qualities(
    first: Sequence[Heads], second: Sequence[Heads], residual: ResidualMap
) -> Doubles | None:
    """Mean over heads of the first of the best likeness among the second's, layer by layer."""
    total: Doubles = np.zeros((len(first), len(second)))
    compared = False
    for role in ("q", "k"):
        ours, theirs = _stack(first, role), _stack(second, role)
        if ours is None or theirs is None or ours.shape[1] != theirs.shape[1]:
            continue
        compared = True
        near = np.abs(plane_products(residual.carry(ours), theirs)).mean(axis=2)
        near = near.reshape(len(first), -1, len(second), len(theirs) // len(second))
        total += near.max(axis=3).mean(axis=1)
    if compared:
        return total
    ours, theirs = _stack(first, "v"), _stack(second, "v")
    if ours is None or theirs is None:
        return None
    carried = residual.carry(ours).reshape(-1, theirs.shape[2])
    near = np.abs(carried @ theirs.reshape(-1, theirs.shape[2]).T)
    near = near.reshape(len(first), -1, len(second), near.shape[1] // len(second))
    return np.asarray(near.max(axis=3).mean(axis=1), np.float64)


def _stack(parts: Sequence[Heads], role: str) -> NDArray[Any] | None:
    """Heads of all layers one after the other; None unless all layers have as many."""
    rows = [getattr(heads, role) for heads in parts]
    if not rows or any(part is None or part.shape != rows[0].shape for part in rows):
        return None
    return np.concatenate(rows)


def _unrotated(
    first: Heads,
    second: Heads,
    residual: ResidualMap,
    group: int,
    partner: int,
    queries: QueryPairs,
) -> Doubles:
    """Products of rows of q and k that do not rotate, the mean over k and the queries."""
    q1, k1, q2, k2 = first.q_rest, first.k_rest, second.q_rest, second.k_rest
    if q1 is None or k1 is None or q2 is None or k2 is None or q1.shape[1] != q2.shape[1]:
        return np.empty(0)
    total = np.einsum("jd,jd->j", residual.carry(k1[group]), k2[partner])
    for i, j in queries:
        total = total + np.einsum("jd,jd->j", residual.carry(q1[i]), q2[j])
    return np.asarray(total / (1 + len(queries)), np.float64)


def _match_by_values(
    first: Heads, second: Heads, residual: ResidualMap
) -> Iterator[HeadGroupMatch]:
    """Groups matched by their value rows, query heads in their order."""
    if first.v is None or second.v is None:
        return
    width = second.v.shape[2]
    table = np.abs(residual.carry(first.v).reshape(-1, width) @ second.v.reshape(-1, width).T)
    near = table.reshape(len(first.v), -1, len(second.v), second.v.shape[1])
    near = near.max(axis=3).mean(axis=1)
    inside, outside = first.queries, second.queries
    none = np.empty(0)
    for group, to in enumerate(near.argmax(axis=1).tolist()):
        pairs = tuple((group * inside + i, to * outside + i) for i in range(min(inside, outside)))
        yield HeadGroupMatch(
            first.layer, second.layer, group, to, pairs, none.astype(np.complex128), none
        )
