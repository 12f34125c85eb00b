"""Two models side by side: who supplies each symmetry, and how their parts correspond.

Alignments are found once for each direction and kept for the tests that share them. A part
that copies another is compared for itself, but its coin and label are those of its class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from threading import RLock

import numpy as np

from kinprint.lineage.alignment.gram import judged_maps
from kinprint.lineage.alignment.heads import GroupMatch, align_heads, match_groups, numbered_groups
from kinprint.lineage.alignment.residual import IDENTITY, Channels, Residual, candidates
from kinprint.lineage.alignment.units import (
    Aligned,
    Judged,
    Stack,
    UnitScores,
    align_units,
    unit_scores,
)
from kinprint.lineage.preparation import Forward
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.side import Side, Supply, supplier
from kinprint.nulls.blocks import BLOCK
from kinprint.nulls.fixed_points import Pairs, mutual_pairs
from kinprint.nulls.result import Floats, Ints
from kinprint.records import Group


@dataclass(frozen=True, slots=True)
class Blocks:
    """Places of common indices in two lists, by contiguous blocks of the index.

    `first` and `second` are blocks × 4 with −1 where a block has no further member.
    """

    first: Ints
    second: Ints
    sizes: Ints

    def products(self, x: np.ndarray, y: np.ndarray) -> Floats:
        """Inner products of rows within blocks; zero where a member is missing."""
        return _gather(x, self.first) @ _gather(y, self.second).swapaxes(1, 2)


class Pair:
    """Two models under comparison; the order in which they are given makes no difference."""

    def __init__(self, one: Side, other: Side, *, seed: int, level: str) -> None:
        self.sides = one, other
        self.seed = seed
        self.level = level
        self._aligning, self._matching = RLock(), RLock()
        self._maps: dict[int, tuple[Judged, ...]] = {}
        self._channels: dict[int, Channels] = {}
        self._stacks: dict[int, Stack] = {}
        self._units: dict[int, Aligned | None] = {}
        self._scores: dict[tuple[int, int, int, int], UnitScores] = {}
        self._matched: dict[tuple[int, int, int, int], tuple[Pairs, np.ndarray]] = {}
        self._heads: dict[int, Aligned | None] = {}
        self._groups: dict[int, tuple[GroupMatch, ...]] = {}

    @property
    def samples(self) -> tuple[Sample, Sample]:
        """What was read of the two models."""
        first, second = self.sides
        return first.prepared.sample, second.prepared.sample

    def supply(self, group: Group) -> Supply:
        """Who supplies the labels of a group."""
        return supplier(*self.sides, group)

    def maps(self, first: Side, second: Side) -> tuple[Judged, ...]:
        """Residual maps from the first model to the second.

        Maps that were found the other way are not turned round: those were fitted to units of
        what is the first model now, so that its quality would be flattered, and by signed scores
        where the other model is not odd, so that they would know the coins of a test of signs.
        """
        with self._aligning:
            if id(first) not in self._maps:
                mine, theirs = first.prepared, second.prepared
                known = list(candidates(self.channels(first, second)))
                self._maps[id(first)] = judged_maps(
                    mine, theirs, known, self.level, first.odd, self._stack(second)
                )
            return self._maps[id(first)]

    def align(self) -> None:
        """Find the basis, and match units in it: the longest work, for a thread of its own."""
        supply = self.supply(Group.UNIT_SIGN)
        aligned = None if supply.refusal else self.units(supply.first, supply.second)
        if aligned is not None:
            for one in representatives(supply, aligned):
                self.matched(supply.first, one, aligned.residual)

    def channels(self, first: Side, second: Side) -> Channels:
        """Channels of both models, and which are nearest to each other."""
        if id(first) not in self._channels:
            self._channels[id(first)] = Channels(first.prepared, second.prepared)
        return self._channels[id(first)]

    def units(self, first: Side, second: Side) -> Aligned | None:
        """The feed-forwards of the second model that those of the first correspond to."""
        with self._aligning:
            if id(first) not in self._units:
                mine, theirs = first.prepared.forwards, second.prepared.forwards
                maps = self.maps(first, second)
                found = align_units(mine, theirs, maps, first.odd, self._stack(second))
                self._units[id(first)] = found
            return self._units[id(first)]

    def _stack(self, side: Side) -> Stack | None:
        parts = side.prepared.forwards
        if parts and id(side) not in self._stacks:
            self._stacks[id(side)] = Stack.of(parts)
        return self._stacks.get(id(side))

    def numbered(self, first: Side, second: Side) -> Aligned | None:
        """Feed-forwards paired by number in the basis as it is; None where shapes differ."""
        mine, theirs = first.prepared, second.prepared
        places = {(one.layer, one.expert): at for at, one in enumerate(theirs.forwards)}
        partners = tuple(places.get((one.layer, one.expert), -1) for one in mine.forwards)
        both = [
            (one, theirs.forwards[at])
            for one, at in zip(mine.forwards, partners, strict=True)
            if at >= 0
        ]
        same = mine.width == theirs.width and mine.sample.depth == theirs.sample.depth
        if not both or not same or any(one.total != other.total for one, other in both):
            return None
        return Aligned(IDENTITY, partners, math.nan)

    def matched(
        self, first: Side, one: ForwardPair, residual: Residual
    ) -> tuple[Pairs, np.ndarray]:
        """Mutual nearest units of two feed-forwards, with the values that flips negate.

        Units of the first model that are copies of one another take no part.
        """
        at = id(first), one.at, one.to, id(residual)
        with self._matching:
            if at not in self._matched:
                usable = np.flatnonzero(first.usable_units[one.at])
                scores = self.scores(first, one, residual)
                index = one.one.index[usable]
                found = mutual_pairs(scores.match[usable], index, one.other.index)
                mine = dict(zip(index.tolist(), usable.tolist(), strict=True))
                theirs = {index: at for at, index in enumerate(one.other.index.tolist())}
                rows = [mine[index] for index in found.first.tolist()]
                columns = [theirs[index] for index in found.second.tolist()]
                self._matched[at] = found, scores.both[rows, columns]
            return self._matched[at]

    def scores(self, first: Side, one: ForwardPair, residual: Residual) -> UnitScores:
        """Scores of all units of a feed-forward with all of its partner."""
        at = id(first), one.at, one.to, id(residual)
        if at not in self._scores:
            self._scores[at] = unit_scores(one.one, one.other, residual, first.odd)
        return self._scores[at]

    def heads(self, first: Side, second: Side) -> Aligned | None:
        """The layers of the second model's attention that those of the first correspond to."""
        if id(first) not in self._heads:
            mine, theirs = (list(one.prepared.heads.values()) for one in (first, second))
            maps = [one.residual for one in self.maps(first, second)]
            self._heads[id(first)] = align_heads(mine, theirs, maps) if mine and theirs else None
        return self._heads[id(first)]

    def numbered_groups(self, first: Side, second: Side) -> tuple[GroupMatch, ...]:
        """Key-value groups paired by number in the basis as it is; none where shapes differ."""
        mine, theirs = first.prepared, second.prepared
        if mine.width != theirs.width or mine.sample.depth != theirs.sample.depth:
            return ()
        return tuple(numbered_groups(list(mine.heads.values()), list(theirs.heads.values())))

    def groups(self, first: Side, second: Side) -> tuple[GroupMatch, ...]:
        """Key-value groups of the first model with their partners."""
        if id(first) not in self._groups:
            aligned = self.heads(first, second)
            mine, theirs = (list(one.prepared.heads.values()) for one in (first, second))
            found = match_groups(mine, theirs, aligned) if aligned else iter(())
            self._groups[id(first)] = tuple(found)
        return self._groups[id(first)]


