"""Towers that meet none of the other model: nothing compares them, and they count all the same.

A tower for pictures that only one model has, or whose like in the other model has another width,
is as much a part of its model as those that were compared. What is said of two models is said of
it too: that it was read or not, and that nothing of it is known to be shared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kinprint.lineage.part_findings import Sharing, in_order
from kinprint.lineage.reading.sample import Extent, Sample
from kinprint.records import Part, PartFinding, PartState, Reason

_NOTHING = Extent()


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
    here, there = ({one.tower for one in towers} for towers in (ours, theirs))
    own = [
        _finding(part, extent, _partner(part, second), _why(part, there, Reason.TOWER_MISSING))
        for part, extent in first.items()
    ]
    alone = [
        _finding(part, extent, (part, _NOTHING), _why(part, here, Reason.TOWER_ONLY_THERE))
        for part, extent in second.items()
        if part not in first
    ]
    return Sharing(in_order(own), in_order(alone))


def _lone(towers: Sequence[Sample], met: set[int]) -> dict[Part, Extent]:
    """The parts of towers that meet none."""
    return {
        part: extent
        for at, tower in enumerate(towers)
        if at not in met
        for part, extent in tower.parts.items()
    }


def _partner(part: Part, second: Mapping[Part, Extent]) -> tuple[Part | None, Extent]:
    """The part in the same place of a tower that is called the same and meets none either."""
    return (part, second[part]) if part in second else (None, _NOTHING)


def _why(part: Part, others: set[str], missing: Reason) -> Reason:
    return Reason.TOWER_UNLIKE if part.tower in others else missing


def _finding(
    part: Part, extent: Extent, partner: tuple[Part | None, Extent], reason: Reason
) -> PartFinding:
    """A part that nothing is known of; of two the larger counts, whichever is called the first.

    That the smaller of two is the whole is for what was pruned or widened, and nobody knows that.
    """
    other, there = partner
    both = [one for one in (extent, there) if one.weights]
    read = min((one.share for one in both), default=0.0)
    return PartFinding(
        part, other, PartState.NOT_COMPARABLE if read else PartState.NOT_READ,
        reason=reason.message(), read=read, weights=max(extent.weights, there.weights),
    )  # fmt: skip
