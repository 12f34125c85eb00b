"""Two models side by side: whose labels a test draws anew, and how their parts correspond.

Every test compares a `first` model, whose labels or signs are relabelled, with a `second` one that
stays as it is. Which is which depends on the symmetry, so a pair has an `Alignment` for each way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from threading import RLock

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.lineage.alignment.blocks import Blocks, equal_blocks
from kinprint.lineage.alignment.gram import rated_maps, trusted
from kinprint.lineage.alignment.heads import (
    HeadGroupMatch,
    match_attention,
    match_head_groups,
    numbered_head_groups,
)
from kinprint.lineage.alignment.residual import IDENTITY, Channels, ResidualMap, candidates
from kinprint.lineage.alignment.units import (
    Matching,
    RatedMap,
    UnitScores,
    UnitStack,
    match_feed_forwards,
    unit_scores,
)
from kinprint.lineage.preparation import FeedForward
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.lineage.side import Side, alone
from kinprint.nulls.fixed_points import Pairs, mutual_pairs
from kinprint.nulls.preparation import massive
from kinprint.records import Group, Level
from kinprint.text import Message


class Pair:
    """Two models under comparison; the order in which they are given makes no difference.

    Attributes
    ----------
    sides : the models, the one first that is asked first to have its labels drawn anew. A model
        that is compared with several others is given as a side, so that it is prepared once.
    seed : draws the samples of the null that are kept for pictures, and nothing else.
    null_seed : the same for tests; None where nobody will look at such samples.
    level : how hard to look for an alignment.
    """

    def __init__(
        self,
        a: Sample | Side,
        b: Sample | Side,
        *,
        seed: int = 0,
        level: str = Level.STANDARD,
        pictures: bool = True,
    ) -> None:
        sides = (model if isinstance(model, Side) else Side(model) for model in (a, b))
        first, second = sorted(sides, key=lambda side: side.rank)
        self.sides = first, second
        self.seed, self.null_seed = seed, seed if pictures else None
        self.level = Level(level)
        self._alignments = {
            id(first): Alignment(first, second, self.level),
            id(second): Alignment(second, first, self.level),
        }

    @property
    def samples(self) -> tuple[Sample, Sample]:
        """What was read of the two models."""
        first, second = self.sides
        return first.prepared.sample, second.prepared.sample

    def refusal(self, group: Group) -> Message | None:
        """Why the labels or signs of neither model can be called random; None where some can."""
        return self.alignment(group).first.refusal(group)

    def alignment(self, group: Group) -> Alignment:
        """The alignment for tests of a group: from the model whose labels may be drawn anew.

        Each model is asked alone, in the order of `sides`.
        """
        granted = (side for side in self.sides if side.refusal(group) is None)
        return self.alignment_from(next(granted, self.sides[0]))

    def alignment_from(self, first: Side) -> Alignment:
        """How the parts of one of the two models correspond to those of the other."""
        return self._alignments[id(first)]

    def search(self) -> None:
        """Find the basis, and match units in it: the longest work, for a thread of its own."""
        if self.refusal(Group.UNIT_SIGN) is None:
            alignment = self.alignment(Group.UNIT_SIGN)
            matching = alignment.feed_forwards
            if matching is not None:
                for part in alignment.representatives(matching):
                    alignment.matched_units(part, matching.residual)


class FeedForwardPair(Struct, frozen=True):
    """Two feed-forwards that correspond, with their places among those of their models."""

    at: int
    to: int
    first: FeedForward
    second: FeedForward

    @property
    def read(self) -> frozenset[str]:
        """The matrices that say something in both: what was not read is no disagreement."""
        return self.first.read & self.second.read

    @property
    def masked(self) -> bool:
        """Whether both may have been pruned by one mask, so that units have no free labels."""
        return self.first.masked and self.second.masked


class Alignment:
    """How the parts of `first` correspond to those of `second`, found when first asked for.

    Alignments of the other way are not turned round: their maps were fitted to units of what is
    the first model here, so that its quality would be flattered, and by signed scores where the
    other model's units cannot be flipped, so that they would know the signs that are tested.
    """

    def __init__(self, first: Side, second: Side, level: Level) -> None:
        self.first, self.second = first, second
        self.level = level
        self.channels = Channels(first.prepared, second.prepared)
        self._searching, self._matching = RLock(), RLock()
        self._scores: dict[tuple[int, int, ResidualMap], UnitScores] = {}
        self._matched: dict[tuple[int, int, ResidualMap], tuple[Pairs, np.ndarray]] = {}

    @property
    def residual_maps(self) -> tuple[RatedMap, ...]:
        """Maps between the residual streams, with their quality."""
        with self._searching:
            return self._residual_maps

    @cached_property
    def _residual_maps(self) -> tuple[RatedMap, ...]:
        return rated_maps(
            self.first.prepared, self.second.prepared, list(candidates(self.channels)),
            self.level, self.first.units_flip, self._stack,
        )  # fmt: skip

    @property
    def feed_forwards(self) -> Matching | None:
        """Feed-forwards matched in the basis that fits best; None where there is none."""
        with self._searching:
            return self._feed_forwards

    @cached_property
    def _feed_forwards(self) -> Matching | None:
        ours, theirs = self.first.prepared.feed_forwards, self.second.prepared.feed_forwards
        flips = self.first.units_flip
        matching = match_feed_forwards(ours, theirs, self.residual_maps, flips, self._stack)
        if matching is None or self.first.prepared.width == self.second.prepared.width:
            return matching
        assert self._stack is not None
        return replace(matching, trusted=trusted(self.residual_maps, ours, self._stack, flips))

    @cached_property
    def _stack(self) -> UnitStack | None:
        parts = self.second.prepared.feed_forwards
        return UnitStack.of(parts) if parts else None

    @property
    def trusted(self) -> bool:
        """Whether parts that were matched would match if they were copies."""
        matching = self.feed_forwards
        return matching is None or matching.trusted

    @cached_property
    def numbered_feed_forwards(self) -> Matching | None:
        """Feed-forwards paired by number in the basis as it is; None where shapes differ."""
        ours, theirs = self.first.prepared.feed_forwards, self.second.prepared.feed_forwards
        places = {(part.layer, part.expert): at for at, part in enumerate(theirs)}
        partners = tuple(places.get((part.layer, part.expert), -1) for part in ours)
        pairs = [(part, theirs[to]) for part, to in zip(ours, partners, strict=True) if to >= 0]
        if not pairs or not self._same_shape or any(x.total != y.total for x, y in pairs):
            return None
        return Matching(IDENTITY, partners, math.nan)

    @cached_property
    def usable_channels(self) -> NDArray[np.bool_]:
        """Channels of the first model that may stand for themselves, by all norms of both.

        Copies may not; nor channels where either model has a gain of zero, which a mask put there,
        or gains far above all others: strangers may have both at the same places.
        """
        usable = alone(self.first.channel_clones)
        for side in (self.first, self.second) if self.channels.norms else ():
            gains = np.stack([side.prepared.gains[key] for key in self.channels.norms])
            if gains.shape[1] == len(usable):
                usable &= ~(gains == 0).any(axis=0) & ~massive(np.abs(gains))
        usable.setflags(write=False)
        return usable

    @cached_property
    def channel_blocks(self) -> Blocks:
        """Blocks of these channels, for models of one width."""
        return equal_blocks(self.usable_channels)

    @cached_property
    def attention(self) -> Matching | None:
        """Layers matched by their attention; None where nothing is comparable."""
        ours, theirs = (list(side.prepared.heads.values()) for side in (self.first, self.second))
        if not ours or not theirs:
            return None
        return match_attention(ours, theirs, self.residual_maps)

    @cached_property
    def head_groups(self) -> tuple[HeadGroupMatch, ...]:
        """Key-value groups matched in layers that correspond."""
        ours, theirs = (list(side.prepared.heads.values()) for side in (self.first, self.second))
        matching = self.attention
        return () if matching is None else tuple(match_head_groups(ours, theirs, matching))

    @cached_property
    def numbered_head_groups(self) -> tuple[HeadGroupMatch, ...]:
        """Key-value groups paired by number in the basis as it is; none where shapes differ."""
        ours, theirs = (list(side.prepared.heads.values()) for side in (self.first, self.second))
        return tuple(numbered_head_groups(ours, theirs)) if self._same_shape else ()

    def classes(self, matching: Matching) -> Iterator[tuple[FeedForwardPair, ...]]:
        """Feed-forwards with their partners, those that are copies of one another together."""
        ours, theirs = self.first.prepared.feed_forwards, self.second.prepared.feed_forwards
        labels = self.first.feed_forward_copies
        for label in sorted(set(labels.tolist())):
            yield tuple(
                FeedForwardPair(at, to, ours[at], theirs[to])
                for at in np.flatnonzero(labels == label).tolist()
                if (to := matching.partners[at]) >= 0
            )

    def labelled_classes(self, matching: Matching) -> Iterator[tuple[FeedForwardPair, ...]]:
        """The same, one of those whose units are copies at other places: labels count once."""
        seen = set[int]()
        for members in self.classes(matching):
            label = int(self.first.shuffled_copies[members[0].at]) if members else -1
            if members and label not in seen:
                seen.add(label)
                yield members

    def representatives(self, matching: Matching) -> list[FeedForwardPair]:
        """One feed-forward of each class of copies, with its partner."""
        return [members[0] for members in self.labelled_classes(matching)]

    def gates(self, part: FeedForwardPair, blocks: Blocks) -> tuple[Floats, Floats] | None:
        """Gate rows of two feed-forwards for units of equal index, none where either has no gate.

        A mean is that of the same units in both: more may have been read of one of them.
        """
        first, second = part.first.gate, part.second.gate
        if first is None or second is None:
            return None
        if np.array_equal(part.first.index, part.second.index) or not len(blocks.sizes):
            return first, second
        ours, theirs = (some[some >= 0] for some in (blocks.first, blocks.second))
        return (
            self.first.prepared.gate_among(part.first, ours),
            self.second.prepared.gate_among(part.second, theirs),
        )

    def scores(self, part: FeedForwardPair, residual: ResidualMap) -> UnitScores:
        """Scores of all units of a feed-forward with all of its partner."""
        key = part.at, part.to, residual
        if key not in self._scores:
            flips = self.first.units_flip
            self._scores[key] = unit_scores(part.first, part.second, residual, flips)
        return self._scores[key]

    def matched_units(
        self, part: FeedForwardPair, residual: ResidualMap
    ) -> tuple[Pairs, np.ndarray]:
        """Mutual nearest units of two feed-forwards, and for each pair what a flip negates.

        Units of the first model that are copies of one another take no part.
        """
        key = part.at, part.to, residual
        with self._matching:
            if key not in self._matched:
                usable = np.flatnonzero(self.first.usable_units[part.at])
                scores = self.scores(part, residual)
                index = part.first.index[usable]
                pairs = mutual_pairs(scores.match[usable], index, part.second.index)
                ours = dict(zip(index.tolist(), usable.tolist(), strict=True))
                theirs = {index: at for at, index in enumerate(part.second.index.tolist())}
                rows = [ours[index] for index in pairs.first.tolist()]
                columns = [theirs[index] for index in pairs.second.tolist()]
                self._matched[key] = pairs, scores.both[rows, columns]
            return self._matched[key]

    @property
    def _same_shape(self) -> bool:
        first, second = self.first.prepared, self.second.prepared
        return first.width == second.width and first.sample.depth == second.sample.depth
