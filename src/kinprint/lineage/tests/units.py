"""Tests on the units of feed-forwards: labels (U1), signs (S1) and stored bits (E6).

Units are permuted by training's own chance, one permutation for each feed-forward, and a
gated unit that is odd in up has a coin besides. The basis and the partner layer were chosen
by a quality that knows neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import numpy as np

from kinprint.lineage.alignment.gram_likeness import GRAM_WIDTH, gram_likeness
from kinprint.lineage.alignment.units import Aligned
from kinprint.lineage.pair import (
    ForwardPair,
    Pair,
    classed_forwards,
    common_blocks,
    representatives,
)
from kinprint.lineage.preparation import Forward
from kinprint.lineage.side import Side, Supply
from kinprint.lineage.tests.registry import (
    Basis,
    Likeness,
    LineageTest,
    Needs,
    Scale,
    lineage_test,
)
from kinprint.nulls.bits import equal_counts
from kinprint.nulls.blocks import block_permutation, signed_blocks
from kinprint.nulls.copies import sum_over
from kinprint.nulls.fixed_points import fixed_points
from kinprint.nulls.increasing import increasing_subsequence
from kinprint.nulls.signs import sign_chernoff
from kinprint.records import Evidence, Group, Part, Reason, Status

_FOUND = -7.0  # log10 p below which nothing is left for the calibrated tier to say


@lineage_test(
    "U1.blocks", group=Group.UNIT, part=Part.FEED_FORWARD, scale=Scale.CORRELATION,
    basis=Basis.NUMBERED_OR_FOUND, needs=Needs.NUMBERS, likeness=Likeness.MATRICES,
)  # fmt: skip
def unit_blocks(pair: Pair, test: LineageTest) -> Evidence:
    """U1: do units of equal index resemble each other more than their neighbours do?"""
    found = _placed(pair, test)
    if isinstance(found, Evidence):
        return found
    supply, aligned = found
    labelled, signed, sizes, layers, copies, compared = [], [], [], [], 0, 0
    roles: set[str] = set()
    matrices_of: list[tuple[int, int]] = []  # gates, and ups and downs, that a score adds up
    per_layer: dict[int, list[float]] = {}
    for members in classed_forwards(supply.first, supply.second, aligned):
        tables = [_block_tables(supply.first, one, aligned) for one in members]
        if not tables:
            continue
        gate, both, length = tables[0]
        for other_gate, other_both, other_length in tables[1:]:
            if np.array_equal(length, other_length):
                gate, both = gate + other_gate, both + other_both
        if not len(length):
            continue
        labelled.append(gate)
        signed.append(both)
        sizes.append(length)
        copies += len(members) * int(length.sum())
        known = _compared(members)
        roles |= known
        compared += len(known) * int(length.sum())
        gated = "gate" in known
        matrices_of += [(len(members) * gated, len(members) * (len(known) - gated))] * len(length)
        own = (gate + both).trace(axis1=1, axis2=2).sum() / length.sum() / len(members)
        own /= max(1, len(known))
        per_layer.setdefault(members[0].one.layer, []).append(float(own))
        layers += [one.one.layer for one in members]
    if not labelled:
        return _without_units(test, supply, aligned)
    gates, others, lengths = (np.concatenate(part) for part in (labelled, signed, sizes))
    units = np.array(matrices_of).T if aligned.by_number else None
    if supply.first.odd:
        result = signed_blocks(
            gates, others, lengths, pair.seed, None if units is None else (units[0], units[1])
        )
    else:
        unit = None if units is None else units.sum(axis=0)
        result = block_permutation(gates + others, lengths, pair.seed, unit)
    mean_class = copies / max(1, int(lengths.sum()))
    matrices = max(1.0, compared / max(1, int(lengths.sum())))
    return test.evidence(
        result,
        roles=_ordered(roles),
        layers=layers,
        effect=result.effect / matrices / mean_class,
        by_layer=tuple((layer, float(np.mean(own))) for layer, own in per_layer.items()),
    )


@lineage_test(
    "U1.fixed", group=Group.UNIT, part=Part.FEED_FORWARD, scale=Scale.COUNT,
    basis=Basis.NUMBERED_OR_FOUND, needs=Needs.NUMBERS,
)  # fmt: skip
def unit_fixed_points(pair: Pair, test: LineageTest) -> Evidence:
    """U1: how many units and their mutual nearest neighbours carry the same index?"""
    found = _placed(pair, test)
    return found if isinstance(found, Evidence) else _fixed(pair, test, *found)


@lineage_test(
    "U1.aligned", group=Group.UNIT, part=Part.FEED_FORWARD, scale=Scale.COUNT,
    basis=Basis.FOUND, needs=Needs.ALIGNMENT,
)  # fmt: skip
def unit_fixed_points_aligned(pair: Pair, test: LineageTest) -> Evidence:
    """U1: the same in the basis and the layers that the quality chose."""
    found = _aligned(pair, test)
    return found if isinstance(found, Evidence) else _fixed(pair, test, *found)


@lineage_test(
    "U1.order", group=Group.UNIT, part=Part.FEED_FORWARD, scale=Scale.COUNT,
    basis=Basis.FOUND, needs=Needs.ALIGNMENT,
)  # fmt: skip
def unit_order(pair: Pair, test: LineageTest) -> Evidence:
    """U1: where units were removed or added, are those that match still in order?"""
    found = _aligned(pair, test)
    if isinstance(found, Evidence):
        return found
    supply, aligned = found
    kept = [one for one in representatives(supply, aligned) if one.one.total != one.other.total]
    if not kept:
        return test.no_result(Reason.FEED_FORWARDS_OF_DIFFERENT_WIDTH)
    matched = [pair.matched(supply.first, one, aligned.residual)[0] for one in kept]
    result = increasing_subsequence(matched, pair.seed)
    layers = [one.one.layer for one in kept]
    return test.evidence(result, roles=_ordered(_compared(kept)), layers=layers)


@lineage_test(
    "S1", group=Group.UNIT_SIGN, part=Part.FEED_FORWARD, scale=Scale.CORRELATION,
    basis=Basis.FOUND, needs=Needs.ALIGNMENT, likeness=Likeness.MATRICES,
)  # fmt: skip
def unit_signs(pair: Pair, test: LineageTest) -> Evidence:
    """S1: do up and down of matched units point the same way more often than coins would?"""
    found = _aligned(pair, test)
    return found if isinstance(found, Evidence) else _signs(pair, test, *found)


@lineage_test(
    "S1.numbered", group=Group.UNIT_SIGN, part=Part.FEED_FORWARD, scale=Scale.CORRELATION,
    basis=Basis.AS_STORED,
)  # fmt: skip
def unit_signs_numbered(pair: Pair, test: LineageTest) -> Evidence:
    """S1: the same in the basis as it is and layers of equal number, units matched anew.

    Where only units were renamed, a weak trace is not lost on a basis that fits features.
    """
    found = _supplied(pair, test)
    if isinstance(found, Evidence):
        return found
    aligned = pair.numbered(found.first, found.second)
    if aligned is None:
        return test.no_result(Reason.FEED_FORWARDS_OF_EQUAL_SHAPE)
    return _signs(pair, test, found, aligned)


@lineage_test(
    "E6.units", group=Group.UNIT, part=Part.FEED_FORWARD, scale=Scale.EQUAL_NUMBERS,
    basis=Basis.AS_STORED,
)  # fmt: skip
def unit_bits(pair: Pair, test: LineageTest) -> Evidence:
    """E6: are stored weights of equal units equal more often than those of their neighbours?

    Places are compared as they are: same basis, same layer.
    """
    supply = pair.supply(test.group)
    if supply.refusal:
        return test.no_result(supply.refusal, Status.GUARDED)
    theirs = {(one.layer, one.expert): one for one in supply.second.prepared.forwards}
    counts, sizes, layers, near = [], [], [], False
    roles: set[str] = set()
    taken: set[int] = set()
    for at, one in enumerate(supply.first.prepared.forwards):
        other = theirs.get((one.layer, one.expert))
        label = int(supply.first.forward_copies[at])
        if other is None or other.width != one.width or label in taken:
            continue
        taken.add(label)
        near = near or bool(np.isin(one.index, other.index).any())
        blocks = common_blocks(one.index, other.index, supply.first.usable_units[at])
        known = one.read & other.read
        if not len(blocks.sizes) or not known:
            continue
        roles |= known
        mine = _stored(supply.first, one, known)
        yours = _stored(supply.second, other, known)
        x = mine[blocks.first.reshape(-1)]
        y = yours[blocks.second.reshape(-1)]
        counts.append(equal_counts(x, y) / x.shape[1])
        sizes.append(blocks.sizes)
        layers.append(one.layer)
    if not counts and near:
        return test.no_result(Reason.CONSTANT_UNITS, Status.UNDEFINED)
    if not counts:
        return test.no_result(Reason.UNITS_OF_EQUAL_INDEX)
    result = block_permutation(np.concatenate(counts), np.concatenate(sizes), pair.seed)
    return test.evidence(result, roles=_ordered(roles), layers=layers)


def _placed(pair: Pair, test: LineageTest) -> Evidence | tuple[Supply, Aligned]:
    """Parts paired as they are numbered; by quality only where shapes do not allow that.

    Weak traces of a common origin are lost on a basis that fits shared features better.
    """
    found = _supplied(pair, test)
    if isinstance(found, Evidence):
        return found
    by_number = pair.numbered(found.first, found.second)
    return (found, by_number) if by_number is not None else _aligned(pair, test)


def _aligned(pair: Pair, test: LineageTest) -> Evidence | tuple[Supply, Aligned]:
    found = _supplied(pair, test)
    if isinstance(found, Evidence):
        return found
    aligned = pair.units(found.first, found.second)
    if aligned is None:
        return test.no_result(Reason.RESIDUAL_MAP)
    return found, aligned


def _supplied(pair: Pair, test: LineageTest) -> Evidence | Supply:
    if not all(side.prepared.forwards for side in pair.sides):
        return test.no_result(Reason.FEED_FORWARD_UNITS)
    supply = pair.supply(test.group)
    return test.no_result(supply.refusal, Status.GUARDED) if supply.refusal else supply


def _fixed(pair: Pair, test: LineageTest, supply: Supply, aligned: Aligned) -> Evidence:
    parts = representatives(supply, aligned)
    found = [pair.matched(supply.first, one, aligned.residual) for one in parts]
    coins = [signs for _, signs in found] if supply.first.odd else None
    result = fixed_points([matched for matched, _ in found], coins, pair.seed)
    layers = [one.one.layer for one in parts]
    return test.evidence(result, roles=_ordered(_compared(parts)), layers=layers)


def _signs(pair: Pair, test: LineageTest, supply: Supply, aligned: Aligned) -> Evidence:
    coins, values, layers = [], [], []
    roles: set[str] = set()
    for members in classed_forwards(supply.first, supply.second, aligned):
        same = [one for one in members if len(one.one.index) == len(members[0].one.index)]
        if not same:
            continue
        best = [pair.scores(supply.first, one, aligned.residual).best() for one in same]
        mean = np.mean(best, axis=0, dtype=np.float64)
        known = _compared(same) - {"gate"}
        roles |= known
        coins.append(sum_over(mean, supply.first.unit_clones[same[0].at]))
        values.append(mean / max(1, len(known)))
        layers += [one.one.layer for one in same]
    result = sign_chernoff(np.concatenate(coins), pair.seed)
    quality = None if aligned.by_number else aligned.quality
    gram = None
    if quality is not None and result.log10_p > _FOUND and _narrow(supply):
        gram = gram_likeness(supply.first.prepared, supply.second.prepared, aligned)
    return test.evidence(
        result,
        roles=_ordered(roles),
        layers=layers,
        effect=float(np.concatenate(values).mean()),
        alignment_quality=quality,
        gram_likeness=gram,
    )


def _narrow(supply: Supply) -> bool:
    return max(side.prepared.width for side in (supply.first, supply.second)) <= GRAM_WIDTH


def _block_tables(
    first: Side, one: ForwardPair, aligned: Aligned
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    blocks = common_blocks(one.one.index, one.other.index, first.usable_units[one.at])
    carry = aligned.residual.carry
    both = blocks.products(carry(one.one.up), one.other.up)
    both = both + blocks.products(carry(one.one.down), one.other.down)
    gate = np.zeros_like(both)
    if one.one.gate is not None and one.other.gate is not None:
        gate = blocks.products(carry(one.one.gate), one.other.gate)
    return gate, both, blocks.sizes


def _compared(pairs: Sequence[ForwardPair]) -> frozenset[str]:
    """The matrices that say something in both models, in any of these feed-forwards.

    A sampled model may lack its down rows, and what was not read is no disagreement.
    """
    return frozenset[str]().union(*(one.one.read & one.other.read for one in pairs))


def _without_units(test: LineageTest, supply: Supply, aligned: Aligned) -> Evidence:
    """Why no unit could be compared: none has a common index, or none has content of its own."""
    for members in classed_forwards(supply.first, supply.second, aligned):
        if any(np.isin(one.one.index, one.other.index).any() for one in members):
            return test.no_result(Reason.CONSTANT_UNITS, Status.UNDEFINED)
    return test.no_result(Reason.UNITS_OF_EQUAL_INDEX)


def _stored(side: Side, one: Forward, roles: frozenset[str]) -> np.ndarray:
    sample = side.prepared.sample
    units = sample.units.get(one.layer) if one.expert < 0 else None
    units = sample.experts[one.layer, one.expert] if units is None else units
    return np.concatenate([getattr(units, role) for role in _ordered(roles)], axis=1)


def _ordered(roles: AbstractSet[str]) -> tuple[str, ...]:
    return tuple(role for role in ("gate", "up", "down") if role in roles)
