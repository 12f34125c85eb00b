"""Tests on residual channels: gains (E1), embedding columns (E3), matrix columns (Cm), signs (S3).

One permutation and one coin a channel for the whole model. Channels are compared as they are
numbered: a basis that was fitted to them would already have used their labels. Layers are
compared by number for the same reason.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.alignment.residual import FEW_GAINS
from kinprint.lineage.pair import Pair, common_blocks
from kinprint.lineage.preparation import TOKENS, Prepared
from kinprint.lineage.side import CLONED, Supply, alone
from kinprint.lineage.tests.equal_places import equal_places
from kinprint.lineage.tests.registry import (
    Basis,
    Likeness,
    LineageTest,
    Scale,
    TestFunction,
    lineage_test,
)
from kinprint.nulls.bits import equal_counts
from kinprint.nulls.blocks import block_permutation, signed_blocks
from kinprint.nulls.copies import clone_classes, sum_over
from kinprint.nulls.exchangeability import Doubt, balance
from kinprint.nulls.fixed_points import Pairs, fixed_points, nearest_rows
from kinprint.nulls.increasing import increasing_subsequence
from kinprint.nulls.preparation import (
    degenerate,
    normal_scores,
    standardise_columns,
)
from kinprint.nulls.signs import sign_chernoff
from kinprint.records import Evidence, Group, Part, Reason, Status

Doubles = NDArray[np.float64]
Rows = NDArray[np.float32]
_BALANCED = 128
# Strangers do not come near the cosine of clones over so many rows, but with chance 1e-24.
_CLONED_ROWS = 64
_NORMS = ("norm_in", "norm_post_attn", "norm_pre_ffn", "norm_post_ffn", "norm_final")


def _once(function: TestFunction) -> TestFunction:
    """Run a test of gains or embeddings once for two models whose channels did not change."""

    @functools.wraps(function)
    def run(pair: Pair, test: LineageTest) -> Evidence:
        supply = pair.supply(test.group)
        known = supply.first.channels.known
        key = supply.second.channels, test.name, pair.seed
        if key not in known:
            known[key] = function(pair, test)
        return known[key]

    return run


@lineage_test(
    "E1.blocks", group=Group.RESIDUAL, part=Part.NORMS, scale=Scale.CORRELATION,
    basis=Basis.AS_STORED, likeness=Likeness.GAINS, learnt=True,
)  # fmt: skip
@_once
def gain_blocks(pair: Pair, test: LineageTest) -> Evidence:
    """E1: do gains of equal channels agree, over all norms that both models have?"""
    found = _gains(pair, test, same_width=True)
    if isinstance(found, Evidence):
        return found
    supply, keys = found
    x, y = (np.stack([side.scores[key] for key in keys], axis=1) for side in _subjects(supply))
    return _gain_evidence(pair, test, supply, x, y, sorted({layer for _, layer in keys}))


@lineage_test(
    "E1.profile", group=Group.RESIDUAL, part=Part.NORMS, scale=Scale.CORRELATION,
    basis=Basis.AS_STORED, likeness=Likeness.MEAN_GAINS, learnt=True,
)  # fmt: skip
@_once
def gain_profile(pair: Pair, test: LineageTest) -> Evidence:
    """E1: do gains averaged over depth agree? Depth changes and reordered layers keep them."""
    found = _gains(pair, test, same_width=True)
    if isinstance(found, Evidence):
        return found
    supply, _ = found
    profiles = [_profile(side) for side in _subjects(supply)]
    if any(degenerate(one) for one in profiles):
        return test.no_result(Reason.CONSTANT_GAINS, Status.UNDEFINED)
    x, y = (normal_scores(one)[:, None] for one in profiles)
    return _gain_evidence(pair, test, supply, x, y, [])


@lineage_test(
    "E1.fixed", group=Group.RESIDUAL, part=Part.NORMS, scale=Scale.COUNT,
    basis=Basis.AS_STORED, learnt=True,
)  # fmt: skip
@_once
def gain_fixed_points(pair: Pair, test: LineageTest) -> Evidence:
    """E1: are channels with the same gains over all layers the same channels?"""
    found = _gains(pair, test, same_width=True)
    if isinstance(found, Evidence):
        return found
    supply, keys = found
    if len(keys) < FEW_GAINS:
        return test.no_result(Reason.NORM_VECTORS, number=FEW_GAINS)
    result = fixed_points([_matched_gains(pair, supply)], seed=pair.seed)
    return test.evidence(result, roles=_NORMS)


@lineage_test(
    "E1.order", group=Group.RESIDUAL, part=Part.NORMS, scale=Scale.COUNT,
    basis=Basis.AS_STORED, learnt=True,
)  # fmt: skip
@_once
def gain_order(pair: Pair, test: LineageTest) -> Evidence:
    """E1: where widths differ, do channels matched by their gains keep their order?"""
    found = _gains(pair, test, same_width=False)
    if isinstance(found, Evidence):
        return found
    supply, keys = found
    if len(keys) < FEW_GAINS:
        return test.no_result(Reason.NORM_VECTORS, number=FEW_GAINS)
    result = increasing_subsequence([_matched_gains(pair, supply)], pair.seed)
    return test.evidence(result, roles=_NORMS)


@lineage_test(
    "E6.norms", group=Group.RESIDUAL, part=Part.NORMS, scale=Scale.EQUAL_NUMBERS,
    basis=Basis.AS_STORED, learnt=True,
)  # fmt: skip
@_once
def gain_bits(pair: Pair, test: LineageTest) -> Evidence:
    """E6: are stored gains of equal channels equal more often than those of neighbours?"""
    found = _gains(pair, test, same_width=True)
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
        return test.no_result(Reason.COPIED_CHANNELS, Status.UNDEFINED)
    counts = equal_counts(x[blocks.first.reshape(-1)], y[blocks.second.reshape(-1)])
    result = block_permutation(counts / x.shape[1], blocks.sizes, pair.seed)
    return test.evidence(result, roles=_NORMS, layers=[layer for _, layer in keys])


@lineage_test(
    "E3.blocks", group=Group.RESIDUAL, part=Part.EMBEDDING, scale=Scale.CORRELATION,
    basis=Basis.AS_STORED, likeness=Likeness.EMBEDDING,
)  # fmt: skip
@_once
def column_blocks(pair: Pair, test: LineageTest) -> Evidence:
    """E3: do embedding columns of equal channels agree over shared tokens?"""
    found = _columns(pair, test, same_width=True)
    if isinstance(found, Evidence):
        return found
    return _column_evidence(pair, test, *found, ("embed",))


@lineage_test(
    "E3.fixed", group=Group.RESIDUAL, part=Part.EMBEDDING, scale=Scale.COUNT,
    basis=Basis.AS_STORED,
)  # fmt: skip
@_once
def column_fixed_points(pair: Pair, test: LineageTest) -> Evidence:
    """E3: are embedding columns that are each other's nearest the same channel?"""
    found = _columns(pair, test, same_width=True)
    if isinstance(found, Evidence):
        return found
    supply, x, y = found
    matched = _matched_columns(pair, supply, x, y)
    flips = not supply.first.refusal(Group.RESIDUAL_SIGN)
    signs = [np.einsum("ct,ct->c", x[matched.first], y[matched.second])] if flips else None
    result = fixed_points([matched], signs, pair.seed)
    return test.evidence(result, roles=("embed",))


