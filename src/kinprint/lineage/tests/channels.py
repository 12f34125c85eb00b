"""Tests on residual channels: gains (E1), embedding columns (E3), matrix columns (Cm), signs (S3).

One permutation and one coin a channel for the whole model. Channels are compared as they are
numbered: a basis that was fitted to them would already have used their labels. Layers are
compared by number for the same reason.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.alignment.residual import FEW_GAINS
from kinprint.lineage.pair import Pair, common_blocks
from kinprint.lineage.preparation import TOKENS, Prepared
from kinprint.lineage.side import CLONED, Supply, alone
from kinprint.lineage.tests.equal_places import equal_places
from kinprint.lineage.tests.menu import MenuEntry
from kinprint.lineage.tests.outcome import silent, spoken
from kinprint.nulls.bits import equal_counts
from kinprint.nulls.blocks import block_permutation, signed_blocks
from kinprint.nulls.copies import clone_classes, sum_over
from kinprint.nulls.exchangeability import balance
from kinprint.nulls.fixed_points import Pairs, fixed_points, nearest_rows
from kinprint.nulls.increasing import increasing_subsequence
from kinprint.nulls.preparation import (
    degenerate,
    normal_scores,
    standardise_columns,
)
from kinprint.nulls.signs import sign_chernoff
from kinprint.records import Evidence

Doubles = NDArray[np.float64]
Rows = NDArray[np.float32]
Test = Callable[[Pair, MenuEntry], Evidence]
_BALANCED = 128
# Strangers do not come near the cosine of clones over so many rows, but with chance 1e-24.
_CLONED_ROWS = 64
_NORMS = ("norm_in", "norm_post_attn", "norm_pre_ffn", "norm_post_ffn", "norm_final")


def _once(test: Test) -> Test:
    """Run a test of gains or embeddings once for two models whose channels did not change."""

    @functools.wraps(test)
    def run(pair: Pair, entry: MenuEntry) -> Evidence:
        supply = pair.supply(entry.group)
        known = supply.first.channels.known
        key = supply.second.channels, entry.name, pair.seed
        if key not in known:
            known[key] = test(pair, entry)
        return known[key]

    return run


@_once
def gain_blocks(pair: Pair, entry: MenuEntry) -> Evidence:
    """E1: do gains of equal channels agree, over all norms that both models have?"""
    found = _gains(pair, entry, same_width=True)
    if isinstance(found, Evidence):
        return found
    supply, keys = found
    x, y = (np.stack([side.scores[key] for key in keys], axis=1) for side in _subjects(supply))
    return _gain_evidence(pair, entry, supply, x, y, sorted({layer for _, layer in keys}))


@_once
def gain_profile(pair: Pair, entry: MenuEntry) -> Evidence:
    """E1: do gains averaged over depth agree? Depth changes and reordered layers keep them."""
    found = _gains(pair, entry, same_width=True)
    if isinstance(found, Evidence):
        return found
    supply, _ = found
    profiles = [_profile(side) for side in _subjects(supply)]
    if any(degenerate(one) for one in profiles):
        return silent(entry, "undefined", "the gains do not vary")
    x, y = (normal_scores(one)[:, None] for one in profiles)
    return _gain_evidence(pair, entry, supply, x, y, [])


@_once
def gain_fixed_points(pair: Pair, entry: MenuEntry) -> Evidence:
    """E1: are channels with the same gains over all layers the same channels?"""
    found = _gains(pair, entry, same_width=True)
    if isinstance(found, Evidence):
        return found
    supply, keys = found
    if len(keys) < FEW_GAINS:
        return silent(entry, "needs", f"{FEW_GAINS} norm vectors that both models have")
    result = fixed_points([_matched_gains(pair, supply)], seed=pair.seed)
    return spoken(entry, result, roles=_NORMS, learnt=True)


@_once
def gain_order(pair: Pair, entry: MenuEntry) -> Evidence:
    """E1: where widths differ, do channels matched by their gains keep their order?"""
    found = _gains(pair, entry, same_width=False)
    if isinstance(found, Evidence):
        return found
    supply, keys = found
    if len(keys) < FEW_GAINS:
        return silent(entry, "needs", f"{FEW_GAINS} norm vectors that both models have")
    result = increasing_subsequence([_matched_gains(pair, supply)], pair.seed)
    return spoken(entry, result, roles=_NORMS, learnt=True)


@_once
def gain_bits(pair: Pair, entry: MenuEntry) -> Evidence:
    """E6: are stored gains of equal channels equal more often than those of neighbours?"""
    found = _gains(pair, entry, same_width=True)
    if isinstance(found, Evidence):
        return found
    supply, keys = found
    x, y = (
        np.stack([side.gains[key] for key in keys], axis=1).astype(np.float32)
        for side in _subjects(supply)
    )
    index = np.arange(len(x))
    blocks = common_blocks(index, index, alone(supply.first.channel_clones))
    if not len(blocks.sizes):
        return silent(entry, "undefined", "channels are copies of one another")
    counts = equal_counts(x[blocks.first.reshape(-1)], y[blocks.second.reshape(-1)])
    result = block_permutation(counts / x.shape[1], blocks.sizes, pair.seed)
    return spoken(entry, result, roles=_NORMS, layers=[layer for _, layer in keys], learnt=True)


@_once
def column_blocks(pair: Pair, entry: MenuEntry) -> Evidence:
    """E3: do embedding columns of equal channels agree over shared tokens?"""
    found = _columns(pair, entry, same_width=True)
    if isinstance(found, Evidence):
        return found
    return _column_evidence(pair, entry, *found, ("embed",))


@_once
def column_fixed_points(pair: Pair, entry: MenuEntry) -> Evidence:
    """E3: are embedding columns that are each other's nearest the same channel?"""
    found = _columns(pair, entry, same_width=True)
    if isinstance(found, Evidence):
        return found
    supply, x, y = found
    matched = _matched_columns(pair, supply, x, y)
    flips = not supply.first.refusal("residual_sign")
    signs = [np.einsum("ct,ct->c", x[matched.first], y[matched.second])] if flips else None
    result = fixed_points([matched], signs, pair.seed)
    return spoken(entry, result, roles=("embed",))


