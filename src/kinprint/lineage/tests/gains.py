"""Tests on norm gains, the residual channels' own scales (E1), and their stored bits (E6).

One permutation of the channels for the whole model. Channels are compared as they are numbered:
a basis that was fitted to them would already have used their labels. Layers are compared by
number for the same reason. Gains start at a constant, so whatever they share was learnt.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.alignment.residual import FEW_GAINS
from kinprint.lineage.pair import Alignment, Pair
from kinprint.lineage.preparation import NormKey
from kinprint.lineage.tests.conditions import granted_alignment, require_width
from kinprint.lineage.tests.registry import (
    Basis,
    Likeness,
    LineageTest,
    NoResult,
    lineage_test,
)
from kinprint.nulls.bits import equal_counts
from kinprint.nulls.blocks import block_permutation
from kinprint.nulls.fixed_points import Pairs, fixed_points, nearest_rows
from kinprint.nulls.increasing import increasing_subsequence
from kinprint.records import Component, Evidence, Group, Reason, Role, Status

Doubles = NDArray[np.float64]
_gain_test = functools.partial(
    lineage_test,
    group=Group.RESIDUAL,
    component=Component.NORMS,
    basis=Basis.AS_STORED,
    learnt=True,
    channels_only=True,
)


@_gain_test("E1.blocks", likeness=Likeness.GAINS)
def gain_blocks(pair: Pair, test: LineageTest) -> Evidence:
    """Do gains of equal channels agree, over all norms that both models have?"""
    alignment, keys = _common_norms(pair, same_width=True)
    x, y = (
        np.stack([side.prepared.scores.by_norm[key] for key in keys], axis=1)
        for side in (alignment.first, alignment.second)
    )
    layers = sorted({layer for _, layer in keys})
    return _correlation(pair, test, alignment, x, y, layers, keys)


@_gain_test("E1.profile", likeness=Likeness.MEAN_GAINS)
def gain_profile(pair: Pair, test: LineageTest) -> Evidence:
    """Do gains averaged over depth agree? Depth changes and reordered layers keep them."""
    alignment, keys = _common_norms(pair, same_width=True)
    x, y = (side.prepared.profile for side in (alignment.first, alignment.second))
    if x is None or y is None:
        raise NoResult(Reason.CONSTANT_GAINS, Status.UNDEFINED)
    return _correlation(pair, test, alignment, x[:, None], y[:, None], [], keys)


@_gain_test("E1.fixed")
def gain_fixed_points(pair: Pair, test: LineageTest) -> Evidence:
    """Are channels with the same gains over all layers the same channels?"""
    matched, roles = _matched_channels(pair, same_width=True)
    return test.evidence(fixed_points([matched], seed=pair.null_seed), roles=roles)


@_gain_test("E1.order")
def gain_order(pair: Pair, test: LineageTest) -> Evidence:
    """Where widths differ, do channels matched by their gains keep their order?"""
    matched, roles = _matched_channels(pair, same_width=False)
    return test.evidence(increasing_subsequence([matched], pair.null_seed), roles=roles)


@_gain_test("E6.norms")
def gain_bits(pair: Pair, test: LineageTest) -> Evidence:
    """Are stored gains of equal channels equal more often than those of neighbours?"""
    alignment, keys = _common_norms(pair, same_width=True)
    x, y = (
        np.stack([side.prepared.gains[key] for key in keys], axis=1).astype(np.float32)
        for side in (alignment.first, alignment.second)
    )
    blocks = alignment.channel_blocks
    if not len(blocks.sizes):
        raise NoResult(Reason.COPIED_CHANNELS, Status.UNDEFINED)
    counts = equal_counts(x[blocks.first.reshape(-1)], y[blocks.second.reshape(-1)])
    result = block_permutation(counts / x.shape[1], blocks.sizes, pair.null_seed)
    layers = [layer for _, layer in keys]
    return test.evidence(result, roles=_roles(alignment, keys), layers=layers)


def _common_norms(pair: Pair, same_width: bool) -> tuple[Alignment, tuple[NormKey, ...]]:
    """The norms that vary in both models."""
    alignment = granted_alignment(pair, Group.RESIDUAL)
    require_width(alignment, same_width)
    first, second = alignment.first.prepared, alignment.second.prepared
    if not first.gains or not second.gains:
        raise NoResult(Reason.NORM_GAINS)
    if not alignment.channels.norms:
        raise NoResult(Reason.NO_VARYING_NORM, Status.UNDEFINED)
    return alignment, alignment.channels.norms


def _roles(alignment: Alignment, keys: Iterable[NormKey]) -> tuple[str, ...]:
    """What the two models call norms that they have in common."""
    sides = alignment.first.prepared, alignment.second.prepared
    named = {side.gain_roles[key] for side in sides for key in keys}
    return tuple(str(role) for role in Role if role in named)


def _matched_channels(pair: Pair, same_width: bool) -> tuple[Pairs, tuple[str, ...]]:
    """Channels whose gains are each other's nearest, and which norms these are of; copies in the
    first take no part."""
    alignment, keys = _common_norms(pair, same_width)
    if len(keys) < FEW_GAINS:
        raise NoResult(Reason.NORM_VECTORS, number=FEW_GAINS)
    usable = np.flatnonzero(alignment.usable_channels)
    assert alignment.channels.gain_rows is not None
    x, y = alignment.channels.gain_rows
    if len(usable) == len(x):
        return alignment.channels.near_gains.pairs(), _roles(alignment, keys)
    return nearest_rows(x[usable], y).pairs(usable), _roles(alignment, keys)


def _correlation(
    pair: Pair,
    test: LineageTest,
    alignment: Alignment,
    x: Doubles,
    y: Doubles,
    layers: list[int],
    keys: tuple[NormKey, ...],
) -> Evidence:
    """The test of scores of equal channels, one column a norm vector."""
    blocks = alignment.channel_blocks
    lengths = np.sqrt(np.square(x).sum(axis=0) * np.square(y).sum(axis=0))
    unit = float(lengths.sum()) / len(x)  # what a correlation of one adds to a channel's score
    result = block_permutation(blocks.products(x, y), blocks.sizes, pair.null_seed, unit)
    effect = float(((x * y).sum(axis=0) / lengths).mean())
    vectors = (("vectors", float(x.shape[1])),)
    roles = _roles(alignment, keys)
    return test.evidence(result, roles=roles, layers=layers, effect=effect, details=vectors)
