"""Tests on attention: signs of rotary planes (S2), value dimensions (E4) and their signs (S4).

Rows of q and k are tied to their frequency, so they have no labels to permute; but turning a
plane of a key-value group by a half turn in q and k together changes nothing, and neither
does a quarter turn where no gain tells the two rows apart. Value dimensions have labels and
signs of their own inside a group. Groups that are copies of one another share labels and signs, so
that they are counted once.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from kinprint.lineage.alignment.blocks import equal_blocks
from kinprint.lineage.alignment.heads import HeadGroupMatch, value_scores
from kinprint.lineage.alignment.residual import IDENTITY, ResidualMap
from kinprint.lineage.pair import Alignment, Pair
from kinprint.lineage.preparation import Heads
from kinprint.lineage.tests.conditions import granted_alignment, unless_untrusted
from kinprint.lineage.tests.registry import (
    Basis,
    Likeness,
    LineageTest,
    Needs,
    NoResult,
    lineage_test,
)
from kinprint.nulls.blocks import block_permutation, signed_blocks
from kinprint.nulls.exchangeability import Doubt, balance
from kinprint.nulls.signs import quarter_turns, sign_chernoff
from kinprint.records import Component, Evidence, Group, Reason, Status

_attention_test = functools.partial(lineage_test, component=Component.ATTENTION)


@_attention_test("S2", group=Group.PLANE_SIGN, basis=Basis.FOUND, needs=Needs.ALIGNMENT)
def plane_signs(pair: Pair, test: LineageTest) -> Evidence:
    """Do rotary planes of matched heads point the same way more often than chance?"""
    return _plane_signs(pair, test, HeadGroups.matched(pair, test.group))


@_attention_test("S2.numbered", group=Group.PLANE_SIGN, basis=Basis.AS_STORED)
def plane_signs_numbered(pair: Pair, test: LineageTest) -> Evidence:
    """The same for heads of equal number, where no basis or head had to be found.

    A trace too weak to match heads by shows all the same.
    """
    return _plane_signs(pair, test, HeadGroups.numbered(pair, test.group))


@_attention_test(
    "S2.biases", group=Group.PLANE_SIGN, basis=Basis.OPEN, needs=Needs.ALIGNMENT, learnt=True
)
def plane_biases(pair: Pair, test: LineageTest) -> Evidence:
    """Do the biases of q and k agree in sign, plane by plane of matched heads?

    They start at zero, so whatever they share was learnt together.
    """
    groups = HeadGroups.matched(pair, test.group)
    compared = [
        (match, biases)
        for match in groups.matches
        if (biases := _compared_biases(match, *groups.layers(match))) is not None
    ]
    if not compared:
        raise NoResult(Reason.BIASES)
    matches = [match for match, _ in compared]
    planes = np.concatenate(groups.by_class(matches, [keys for _, (keys, _) in compared]))
    if balance(np.stack([planes.real, planes.imag], axis=1)).reason is Doubt.UNFAIR:
        raise NoResult(Reason.BIAS_SIGNS_UNFAIR, Status.GUARDED)
    products = groups.by_class(matches, [product for _, (_, product) in compared])
    coins = np.concatenate(products).real
    result = sign_chernoff(coins, pair.null_seed)
    share = float(coins.sum() / max(np.abs(coins).sum(), 1e-30))
    layers = [match.layer for match in matches]
    found = test.evidence(result, roles=("q.bias", "k.bias"), layers=layers, effect=share)
    return unless_untrusted(test, found, groups.alignment)


@_attention_test(
    "E4.blocks", group=Group.VALUE_DIM, basis=Basis.NUMBERED, needs=Needs.NUMBERS,
    likeness=Likeness.VALUES,
)  # fmt: skip
def value_blocks(pair: Pair, test: LineageTest) -> Evidence:
    """Do value dimensions of equal index agree more than their neighbours do?

    Heads are paired by number; matched only where shapes do not allow that.
    """
    try:
        groups = HeadGroups.numbered(pair, test.group)
        scores = groups.value_scores()
    except NoResult as missing:
        if missing.status is not Status.NEEDS:
            raise
        groups = HeadGroups.matched(pair, test.group)
        scores = groups.value_scores()
    tables, sizes = [], []
    flips = groups.alignment.first.refusal(Group.VALUE_SIGN) is None
    single = groups.masked("v", "o")
    if single and not flips:
        raise NoResult(Reason.BOTH_MASKED, Status.GUARDED)
    for members in groups.classes(groups.matches):
        total = np.sum([scores[at] for at in members], axis=0)
        blocks = equal_blocks(np.ones(min(total.shape), bool))
        if single:
            blocks = blocks.single()
        rows = np.pad(total, ((0, 1), (0, 1)))
        tables.append(rows[blocks.first[:, :, None], blocks.second[:, None, :]] / len(members))
        sizes.append(blocks.sizes)
    table, lengths = np.concatenate(tables).astype(np.float64), np.concatenate(sizes)
    roles = groups.value_roles(groups.matches)
    unit = float(len(roles)) if groups.by_number else None
    if not flips:
        result = block_permutation(table, lengths, pair.null_seed, unit)
    else:
        units = None if unit is None else (0.0, unit)
        result = signed_blocks(np.zeros_like(table), table, lengths, pair.null_seed, units)
    effect = result.effect / max(1, len(roles))
    layers = [match.layer for match in groups.matches]
    found = test.evidence(result, roles=roles, layers=layers, effect=effect)
    return found if groups.by_number else unless_untrusted(test, found, groups.alignment)


@_attention_test(
    "S4", group=Group.VALUE_SIGN, basis=Basis.FOUND, needs=Needs.ALIGNMENT,
    likeness=Likeness.VALUES,
)  # fmt: skip
def value_signs(pair: Pair, test: LineageTest) -> Evidence:
    """Do matched value dimensions have the same sign more often than coins would?"""
    groups = HeadGroups.matched(pair, test.group)
    scores = groups.value_scores()
    coins = []
    for members in groups.classes(groups.matches):
        total = np.zeros(len(scores[members[0]]))
        for at in members:
            best = np.abs(scores[at]).argmax(axis=1)
            total += scores[at][np.arange(len(best)), best]
        coins.append(total / len(members))
    result = sign_chernoff(np.concatenate(coins), pair.null_seed)
    roles = groups.value_roles(groups.matches)
    effect = result.effect / max(1, len(roles))
    layers = [match.layer for match in groups.matches]
    found = test.evidence(result, roles=roles, layers=layers, effect=effect)
    return found if groups.by_number else unless_untrusted(test, found, groups.alignment)


class HeadGroups(Struct, frozen=True):
    """Key-value groups of the first model with their partners, and the basis they are in."""

    alignment: Alignment
    matches: tuple[HeadGroupMatch, ...]
    residual: ResidualMap
    by_number: bool

    @classmethod
    def numbered(cls, pair: Pair, group: Group) -> HeadGroups:
        """Heads as they are numbered, in the basis as it is."""
        alignment = _with_heads(pair, group)
        if not alignment.numbered_head_groups:
            raise NoResult(Reason.HEADS_OF_EQUAL_SHAPE)
        return cls(alignment, alignment.numbered_head_groups, IDENTITY, True)

    @classmethod
    def matched(cls, pair: Pair, group: Group) -> HeadGroups:
        """Heads that match best, in the basis and the layers that do."""
        alignment = _with_heads(pair, group)
        if not alignment.head_groups:
            raise NoResult(Reason.COMPARABLE_HEADS)
        assert alignment.attention is not None
        return cls(alignment, alignment.head_groups, alignment.attention.residual, False)

    def layers(self, match: HeadGroupMatch) -> tuple[Heads, Heads]:
        """The attention of the two layers that a match is in."""
        first, second = self.alignment.first.prepared, self.alignment.second.prepared
        return first.heads[match.layer], second.heads[match.partner_layer]

    def value_scores(self) -> list[np.ndarray]:
        """Scores of value dimensions, one table a match."""
        tables = [value_scores(match, *self.layers(match), self.residual) for match in self.matches]
        known = [table for table in tables if table is not None]
        if len(known) < len(tables):
            raise NoResult(Reason.VALUES)
        return known

    def value_rows(self, match: HeadGroupMatch) -> np.ndarray:
        """Cosines of value rows alone, every dimension with every one."""
        ours, theirs = self.layers(match)
        assert ours.v is not None and theirs.v is not None
        return np.asarray(self.residual.carry(ours.v[match.group]) @ theirs.v[match.partner].T)

    def value_sizes(self, match: HeadGroupMatch) -> tuple[int, int]:
        """How many numbers values and outputs of a layer have."""
        heads = self.layers(match)[0]
        assert heads.v is not None and heads.o is not None
        return heads.v.size, heads.o.size

    def value_roles(self, matches: Sequence[HeadGroupMatch]) -> tuple[str, ...]:
        """Which of v and o say something in both models: what was not read is no disagreement."""
        layers = [self.layers(match) for match in matches]
        return tuple(
            role
            for role in ("v", "o")
            if any(ours.informative(role) and theirs.informative(role) for ours, theirs in layers)
        )

    def masked(self, *roles: str) -> bool:
        """Whether layers that correspond may have been pruned by one mask, in these matrices."""
        layers = [self.layers(match) for match in self.matches]
        return any(ours.masked & theirs.masked & set(roles) for ours, theirs in layers)

    def classes(self, matches: Sequence[HeadGroupMatch]) -> list[list[int]]:
        """Places of the matches whose groups are copies of one another, together."""
        classes: dict[int, list[int]] = {}
        for at, match in enumerate(matches):
            label = self.alignment.first.head_copies[match.layer, match.group]
            classes.setdefault(label, []).append(at)
        return list(classes.values())

    def by_class(
        self, matches: Sequence[HeadGroupMatch], values: Sequence[np.ndarray]
    ) -> list[np.ndarray]:
        """Values by plane, averaged over groups that are copies of one another: one coin each."""
        means = []
        for members in self.classes(matches):
            shape = values[members[0]].shape
            same = [values[at] for at in members if values[at].shape == shape]
            means.append(np.mean(same, axis=0))
        return means


def _with_heads(pair: Pair, group: Group) -> Alignment:
    if not all(side.prepared.heads for side in pair.sides):
        raise NoResult(Reason.ATTENTION_HEADS)
    return granted_alignment(pair, group)


def _plane_signs(pair: Pair, test: LineageTest, groups: HeadGroups) -> Evidence:
    matches, first = groups.matches, groups.alignment.first
    planes = np.concatenate(groups.by_class(matches, [match.planes for match in matches]))
    rest = np.concatenate(groups.by_class(matches, [match.rest for match in matches])).real
    if not planes.size:
        raise NoResult(Reason.EQUAL_ROTARY_PLANES)
    if first.refusal(Group.UNROTATED_SIGN):
        rest = np.empty(0)
    unit = 1.0 if groups.by_number else None
    # Turns of planes and flips of single rows have different groups; where there are both,
    # half turns serve for all. A quarter turn swaps rows, which a mask tells apart.
    if first.refusal(Group.PLANE_QUARTER) or rest.size or groups.masked("q", "k"):
        result = sign_chernoff(np.concatenate([planes.real, rest]), pair.null_seed, unit)
    else:
        result = quarter_turns(planes, pair.null_seed, unit)
    found = test.evidence(result, roles=("q", "k"), layers=[match.layer for match in matches])
    return found if groups.by_number else unless_untrusted(test, found, groups.alignment)


def _compared_biases(
    match: HeadGroupMatch, first: Heads, second: Heads
) -> tuple[np.ndarray, np.ndarray] | None:
    """The first model's key biases, and products of planes: the mean over k and the queries."""
    if first.q_bias is None or first.k_bias is None:
        return None
    if second.q_bias is None or second.k_bias is None:
        return None
    if first.k_bias.shape[1] != second.k_bias.shape[1]:
        return None
    total = _plane_cosine(first.k_bias[match.group], second.k_bias[match.partner])
    for i, j in match.queries:
        total = total + _plane_cosine(first.q_bias[i], second.q_bias[j])
    return first.k_bias[match.group], np.asarray(total / (1 + len(match.queries)))


def _plane_cosine(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Products of the planes of two bias vectors, on the scale of a correlation."""
    x, y = x.astype(np.complex128), y.astype(np.complex128)
    scale = np.sqrt(np.square(np.abs(x)).mean() * np.square(np.abs(y)).mean())
    return np.asarray(x * y.conj() / max(float(scale), 1e-30), np.complex128)
