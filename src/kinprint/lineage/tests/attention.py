"""Tests on attention: signs of rotary planes (S2), value dimensions (E4) and their signs (S4).

Rows of q and k are tied to their frequency, so they have no labels to permute; but turning a
plane of a key-value group by a half turn in q and k together changes nothing, and neither
does a quarter turn where no gain tells the two rows apart. Value dimensions have labels and
signs of their own inside a group.
"""

from __future__ import annotations

import numpy as np

from kinprint.lineage.alignment.heads import GroupMatch, value_scores
from kinprint.lineage.alignment.residual import IDENTITY
from kinprint.lineage.pair import Pair, common_blocks
from kinprint.lineage.side import Supply
from kinprint.lineage.tests.registry import (
    Basis,
    Likeness,
    LineageTest,
    Needs,
    Scale,
    lineage_test,
)
from kinprint.nulls.blocks import block_permutation, signed_blocks
from kinprint.nulls.exchangeability import Doubt, balance
from kinprint.nulls.signs import quarter_turns, sign_chernoff
from kinprint.records import Evidence, Group, Part, Reason, Status


@lineage_test(
    "S2", group=Group.PLANE_SIGN, part=Part.ATTENTION, scale=Scale.CORRELATION,
    basis=Basis.FOUND, needs=Needs.ALIGNMENT,
)  # fmt: skip
def plane_signs(pair: Pair, test: LineageTest) -> Evidence:
    """S2: do rotary planes of matched heads point the same way more often than chance?"""
    found = _groups(pair, test)
    return found if isinstance(found, Evidence) else _plane_evidence(pair, test, *found)


@lineage_test(
    "S2.numbered", group=Group.PLANE_SIGN, part=Part.ATTENTION, scale=Scale.CORRELATION,
    basis=Basis.AS_STORED,
)  # fmt: skip
def plane_signs_numbered(pair: Pair, test: LineageTest) -> Evidence:
    """S2: the same for heads of equal number, where no basis or head had to be found.

    A trace too weak to match heads by shows all the same.
    """
    found = _groups(pair, test, numbered=True)
    return found if isinstance(found, Evidence) else _plane_evidence(pair, test, *found, unit=1.0)


def _plane_evidence(
    pair: Pair,
    test: LineageTest,
    supply: Supply,
    groups: tuple[GroupMatch, ...],
    unit: float | None = None,
) -> Evidence:
    totals = _by_class(supply, groups, [one.planes for one in groups])
    rests = _by_class(supply, groups, [one.rest for one in groups])
    planes = np.concatenate(totals) if totals else np.empty(0, np.complex128)
    rest = np.concatenate(rests).real if rests else np.empty(0)
    if not planes.size:
        return test.no_result(Reason.EQUAL_ROTARY_PLANES)
    if supply.first.refusal(Group.UNROTATED_SIGN):
        rest = np.empty(0)
    # Turns of planes and flips of single rows have different groups; where there are both,
    # half turns serve for all.
    if supply.first.refusal(Group.PLANE_QUARTER) or rest.size:
        result = sign_chernoff(np.concatenate([planes.real, rest]), pair.seed, unit)
    else:
        result = quarter_turns(planes, pair.seed, unit)
    return test.evidence(result, roles=("q", "k"), layers=[one.layer for one in groups])


@lineage_test(
    "S2.biases", group=Group.PLANE_SIGN, part=Part.ATTENTION, scale=Scale.CORRELATION,
    basis=Basis.OPEN, needs=Needs.ALIGNMENT, learnt=True,
)  # fmt: skip
def plane_biases(pair: Pair, test: LineageTest) -> Evidence:
    """S2: do the biases of q and k agree in sign, plane by plane of matched heads?

    They start at zero, so whatever they share was learnt together.
    """
    found = _groups(pair, test)
    if isinstance(found, Evidence):
        return found
    supply, groups = found
    mine, theirs = supply.first.prepared.heads, supply.second.prepared.heads
    values, kept, own = [], [], []
    for one in groups:
        x, y = mine[one.layer], theirs[one.partner_layer]
        if x.q_bias is None or x.k_bias is None or y.q_bias is None or y.k_bias is None:
            continue
        if x.k_bias.shape[1] != y.k_bias.shape[1]:
            continue
        total = _cosine(x.k_bias[one.group], y.k_bias[one.partner])
        for i, j in one.queries:
            total = total + _cosine(x.q_bias[i], y.q_bias[j])
        values.append(total / (1 + len(one.queries)))
        own.append(x.k_bias[one.group])
        kept.append(one)
    if not kept:
        return test.no_result(Reason.BIASES)
    planes = np.concatenate(_by_class(supply, kept, own))
    lean = balance(np.stack([planes.real, planes.imag], axis=1))
    if lean.reason is Doubt.UNFAIR:
        return test.no_result(Reason.BIAS_SIGNS_UNFAIR, Status.GUARDED)
    coins = np.concatenate(_by_class(supply, kept, values)).real
    result = sign_chernoff(coins, pair.seed)
    share = float(coins.sum() / max(np.abs(coins).sum(), 1e-30))
    layers = [one.layer for one in kept]
    return test.evidence(result, roles=("q.bias", "k.bias"), layers=layers, effect=share)


