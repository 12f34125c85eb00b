"""Why nothing can be said of a part: no test sees it, or none would see a renumbered copy."""

from __future__ import annotations

import numpy as np

from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.equality import EqualNumbers
from kinprint.lineage.parts.scores import OUTSIDE, part_of
from kinprint.lineage.preparation import FEWEST_TOKENS, Prepared
from kinprint.lineage.reading.sample import Sample
from kinprint.records import Component, Group, Part, Reason
from kinprint.text import Message

_HEAD_ROLES = ("q", "k", "q_rest", "k_rest", "v", "o")
_GROUPS = {
    Component.NORMS: (Group.RESIDUAL,),
    Component.EMBEDDING: (Group.RESIDUAL, Group.RESIDUAL_SIGN),
    Component.HEAD: (Group.RESIDUAL, Group.RESIDUAL_SIGN),
    Component.ROUTER: (Group.EXPERT,),
    Component.ATTENTION: (
        Group.PLANE_SIGN, Group.VALUE_SIGN, Group.RESIDUAL,
    ),
    Component.FEED_FORWARD: (Group.UNIT, Group.UNIT_SIGN, Group.RESIDUAL),
    Component.EXPERT: (Group.UNIT, Group.UNIT_SIGN, Group.RESIDUAL),
}  # fmt: skip
"""Symmetries that the tests of a part rest on."""


def refused(pair: Pair, part: Part) -> bool:
    """Whether no label and no sign of a part may be called random in either model."""
    groups = _GROUPS.get(part.component, ())
    return bool(groups) and all(pair.refusal(group) is not None for group in groups)


def why_not(
    pair: Pair,
    ours: tuple[Prepared, Part],
    theirs: tuple[Prepared, Part],
    needs: int | None,
    equal: EqualNumbers,
    tested: bool,
) -> Message:
    """Why nothing can be said of a part in which nothing was found; `needs` would decide it.

    Whether it was `tested` by itself tells of heads alone: the menu has no test of them.
    """
    (first, part), (second, partner) = ours, theirs
    untested = _untested(first, second, part, partner)
    if Component.HEAD in (part.component, partner.component):
        untested = None if tested else Reason.PART_WITHOUT_TEST
    if equal.consistent and untested not in (Reason.PART_FLAT, Reason.PART_SILENT):
        return Reason.PART_TOO_PLAIN.message()
    if refused(pair, part):
        return Reason.PART_WITHOUT_TEST.message()
    if untested is not None:
        few = untested in (Reason.PART_WITHOUT_TEST, Reason.PART_SILENT) and needs is not None
        return (Reason.PART_FEW_ROWS if few else untested).message()
    match part.component:
        case Component.NORMS | Component.EMBEDDING | Component.HEAD:
            return Reason.PART_CHANNELS_RENAMED.message()
        case Component.ROUTER:
            return Reason.PART_EXPERTS_RENAMED.message()
        case _ if needs is None:
            return Reason.PART_BLIND.message()
        case Component.ATTENTION:
            return Reason.PART_HEADS_RENAMED.message()
    return Reason.PART_UNITS_RENAMED.message()


def _untested(first: Prepared, second: Prepared, part: Part, partner: Part) -> Reason | None:
    """Why no test would have seen a copy that was changed; None where one would have."""
    at, to = (OUTSIDE if one.layer is None else one.layer for one in (part, partner))
    without = Reason.PART_WITHOUT_TEST
    match part.component:
        case Component.NORMS if first.width != second.width:
            return Reason.PART_OTHER_WIDTH
        case Component.NORMS:
            ours = {role for role, layer in first.scores if layer == at}
            theirs = {role for role, layer in second.scores if layer == to}
            if ours & theirs:
                return None
            vary = _varying(first.sample, at) & _varying(second.sample, to)
            return without if vary else Reason.PART_FLAT
        case Component.EMBEDDING:
            shared = first.token_rows.keys() & second.token_rows.keys()
            return None if len(shared) >= FEWEST_TOKENS else without
        case Component.ROUTER:
            return None if at in first.routers and to in second.routers else without
        case Component.ATTENTION if at in first.heads and to in second.heads:
            x, y = first.heads[at], second.heads[to]
            read = [
                role
                for role in _HEAD_ROLES
                if getattr(x, role) is not None and getattr(y, role) is not None
            ]
            if not read:
                return without
            telling = any(x.informative(role) and y.informative(role) for role in read)
            return None if telling else Reason.PART_SILENT
        case Component.FEED_FORWARD | Component.EXPERT:
            units = [one for one in first.feed_forwards if part_of(one) == part]
            others = [one for one in second.feed_forwards if part_of(one) == partner]
            if not units or not others:
                return without
            return None if units[0].read & others[0].read else Reason.PART_SILENT
    return without


def _varying(sample: Sample, layer: int) -> set[str]:
    """Norms of a layer whose gains are not all the same, known to be tested or not."""
    return {
        role
        for (role, at), gain in sample.norms.items()
        if at == layer and len(np.unique(gain)) > 1
    }
