"""What a model's labels are worth: which symmetries it has, and which copies share a coin.

A test needs one model whose labels chance has dealt. That model is asked first, alone: do its
facts grant the symmetry, is its index free of meaning, are units, heads or layers copies of
one another? Copies are tied, and where an index means something the test is not run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.alignment.units import spread
from kinprint.lineage.preparation import Forward, Prepared
from kinprint.lineage.reading.sample import Sample
from kinprint.model.symmetries import group_named, refusal
from kinprint.nulls import copies
from kinprint.nulls.exchangeability import LEVEL, Doubt, balance, canonical_axes, lags, trend
from kinprint.nulls.preparation import degenerate, normal_scores, one_valued
from kinprint.nulls.result import Ints
from kinprint.nulls.signs import sign_log10_p
from kinprint.records import Evidence, Group, Reason
from kinprint.text import Message

# Self-tests look at this much of a model at most; what they look for is not local.
_TOKENS, _CHANNELS, _UNITS, _COLUMNS, _NUMBERS = 1024, 512, 32, 256, 4096
_BALANCED = 128
# Clones among the channels of a wide model are looked for over fewer tokens: the work grows with
# the square of the width, and strangers do not come near the cosine of clones over either.
_WIDE, _FEW_TOKENS = 1024, 128
_OF_CHANNELS = (Group.RESIDUAL, Group.RESIDUAL_SIGN)
# Embedding columns with this correlation are one channel twice; outliers of one model reach 0.9.
CLONED = 0.95
# Heads whose keys have this cosine at equal places are copies; strangers of one model stay
# below a third of it.
_REPLICATED = 0.5
# Mean squared cosine of two value rows, times their width, below which they are an
# orthogonal basis by construction.
_ORTHOGONAL = 0.25


@dataclass(eq=False, slots=True)
class ChannelFindings:
    """What is known of a model's channels against those of others.

    It stays with a model as long as its gains and embedding do, so that a later stage, which
    reads other things, does not ask again.
    """

    known: dict[tuple[ChannelFindings, str, int], Evidence] = field(default_factory=dict)


class Side:
    """A model with the answers to all self-tests, each found when first asked for."""

    def __init__(self, sample: Sample, earlier: Side | None = None) -> None:
        self.prepared = Prepared(sample)
        self._refusals: dict[Group, Message | None] = {}
        self.channels = ChannelFindings()
        if earlier is not None and _same_channels(sample, earlier.prepared.sample):
            known = earlier._refusals
            self._refusals = {key: known[key] for key in _OF_CHANNELS if key in known}
            self.prepared.scores = earlier.prepared.scores
            self.channel_clones = earlier.channel_clones
            self.channels = earlier.channels

    def refusal(self, group: Group) -> Message | None:
        """Why the labels of a group cannot be called random; None where they can."""
        if group not in self._refusals:
            architecture = refusal(group_named(group), self.prepared.facts)
            self._refusals[group] = architecture or self._self_test(group)
        return self._refusals[group]

    @property
    def rank(self) -> tuple[int, int, bool, str]:
        """Order in which models are asked to supply a symmetry; the least comes first.

        The one with fewer units (layers, experts, rows read): each of its units is a coin, and
        should find its partner among many rather than the other way round.
        """
        prepared = self.prepared
        layernorm = prepared.facts.norm != "rms"
        units = sum(len(one.index) for one in prepared.forwards)
        return units, prepared.sample.depth, layernorm, prepared.key

    @property
    def odd(self) -> bool:
        """Whether its units have coins: up and down may be flipped together."""
        return self.refusal(Group.UNIT_SIGN) is None

    @cached_property
    def unit_clones(self) -> tuple[Ints, ...]:
        """Classes of units that are copies of one another, for each feed-forward."""
        return tuple(copies.copied_units(_thinned(one)) for one in self.prepared.forwards)

    @cached_property
    def usable_units(self) -> tuple[NDArray[np.bool_], ...]:
        """Which units may stand for themselves: neither copies nor without any content."""
        return tuple(
            alone(classes) & (one.up.any(axis=1) | one.down.any(axis=1))
            for one, classes in zip(self.prepared.forwards, self.unit_clones, strict=True)
        )

    @cached_property
    def forward_copies(self) -> Ints:
        """Classes of feed-forwards that are copies of one another, unit by unit."""
        parts = self.prepared.forwards
        classes = np.arange(len(parts))
        shapes = [(len(one.index), one.total, one.width) for one in parts]
        for shape in sorted(set(shapes)):
            at = np.flatnonzero([one == shape for one in shapes])
            if len(at) > 1:
                rows = np.stack([_thinned(parts[i], _UNITS) for i in at])
                classes[at] = at[copies.copied_sets(rows)]
        return classes

    @cached_property
    def head_copies(self) -> dict[tuple[int, int], int]:
        """Classes of key-value groups, by layer and group, whose keys or values are copies."""
        heads = self.prepared.heads
        places = [(layer, at) for layer, one in heads.items() for at in range(one.groups)]
        classes = np.arange(len(places))
        for role in ("k", "v"):
            parts = [getattr(heads[layer], role) for layer, _ in places]
            rows = [
                _real(part[group]).reshape(-1)
                for part, (_, group) in zip(parts, places, strict=True)
                if part is not None
            ]
            if rows and len(rows) == len(places) and len({len(row) for row in rows}) == 1:
                thin = np.stack(rows)[:, :: max(1, len(rows[0]) // _NUMBERS)]
                classes = copies.joined(classes, copies.clone_classes(thin, _REPLICATED))
        return dict(zip(places, classes.tolist(), strict=True))

    @cached_property
    def channel_clones(self) -> Ints:
        """Classes of channels whose embedding columns are copies of one another."""
        embedding = self.prepared.sample.embedding
        if embedding is None:
            return np.arange(self.prepared.width)
        most = _COLUMNS if self.prepared.width <= _WIDE else _FEW_TOKENS
        rows = embedding.rows[spread(len(embedding.rows), most)].T.astype(np.float64)
        return copies.clone_classes(rows - rows.mean(axis=1, keepdims=True), CLONED)

    def _self_test(self, group: Group) -> Message | None:
        match group:
            case Group.RESIDUAL | Group.RESIDUAL_SIGN:
                return self._channels(group)
            case Group.UNIT:
                return self._sorted_units()
            case Group.UNIT_SIGN:
                return self._unfair_units()
            case Group.VALUE_DIM:
                return self._values()
            case Group.VALUE_SIGN:
                return self._values() or self._unfair("v", Reason.VALUE_SIGNS_UNFAIR)
            case Group.PLANE_SIGN:
                return self._unfair("k", Reason.PLANE_SIGNS_UNFAIR)
            case _:
                return None

    def _channels(self, group: Group) -> Message | None:
        embedding = self.prepared.sample.embedding
        if embedding is not None and len(embedding.rows) >= 16:
            some = embedding.rows[spread(len(embedding.rows), _TOKENS)]
            some = some[:, ~one_valued(some.T)]
            found = canonical_axes(some[:, spread(some.shape[1], _CHANNELS)])
            if found.reason is Doubt.SORTED:
                return Reason.CHANNELS_SORTED.message()
            if found.reason is Doubt.UNCORRELATED:
                return Reason.CHANNELS_UNCORRELATED.message()
            if group is Group.RESIDUAL_SIGN:
                columns = some[:, spread(some.shape[1], _BALANCED)].T
                found = balance(columns[:, : _NUMBERS // 8], most=_BALANCED)
                if found.reason is Doubt.UNFAIR:
                    return Reason.CHANNEL_SIGNS_UNFAIR.message()
                if not found.exchangeable:
                    return Reason.CHANNEL_SIGNS_TOO_FEW.message()
        scores = list(self.prepared.scores.values())
        profile = np.mean(scores, axis=0) if scores else np.zeros(0)
        if group is Group.RESIDUAL and scores and not degenerate(profile) and _uneven(profile):
            periodic = not lags(profile, shared=True).exchangeable
            return Reason.GAINS_PERIODIC.message() if periodic else None
        return None

    def _sorted_units(self) -> Message | None:
        parts = self.prepared.forwards
        for one in parts:
            found = trend(one.size, LEVEL / len(parts))
            if found.reason is Doubt.SORTED:
                return Reason.UNITS_SORTED.message(layer=one.layer)
        return None

    def _unfair_units(self) -> Message | None:
        parts = self.prepared.forwards
        some = spread(len(parts), 3) if parts else []
        for at in some:
            rows = copies.sum_over(_thinned(parts[at]), self.unit_clones[at])
            found = balance(rows, most=_BALANCED, level=LEVEL / len(some))
            if found.reason is Doubt.UNFAIR:
                return Reason.UNIT_SIGNS_UNFAIR.message(layer=parts[at].layer)
        if self._signed_by_gates():
            return Reason.UNIT_SIGNS_FOLLOW_GATES.message()
        # Layers whose units are all alike have a coin each, and coins of all layers must be fair.
        widths = {one.width for one in parts}
        if len(parts) > len(some) and len(widths) == 1:
            rows = np.concatenate([
                copies.sum_over(_thinned(one, _UNITS), _numbered(classes[:_UNITS]))
                for one, classes in zip(parts, self.unit_clones, strict=True)
            ])  # fmt: skip
            if balance(rows, most=_BALANCED).reason is Doubt.UNFAIR:
                return Reason.UNIT_SIGNS_UNFAIR_OVER_LAYERS.message()
        return None

    def _signed_by_gates(self) -> bool:
        """Whether up rows lean to, or away from, their own gates more than coins would let them.

        Flipping every unit so that what it puts out is mostly positive changes no output, and
        makes strangers agree who do so alike.
        """
        parts, clones = self.prepared.forwards, self.unit_clones
        coins = [
            copies.sum_over(np.einsum("ud,ud->u", gate, parts[at].up), clones[at])
            for at in np.unique(self.forward_copies, return_index=True)[1]
            if (gate := parts[at].gate) is not None
        ]
        both = np.concatenate(coins) if coins else np.zeros(0)
        return bool(sign_log10_p(np.stack([both, -both])).min() <= math.log10(LEVEL / 2))

    def _unfair(self, role: str, reason: Reason) -> Message | None:
        rows = self._rows_of_groups(role)
        fair = rows is None or balance(rows, most=_BALANCED).reason is not Doubt.UNFAIR
        return None if fair else reason.message()

    def _rows_of_groups(self, role: str) -> NDArray[np.float32] | None:
        """Rows of keys or values of all groups, one group of each class of copies."""
        classes, rows = set[int](), []
        for (layer, group), label in self.head_copies.items():
            part = getattr(self.prepared.heads[layer], role)
            if part is not None and label not in classes:
                classes.add(label)
                step = max(1, part.shape[2] // _COLUMNS)
                rows.append(_real(part[group][:, ::step]))
        same = len({one.shape[1] for one in rows}) == 1
        return np.concatenate(rows) if same else None

    def _values(self) -> Message | None:
        sizes, squares, width = [], [], 1
        for layer, one in self.prepared.heads.items():
            raw = self.prepared.sample.attention[layer].v
            if one.v is None or raw is None:
                continue
            width = one.v.shape[2]
            good = np.where(np.isfinite(raw), raw, np.float32(0))
            sizes += [np.sqrt(np.square(head, dtype=np.float64).sum(axis=1)) for head in good]
            for head in one.v:
                table = np.asarray(head @ head.T, np.float64)
                np.fill_diagonal(table, 0.0)
                squares.append(np.square(table).sum() / max(1, table.size - len(table)))
        if not sizes or len({len(one) for one in sizes}) > 1:
            return None
        if 0 < np.mean(squares) * width < _ORTHOGONAL:
            return Reason.VALUES_ORTHOGONAL.message()
        if not any(one.v is not None and one.v.any() for one in self.prepared.heads.values()):
            return None
        mean = np.mean([one / max(one.mean(), 1e-30) for one in sizes], axis=0)
        return Reason.VALUES_SORTED.message() if trend(mean).reason is Doubt.SORTED else None


@dataclass(frozen=True, slots=True)
class Supply:
    """Who supplies a symmetry and who is compared with it; `refusal` says why nobody can."""

    first: Side
    second: Side
    refusal: Message | None = None


def supplier(one: Side, other: Side, group: Group) -> Supply:
    """Choose the model whose labels are tested: one that may be, then the simpler one.

    The choice looks at each model alone and breaks ties by content, so the order of the
    arguments changes nothing.
    """
    first, second = sorted((one, other), key=lambda side: side.rank)
    if first.refusal(group) and not second.refusal(group):
        first, second = second, first
    return Supply(first, second, first.refusal(group))


def alone(classes: Ints) -> NDArray[np.bool_]:
    """Which members are alone in their class."""
    return np.asarray(np.bincount(classes)[classes] == 1)


def _same_channels(one: Sample, other: Sample) -> bool:
    """Whether two samples of a model show the same gains and embedding rows."""
    if one.facts != other.facts or one.width != other.width:
        return False
    for mine, theirs in ((one.norms, other.norms), (one.norm_biases, other.norm_biases)):
        if mine.keys() != theirs.keys():
            return False
        if not all(np.array_equal(mine[key], theirs[key]) for key in mine):
            return False
    first, second = one.embedding, other.embedding
    if first is None or second is None:
        return first is second
    return first.tokens == second.tokens and np.array_equal(first.rows, second.rows)


def _uneven(profile: NDArray[np.float64]) -> bool:
    """Whether some autocorrelation is large enough to be worth drawing permutations for.

    The self-test refuses what no draw of a thousand reaches. A size that one in twenty reaches
    is reached by some of them, but for a chance of 1e-22; so below it the answer is known.
    """
    scores = normal_scores(profile)
    size = len(scores)
    power = np.square(np.abs(np.fft.rfft(scores / np.sqrt(np.square(scores).sum()))))
    found = np.fft.irfft(power, size)[1 : size // 2 + 1]
    least = -NormalDist().inv_cdf(0.05 / max(size, 2)) / math.sqrt(size)
    return bool(np.abs(found).max(initial=0.0) > least)


def _thinned(one: Forward, units: int | None = None) -> NDArray[np.float32]:
    """Up and down rows side by side, with some of the columns."""
    step = max(1, one.width // _COLUMNS)
    return np.concatenate([one.up[:units, ::step], one.down[:units, ::step]], axis=1)


def _numbered(classes: Ints) -> Ints:
    """Classes numbered anew from zero, where only some of the members are left."""
    return np.unique(classes, return_inverse=True)[1].astype(np.int64)


def _real(part: NDArray[np.generic]) -> NDArray[np.float32]:
    if np.iscomplexobj(part):
        return np.concatenate([part.real, part.imag], axis=-1).astype(np.float32)
    return np.asarray(part, np.float32)