@lineage_test(
    "E3.order", group=Group.RESIDUAL, part=Part.EMBEDDING, scale=Scale.COUNT,
    basis=Basis.AS_STORED,
)  # fmt: skip
@_once
def column_order(pair: Pair, test: LineageTest) -> Evidence:
    """E3: where widths differ, do channels matched by embedding columns keep their order?"""
    found = _columns(pair, test, same_width=False)
    if isinstance(found, Evidence):
        return found
    supply, x, y = found
    result = increasing_subsequence([_matched_columns(pair, supply, x, y)], pair.seed)
    return test.evidence(result, roles=("embed",))


@lineage_test(
    "S3", group=Group.RESIDUAL_SIGN, part=Part.EMBEDDING, scale=Scale.WEIGHTED,
    basis=Basis.FOUND, likeness=Likeness.EMBEDDING,
)  # fmt: skip
@_once
def column_signs(pair: Pair, test: LineageTest) -> Evidence:
    """S3: do best-matching embedding columns have the same sign more often than coins would?

    The cube lets clear matches count and leaves the many doubtful ones their small say.
    """
    found = _columns(pair, test, same_width=None)
    if isinstance(found, Evidence):
        return found
    supply, _, _ = found
    values = pair.channels(supply.first, supply.second).near_columns.there.score
    coins = sum_over(values**3, supply.first.channel_clones)
    result = sign_chernoff(coins, pair.seed)
    return test.evidence(result, roles=("embed",), effect=float(values.mean()))


