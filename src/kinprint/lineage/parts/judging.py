"""Two parts, one state: what tests of a part and its equal numbers say together.

`survey.py` has the table of states.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.lineage.charge import Charge
from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.equality import ComparedNumbers, EqualNumbers
from kinprint.lineage.parts.gains import column_likeness, gain_likeness
from kinprint.lineage.parts.scores import HEAD, MATCHED_COLUMNS, TABLE, PartScore
from kinprint.lineage.parts.shares import MOSTLY, linked_share, sure_shares
from kinprint.lineage.parts.silence import (
    MOST_READ,
    UNITED,
    has_nameless_codes,
    may_answer,
    may_be_hidden,
    packed_finding,
    refused,
    why_not,
)
from kinprint.lineage.parts.taken_over import MATRICES, TRAINED, TURNABLE, Limits, limits_of
from kinprint.lineage.parts.tensors import tensor_sizes
from kinprint.lineage.reading.sample import Extent
from kinprint.lineage.side import Side
from kinprint.mapped import let_go
from kinprint.model.places import Address
from kinprint.records import Component, Part, PartFinding, PartState, Reason, Role
from kinprint.text import Message

COPIED = 0.35
"""The excess of matched rows from which on a part is a copy. Continued training as long as
pre-training leaves an excess of 0.56 or more. Attention that was made anew in the basis of its
model reaches 0.09 with a correlation of 0.39, rows that were drawn apart over one steep covariance
0.08 with 0.76, twins of one initialisation 0.16."""
ALONE = 0.75
"""The excess of the matrices of a feed-forward that are alike, where others of it are not."""
RETRAINED = 0.45
"""The correlation of columns of heads up to which a head that was trained anew over the same layers
explains it: after 900 steps one reached 0.31 with that of its model, two of them 0.19 with each
other (by hand, on the layers of a model of the zoo). Longer training may come nearer. Tables keep
0.6 after continued training as long as pre-training."""
CLOSER = 0.1
"""How much more alike norms of another layer are, where those are the ones that were copied."""


class Score(Struct, frozen=True):
    """A score of a part, seen from the model that is called the first."""

    part: Part
    partner: Part
    score: PartScore

    @property
    def order(self) -> tuple[float, float, bool]:
        """Which of several partners comes first: what differs by rounding alone is equal."""
        by_chance, alike = round(self.score.log10_p, 1), round(self.score.likeness, 3)
        return by_chance, -alike, self.partner != self.part

    @classmethod
    def seen_from(cls, score: PartScore, first: bool) -> Score:
        """The score where the model called the first is the `first` of the pair, or the other."""
        part, partner = score.parts if first else reversed(score.parts)
        return cls(part, partner, score)


class Judge(Struct, frozen=True):
    """Gives every part of `a` its state; `count` is how many tests of parts must be paid for,
    `moved` how far gains have moved from their start, and `numbers` compares two parts, once."""

    pair: Pair
    a: Side
    b: Side
    ours: Mapping[Part, Extent]
    theirs: Mapping[Part, Extent]
    scores: Mapping[Part, Sequence[Score]]
    count: int
    charge: Charge
    copies: Mapping[Part, Sequence[Part]]
    moved: float
    numbers: Callable[[Part, Part], ComparedNumbers]

    @property
    def limits(self) -> Limits:
        """From which likeness on parts were taken over."""
        return limits_of(self.a.prepared.width, self.b.prepared.width)

    def turnable(self, table: PartFinding) -> bool:
        """Whether few rows of a table were read beside the channels that they have."""
        width = max(self.a.prepared.width, self.b.prepared.width)
        return table.weights * table.read < TURNABLE * width**2

    def finding(self, part: Part) -> PartFinding:
        """What is known about one part and the one that is most alike, or else in its place."""
        let_go()
        if part == HEAD and self.tied:
            return self._written_again(HEAD, HEAD if HEAD in self.theirs else TABLE)
        # An embedding that is the head as well has its own partner first.
        scores = [one for one in self.scores.get(part, ()) if (part, one.partner) != (TABLE, HEAD)]
        best = min(scores, key=lambda one: one.order, default=None)
        if best is not None and best.partner != part:
            found = self._between(part, best.partner, self.ours[part])
            if found.state.linked and not self._is_of_another(found):
                return found
        partner = _output(self.b, self.theirs) if part == HEAD else part
        in_place = self._between(part, partner, self.ours[part])
        if in_place.state.same:
            return in_place
        elsewhere = (self._between(part, to, self.ours[part]) for to in self.copies[part])
        if self._is_of_another(in_place):
            reason, state = Reason.PART_UNANSWERED.message(), PartState.NOT_COMPARABLE
            in_place = replace(
                in_place, state=state, learnt=None, share=1.0, least=None, reason=reason
            )
        linked = in_place.state.linked
        closer = (
            one
            for one in elsewhere
            if one.state is PartState.EQUAL or (one.state.linked and not linked)
        )
        return next(closer, in_place)

    def why_alone(self, part: Part) -> Message:
        """Why a part of the second model has no partner; to a head a tied embedding answers."""
        ours = _output(self.a, self.ours) if part == HEAD else part
        found = None if ours == part else self._between(ours, part, self.theirs[part]).reason
        return found or Reason.PART_ONLY_THERE.message()

    @property
    def tied(self) -> bool:
        """Whether no model has another head than its embedding, which may be written again."""
        sides = (self.a, self.ours), (self.b, self.theirs)
        return all(TABLE in parts and _is_tied(side, HEAD in parts) for side, parts in sides)

    def _written_again(self, part: Part, partner: Part) -> PartFinding:
        """What is known of a head that is the embedding."""
        size = self.ours[HEAD] if part == HEAD else self.theirs[partner]
        other = self.theirs[partner]
        return replace(
            self.finding(TABLE),
            part=part,
            partner=partner,
            weights=size.weights,
            partner_weights=other.weights,
            read=min(size.share, other.share),
        )

    @property
    def repeated(self) -> dict[Part, Part]:
        """Parts of the second model that hold a row of one of the first, by place."""
        return {to: part for part, all_of in self.copies.items() for to in all_of}

    def _is_of_another(self, finding: PartFinding) -> bool:
        """Whether norms are only alike, and one of them is closer to those of another layer.

        Gains of neighbouring layers are alike.
        """
        part, partner = finding.part, finding.partner
        alike = finding.state is PartState.SHARED and part.component is Component.NORMS
        if not alike or partner is None:
            return False
        closer = (finding.likeness or 0.0) + CLOSER
        if any(
            (one.part == part) is not (one.partner == partner) and self._is_closer(one, closer)
            for scores in self.scores.values()
            for one in scores
        ):
            return True
        copies = [(part, to) for to in self.copies[part]]
        if partner in self.repeated:
            copies.append((self.repeated[partner], partner))
        others = (self._between(*pair, self.theirs[pair[1]]) for pair in copies)
        return any(one.state is PartState.EQUAL for one in others)

    def _is_closer(self, score: Score, likeness: float) -> bool:
        """Whether norms are linked, and more alike than that."""
        norms = score.part.component is Component.NORMS
        return norms and score.score.likeness >= likeness and self._significant(score.score)

    def further(self, known: Sequence[PartFinding]) -> list[PartFinding]:
        """Parts of the second model that are linked to a part with a closer partner.

        Experts made of one feed-forward, and a head that is the embedding written again.
        """
        met = {one.partner for one in known}
        pairs = {
            one.partner: one.part
            for scores in self.scores.values()
            for one in scores
            if one.partner not in (*met, HEAD) and self._significant(one.score)
        }
        pairs |= {
            to: part for part, all_of in self.copies.items() for to in all_of if to not in met
        }
        further = (self._between(part, to, self.theirs[to]) for to, part in pairs.items())
        found = [one for one in further if one.state.linked and not self._is_of_another(one)]
        # A layer may be there several times, in the place of others that have no like.
        linked = {one.partner for one in (*known, *found) if one.state.linked}
        repeated = (
            self._between(part, to, self.theirs[to])
            for to, part in self.repeated.items()
            if to not in linked
        )
        found += [one for one in repeated if one.state is PartState.EQUAL]
        if HEAD in self.theirs and HEAD not in met and TABLE in self.ours:
            head = (
                self._written_again(TABLE, HEAD)
                if self.tied
                else self._between(TABLE, HEAD, self.theirs[HEAD])
            )
            found += [head] if head.state.linked else []
        return found

    def equal(self, finding: PartFinding) -> EqualNumbers:
        """How the numbers of a part and its partner agree, whatever tests say."""
        if finding.partner is None:
            return EqualNumbers(False, False)
        return self.numbers(finding.part, finding.partner).told(tested=False)

    def as_stored(self, finding: PartFinding) -> bool:
        """Whether a linked matrix is so in the basis in which both models are stored."""
        if finding.part.component not in (*MATRICES, Component.EMBEDDING):
            return False
        if finding.state is not PartState.SHARED:
            return True
        scores = (one.score for one in self.scores.get(finding.part, ()))
        return any(one.as_stored and self._significant(one) for one in scores)

    def _significant(self, score: PartScore) -> bool:
        """Whether a test of a part says that it is shared.

        Columns agree in layers that were trained over one residual stream, too: rows of a copy must
        be more alike than those of it that do not belong together. So do columns of heads.
        """
        if self._may_be_retrained(score):
            return False
        copied = score.test != MATCHED_COLUMNS or score.excess >= COPIED
        # One matrix of a feed-forward alone may have been copied, or some rows.
        united = score.parts[0].component in UNITED and score.excess >= ALONE * score.share
        alone = united or (score.copies and score.likeness >= ALONE * score.share)
        return (copied or alone) and self._is_unlikely(score)

    def _is_unlikely(self, score: PartScore) -> bool:
        """Whether chance alone does not explain a test of a part."""
        return self.charge.significant_part(score.log10_p, self.count)

    def _may_be_retrained(self, score: PartScore) -> bool:
        """Whether a head is no more alike than one that was trained anew over the same layers."""
        unlike = score.likeness < RETRAINED * score.share
        return HEAD in score.parts and unlike and self._is_unlikely(score)

    def _between(self, part: Part, partner: Part, size: Extent) -> PartFinding:
        """What is known about two parts; `size` is that of the one that is counted."""
        ours, theirs = self.ours[part], self.theirs.get(partner)
        nothing = PartFinding(
            part, partner, PartState.NOT_READ,
            reason=Reason.PART_NOT_READ.message(), weights=size.weights, read=size.share,
        )  # fmt: skip
        if theirs is None:
            return self._without_partner(nothing, partner)
        if any(one.packed and one.share < MOST_READ for one in (ours, theirs)):
            return packed_finding(nothing, ours, theirs)
        needs = _needs(ours, theirs)
        nothing = replace(
            nothing,
            read=min(ours.share, theirs.share),
            needs=needs,
            basis=ours.basis + theirs.basis if needs else 0,
        )
        return self._compared(nothing, partner, size) if ours.read and theirs.read else nothing

    def _without_partner(self, nothing: PartFinding, partner: Part) -> PartFinding:
        """What is known about a part where the other model is not known to have its partner."""
        part, ours = nothing.part, self.ours[nothing.part]
        if has_nameless_codes(self.theirs):
            return replace(nothing, read=0.0, reason=Reason.PART_PACKED.message())
        if may_be_hidden(partner, self.b, self.theirs):
            return replace(nothing, read=0.0)
        state = PartState.NOT_COMPARABLE if ours.read else PartState.NOT_READ
        missing = Reason.PART_MISSING
        if may_answer(self.theirs, part):
            missing = Reason.PART_UNANSWERED if ours.read else Reason.PART_UNREAD_HERE
        return replace(nothing, partner=None, state=state, reason=missing.message())

    def _compared(self, nothing: PartFinding, partner: Part, size: Extent) -> PartFinding:
        """What tests and equal numbers say of two parts that were read in both models."""
        part = nothing.part
        ours, theirs = self.ours[part], self.theirs[partner]
        scores = [one.score for one in self.scores.get(part, ()) if one.partner == partner]
        found = [one for one in scores if self._significant(one)]
        # What no test speaks of follows the other parts; gains of strangers are too much alike.
        untested = not scores and part.component is not Component.NORMS
        tested = bool(found) or (self.count > 0 and untested)
        equal = self.numbers(part, partner).told(tested)
        known = [one.log10_p + math.log10(len(scores)) for one in scores]
        # One row of equal numbers among all arrangements of it: channels are numbered by chance.
        known += [-equal.information] if equal.information else []
        likeness = max((one.likeness for one in scores), default=None)
        state, share = _state(equal, found), 1.0
        as_stored = equal.any or any(one.as_stored for one in found)
        least = None
        if state.linked:
            share, likeness = linked_share(equal, found)
        kept = self._kept(equal) and (equal.all or share <= MOSTLY * equal.share)
        if state is PartState.SHARED:
            both = (self.a, part), (self.b, partner)
            of_smaller, of_larger = sure_shares(self.pair, *both, found, share)
            more = share > equal.share  # than what is equal
            share = max(equal.share, min(share, of_smaller))
            least = max(equal.least, min(share, of_larger)) if more else equal.least
            least *= _larger(ours, theirs) / max(size.weights, theirs.weights, 1)
        ours_of, theirs_of = (self.a.prepared, part), (self.b.prepared, partner)
        reason = None
        if not state.linked and any(self._may_be_retrained(one) for one in scores):
            reason = Reason.PART_TRAINED_ANEW.message()
        elif not state.linked and any(self._is_unlikely(one) for one in scores):
            reason = Reason.PART_ONE_STREAM.message()
        elif not state.linked:
            reason = why_not(self.pair, ours_of, theirs_of, nothing.needs, equal, bool(scores))
        return replace(
            nothing,
            least=least,
            partner_weights=theirs.weights,
            state=state,
            likeness=likeness,
            log10_p=min((*known, 0.0)) if known else None,
            gains=self._gains(part, partner, likeness or 0.0) if as_stored else None,
            learnt=True if kept or self._copied(found) else None,
            share=share,
            bits=equal.bits if state is PartState.ROUNDED else None,
            reason=reason,
            needs=nothing.needs if self._may_need(part) and not state.linked else None,
            tests=tuple(sorted({one.test for one in (found or scores)})),
        )

    def at_least(self, finding: PartFinding) -> PartFinding:
        """A part of which some rows are equal, where tests do not say that the rest was copied.

        Whoever puts a few rows of one model into another must not seem to have taken all of it.
        """
        if finding.state is not PartState.SHARED or finding.learnt or finding.partner is None:
            return finding
        equal = self.equal(finding)
        if not self._kept(equal):
            return finding
        larger = _larger(self.ours[finding.part], self.theirs[finding.partner])
        least = equal.least * larger / max(finding.counted, 1)
        return replace(finding, share=equal.share, least=least, likeness=1.0, learnt=True)

    def _kept(self, equal: EqualNumbers) -> bool:
        """Whether trained models have the equal numbers of a part from each other."""
        return equal.kept or (equal.spared and self.moved >= TRAINED)

    def _copied(self, found: Iterable[PartScore]) -> bool:
        """Whether some rows are copies that are as close as those that were taken over."""
        least = self.limits.matrices
        return any(one.copies and one.likeness >= least * one.share for one in found)

    def _gains(self, part: Part, partner: Part, likeness: float) -> float | None:
        if part.component not in MATRICES or part.component is Component.MIXER:
            return None
        return gain_likeness(self.a.prepared, self.b.prepared, part, partner, likeness)

    def columns(self, finding: PartFinding) -> float | None:
        """The likeness of a part's columns alone, where its gains may have been written in."""
        if finding.gains is None or finding.partner is None:
            return None
        models, parts = (self.a.prepared, self.b.prepared), (finding.part, finding.partner)
        # Gains that were written in agree more than they do together with what they feed.
        least = max(self.limits.gains, finding.gains)
        return column_likeness(*models, *parts, finding.likeness or 0.0, least)

    def _may_need(self, part: Part) -> bool:
        """Whether reading more of a part would decide it."""
        return part.component in MATRICES and not refused(self.pair, part)


