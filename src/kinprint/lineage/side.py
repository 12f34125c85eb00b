"""One model in a comparison: which parts of it are copies, and which of its labels are random.

A test needs one model whose labels or signs chance has dealt. That model is asked first, alone:
does its architecture grant the symmetry, is its index free of meaning (`self_tests`), are units,
heads or layers copies of one another? Copies are counted once, and where an index means
something the test is not run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct, field
from numpy.typing import ArrayLike, NDArray

from kinprint.lineage.preparation import GainScores, Prepared
from kinprint.lineage.reading.sample import Embedding, Sample
from kinprint.lineage.self_tests import ordered_channels, self_test
from kinprint.measure.basis import spread
from kinprint.model.symmetries import group_named, refusal
from kinprint.nulls import copies
from kinprint.nulls.result import Ints
from kinprint.records import Evidence, Group
from kinprint.text import Message

CLONED = 0.95
"""Columns of the embedding with this correlation are one channel twice; outliers reach 0.9."""
# Heads whose keys have this cosine at equal places are copies; strangers of one model stay
# below a third of it.
_REPLICATED = 0.5
# Copies are looked for among so many units and numbers at most; what is looked for is not local.
_UNITS, _NUMBERS, _TOKENS = 32, 4096, 256
# Clones among the channels of a wide model are looked for over fewer tokens: the work grows with
# the square of the width, and strangers do not come near the cosine of clones over either.
_WIDE, _FEW_TOKENS = 1024, 128
# Units that are looked at for copies at other places: so many of all feed-forwards together, and at
# least so many of each. Feed-forwards with this share of units in common are copies.
_PROBED, _FEWEST, _COMMON = 1024, 8, 0.1
_OF_CHANNELS = (Group.RESIDUAL, Group.RESIDUAL_SIGN)


class ChannelEvidence(Struct, eq=False):
    """What tests have found between a model's channels and those of others, by other and test.

    It stays with a model as long as its gains and embedding do, so that a later stage, which
    reads other things, does not ask again.
    """

    known: dict[tuple[ChannelEvidence, str, int | None], Evidence] = field(default_factory=dict)


class ChannelFindings(Struct, frozen=True):
    """What was found about the channels of one model, for another side of the same sample.

    Whoever tests channels alone, with one partner after another, prepares no matrix for it.
    """

    scores: GainScores
    refusal: Message | None
    clones: Ints


class Side:
    """A model under comparison; what is asked about it alone is found once, when first asked.

    Parameters
    ----------
    sample : what was read of it.
    earlier : the same model when less of it was read; what did not change is not found again.
    """

    def __init__(self, sample: Sample, earlier: Side | None = None) -> None:
        self.prepared = Prepared(sample)
        self.channel_evidence = ChannelEvidence()
        self._refusals: dict[Group, Message | None] = {}
        if earlier is None or not _same_gains(sample, earlier.prepared.stored):
            return
        self.prepared.scores = earlier.prepared.scores
        if _same_table(sample.embedding, earlier.prepared.stored.embedding):
            known = earlier._refusals
            self._refusals = {group: known[group] for group in _OF_CHANNELS if group in known}
            self.channel_clones = earlier.channel_clones
            self.channel_evidence = earlier.channel_evidence

    @classmethod
    def with_channels(cls, sample: Sample, found: ChannelFindings) -> Side:
        """A side of which everything about the channels is known."""
        side = cls(sample)
        side.prepared.scores = found.scores
        side._refusals[Group.RESIDUAL] = found.refusal
        side.channel_clones = found.clones
        return side

    @property
    def channel_findings(self) -> ChannelFindings:
        """All that tests of channels ask about this model alone."""
        scores = GainScores(self.prepared.scores.by_norm)
        return ChannelFindings(scores, self.refusal(Group.RESIDUAL), self.channel_clones)

    def refusal(self, group: Group) -> Message | None:
        """Why the labels or signs of a group cannot be called random; None where they can."""
        if group not in self._refusals:
            architecture = refusal(group_named(group), self.prepared.facts)
            self._refusals[group] = architecture or self_test(self, group)
        return self._refusals[group]

    @cached_property
    def order_of_channels(self) -> Message | None:
        """Why channels are no set without an order; None where they are."""
        return ordered_channels(self)

    @property
    def rank(self) -> tuple[int, int, bool, str]:
        """The order in which models are asked to have their labels drawn anew, the least first.

        That is the one with fewer units (layers, experts, rows read): each of its units should
        find its partner among many rather than the other way round. It does not depend on the
        other model, and ties are broken by content.
        """
        prepared = self.prepared
        layernorm = prepared.facts.norm != "rms"
        stored = (*prepared.stored.units.values(), *prepared.stored.experts.values())
        units = sum(len(part.index) for part in stored if part.up.size)
        return units, prepared.stored.depth, layernorm, prepared.key

    @property
    def units_flip(self) -> bool:
        """Whether up and down of a unit may be flipped together, so that its sign is a coin."""
        return self.refusal(Group.UNIT_SIGN) is None

    @cached_property
    def unit_clones(self) -> tuple[Ints, ...]:
        """Classes of units that are copies of one another, for each feed-forward."""
        return tuple(copies.copied_units(part.thinned()) for part in self.prepared.feed_forwards)

    @cached_property
    def coin_classes(self) -> tuple[Ints, ...]:
        """Classes of units that share a coin, for each feed-forward, counted through all of them.

        Clones inside a feed-forward, units at equal places of feed-forwards that are copies, and
        copies in other feed-forwards, whatever their places there.
        """
        parts, clones = self.prepared.feed_forwards, self.unit_clones
        starts = np.cumsum([0, *(len(part.index) for part in parts)])
        left, right = [self._elsewhere[0]], [self._elsewhere[1]]
        for at, origin in enumerate(_first_members(self.feed_forward_copies)):
            clone = _first_members(clones[at])
            copied = np.flatnonzero(clone != np.arange(len(clone)))
            left.append(starts[at] + clone[copied])
            right.append(starts[at] + copied)
            if origin != at:
                left.append(starts[origin] + np.arange(len(clone)))
                right.append(starts[at] + np.arange(len(clone)))
        tied = copies.components(int(starts[-1]), np.concatenate(left), np.concatenate(right))
        return tuple(np.split(tied, starts[1:-1]))

    @cached_property
    def shuffled_copies(self) -> Ints:
        """Classes of feed-forwards with units in common, whatever their places: one has labels."""
        parts = self.prepared.feed_forwards
        left, right = (self._owner[side] for side in self._elsewhere)
        pairs, counts = np.unique(np.stack([left, right]), axis=1, return_counts=True)
        sizes = np.array([len(part.index) for part in parts])
        smaller = np.minimum(sizes[pairs[0]], sizes[pairs[1]]) if pairs.size else counts
        many = pairs[:, counts >= np.maximum(2, _COMMON * smaller)]
        same = _first_members(self.feed_forward_copies)
        return copies.components(
            len(parts),
            np.concatenate([many[0], same]),
            np.concatenate([many[1], np.arange(len(parts))]),
        )

    @cached_property
    def _elsewhere(self) -> tuple[Ints, Ints]:
        """Pairs of units of different feed-forwards that are copies, counted through all of them.

        The largest units tell which feed-forwards have some in common; of these all are compared.
        """
        parts = self.prepared.feed_forwards
        if len({part.width for part in parts}) != 1 or len(parts) < 2:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        most = max(_FEWEST, _PROBED // len(parts))
        probes = [np.argsort(-part.size, kind="stable")[:most] for part in parts]
        left, right = self._copies_among(probes)
        groups = copies.components(len(parts), self._owner[left], self._owner[right])
        found = [(left, right)]
        for group in np.flatnonzero(np.bincount(groups) > 1):
            own = np.where(groups == group, [len(part.index) for part in parts], 0)
            found.append(self._copies_among([np.arange(size) for size in own]))
        left, right = (np.concatenate([pair[side] for pair in found]) for side in (0, 1))
        return left, right

    def _copies_among(self, units: Sequence[Ints]) -> tuple[Ints, Ints]:
        """Pairs of copies in different feed-forwards, among some units of each."""
        parts, owner = self.prepared.feed_forwards, self._owner
        starts = np.searchsorted(owner, np.arange(len(parts)))
        places = np.concatenate([start + at for start, at in zip(starts, units, strict=True)])
        rows = [part.thinned()[at] for part, at in zip(parts, units, strict=True) if len(at)]
        left, right = (places[side] for side in copies.clone_pairs(np.concatenate(rows)))
        # Feed-forwards that are copies unit by unit are tied as such.
        other = self.feed_forward_copies[owner[left]] != self.feed_forward_copies[owner[right]]
        return left[other], right[other]

    @cached_property
    def _owner(self) -> Ints:
        """The feed-forward of every unit, counted through all of them."""
        parts = self.prepared.feed_forwards
        return np.repeat(np.arange(len(parts)), [len(part.index) for part in parts])

    @cached_property
    def usable_units(self) -> tuple[NDArray[np.bool_], ...]:
        """Which units may stand for themselves: neither copies nor without any content.

        Copies in other feed-forwards do no harm where those are left out as wholes.
        """
        parts = self.prepared.feed_forwards
        starts = np.cumsum([0, *(len(part.index) for part in parts)])
        owner = np.repeat(self.shuffled_copies, np.diff(starts))
        left, right = self._elsewhere
        few = owner[left] != owner[right]
        copied = np.zeros(int(starts[-1]), bool)
        copied[left[few]] = copied[right[few]] = True
        return tuple(
            alone(classes)
            & (part.up.any(axis=1) | part.down.any(axis=1))
            & ~copied[start : start + len(classes)]
            for part, classes, start in zip(parts, self.unit_clones, starts, strict=False)
        )

    @cached_property
    def feed_forward_copies(self) -> Ints:
        """Classes of feed-forwards that are copies of one another, unit by unit."""
        parts = self.prepared.feed_forwards
        classes = np.arange(len(parts))
        shapes = [(len(part.index), part.total, part.width) for part in parts]
        for shape in sorted(set(shapes)):
            alike = np.flatnonzero([each == shape for each in shapes])
            if len(alike) > 1:
                rows = np.stack([parts[at].thinned(_UNITS) for at in alike])
                classes[alike] = alike[copies.copied_sets(rows)]
        return classes

    @cached_property
    def head_copies(self) -> dict[tuple[int, int], int]:
        """Classes of key-value groups, by layer and group, whose keys or values are copies."""
        heads = self.prepared.heads
        places = [(layer, at) for layer, part in heads.items() for at in range(part.groups)]
        classes = np.arange(len(places))
        for role in ("k", "v"):
            rows = [
                heads[layer].rows(role, group).reshape(-1)
                for layer, group in places
                if getattr(heads[layer], role) is not None
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
        most = _TOKENS if self.prepared.width <= _WIDE else _FEW_TOKENS
        rows = embedding.rows[spread(len(embedding.rows), most)].T.astype(np.float64)
        return copied_channels(rows - rows.mean(axis=1, keepdims=True))


def copied_channels(columns: ArrayLike) -> Ints:
    """Classes of channels, given by their columns as rows, that are copies of one another.

    Trained channels are often alike, at places that chance has dealt. Those that are so at one
    distance were made by repeating a narrower stream, and two models may have been widened alike.
    """
    return copies.copied_units(columns, CLONED)


def _first_members(classes: Ints) -> Ints:
    """For each member the first of its class."""
    _, first, which = np.unique(classes, return_index=True, return_inverse=True)
    return np.asarray(first[which], np.int64)


def alone(classes: Ints) -> NDArray[np.bool_]:
    """Which members are alone in their class."""
    return np.asarray(np.bincount(classes)[classes] == 1)


def _same_gains(sample: Sample, earlier: Sample) -> bool:
    """Whether two samples of a model show the same gains."""
    if sample.facts != earlier.facts or sample.width != earlier.width:
        return False
    for now, then in ((sample.norms, earlier.norms), (sample.norm_biases, earlier.norm_biases)):
        if now.keys() != then.keys():
            return False
        if not all(np.array_equal(now[key], then[key]) for key in now):
            return False
    return True


def _same_table(rows: Embedding | None, before: Embedding | None) -> bool:
    """Whether two samples of a model show the same rows of its embedding."""
    if rows is None or before is None:
        return rows is before
    return rows.tokens == before.tokens and np.array_equal(rows.rows, before.rows)
