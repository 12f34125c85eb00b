"""Tests on the units of feed-forwards: labels (U1), signs (S1) and stored bits (E6).

Units are permuted by training's own chance, one permutation for each feed-forward, and a
gated unit that is odd in up has a coin besides. The basis and the partner layer were chosen
by a quality that knows neither. A feed-forward that copies another is compared for itself, but
the labels and coins of the two are the same, so that they are counted once.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

import numpy as np
from msgspec import Struct

from kinprint.lineage.alignment.blocks import Blocks, common_blocks
from kinprint.lineage.alignment.units import Matching
from kinprint.lineage.pair import Alignment, FeedForwardPair, Pair
from kinprint.lineage.preparation import Prepared
from kinprint.lineage.tests.conditions import granted_alignment, unless_untrusted
from kinprint.lineage.tests.registry import (
    Basis,
    Likeness,
    LineageTest,
    Needs,
    NoResult,
    lineage_test,
)
from kinprint.nulls.bits import equal_counts
from kinprint.nulls.blocks import block_permutation, signed_blocks
from kinprint.nulls.copies import sum_over
from kinprint.nulls.fixed_points import fixed_points
from kinprint.nulls.increasing import increasing_subsequence
from kinprint.nulls.result import Floats, Ints, NullResult
from kinprint.nulls.signs import sign_chernoff
from kinprint.records import Component, Evidence, Group, Reason, Status

_unit_test = functools.partial(lineage_test, component=Component.FEED_FORWARD)


@_unit_test(
    "U1.blocks", group=Group.UNIT, basis=Basis.NUMBERED_OR_FOUND, needs=Needs.NUMBERS,
    likeness=Likeness.MATRICES,
)  # fmt: skip
def unit_blocks(pair: Pair, test: LineageTest) -> Evidence:
    """Do units of equal index resemble each other more than their neighbours do?"""
    alignment, matching = _numbered_or_matched(pair, test.group)
    classes = [
        scores
        for members in alignment.labelled_classes(matching)
        if (scores := _ClassScores.of(members, alignment, matching)).units
    ]
    if not classes:
        raise _no_common_units(alignment, matching)
    if not alignment.first.units_flip and all(scores.masked for scores in classes):
        raise NoResult(Reason.BOTH_MASKED, Status.GUARDED)
    result = _test_blocks(classes, alignment.first.units_flip, matching.by_number, pair.null_seed)
    units = sum(scores.units for scores in classes)
    matrices = max(1.0, sum(scores.units * sum(scores.matrices) for scores in classes) / units)
    by_layer: dict[int, list[float]] = {}
    for scores in classes:
        by_layer.setdefault(scores.members[0].first.layer, []).append(scores.likeness)
    found = test.evidence(
        result,
        roles=_ordered(frozenset[str]().union(*(scores.read for scores in classes))),
        layers=[part.first.layer for scores in classes for part in scores.members],
        effect=result.effect / matrices,
        by_layer=tuple((layer, float(np.mean(own))) for layer, own in by_layer.items()),
    )
    return found if matching.by_number else unless_untrusted(test, found, alignment)


@_unit_test("U1.fixed", group=Group.UNIT, basis=Basis.NUMBERED_OR_FOUND, needs=Needs.NUMBERS)
def unit_fixed_points(pair: Pair, test: LineageTest) -> Evidence:
    """How many units and their mutual nearest neighbours carry the same index?"""
    return _fixed_points(pair, test, *_numbered_or_matched(pair, test.group))


@_unit_test("U1.aligned", group=Group.UNIT, basis=Basis.FOUND, needs=Needs.ALIGNMENT)
def unit_fixed_points_aligned(pair: Pair, test: LineageTest) -> Evidence:
    """The same in the basis and the layers that match best."""
    return _fixed_points(pair, test, *_matched(pair, test.group))


@_unit_test("U1.order", group=Group.UNIT, basis=Basis.FOUND, needs=Needs.ALIGNMENT)
def unit_order(pair: Pair, test: LineageTest) -> Evidence:
    """Where units were removed or added, are those that match still in order?"""
    alignment, matching = _matched(pair, test.group)
    parts = [
        part
        for part in alignment.representatives(matching)
        if part.first.total != part.second.total
    ]
    if not parts:
        raise NoResult(Reason.FEED_FORWARDS_OF_DIFFERENT_WIDTH)
    parts = _unmasked(parts)
    pairs = [alignment.matched_units(part, matching.residual)[0] for part in parts]
    result = increasing_subsequence(pairs, pair.null_seed)
    found = test.evidence(result, roles=_ordered(_read(parts)), layers=_layers(parts))
    return unless_untrusted(test, found, alignment)


@_unit_test(
    "S1", group=Group.UNIT_SIGN, basis=Basis.FOUND, needs=Needs.ALIGNMENT,
    likeness=Likeness.MATRICES,
)  # fmt: skip
def unit_signs(pair: Pair, test: LineageTest) -> Evidence:
    """Do up and down of matched units point the same way more often than coins would?"""
    return _signs(pair, test, *_matched(pair, test.group))


@_unit_test("S1.numbered", group=Group.UNIT_SIGN, basis=Basis.AS_STORED)
def unit_signs_numbered(pair: Pair, test: LineageTest) -> Evidence:
    """The same in the basis as it is and layers of equal number, units matched anew.

    Where only units were renamed, a weak trace is not lost on a basis that fits features.
    """
    alignment = _with_units(pair, test.group)
    matching = alignment.numbered_feed_forwards
    if matching is None:
        raise NoResult(Reason.FEED_FORWARDS_OF_EQUAL_SHAPE)
    return _signs(pair, test, alignment, matching)


@_unit_test("E6.units", group=Group.UNIT, basis=Basis.AS_STORED)
def unit_bits(pair: Pair, test: LineageTest) -> Evidence:
    """Are stored weights of equal units equal more often than those of their neighbours?

    Places are compared as they are: same basis, same layer.
    """
    alignment = granted_alignment(pair, test.group)
    first, second = alignment.first.prepared, alignment.second.prepared
    parts = list(_parts_of_equal_place(alignment))
    if parts:
        parts = _unmasked(parts)
    counts, sizes, compared = [], [], []
    for part in parts:
        usable = alignment.first.usable_units[part.at]
        blocks = common_blocks(part.first.index, part.second.index, usable)
        if len(blocks.sizes) and part.read:
            counts.append(_equal_shares(first, second, part, blocks))
            sizes.append(blocks.sizes)
            compared.append(part)
    if not compared:
        raise _no_units_of(parts)
    result = block_permutation(np.concatenate(counts), np.concatenate(sizes), pair.null_seed)
    return test.evidence(result, roles=_ordered(_read(compared)), layers=_layers(compared))


def _with_units(pair: Pair, group: Group) -> Alignment:
    if not all(side.prepared.feed_forwards for side in pair.sides):
        raise NoResult(Reason.FEED_FORWARD_UNITS)
    return granted_alignment(pair, group)


def _matched(pair: Pair, group: Group) -> tuple[Alignment, Matching]:
    """Feed-forwards in the basis and the layers that match best."""
    alignment = _with_units(pair, group)
    matching = alignment.feed_forwards
    if matching is None:
        raise NoResult(Reason.RESIDUAL_MAP)
    return alignment, matching


def _numbered_or_matched(pair: Pair, group: Group) -> tuple[Alignment, Matching]:
    """Feed-forwards as they are numbered; matched only where shapes do not allow that.

    Weak traces of a common origin are lost on a basis that fits shared features better.
    """
    alignment = _with_units(pair, group)
    matching = alignment.numbered_feed_forwards
    return (alignment, matching) if matching is not None else _matched(pair, group)


class _ClassScores(Struct, frozen=True):
    """Scores of units in blocks of the index, summed over feed-forwards that are copies.

    `gate` and `both` (up and down together) are blocks × 4 × 4; `read` are the matrices that say
    something in both models. Where both may have been pruned by one mask every unit is a block of
    its own, and gates, which have no coins, say nothing.
    """

    members: tuple[FeedForwardPair, ...]
    gate: Floats
    both: Floats
    sizes: Ints
    read: frozenset[str]
    masked: bool = False

    @classmethod
    def of(
        cls, members: tuple[FeedForwardPair, ...], alignment: Alignment, matching: Matching
    ) -> _ClassScores:
        single = any(part.masked for part in members)
        tables = [_block_scores(part, alignment, matching, single) for part in members]
        gate, both, sizes = tables[0]
        for other_gate, other_both, other_sizes in tables[1:]:
            if np.array_equal(sizes, other_sizes):
                gate, both = gate + other_gate, both + other_both
        return cls(members, gate, both, sizes, _read(members), single)

    @property
    def units(self) -> int:
        """Units of the first model that were compared."""
        return int(self.sizes.sum())

    @property
    def likeness(self) -> float:
        """The mean correlation of units of equal index."""
        total = (self.gate + self.both).trace(axis1=1, axis2=2).sum()
        return float(total / self.sizes.sum() / len(self.members) / max(1, len(self.read)))

    @property
    def matrices(self) -> tuple[int, int]:
        """How many gates, and how many ups and downs, a score adds up."""
        gated = "gate" in self.read
        others = len(self.members) * (len(self.read) - gated)
        return len(self.members) * (gated and not self.masked), others


def _block_scores(
    part: FeedForwardPair, alignment: Alignment, matching: Matching, single: bool
) -> tuple[Floats, Floats, Ints]:
    usable = alignment.first.usable_units[part.at]
    blocks: Blocks = common_blocks(part.first.index, part.second.index, usable)
    if single:
        blocks = blocks.single()
    carry = matching.residual.carry
    both = blocks.products(carry(part.first.up), part.second.up)
    both = both + blocks.products(carry(part.first.down), part.second.down)
    gates = alignment.gates(part, blocks)
    gate = np.zeros_like(both) if gates is None else blocks.products(carry(gates[0]), gates[1])
    return gate, both, blocks.sizes


def _test_blocks(
    classes: Sequence[_ClassScores], flips: bool, by_number: bool, seed: int | None
) -> NullResult:
    """The null of all blocks; where nothing was searched, with what a correlation of one adds."""
    gate, both, sizes = (
        np.concatenate([getattr(scores, name) for scores in classes])
        for name in ("gate", "both", "sizes")
    )
    matrices = [scores.matrices for scores in classes for _ in scores.sizes]
    gates, others = np.array(matrices).T
    if flips:
        return signed_blocks(gate, both, sizes, seed, (gates, others) if by_number else None)
    return block_permutation(gate + both, sizes, seed, gates + others if by_number else None)


def _fixed_points(
    pair: Pair, test: LineageTest, alignment: Alignment, matching: Matching
) -> Evidence:
    parts = _unmasked(alignment.representatives(matching))
    matched = [alignment.matched_units(part, matching.residual) for part in parts]
    coins = [signs for _, signs in matched] if alignment.first.units_flip else None
    result = fixed_points([pairs for pairs, _ in matched], coins, pair.null_seed)
    found = test.evidence(result, roles=_ordered(_read(parts)), layers=_layers(parts))
    return found if matching.by_number else unless_untrusted(test, found, alignment)


def _signs(pair: Pair, test: LineageTest, alignment: Alignment, matching: Matching) -> Evidence:
    coins, classes, values = [], [], []
    compared: list[FeedForwardPair] = []
    for members in alignment.classes(matching):
        same = [part for part in members if len(part.first.index) == len(members[0].first.index)]
        if not same:
            continue
        best = [alignment.scores(part, matching.residual).best() for part in same]
        mean = np.mean(best, axis=0, dtype=np.float64)
        coins.append(mean)
        classes.append(alignment.first.coin_classes[same[0].at])
        values.append(mean / max(1, len(_read(same) - {"gate"})))
        compared += same
    tied = np.unique(np.concatenate(classes), return_inverse=True)[1]
    result = sign_chernoff(sum_over(np.concatenate(coins), tied), pair.null_seed)
    found = test.evidence(
        result,
        roles=_ordered(_read(compared) - {"gate"}),
        layers=_layers(compared),
        effect=float(np.concatenate(values).mean()),
        alignment_quality=None if matching.by_number else matching.quality,
    )
    return found if matching.by_number else unless_untrusted(test, found, alignment)


def _parts_of_equal_place(alignment: Alignment) -> Iterator[FeedForwardPair]:
    """Feed-forwards of equal layer, expert and width, one of each class of copies."""
    places = {
        (part.layer, part.expert): (to, part)
        for to, part in enumerate(alignment.second.prepared.feed_forwards)
    }
    seen = set[int]()
    for at, part in enumerate(alignment.first.prepared.feed_forwards):
        label = int(alignment.first.shuffled_copies[at])
        to, other = places.get((part.layer, part.expert), (-1, None))
        if other is not None and other.width == part.width and label not in seen:
            seen.add(label)
            yield FeedForwardPair(at, to, part, other)


def _equal_shares(
    first: Prepared, second: Prepared, part: FeedForwardPair, blocks: Blocks
) -> np.ndarray:
    """Which share of the stored numbers of units are equal, in all matrices, within blocks."""
    ours, theirs = first.stored_units(part.first), second.stored_units(part.second)
    at, to, roles = blocks.first.reshape(-1), blocks.second.reshape(-1), _ordered(part.read)
    counts = [equal_counts(getattr(ours, role)[at], getattr(theirs, role)[to]) for role in roles]
    return np.asarray(sum(counts) / (len(roles) * first.width))


def _unmasked(parts: Sequence[FeedForwardPair]) -> list[FeedForwardPair]:
    """Feed-forwards whose units have free labels, no mask being possible that both have."""
    free = [part for part in parts if not part.masked]
    if parts and not free:
        raise NoResult(Reason.BOTH_MASKED, Status.GUARDED)
    return free


def _no_common_units(alignment: Alignment, matching: Matching) -> NoResult:
    return _no_units_of([part for members in alignment.classes(matching) for part in members])


def _no_units_of(parts: Sequence[FeedForwardPair]) -> NoResult:
    """Why no unit could be compared: none has a common index, or none has content of its own."""
    if any(np.isin(part.first.index, part.second.index).any() for part in parts):
        return NoResult(Reason.CONSTANT_UNITS, Status.UNDEFINED)
    return NoResult(Reason.UNITS_OF_EQUAL_INDEX)


def _read(parts: Sequence[FeedForwardPair]) -> frozenset[str]:
    """The matrices that say something in both models, in any of these feed-forwards."""
    return frozenset[str]().union(*(part.read for part in parts))


def _layers(parts: Sequence[FeedForwardPair]) -> list[int]:
    return [part.first.layer for part in parts]


def _ordered(roles: AbstractSet[str]) -> tuple[str, ...]:
    return tuple(role for role in ("gate", "up", "down") if role in roles)