def _larger(ours: Extent, theirs: Extent) -> int:
    return max(ours.weights, theirs.weights)


def _needs(ours: Extent, theirs: Extent) -> int | None:
    """Bytes of both models that would decide a part; None where all of it was read, or none do."""
    whole = all(extent.read == extent.weights for extent in (ours, theirs))
    if whole or ours.needs is None or theirs.needs is None:
        return None
    return ours.needs + theirs.needs


def _state(equal: EqualNumbers, found: Sequence[PartScore]) -> PartState:
    if equal.all:
        return PartState.EQUAL if equal.bits is None else PartState.ROUNDED
    if found or equal.any:
        return PartState.SHARED
    return PartState.NOT_COMPARABLE


def _output(side: Side, parts: Container[Part]) -> Part:
    """The table that logits come from: the head, or the embedding that stands for it."""
    return TABLE if side.prepared.tied and TABLE in parts else HEAD


def _is_tied(side: Side, stored: bool) -> bool:
    """Whether a head is the embedding: none is `stored`, or the same rows once more, no bias."""
    sample = side.prepared.stored
    if not stored:
        return True
    table, head = (
        sample.few.get((Address(role), False)) if read is None else (read.ids, read.rows)
        for role, read in ((Role.EMBED, sample.embedding), (Role.LM_HEAD, sample.head))
    )
    if table is None or head is None:
        return False
    again, once = (sum(tensor_sizes(sample, part).values()) for part in (HEAD, TABLE))
    same = np.array_equal(table[0], head[0]) and np.array_equal(table[1], head[1])
    return same and again == once