@dataclass(frozen=True, slots=True)
class ForwardPair:
    """A feed-forward of the first model, its partner, and its place among the first's."""

    at: int
    to: int
    one: Forward
    other: Forward


def classed_forwards(first: Side, second: Side, aligned: Aligned) -> Iterator[
    tuple[ForwardPair, ...]
]:  # fmt: skip
    """Feed-forwards with their partners, those that are copies of one another together."""
    mine, theirs = first.prepared.forwards, second.prepared.forwards
    classes = first.forward_copies
    for label in np.unique(classes):
        yield tuple(
            ForwardPair(int(at), aligned.partners[at], mine[at], theirs[aligned.partners[at]])
            for at in np.flatnonzero(classes == label)
            if aligned.partners[at] >= 0
        )


def representatives(supply: Supply, aligned: Aligned) -> list[ForwardPair]:
    """One feed-forward of each class of copies, with its partner."""
    classes = classed_forwards(supply.first, supply.second, aligned)
    return [members[0] for members in classes if members]


def common_blocks(first: Ints, second: Ints, usable: np.ndarray | None = None) -> Blocks:
    """Blocks of the indices that both lists have; `usable` leaves out members of the first."""
    usable = np.ones(len(first), bool) if usable is None else usable
    some = np.flatnonzero(usable)
    index, at, to = np.intersect1d(first[some], second, assume_unique=True, return_indices=True)
    order = np.lexsort((at, index // BLOCK))  # in a block, as in the first list
    index, at, to = index[order], some[at[order]], to[order]
    numbers, row, sizes = np.unique(index // BLOCK, return_inverse=True, return_counts=True)
    column = np.arange(len(row)) - (np.cumsum(sizes) - sizes)[row]
    left = np.full((len(numbers), BLOCK), -1)
    right = np.full((len(numbers), BLOCK), -1)
    left[row, column], right[row, column] = at, to
    return Blocks(left, right, sizes)


def _gather(rows: np.ndarray, places: Ints) -> Floats:
    found = np.asarray(rows, np.float64)[places]
    found[places < 0] = 0.0
    return found
