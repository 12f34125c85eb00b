"""What is known about all parts of two models: seen from either of them, and of all towers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kinprint.lineage.reading.parts import TABLES
from kinprint.records import Part, PartFinding, PartState, Reason
from kinprint.text import Message

_SILENT = (Reason.PART_WITHOUT_TEST, Reason.PART_CHANNELS_RENAMED, Reason.PART_TRAINED_ANEW)


class Sharing(Struct, frozen=True):
    """What is known about the parts of two models.

    Attributes
    ----------
    own : every part of the first model.
    alone : the parts of the second model that no part of the first was found to answer to.
    arranged : the likeness of feed-forwards that strangers of this shape can be given.
    hidden : about how many weights no part is known of, in files whose headers were not read.
    """

    own: tuple[PartFinding, ...] = ()
    alone: tuple[PartFinding, ...] = ()
    arranged: float = 1.0
    hidden: int = 0

    @property
    def parts(self) -> tuple[PartFinding, ...]:
        """Every part of the first model, then those that only the second has."""
        return self.own + self.alone

    @property
    def pairs(self) -> int:
        """How many pairs of parts could have met, whichever model is called the first."""
        ours = {one.part for one in self.own}
        theirs = {one.partner for one in self.own if one.partner} | {one.part for one in self.alone}
        return max(len(ours), 1) * max(len(theirs), 1)

    def beside(self, lone: Sharing) -> Sharing:
        """The same with what is known about towers that were compared with none."""
        return replace(self, own=self.own + lone.own, alone=self.alone + lone.alone)

    def swapped(self) -> Sharing:
        """The same with the second model called the first."""
        own = [
            replace(one, partner=None, reason=_answerless(one, here=True), of_second=False)
            for one in self.alone
        ]
        alone: list[PartFinding] = []
        met: set[Part | None] = {None}
        in_place = sorted(self.own, key=lambda one: one.part != one.partner)
        for one in sorted(in_place, key=lambda one: not one.state.linked):
            if one.partner in met and not one.state.linked:
                alone.append(_alone(one))
            elif one.partner is not None:
                met.add(one.partner)
                own.append(replace(one, part=one.partner, partner=one.part))
        return Sharing(in_order(own), in_order(alone), self.arranged, self.hidden)


def _alone(finding: PartFinding) -> PartFinding:
    """A part of the second model without a partner."""
    reason = _answerless(finding, here=False)
    return replace(finding, partner=finding.part, reason=reason, of_second=True)


def _answerless(finding: PartFinding, here: bool) -> Message | None:
    """Why a part has no partner, if that is all there is to say of it.

    A table that tests are silent of may have one: that of another tower, or a tied embedding.
    """
    silent = finding.reason is not None and finding.reason.key in _SILENT
    table = finding.part.component in TABLES and silent
    if table or finding.state is not PartState.NOT_COMPARABLE:
        return finding.reason
    return (Reason.PART_UNANSWERED if here else Reason.PART_ONLY_THERE).message()


def in_order(findings: Iterable[PartFinding]) -> tuple[PartFinding, ...]:
    """Findings in the order of their parts."""
    return tuple(sorted(findings, key=lambda one: order(one.part)))


def joined(towers: Sequence[Sharing]) -> Sharing:
    """What is known about all towers: a tower may meet several, and what is linked counts."""
    found = [finding for sharing in towers for finding in sharing.own]
    linked = {one.part for one in found if one.state.linked}
    best: dict[tuple[Part, Part | None], PartFinding] = {}
    for one in found:
        if one.part in linked and not one.state.linked:
            continue
        key = one.part, one.partner if one.state.linked else None
        known = best.get(key)
        if known is None or _says(one) < _says(known):
            best[key] = one
    met = {one.partner for one in best.values()}
    alone = {
        one.part: _alone(one)
        for sharing in towers
        for one in sharing.swapped().own
        if one.part not in met
    }
    arranged = max(one.arranged for one in towers)
    hidden = sum(one.hidden for one in towers)
    return Sharing(tuple(best.values()), in_order(alone.values()), arranged, hidden)


def _says(finding: PartFinding) -> tuple[bool, int, float]:
    """The order of findings about one part; without a link its like in place answers to it."""
    elsewhere = not finding.state.linked and finding.partner != finding.part
    strength = tuple(PartState).index(finding.state)
    return elsewhere, strength, 0.0 if finding.log10_p is None else finding.log10_p


def order(part: Part) -> tuple[str, int, str, int]:
    """Parts as a reader meets them, tower by tower and layer by layer."""
    layer = -1 if part.layer is None else part.layer
    return part.tower, layer, part.component, part.expert or 0