@_once
def column_order(pair: Pair, entry: MenuEntry) -> Evidence:
    """E3: where widths differ, do channels matched by embedding columns keep their order?"""
    found = _columns(pair, entry, same_width=False)
    if isinstance(found, Evidence):
        return found
    supply, x, y = found
    result = increasing_subsequence([_matched_columns(pair, supply, x, y)], pair.seed)
    return spoken(entry, result, roles=("embed",))


@_once
def column_signs(pair: Pair, entry: MenuEntry) -> Evidence:
    """S3: do best-matching embedding columns have the same sign more often than coins would?

    The cube lets clear matches count and leaves the many doubtful ones their small say.
    """
    found = _columns(pair, entry, same_width=None)
    if isinstance(found, Evidence):
        return found
    supply, _, _ = found
    values = pair.channels(supply.first, supply.second).near_columns.there.score
    coins = sum_over(values**3, supply.first.channel_clones)
    result = sign_chernoff(coins, pair.seed)
    return spoken(entry, result, roles=("embed",), effect=float(values.mean()))


def matrix_columns(pair: Pair, entry: MenuEntry) -> Evidence:
    """Cm: do matrix columns of equal channels agree over rows with equal places?"""
    supply = pair.supply(entry.group)
    if supply.refusal:
        return silent(entry, "guarded", supply.refusal)
    mine, theirs = _subjects(supply)
    if mine.width != theirs.width:
        return silent(entry, "needs", "models of one width")
    x, y, places = equal_places(mine, theirs)
    if places < TOKENS:
        return silent(entry, "needs", "matrix rows of equal place in both models")
    if len(x) < TOKENS:
        return silent(entry, "undefined", "matrices are constant or a fixed pattern")
    mine_columns, their_columns = (standardise_columns(part).T for part in (x, y))
    if balance(mine_columns, most=_BALANCED).reason == "signs are not fair":
        return silent(entry, "guarded", "matrix columns have a common direction")
    roles = ("q", "k", "v", "o", "gate", "up", "down")
    return _column_evidence(pair, entry, supply, mine_columns, their_columns, roles)


def _subjects(supply: Supply) -> tuple[Prepared, Prepared]:
    return supply.first.prepared, supply.second.prepared


