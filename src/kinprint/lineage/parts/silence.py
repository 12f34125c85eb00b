"""Why nothing can be said of a part: no test sees it, none would see a renumbered copy, the other
model has no such part, or nobody has read it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
from msgspec.structs import replace

from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.equality import EqualNumbers
from kinprint.lineage.parts.scores import part_of
from kinprint.lineage.preparation import FEWEST_TOKENS, Prepared
from kinprint.lineage.reading.sample import OUTSIDE, Extent, Sample
from kinprint.lineage.side import Side
from kinprint.records import Component, Group, Part, PartFinding, PartState, Reason
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
UNITED = (Component.FEED_FORWARD, Component.EXPERT)
"""Matrices that have a row for each unit."""
MOST_READ = 0.5
"""Of a part that is packed in places: less says nothing of its matrices."""


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
            ours = {role for role, layer in first.scores.by_norm if layer == at}
            theirs = {role for role, layer in second.scores.by_norm if layer == to}
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


def only_there(
    part: Part, extent: Extent, known: Collection[Part], packed: bool, alone: Message
) -> PartFinding:
    """A part of the second model that has no counterpart; it counts as much as one of the first.

    It may be `known` in the first model too, where it met another one, or what it may be made of,
    or `packed` there; `alone` says why it has none where it was read.
    """
    nothing = PartFinding(part, part, PartState.NOT_READ, weights=extent.weights, of_second=True)
    if (packed and part not in known) or (extent.packed and extent.share < MOST_READ):
        return replace(nothing, reason=Reason.PART_PACKED.message())
    if extent.read:
        state = PartState.NOT_COMPARABLE
        return replace(nothing, state=state, reason=alone, read=extent.share)
    here = Reason.PART_UNREAD_HERE if may_answer(known, part) else Reason.PART_MISSING
    unread = Reason.PART_NOT_READ if part in known else here
    return replace(nothing, reason=unread.message(), read=extent.share)


def not_met(part: Part, extent: Extent) -> PartFinding:
    """A part of the second model of which what would answer to it was not read in the first."""
    reason = Reason.PART_NOT_READ.message()
    nothing = PartFinding(part, part, PartState.NOT_READ, reason=reason, weights=extent.weights)
    return replace(nothing, of_second=True)


def may_be_hidden(part: Part, side: Side, known: Mapping[Part, Extent]) -> bool:
    """Whether a part that is not known of a model may lie in a file whose header was not read.

    What no layer that is known has, others will not have either.
    """
    if part in known or not side.prepared.sample.partial:
        return False
    return part.layer is None or any(one.component is part.component for one in known)


def may_answer(known: Iterable[Part], part: Part) -> bool:
    """Whether a model has feed-forwards, which experts are made of, or the other way round."""
    return part.component in UNITED and any(one.component in UNITED for one in known)


def unread_there(part: Part, known: Mapping[Part, Extent]) -> bool:
    """Whether a layer has other feed-forwards in place of one, experts, and none of them was read.

    Each may be made of it.
    """
    others = [
        extent
        for one, extent in known.items()
        if one.layer == part.layer and one.component in UNITED and part.component in UNITED
    ]
    return bool(others) and part not in known and not any(one.read for one in others)


def has_nameless_codes(parts: Mapping[Part, Extent]) -> bool:
    """Whether a model holds packed weights whose names do not say what they are."""
    return any(one.packed for part, one in parts.items() if part.component is Component.OTHER)


def packed_finding(finding: PartFinding, ours: Extent, theirs: Extent) -> PartFinding:
    """The finding of a part that is packed in a model: the numbers are those of the other."""
    plain = next((one for one in (ours, theirs) if not one.packed), ours)
    reason = Reason.PART_PACKED.message()
    return replace(finding, reason=reason, weights=plain.weights, read=0.0)
