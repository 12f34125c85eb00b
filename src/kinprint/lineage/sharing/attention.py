"""How alike the attention of two models is, layer by layer, with coins for chance.

A plane of keys and queries, or a value dimension with its outputs, may be flipped without any
change to the model: each is a coin of its own, and heads are matched by sizes alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.alignment.heads import GroupMatch, match_groups, numbered_groups, value_scores
from kinprint.lineage.alignment.residual import Residual
from kinprint.lineage.alignment.units import Aligned
from kinprint.lineage.pair import Pair
from kinprint.lineage.preparation import Heads
from kinprint.lineage.sharing.tally import Tally, row_cosines

Key = tuple[str, int, int]


def attention_tallies(
    pair: Pair, residual: Residual, layers: Mapping[int, int], matched: bool
) -> dict[Key, Tally]:
    """Likeness of q, k, v and o in layers that correspond, by role and the two layers.

    Heads and value dimensions are taken by number, or `matched` by the sizes of their products.
    """
    mine, theirs = (side.prepared.heads for side in pair.sides)
    tallies: dict[Key, Tally] = {}
    for layer, one in mine.items():
        other = theirs.get(layers.get(layer, -1))
        if other is None:
            continue
        for match in _groups(one, other, residual, matched):
            for role, cosines, each in _cosines(match, one, other, residual, matched):
                tally = tallies.setdefault((role, layer, other.layer), Tally())
                tally.tossed(cosines, each)
    return tallies


def _groups(one: Heads, other: Heads, residual: Residual, matched: bool) -> Iterator[GroupMatch]:
    if matched:
        yield from match_groups([one], [other], Aligned(residual, (0,), 0.0))
        return
    yield from numbered_groups([one], [replace(other, layer=one.layer)])


def _cosines(
    match: GroupMatch, one: Heads, other: Heads, residual: Residual, matched: bool
) -> Iterator[tuple[str, NDArray[Any], int]]:
    """Signed cosines by role, one a coin: queries of a group share theirs."""
    group, to, queries = match.group, match.partner, match.queries
    for mine, theirs in ((one.k, other.k), (one.k_rest, other.k_rest)):
        if mine is not None and theirs is not None and _alike(mine, theirs):
            yield "k", row_cosines(residual.carry(mine[group]), theirs[to]), 1
    for mine, theirs in ((one.q, other.q), (one.q_rest, other.q_rest)):
        if mine is not None and theirs is not None and queries and _alike(mine, theirs):
            parts = [row_cosines(residual.carry(mine[i]), theirs[j]) for i, j in queries]
            yield "q", np.sum(parts, axis=0), len(queries)
    if one.v is None or other.v is None:
        return
    left, right = np.arange(one.v.shape[1]), np.arange(other.v.shape[1])
    if matched:
        table = value_scores(match, one, other, residual)
        assert table is not None
        right = np.abs(table).argmax(axis=1)
    if len(left) != len(right):
        return
    if one.says("v") and other.says("v"):
        yield "v", row_cosines(residual.carry(one.v[group][left]), other.v[to][right]), 1
    if one.o is not None and other.o is not None and one.says("o") and other.says("o") and queries:
        inside, outside = one.o.shape[1], other.o.shape[1]
        parts = [
            row_cosines(
                residual.carry(one.o[group, i % inside][left]), other.o[to, j % outside][right]
            )
            for i, j in queries
        ]
        yield "o", np.sum(parts, axis=0), len(queries)


def _alike(mine: NDArray[Any], theirs: NDArray[Any]) -> bool:
    """Whether both have as many planes a head, and these say something."""
    return mine.shape[1] == theirs.shape[1] and bool(mine.any()) and bool(theirs.any())
