"""How alike the attention of two models is, layer by layer, with coins for chance.

A plane of keys and queries, or a value dimension with its outputs, may be flipped without any
change to the model: each is a coin of its own, and heads are matched by sizes alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.lineage.alignment.heads import (
    HeadGroupMatch,
    match_head_groups,
    numbered_head_groups,
    value_scores,
)
from kinprint.lineage.alignment.residual import ResidualMap
from kinprint.lineage.alignment.units import Matching
from kinprint.lineage.pair import Pair
from kinprint.lineage.preparation import Heads
from kinprint.lineage.sharing.tally import Tally, row_cosines

Key = tuple[str, int, int]


def attention_tallies(
    pair: Pair, residual: ResidualMap, layers: Mapping[int, int], matched: bool
) -> dict[Key, Tally]:
    """Likeness of q, k, v and o in layers that correspond, by role and the two layers.

    Heads and value dimensions are taken by number, or `matched` by the sizes of their products.
    """
    ours, theirs = (side.prepared.heads for side in pair.sides)
    tallies: dict[Key, Tally] = {}
    for layer, first in ours.items():
        second = theirs.get(layers.get(layer, -1))
        if second is None:
            continue
        for match in _head_groups(first, second, residual, matched):
            for role, cosines, each in _cosines(match, first, second, residual, matched):
                tally = tallies.setdefault((role, layer, second.layer), Tally())
                tally.add_signed(cosines, each)
    return tallies


def _head_groups(
    first: Heads, second: Heads, residual: ResidualMap, matched: bool
) -> Iterator[HeadGroupMatch]:
    if matched:
        return match_head_groups([first], [second], Matching(residual, (0,), 0.0))
    return numbered_head_groups([first], [replace(second, layer=first.layer)])


def _cosines(
    match: HeadGroupMatch, first: Heads, second: Heads, residual: ResidualMap, matched: bool
) -> Iterator[tuple[str, NDArray[Any], int]]:
    """Signed cosines by role, one a coin, and how many rows share it: queries of a group do."""
    group, partner, queries = match.group, match.partner, match.queries
    for ours, theirs in ((first.k, second.k), (first.k_rest, second.k_rest)):
        if ours is not None and theirs is not None and _comparable(ours, theirs):
            yield "k", row_cosines(residual.carry(ours[group]), theirs[partner]), 1
    for ours, theirs in ((first.q, second.q), (first.q_rest, second.q_rest)):
        if ours is not None and theirs is not None and queries and _comparable(ours, theirs):
            parts = [row_cosines(residual.carry(ours[i]), theirs[j]) for i, j in queries]
            yield "q", np.sum(parts, axis=0), len(queries)
    if first.v is None or second.v is None:
        return
    left, right = np.arange(first.v.shape[1]), np.arange(second.v.shape[1])
    if matched:
        scores = value_scores(match, first, second, residual)
        assert scores is not None
        right = np.abs(scores).argmax(axis=1)
    if len(left) != len(right):
        return
    if first.informative("v") and second.informative("v"):
        values = residual.carry(first.v[group][left])
        yield "v", row_cosines(values, second.v[partner][right]), 1
    if first.o is None or second.o is None or not queries:
        return
    if first.informative("o") and second.informative("o"):
        inside, outside = first.o.shape[1], second.o.shape[1]
        parts = [
            row_cosines(
                residual.carry(first.o[group, i % inside][left]),
                second.o[partner, j % outside][right],
            )
            for i, j in queries
        ]
        yield "o", np.sum(parts, axis=0), len(queries)


def _comparable(ours: NDArray[Any], theirs: NDArray[Any]) -> bool:
    """Whether both have as many planes a head, and these say something."""
    return ours.shape[1] == theirs.shape[1] and bool(ours.any()) and bool(theirs.any())
