"""How much of a part is linked: what equal rows and tests that tell tensors apart say of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.columns import UNLIKE
from kinprint.lineage.parts.equality import EqualNumbers
from kinprint.lineage.parts.scores import MATCHED_COLUMNS, PartScore
from kinprint.lineage.parts.tensors import tensor_sizes
from kinprint.lineage.side import Side
from kinprint.records import Part, PartFinding, Role, plain_role, weight_of

MOSTLY = 2.0
"""Times the share of equal rows up to which they speak for all that is linked."""

_REST = 0.1  # likeness beyond the share of equal rows from which on the other rows are alike too
_TESTED = frozenset(("q", "k", "v", "o", "gate", "up", "down", "embed"))
"""Tensors that tests tell apart."""
_KEYED = dict.fromkeys(("S2", "S2.numbered"), ("q", "k"))
_VALUED = dict.fromkeys(("E4.blocks", "S4"), ("v", "o"))
"""Tests of half of the attention, with the tensors that they compare."""


def linked_share(equal: EqualNumbers, found: Sequence[PartScore]) -> tuple[float, float | None]:
    """The share of a part's numbers that is linked, and how alike that share is.

    Where some rows are equal and make up all of the likeness, the others are not linked. Columns
    tell tensors apart. Without them, tests of keys and queries and tests of values and outputs
    speak of half of the attention each.
    """
    if equal.all and equal.bits is None:
        return 1.0, 1.0
    beyond = any(_beyond(one, equal.alike) for one in found)
    if equal.share > 0.0 and not equal.all and not beyond:
        return equal.share, 1.0
    some = max((one for one in found if one.copies), key=lambda one: one.share, default=None)
    if some is not None:
        return max(equal.share, some.share), some.likeness / some.share
    by_columns = (one for one in found if one.test == MATCHED_COLUMNS)
    columns = max(by_columns, key=lambda one: one.share, default=None)
    if columns is not None and columns.share < 1.0:
        return max(equal.share, columns.share), min(1.0, columns.likeness / columns.share)
    alike = max((min(1.0, one.likeness / one.share) for one in found), default=None)
    by_halves = math.fsum(
        max((one.share for one in found if one.test in half), default=0.0) / 2
        for half in (_KEYED, _VALUED)
    )
    others = [one.share for one in found if one.test not in _KEYED | _VALUED]
    return max(equal.share, by_halves, *others), alike


def _beyond(score: PartScore, alike: Mapping[str, float]) -> bool:
    """Whether tensors are more alike than their equal rows make them.

    Rows that were matched are somewhat alike anyway.
    """
    matched = UNLIKE if score.test == MATCHED_COLUMNS else 0.0
    names = (_KEYED | _VALUED).get(score.test, alike)
    known = [alike[name] for name in names if name in alike]
    equal = sum(known) / len(known) if known else 0.0
    return score.likeness / score.share - matched > equal / score.share + _REST


def sure_shares(
    pair: Pair,
    first: tuple[Side, Part],
    second: tuple[Side, Part],
    found: Sequence[PartScore],
    share: float,
) -> tuple[float, float]:
    """The share of the smaller and of the larger of two parts that tests link for sure.

    By tensors and rows, where tests tell these apart, else so large a `share` of the smaller one.
    What they do not see goes with the rest.
    """
    sides = [
        (side, _sizes(tensor_sizes(side.prepared.stored, part))) for side, part in (first, second)
    ]
    (_, ours), (_, theirs) = sides
    told = [one for one in found if one.roles is not None]
    names = ours.keys() | theirs.keys()
    names = names & _TESTED if told else names
    both = {name: sorted((ours.get(name, 0), theirs.get(name, 0))) for name in names}
    smaller, larger = (sum(one[at] for one in both.values()) for at in (0, 1))
    if not smaller:
        return 1.0, 1.0
    linked = share * smaller
    if told:
        by_score = [
            (one, sorted(sides, key=lambda side: side[0] is not pair.sides[one.side]))
            for one in told
        ]
        linked = sum(
            max(_rows(one, name, both[name][0], *seen) for one, seen in by_score) for name in names
        )
    return min(1.0, linked / smaller), min(1.0, linked / larger)


def _rows(
    score: PartScore,
    name: str,
    most: int,
    counted: tuple[Side, Mapping[str, int]],
    other: tuple[Side, Mapping[str, int]],
) -> float:
    """How many numbers of a tensor a test links, which has `counted` those of one model."""
    share = (score.roles or {}).get(name, 0.0)
    (first, sizes), (second, _) = counted, other
    narrower = min(1.0, second.prepared.width / max(first.prepared.width, 1))
    return min(share * sizes.get(name, 0) * narrower, float(most))


def _sizes(stored: Mapping[str, int]) -> dict[str, int]:
    """How many numbers tensors have, biases with their weights, those of experts by their role.

    A head may be compared with an embedding that is one: tables have one name.
    """
    found: dict[str, int] = {}
    for name, size in stored.items():
        role = plain_role(weight_of(name))
        role = Role.EMBED if role == Role.LM_HEAD else role
        found[role] = found.get(role, 0) + size
    return found


def counted_once(findings: Sequence[PartFinding]) -> list[PartFinding]:
    """Findings in which a partner of several parts, as one that experts were made of, counts as
    much as each of these."""
    met = Counter(one.partner for one in findings if one.state.linked)
    return [
        replace(
            one,
            partner_weights=0,
            least=None if one.least is None else one.least * one.counted / max(one.weights, 1),
        )
        if met[one.partner] > 1
        else one
        for one in findings
    ]