def _gains(
    pair: Pair, entry: MenuEntry, same_width: bool
) -> Evidence | tuple[Supply, list[tuple[str, int]]]:
    supply = pair.supply(entry.group)
    if supply.refusal:
        return silent(entry, "guarded", supply.refusal)
    mine, theirs = _subjects(supply)
    if (mine.width == theirs.width) is not same_width:
        clause = "models of one width" if same_width else "models of different width"
        return silent(entry, "needs", clause)
    if not mine.gains or not theirs.gains:
        return silent(entry, "needs", "norm gains of both models")
    keys = sorted(mine.scores.keys() & theirs.scores.keys())
    if not keys:
        return silent(entry, "undefined", "no norm varies in both models")
    return supply, keys


def _gain_evidence(
    pair: Pair, entry: MenuEntry, supply: Supply, x: Doubles, y: Doubles, layers: list[int]
) -> Evidence:
    index = np.arange(len(x))
    blocks = common_blocks(index, index, alone(supply.first.channel_clones))
    result = block_permutation(blocks.products(x, y), blocks.sizes, pair.seed)
    lengths = np.sqrt(np.square(x).sum(axis=0) * np.square(y).sum(axis=0))
    effect = float(((x * y).sum(axis=0) / lengths).mean())
    return spoken(
        entry, result, roles=_NORMS, layers=layers, effect=effect, learnt=True,
        details=[("vectors", float(x.shape[1]))],
    )  # fmt: skip


def _matched_gains(pair: Pair, supply: Supply) -> Pairs:
    """Channels whose gains are each other's nearest; copies in the first take no part."""
    usable = np.flatnonzero(alone(supply.first.channel_clones))
    channels = pair.channels(supply.first, supply.second)
    assert channels.gain_rows is not None
    x, y = channels.gain_rows
    if len(usable) == len(x):
        return channels.near_gains.pairs()
    return nearest_rows(x[usable], y).pairs(usable)


def _profile(side: Prepared) -> Doubles:
    return np.asarray(np.mean(list(side.scores.values()), axis=0))


def _columns(
    pair: Pair, entry: MenuEntry, same_width: bool | None
) -> Evidence | tuple[Supply, Doubles, Doubles]:
    """Standardised embedding columns, channels first, of both models."""
    supply = pair.supply(entry.group)
    if supply.refusal:
        return silent(entry, "guarded", supply.refusal)
    mine, theirs = _subjects(supply)
    if same_width is not None and (mine.width == theirs.width) is not same_width:
        clause = "models of one width" if same_width else "models of different width"
        return silent(entry, "needs", clause)
    columns = pair.channels(supply.first, supply.second).shared.columns
    if columns is None:
        return silent(entry, "needs", f"embeddings of at least {TOKENS} shared tokens")
    return supply, *columns


def _matched_columns(pair: Pair, supply: Supply, x: Doubles, y: Doubles) -> Pairs:
    """Embedding columns that are each other's nearest; copies in the first take no part."""
    usable = np.flatnonzero(alone(supply.first.channel_clones))
    flips = not supply.first.refusal("residual_sign")
    if flips and len(usable) == len(x):
        return pair.channels(supply.first, supply.second).near_columns.pairs()
    return nearest_rows(x[usable], y, flips).pairs(usable)


def _column_evidence(
    pair: Pair, entry: MenuEntry, supply: Supply, x: Doubles, y: Doubles, roles: tuple[str, ...]
) -> Evidence:
    index = np.arange(len(x))
    usable = alone(supply.first.channel_clones) & x.any(axis=1)
    if roles != ("embed",):
        # Columns that are copies in the matrices need not be so in the embedding.
        usable &= alone(clone_classes(x[:, :: max(1, x.shape[1] // _CLONED_ROWS)], CLONED))
    blocks = common_blocks(index, index, usable)
    if not len(blocks.sizes):
        return silent(entry, "undefined", "columns are constant or copies of one another")
    table = blocks.products(x, y)
    if supply.first.refusal("residual_sign"):
        result = block_permutation(table, blocks.sizes, pair.seed)
    else:
        result = signed_blocks(np.zeros_like(table), table, blocks.sizes, pair.seed)
    effect = float(np.einsum("cn,cn->c", x, y).mean())
    return spoken(entry, result, roles=roles, effect=effect)