@lineage_test(
    "E4.blocks", group=Group.VALUE_DIM, part=Part.ATTENTION, scale=Scale.CORRELATION,
    basis=Basis.NUMBERED, needs=Needs.NUMBERS, likeness=Likeness.VALUES,
)  # fmt: skip
def value_blocks(pair: Pair, test: LineageTest) -> Evidence:
    """E4: do value dimensions of equal index agree more than their neighbours do?

    Heads are paired by number; matched only where shapes do not allow that.
    """
    found = _value_tables(pair, test, numbered=True)
    by_number = not isinstance(found, Evidence)
    if isinstance(found, Evidence) and found.status is Status.NEEDS:
        found = _value_tables(pair, test)
    if isinstance(found, Evidence):
        return found
    supply, groups, tables = found
    cut, sizes = [], []
    for members in _classes(supply, groups):
        total = np.sum([tables[at] for at in members], axis=0)
        index = np.arange(min(total.shape))
        blocks = common_blocks(index, index)
        rows = np.pad(total, ((0, 1), (0, 1)))
        cut.append(rows[blocks.first[:, :, None], blocks.second[:, None, :]] / len(members))
        sizes.append(blocks.sizes)
    table, lengths = np.concatenate(cut).astype(np.float64), np.concatenate(sizes)
    roles, layers = _value_roles(supply, groups), [one.layer for one in groups]
    unit = float(len(roles)) if by_number else None
    if supply.first.refusal(Group.VALUE_SIGN):
        result = block_permutation(table, lengths, pair.seed, unit)
    else:
        units = None if unit is None else (0.0, unit)
        result = signed_blocks(np.zeros_like(table), table, lengths, pair.seed, units)
    effect = result.effect / max(1, len(roles))
    return test.evidence(result, roles=roles, layers=layers, effect=effect)


@lineage_test(
    "S4", group=Group.VALUE_SIGN, part=Part.ATTENTION, scale=Scale.CORRELATION,
    basis=Basis.FOUND, needs=Needs.ALIGNMENT, likeness=Likeness.VALUES,
)  # fmt: skip
def value_signs(pair: Pair, test: LineageTest) -> Evidence:
    """S4: do matched value dimensions have the same sign more often than coins would?"""
    found = _value_tables(pair, test)
    if isinstance(found, Evidence):
        return found
    supply, groups, tables = found
    values = []
    for members in _classes(supply, groups):
        total = np.zeros(len(tables[members[0]]))
        for at in members:
            best = np.abs(tables[at]).argmax(axis=1)
            total += tables[at][np.arange(len(best)), best]
        values.append(total / len(members))
    result = sign_chernoff(np.concatenate(values), pair.seed)
    roles, layers = _value_roles(supply, groups), [one.layer for one in groups]
    effect = result.effect / max(1, len(roles))
    return test.evidence(result, roles=roles, layers=layers, effect=effect)


def _value_roles(supply: Supply, groups: tuple[GroupMatch, ...]) -> tuple[str, ...]:
    """Which of v and o say something in both models: what was not read is no disagreement."""
    mine, theirs = supply.first.prepared.heads, supply.second.prepared.heads
    layers = {(one.layer, one.partner_layer) for one in groups}
    return tuple(
        role
        for role in ("v", "o")
        if any(mine[at].says(role) and theirs[to].says(role) for at, to in layers)
    )


def _groups(
    pair: Pair, test: LineageTest, numbered: bool = False
) -> Evidence | tuple[Supply, tuple[GroupMatch, ...]]:
    if not all(side.prepared.heads for side in pair.sides):
        return test.no_result(Reason.ATTENTION_HEADS)
    supply = pair.supply(test.group)
    if supply.refusal:
        return test.no_result(supply.refusal, Status.GUARDED)
    find = pair.numbered_groups if numbered else pair.groups
    groups = find(supply.first, supply.second)
    if not groups:
        return test.no_result(Reason.HEADS_OF_EQUAL_SHAPE if numbered else Reason.COMPARABLE_HEADS)
    return supply, groups


def _value_tables(
    pair: Pair, test: LineageTest, numbered: bool = False
) -> Evidence | tuple[Supply, tuple[GroupMatch, ...], list[np.ndarray]]:
    found = _groups(pair, test, numbered)
    if isinstance(found, Evidence):
        return found
    supply, groups = found
    residual = IDENTITY
    if not numbered:
        aligned = pair.heads(supply.first, supply.second)
        assert aligned is not None
        residual = aligned.residual
    mine, theirs = supply.first.prepared.heads, supply.second.prepared.heads
    tables = [
        value_scores(one, mine[one.layer], theirs[one.partner_layer], residual) for one in groups
    ]
    kept = [table for table in tables if table is not None]
    if len(kept) < len(groups):
        return test.no_result(Reason.VALUES)
    return supply, groups, kept


def _classes(supply: Supply, groups: tuple[GroupMatch, ...]) -> list[list[int]]:
    """Places of the groups that are copies of one another, together."""
    classes: dict[int, list[int]] = {}
    for at, one in enumerate(groups):
        label = supply.first.head_copies[one.layer, one.group]
        classes.setdefault(label, []).append(at)
    return list(classes.values())


def _by_class(
    supply: Supply, groups: list[GroupMatch] | tuple[GroupMatch, ...], values: list[np.ndarray]
) -> list[np.ndarray]:
    """Values by plane, averaged over groups that are copies of one another: one coin each."""
    found = []
    for members in _classes(supply, tuple(groups)):
        same = [values[at] for at in members if values[at].shape == values[members[0]].shape]
        found.append(np.mean(same, axis=0))
    return found


def _cosine(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Products of the planes of two bias vectors, on the scale of a correlation."""
    scale = np.sqrt(np.square(np.abs(x)).mean() * np.square(np.abs(y)).mean())
    return np.asarray(x * y.conj() / max(float(scale), 1e-30), np.complex128)