@lineage_test(
    "Cm.blocks", group=Group.RESIDUAL, part=None, scale=Scale.CORRELATION,
    basis=Basis.AS_STORED, likeness=Likeness.MATRICES,
)  # fmt: skip
def matrix_columns(pair: Pair, test: LineageTest) -> Evidence:
    """Cm: do matrix columns of equal channels agree over rows with equal places?"""
    supply = pair.supply(test.group)
    if supply.refusal:
        return test.no_result(supply.refusal, Status.GUARDED)
    mine, theirs = _subjects(supply)
    if mine.width != theirs.width:
        return test.no_result(Reason.MODELS_OF_ONE_WIDTH)
    x, y, places = equal_places(mine, theirs)
    if places < TOKENS:
        return test.no_result(Reason.MATRIX_ROWS)
    if len(x) < TOKENS:
        return test.no_result(Reason.CONSTANT_MATRICES, Status.UNDEFINED)
    mine_columns, their_columns = (standardise_columns(part).T for part in (x, y))
    if balance(mine_columns, most=_BALANCED).reason is Doubt.UNFAIR:
        return test.no_result(Reason.COLUMNS_LEAN, Status.GUARDED)
    roles = ("q", "k", "v", "o", "gate", "up", "down")
    return _column_evidence(pair, test, supply, mine_columns, their_columns, roles)


def _subjects(supply: Supply) -> tuple[Prepared, Prepared]:
    return supply.first.prepared, supply.second.prepared


def _gains(
    pair: Pair, test: LineageTest, same_width: bool
) -> Evidence | tuple[Supply, list[tuple[str, int]]]:
    supply = pair.supply(test.group)
    if supply.refusal:
        return test.no_result(supply.refusal, Status.GUARDED)
    mine, theirs = _subjects(supply)
    if (mine.width == theirs.width) is not same_width:
        return test.no_result(
            Reason.MODELS_OF_ONE_WIDTH if same_width else Reason.MODELS_OF_DIFFERENT_WIDTH
        )
    if not mine.gains or not theirs.gains:
        return test.no_result(Reason.NORM_GAINS)
    keys = sorted(mine.scores.keys() & theirs.scores.keys())
    if not keys:
        return test.no_result(Reason.NO_VARYING_NORM, Status.UNDEFINED)
    return supply, keys


def _gain_evidence(
    pair: Pair, test: LineageTest, supply: Supply, x: Doubles, y: Doubles, layers: list[int]
) -> Evidence:
    index = np.arange(len(x))
    blocks = common_blocks(index, index, alone(supply.first.channel_clones))
    lengths = np.sqrt(np.square(x).sum(axis=0) * np.square(y).sum(axis=0))
    unit = float(lengths.sum()) / len(x)  # what a correlation of one adds to a channel's score
    result = block_permutation(blocks.products(x, y), blocks.sizes, pair.seed, unit)
    effect = float(((x * y).sum(axis=0) / lengths).mean())
    return test.evidence(result, roles=_NORMS, layers=layers, effect=effect, vectors=x.shape[1])


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
    pair: Pair, test: LineageTest, same_width: bool | None
) -> Evidence | tuple[Supply, Doubles, Doubles]:
    """Standardised embedding columns, channels first, of both models."""
    supply = pair.supply(test.group)
    if supply.refusal:
        return test.no_result(supply.refusal, Status.GUARDED)
    mine, theirs = _subjects(supply)
    if same_width is not None and (mine.width == theirs.width) is not same_width:
        return test.no_result(
            Reason.MODELS_OF_ONE_WIDTH if same_width else Reason.MODELS_OF_DIFFERENT_WIDTH
        )
    columns = pair.channels(supply.first, supply.second).shared.columns
    if columns is None:
        return test.no_result(Reason.SHARED_TOKENS, number=TOKENS)
    return supply, *columns


def _matched_columns(pair: Pair, supply: Supply, x: Doubles, y: Doubles) -> Pairs:
    """Embedding columns that are each other's nearest; copies in the first take no part."""
    usable = np.flatnonzero(alone(supply.first.channel_clones))
    flips = not supply.first.refusal(Group.RESIDUAL_SIGN)
    if flips and len(usable) == len(x):
        return pair.channels(supply.first, supply.second).near_columns.pairs()
    return nearest_rows(x[usable], y, flips).pairs(usable)


def _column_evidence(
    pair: Pair, test: LineageTest, supply: Supply, x: Doubles, y: Doubles, roles: tuple[str, ...]
) -> Evidence:
    index = np.arange(len(x))
    usable = alone(supply.first.channel_clones) & x.any(axis=1)
    if roles != ("embed",):
        # Columns that are copies in the matrices need not be so in the embedding.
        usable &= alone(clone_classes(x[:, :: max(1, x.shape[1] // _CLONED_ROWS)], CLONED))
    blocks = common_blocks(index, index, usable)
    if not len(blocks.sizes):
        return test.no_result(Reason.CONSTANT_COLUMNS, Status.UNDEFINED)
    table = blocks.products(x, y)
    if supply.first.refusal(Group.RESIDUAL_SIGN):
        result = block_permutation(table, blocks.sizes, pair.seed, 1.0)
    else:
        result = signed_blocks(np.zeros_like(table), table, blocks.sizes, pair.seed, (0.0, 1.0))
    effect = float(np.einsum("cn,cn->c", x, y).mean())
    return test.evidence(result, roles=roles, effect=effect)
