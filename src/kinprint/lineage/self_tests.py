"""Does an index or a sign of one model mean something? Asked before a test calls it random.

A tool may have sorted units, turned channels into principal axes, or given signs by a rule. Two
such models agree without being related. Each self-test looks at one model alone, at a stated
level, and at a part of it: what it looks for is not local.
"""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.reading.sample import Floats
from kinprint.measure.basis import spread
from kinprint.nulls import copies
from kinprint.nulls.exchangeability import (
    LEVEL,
    Doubt,
    along_index,
    balance,
    canonical_axes,
    column_profiles,
    lags,
    skewness,
    trend,
)
from kinprint.nulls.preparation import one_valued
from kinprint.nulls.result import Ints
from kinprint.nulls.signs import sign_log10_p
from kinprint.records import Group, Reason
from kinprint.text import Message

if TYPE_CHECKING:
    from kinprint.lineage.side import Side

# How much of a model is looked at: tokens, channels, units of a layer, columns, numbers of a row.
_TOKENS, _CHANNELS, _UNITS, _COLUMNS, _NUMBERS = 1024, 512, 32, 256, 512
_FEWEST_TOKENS = 16
_BALANCED = 128  # rows whose signs are looked at
_LAYERS = 3  # feed-forwards whose signs are looked at one by one
# Mean squared cosine of two value rows, times their width, below which they are an
# orthogonal basis by construction.
_ORTHOGONAL = 0.25


def self_test(side: Side, group: Group) -> Message | None:
    """Why labels or signs of a group mean something in this model; None where they do not."""
    match group:
        case Group.RESIDUAL:
            return side.order_of_channels or _periodic_gains(side)
        case Group.RESIDUAL_SIGN:
            return side.order_of_channels or _channel_signs(side)
        case Group.UNIT:
            return _sorted_units(side)
        case Group.UNIT_SIGN:
            return _unit_signs(side)
        case Group.VALUE_DIM:
            return _ordered_values(side)
        case Group.VALUE_SIGN:
            return _ordered_values(side) or _row_signs(side, "v", Reason.VALUE_SIGNS_UNFAIR)
        case Group.PLANE_SIGN:
            return _row_signs(side, "k", Reason.PLANE_SIGNS_UNFAIR)
        case _:
            return None


def _embedding(side: Side) -> Floats | None:
    """Some rows of the embedding, without channels that hold one value."""
    embedding = side.prepared.sample.embedding
    if embedding is None or len(embedding.rows) < _FEWEST_TOKENS:
        return None
    rows = embedding.rows[spread(len(embedding.rows), _TOKENS)]
    return rows[:, ~one_valued(rows.T)]


def _canonical_channels(side: Side) -> Message | None:
    rows = _embedding(side)
    if rows is None:
        return None
    match canonical_axes(rows[:, spread(rows.shape[1], _CHANNELS)]).reason:
        case Doubt.SORTED:
            return Reason.CHANNELS_SORTED.message()
        case Doubt.UNCORRELATED:
            return Reason.CHANNELS_UNCORRELATED.message()
        case _:
            return None


def ordered_channels(side: Side) -> Message | None:
    """Whether channels are canonical axes, or follow a course along their index."""
    return _canonical_channels(side) or _course_of_channels(side)


def _course_of_channels(side: Side) -> Message | None:
    """Whether embedding columns follow a course along the index: sorted, or with a formula in them.

    Channels sorted by the mean of their columns have signs that go with the index, and a table of
    sines that was added is the same in strangers. Copies of channels are left out: they lie at one
    distance, and are tied.
    """
    embedding = side.prepared.sample.embedding
    if embedding is None or len(embedding.rows) < _FEWEST_TOKENS:
        return None
    tokens = np.argsort(embedding.ids, kind="stable")[spread(len(embedding.ids), _TOKENS)]
    channels = np.flatnonzero(np.bincount(side.channel_clones)[side.channel_clones] == 1)
    rows = embedding.rows[tokens][:, channels[spread(len(channels), _CHANNELS)]]
    rows = rows[np.isfinite(rows).all(axis=1)]
    rows = rows[:, ~one_valued(rows.T)]
    if min(rows.shape) < _FEWEST_TOKENS or along_index(column_profiles(rows)).exchangeable:
        return None
    return Reason.CHANNELS_ALONG_INDEX.message()


def _channel_signs(side: Side) -> Message | None:
    rows = _embedding(side)
    if rows is None:
        return None
    columns = rows[:, spread(rows.shape[1], _BALANCED)].T
    if _lean(skewness(columns)[None]):
        return Reason.CHANNEL_SIGNS_UNFAIR.message()
    match balance(columns[:, :_NUMBERS], most=_BALANCED).reason:
        case Doubt.UNFAIR:
            return Reason.CHANNEL_SIGNS_UNFAIR.message()
        case Doubt.TOO_SHORT:
            return Reason.CHANNEL_SIGNS_TOO_FEW.message()
        case _:
            return None


def _periodic_gains(side: Side) -> Message | None:
    profile = side.prepared.profile
    if profile is None or not _uneven(profile) or lags(profile, shared=True).exchangeable:
        return None
    return Reason.GAINS_PERIODIC.message()


