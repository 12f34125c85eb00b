"""Towers that meet none of the other model: nothing compares them, and they count all the same.

A tower for pictures that only one model has, or whose like in the other model has another width,
is as much a part of its model as those that were compared. What is said of two models is said of
it too: that it was read or not, and that nothing of it is known to be shared.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kinprint.lineage.parts.findings import Sharing, in_order
from kinprint.lineage.reading.sample import Extent, Sample
from kinprint.records import Part, PartFinding, PartState, Reason


class ModelTowers(Struct, frozen=True):
    """All towers of a model, and parts of it that belong to none of them, with their sizes."""

    samples: Sequence[Sample]
    unclaimed: Mapping[Part, int] = {}

    def lone(self, met: Container[int]) -> dict[Part, Extent]:
        """The parts of towers that meet none, and of what nobody reads."""
        extents = {
            part: extent
            for at, tower in enumerate(self.samples)
            if at not in met
            for part, extent in tower.parts.items()
        }
        return {part: Extent(count) for part, count in self.unclaimed.items()} | extents

    def why_not(self, part: Part, missing: Reason) -> Reason:
        """Why a part of another model was not compared with any of these towers.

        A tower that is not known of a model may lie in a file whose header was not read.
        """
        if any(one.tower == part.tower for one in self.samples):
            return Reason.TOWER_UNLIKE
        if self.partial:
            return Reason.PART_NOT_READ
        here = any(one.tower == part.tower for one in self.unclaimed)
        return Reason.TOWER_UNLIKE if here else missing

    @property
    def partial(self) -> bool:
        """Whether only some of the headers were read."""
        return any(one.partial for one in self.samples)


def lone_towers(
    ours: ModelTowers, theirs: ModelTowers, places: Sequence[tuple[int, int]]
) -> Sharing:
    """What is known about the parts of towers that were compared with none.

    Parameters
    ----------
    ours, theirs : all towers of the two models.
    places : which of them meet.
    """
    first = ours.lone({at for at, _ in places})
    second = theirs.lone({to for _, to in places})
    open_ = ours.partial or theirs.partial  # how long parts are is not known
    untested = {
        part
        for part in ours.unclaimed.keys() & theirs.unclaimed.keys()
        if open_ or ours.unclaimed[part] == theirs.unclaimed[part]
    }

    def why(part: Part, others: ModelTowers, missing: Reason) -> Reason:
        return Reason.TOWER_UNTESTED if part in untested else others.why_not(part, missing)

    only_there = Reason.TOWER_ONLY_THERE
    own = [
        _finding(part, extent, second.get(part), why(part, theirs, Reason.TOWER_MISSING))
        for part, extent in first.items()
    ]
    alone = [
        replace(
            _finding(part, extent, None, why(part, ours, only_there)), partner=part, of_second=True
        )
        for part, extent in second.items()
        if part not in first
    ]
    return Sharing(in_order(own), in_order(alone))


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
