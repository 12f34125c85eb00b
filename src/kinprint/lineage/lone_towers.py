"""Towers that meet none of the other model: nothing compares them, and they count all the same.

A tower for pictures that only one model has, or whose like in the other model has another width,
is as much a part of its model as those that were compared. What is said of two models is said of
it too: that it was read or not, and that nothing of it is known to be shared.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from msgspec.structs import replace

from kinprint.lineage.part_findings import Sharing, in_order
from kinprint.lineage.reading.sample import Extent, Sample
from kinprint.records import Part, PartFinding, PartState, Reason


def lone_towers(
    ours: Sequence[Sample], theirs: Sequence[Sample], places: Sequence[tuple[int, int]]
) -> Sharing:
    """What is known about the parts of towers that were compared with none.

    Parameters
    ----------
    ours, theirs : all towers of the two models.
    places : which of them meet.
    """
    first = _lone(ours, {at for at, _ in places})
    second = _lone(theirs, {to for _, to in places})
    own = [
        _finding(part, extent, second.get(part), _why(part, theirs, Reason.TOWER_MISSING))
        for part, extent in first.items()
    ]
    alone = [
        replace(one, partner=part)
        for part, extent in second.items()
        if part not in first
        for one in (_finding(part, extent, None, _why(part, ours, Reason.TOWER_ONLY_THERE)),)
    ]
    return Sharing(in_order(own), in_order(alone))


def _lone(towers: Sequence[Sample], met: Container[int]) -> dict[Part, Extent]:
    """The parts of towers that meet none."""
    return {
        part: extent
        for at, tower in enumerate(towers)
        if at not in met
        for part, extent in tower.parts.items()
    }


def _why(part: Part, others: Sequence[Sample], missing: Reason) -> Reason:
    """Why a part was not compared with any of the other model's towers.

    A tower that is not known of a model may lie in a file whose header was not read.
    """
    if any(one.tower == part.tower for one in others):
        return Reason.TOWER_UNLIKE
    return Reason.PART_NOT_READ if any(one.partial for one in others) else missing


def _finding(part: Part, extent: Extent, other: Extent | None, reason: Reason) -> PartFinding:
    """A part that nothing is known of, and the `other` model's in its place, if there is one.

    Of two the larger counts, whichever is called the first: that the smaller is the whole is for
    what was pruned or widened, and nobody knows that.
    """
    both = [extent] if other is None else [extent, other]
    read = 0.0 if reason is Reason.PART_NOT_READ else min(one.share for one in both)
    return PartFinding(
        part,
        None if other is None else part,
        PartState.NOT_COMPARABLE if read else PartState.NOT_READ,
        reason=reason.message(),
        weights=max(one.weights for one in both),
        read=read,
    )