def _uneven(scores: NDArray[np.float64]) -> bool:
    """Whether some autocorrelation of the scores is large enough to be worth drawing orders for.

    The self-test refuses what no draw of a thousand reaches. A size that one in twenty reaches
    is reached by some of them, but for a chance of 1e-22; so below it the answer is known.
    """
    size = len(scores)
    power = np.square(np.abs(np.fft.rfft(scores / np.sqrt(np.square(scores).sum()))))
    correlations = np.fft.irfft(power, size)[1 : size // 2 + 1]
    least = -NormalDist().inv_cdf(0.05 / max(size, 2)) / math.sqrt(size)
    return bool(np.abs(correlations).max(initial=0.0) > least)


def _sorted_units(side: Side) -> Message | None:
    parts = side.prepared.feed_forwards
    for part in parts:
        if trend(part.size, LEVEL / len(parts)).reason is Doubt.SORTED:
            return Reason.UNITS_SORTED.message(layer=part.layer)
    return None


def _unit_signs(side: Side) -> Message | None:
    """Signs of units in some layers, and over all layers together."""
    parts, clones = side.prepared.feed_forwards, side.unit_clones
    some = spread(len(parts), _LAYERS) if parts else []
    for at in some:
        rows = copies.sum_over(parts[at].thinned(), clones[at])
        if balance(rows, most=_BALANCED, level=LEVEL / len(some)).reason is Doubt.UNFAIR:
            return Reason.UNIT_SIGNS_UNFAIR.message(layer=parts[at].layer)
    if _signs_follow_a_rule(side):
        return Reason.UNIT_SIGNS_FOLLOW_A_RULE.message()
    # Layers whose units are all alike have a coin each, and coins of all layers must be fair.
    if len(parts) > len(some) and len({part.width for part in parts}) == 1:
        classes = np.concatenate([each[:_UNITS] for each in side.coin_classes])
        every = np.concatenate([part.thinned(_UNITS) for part in parts])
        rows = copies.sum_over(every, _renumbered(classes))
        if balance(rows, most=_BALANCED).reason is Doubt.UNFAIR:
            return Reason.UNIT_SIGNS_UNFAIR_OVER_LAYERS.message()
    return None


def _signs_follow_a_rule(side: Side) -> bool:
    """Whether units lean to their own gates, or to each other, more than coins would let them.

    Flipping every unit so that what it puts out is mostly positive changes no output, and
    makes strangers agree who do so alike. Half of the coins say where up and down lean, and the
    other half whether they do. A grid that ends sooner on one side skews all of them alike.
    """
    parts = side.prepared.feed_forwards
    leaning, classes = [], []
    for at in np.unique(side.feed_forward_copies, return_index=True)[1]:
        part, coins = parts[at], side.coin_classes[at]
        rows, asked = part.thinned(), coins % 2 == 0
        mean = rows[~asked].sum(axis=0)
        values = [rows @ mean * asked / max(float(np.linalg.norm(mean)), 1e-30)]
        for ends in (part.up, part.down):
            gate = np.zeros_like(ends) if part.gate is None else part.gate
            values += [np.einsum("ud,ud->u", gate, ends), skewness(ends)]
        leaning.append(np.stack(values, axis=1))
        classes.append(coins)
    if not leaning:
        return False
    return _lean(copies.sum_over(np.concatenate(leaning), _renumbered(np.concatenate(classes))).T)


def _lean(coins: NDArray[np.float64]) -> bool:
    """Whether one of some rows of coins leans to a side, whichever."""
    both = np.concatenate([coins, -coins])
    return bool(sign_log10_p(both).min() <= math.log10(LEVEL / len(both)))


def _row_signs(side: Side, role: str, reason: Reason) -> Message | None:
    """Signs of the rows of keys or values in all groups, one group of each class of copies."""
    seen, rows = set[int](), []
    for (layer, group), label in side.head_copies.items():
        heads = side.prepared.heads[layer]
        part = getattr(heads, role)
        if part is not None and label not in seen:
            seen.add(label)
            rows.append(heads.rows(role, group, max(1, part.shape[2] // _COLUMNS)))
    if len({part.shape[1] for part in rows}) != 1:
        return None
    every = np.concatenate(rows)
    unfair = balance(every, most=_BALANCED).reason is Doubt.UNFAIR or _lean(skewness(every)[None])
    return reason.message() if unfair else None


def _ordered_values(side: Side) -> Message | None:
    """Whether value rows are an orthogonal basis, or sorted by size."""
    sizes, squares, width = [], [], 1
    for layer, heads in side.prepared.heads.items():
        stored = side.prepared.sample.attention[layer].v
        if heads.v is None or stored is None:
            continue
        width = heads.v.shape[2]
        finite = np.where(np.isfinite(stored), stored, np.float32(0))
        sizes += [np.sqrt(np.square(head, dtype=np.float64).sum(axis=1)) for head in finite]
        for head in heads.v:
            cosines = np.asarray(head @ head.T, np.float64)
            np.fill_diagonal(cosines, 0.0)
            squares.append(np.square(cosines).sum() / max(1, cosines.size - len(cosines)))
    if not sizes or len({len(size) for size in sizes}) > 1:
        return None
    if 0 < np.mean(squares) * width < _ORTHOGONAL:
        return Reason.VALUES_ORTHOGONAL.message()
    if not any(heads.informative("v") for heads in side.prepared.heads.values()):
        return None
    mean = np.mean([size / max(size.mean(), 1e-30) for size in sizes], axis=0)
    return Reason.VALUES_SORTED.message() if trend(mean).reason is Doubt.SORTED else None


def _renumbered(classes: Ints) -> Ints:
    """Classes numbered anew from zero, where only some of the members are left."""
    return np.unique(classes, return_inverse=True)[1].astype(np.int64)
