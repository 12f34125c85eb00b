"""What of two models is shared, part by part: equal, equal after rounding, shared, or why not.

A part gets the strongest state that something supports, and no stronger one:

| state          | what supports it                                                             |
|----------------|------------------------------------------------------------------------------|
| equal          | all numbers read of it are the same in both models                           |
| rounded        | they are the same after rounding to the grid of the coarser model            |
| shared         | a test of this part alone is significant, paid for all tests of all parts,   |
|                | or one of its tensors is equal, or some rows of one                          |
| no-trace       | no test is, nor near to it, and its rows were matched with all of the other  |
|                | model's, in a basis that is known to be right, so that a copy would have     |
|                | been seen, with whatever numbers, signs and scales of units, turned planes   |
|                | and mixed values                                                             |
| not-comparable | no test is, and a copy with other numbers would not have been seen           |
| not-read       | nothing of it was read in one of the models                                  |

Whether a shared part was taken over, `taken_over.py` tells.
"""

from __future__ import annotations

import math
from collections.abc import (
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from functools import cache, partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kinprint.lineage.alignment.residual import MapSource
from kinprint.lineage.charge import Charge
from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.columns import UNLIKE
from kinprint.lineage.parts.equality import (
    ComparedNumbers,
    EqualNumbers,
    compare_numbers,
    copies,
    information_for,
)
from kinprint.lineage.parts.findings import Sharing, in_order, order
from kinprint.lineage.parts.gains import gain_likeness
from kinprint.lineage.parts.other_roles import in_other_roles
from kinprint.lineage.parts.scores import HEAD, MATCHED_COLUMNS, TABLE, PartScore, part_scores
from kinprint.lineage.parts.shares import (
    MOSTLY,
    counted_once,
    linked_share,
    sure_shares,
)
from kinprint.lineage.parts.silence import refused, why_not
from kinprint.lineage.parts.taken_over import MATRICES, TRAINED, TURNABLE, Limits, judged, limits_of
from kinprint.lineage.parts.tensors import tensor_sizes
from kinprint.lineage.parts.untrained import marked, without_untrained
from kinprint.lineage.reading.sample import Extent, Sample
from kinprint.lineage.side import Side
from kinprint.lineage.tests.invariants import agreeing_layers
from kinprint.lineage.tests.registry import registered_test
from kinprint.mapped import let_go
from kinprint.records import (
    Component,
    Evidence,
    Group,
    Part,
    PartFinding,
    PartState,
    Reason,
)
from kinprint.text import Message

ARRANGED_NORMS = 0.85
"""What numbering the channels of a stranger anew gives the mean correlation of k gains over d
channels, as a share of √(2 ln d / k), with a margin: 0.79 of it was measured at d = 128, k = 13."""
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
ABLE = 0.75
"""The share of the least log10 p of a test that a copy may be counted on to reach. Columns of many
rows tell channels apart from a correlation of 0.2 on."""
CLOSER = 0.1
"""How much more alike norms of another layer are, where those are the ones that were copied."""
HINT = -3.0
"""A part with a log10 p up to this is not called free of traces."""
ARRANGED, TURNED = 1.25, 0.35
"""How alike strangers' feed-forwards can be made. Units assigned so as to be most alike, at widths
64 and 128: 0.87 to 0.90 of the best of n random rows, and `ARRANGED` of it is allowed for. The
residual stream turned as well, in turns with the units: 0.26 at width 64, 0.31 at width 128 between
strangers of the same data. Values can be mixed freely, which makes attention up to 0.57 alike: it
tells nothing here."""

_MOST_READ = 0.5  # of a part that is packed in places: less says nothing of its matrices
_UNITED = (Component.FEED_FORWARD, Component.EXPERT)  # matrices that have a row for each unit


def find_sharing(pair: Pair, a: Side, evidence: Sequence[Evidence], charge: Charge) -> Sharing:
    """The state of every part of the first model given, `a`, and of parts that only the other has.

    Each part of the model that has more of them looks for its partner, whichever is called first,
    so that the order makes no difference.

    Parameters
    ----------
    pair : the two models, with what the tests have aligned.
    a : the model that is called the first.
    evidence : what the tests of the menu gave.
    charge : what a p-value costs.
    """
    larger = max(pair.sides, key=lambda side: len(side.prepared.sample.parts))
    sharing = _sharing_of(pair, larger, evidence, charge)
    return sharing if a is larger else sharing.swapped()


def _sharing_of(pair: Pair, a: Side, evidence: Sequence[Evidence], charge: Charge) -> Sharing:
    """What every part of `a` shares with the other model."""
    linked = any(charge.significant(one) for one in evidence)
    scores = part_scores(pair, evidence) if linked else ()
    b = pair.sides[1] if a is pair.sides[0] else pair.sides[0]
    ours, theirs = (_extents(side.prepared.sample) for side in (a, b))
    by_part: dict[Part, list[_Score]] = {}
    for score in scores:
        one = _Score.seen_from(score, a is pair.sides[0])
        if one.part in ours and one.partner in theirs:
            by_part.setdefault(one.part, []).append(one)
    found = copies(a.prepared.stored, b.prepared.stored, ours, theirs)
    samples = a.prepared.stored, b.prepared.stored
    least = information_for(len(ours) * len(theirs))  # every part may meet every other one
    numbers = cache(lambda part, partner: compare_numbers(*samples, part, partner, least))
    judge = _Judge(
        pair, a, b, ours, theirs, by_part, len(scores), charge, found, _moved(evidence), numbers
    )
    own = [judge.finding(part) for part in sorted(ours, key=order)]
    own = counted_once([*own, *judge.further(own)])
    towers = a.prepared.sample.tower, b.prepared.sample.tower
    told = judged(
        own,
        judge.limits,
        judge.moved,
        arranged_norms(pair),
        partial(_carried_gains, pair, a),
        judge.as_stored,
        lambda one: marked(one, *samples),
        judge.turnable,
    )
    told = list(without_untrained([judge.at_least(one) for one in told], *samples))
    met = {one.partner for one in own}
    packed = _has_nameless_codes(ours)
    alone = (
        _not_met(part, extent)
        if _may_be_hidden(part, a, ours) or _unread_there(part, ours)
        else _only_there(part, extent, ours, packed, judge.why_alone(part))
        for part, extent in theirs.items()
        if part not in met
    )
    agreeing = agreeing_layers(evidence, first=a is pair.sides[0])
    completed = judge.completed(told)
    settled = [_with_invariants(one, agreeing) for one in judge.settled(completed, agreeing)]
    if not any(one.state.linked for one in settled):
        tests = [registered_test(one) for one in evidence if charge.significant(one)]
        settled = [_together(one, {test.component for test in tests}) for one in settled]
    return Sharing(
        tuple(_in_towers(one, *towers) for one in settled),
        in_order(_in_towers(one, towers[1], towers[1]) for one in alone),
        arranged_likeness(pair),
        max(side.prepared.sample.hidden for side in (a, b)),
    )


def arranged_likeness(pair: Pair) -> float:
    """The most that renumbering and turning gives the mean correlation of strangers' units.

    The best of n sums of m cosines between random rows of d numbers is about √(2 m ln n / d).
    """
    parts = [part for side in pair.sides for part in side.prepared.feed_forwards]
    if not parts:
        return 1.0
    width, units = min(part.width for part in parts), max(part.total for part in parts)
    matrices = min(len(part.read) for part in parts)
    if units < 2 or not matrices:
        return 1.0
    best = math.sqrt(2.0 * matrices * math.log(units) / width) / matrices
    return min(1.0, max(TURNED, ARRANGED * best))


def arranged_norms(pair: Pair) -> Callable[[float], float]:
    """The most that numbering channels anew gives the mean correlation of strangers' gains.

    By the number of gains that must agree. A number out of d says log₂ d bits of k gains, which
    leaves d^(−2/k) of their variance or more.
    """
    width = max(pair.sides[0].prepared.width, 2)

    def most(gains: float) -> float:
        vectors = max(gains / width, 1.0)
        likely = ARRANGED_NORMS * math.sqrt(2.0 * math.log(width) / vectors)
        return min(likely, math.sqrt(1.0 - width ** (-2.0 / vectors)))

    return most


class _Score(Struct, frozen=True):
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
    def seen_from(cls, score: PartScore, first: bool) -> _Score:
        part, partner = score.parts if first else reversed(score.parts)
        return cls(part, partner, score)


class _Judge(Struct, frozen=True):
    """Gives every part of `a` its state; `count` is how many tests of parts must be paid for,
    `moved` how far gains have moved from their start, and `numbers` compares two parts, once."""

    pair: Pair
    a: Side
    b: Side
    ours: Mapping[Part, Extent]
    theirs: Mapping[Part, Extent]
    scores: Mapping[Part, Sequence[_Score]]
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
        partner = _output(self.theirs) if part == HEAD else part
        in_place = self._between(part, partner, self.ours[part])
        if in_place.state in (PartState.EQUAL, PartState.ROUNDED):
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
        ours = _output(self.ours) if part == HEAD else part
        found = None if ours == part else self._between(ours, part, self.theirs[part]).reason
        return found or Reason.PART_ONLY_THERE.message()

    @property
    def tied(self) -> bool:
        """Whether the heads of both models are their embeddings, some of them written again."""
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

    def _is_closer(self, score: _Score, likeness: float) -> bool:
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

    def completed(self, findings: Sequence[PartFinding]) -> list[PartFinding]:
        """Findings where what tells nothing by itself follows matrices that are all the same.

        Gains that are one in both models, and gains that a short float rounds to a constant, are
        equal in strangers too. Beside matrices that are equal on the same grid they are no doubt.
        """
        matrices = [one for one in findings if one.part.component in MATRICES]
        read = [one for one in matrices if one.state is not PartState.NOT_READ]
        if not read or not all(one.state.linked for one in read):
            return list(findings)
        grids: set[int | None] = {None}
        for one in read:
            equal = self._equal(one)
            if not equal.consistent:
                return list(findings)
            grids.add(equal.bits)
        return [self._completed(one, grids) for one in findings]

    def _completed(self, finding: PartFinding, grids: Container[int | None]) -> PartFinding:
        if finding.state not in (PartState.SHARED, PartState.NOT_COMPARABLE):
            return finding
        equal = self._equal(finding)
        if not equal.consistent or equal.bits not in grids:
            return finding
        state = PartState.EQUAL if equal.bits is None else PartState.ROUNDED
        likeness = 1.0 if equal.bits is None else finding.likeness
        return replace(
            finding, state=state, likeness=likeness, bits=equal.bits, share=1.0, least=None,
            reason=None, needs=None,
        )  # fmt: skip

    def _equal(self, finding: PartFinding) -> EqualNumbers:
        """How the numbers of a part and its partner agree, whatever tests say."""
        if finding.partner is None:
            return EqualNumbers(False, False)
        return self.numbers(finding.part, finding.partner).told(tested=False)

    def settled(
        self, findings: Sequence[PartFinding], agreeing: Container[int | None]
    ) -> Iterator[PartFinding]:
        """Matrices without a link, where a copy would have been seen, beside others that have one.

        What is linked as its channels are numbered shows that the residual basis is the other's.
        Gains do not: they can be written into any basis. Rows that were matched there and fit no
        better than chance are no copies, whatever their units, heads or values were made into.
        Layers in `agreeing` that are not linked may lie in another basis than the embedding.
        Matrices may also have changed roles.
        """
        turned = any(_speaks_alone(one, agreeing) for one in findings)
        if turned or not self._anchored(findings):
            yield from findings
            return
        open_ = [one.part for one in findings if _is_open(one)]
        samples = self.a.prepared.stored, self.b.prepared.stored
        moved = in_other_roles(*samples, open_, self.theirs)
        for one in findings:
            if not _is_open(one):
                yield one
            elif one.part in moved:
                yield replace(one, reason=Reason.PART_OTHER_ROLES.message(), needs=None)
            elif self._would_show(one.part):
                yield replace(one, state=PartState.NO_TRACE, reason=None, needs=None)
            else:
                yield one

    def _anchored(self, findings: Sequence[PartFinding]) -> bool:
        """Whether models have one basis: most matrices of the layers say so.

        One raw matrix, or an embedding, can be put into a model that was turned.
        """
        matrices = [one for one in findings if one.part.component in MATRICES]
        stored = [one for one in matrices if one.state.linked and self.as_stored(one)]
        return 2 * sum(one.weights for one in stored) > sum(one.weights for one in matrices)

    def as_stored(self, finding: PartFinding) -> bool:
        """Whether a linked matrix is so in the basis in which both models are stored."""
        if finding.part.component not in (*MATRICES, Component.EMBEDDING):
            return False
        if finding.state is not PartState.SHARED:
            return True
        scores = (one.score for one in self.scores.get(finding.part, ()))
        return any(one.as_stored and self._significant(one) for one in scores)

    def _would_show(self, part: Part) -> bool:
        """Whether a copy of a part would have been found, and nothing hints at one."""
        scores = [one.score for one in self.scores.get(part, ())]
        able = [
            one
            for one in scores
            if one.test == MATCHED_COLUMNS
            and one.matched
            and self.charge.significant_part(ABLE * one.floor, self.count)
        ]
        unlike = all(one.likeness < UNLIKE for one in able)
        silent = unlike and all(one.log10_p > HINT for one in scores)
        return bool(able) and silent and self._all_read(part)

    def _all_read(self, part: Part) -> bool:
        """Whether nothing that a part may be a copy of was left unread."""
        if part.component is Component.ATTENTION:
            theirs = (
                extent for to, extent in self.theirs.items() if to.component == part.component
            )
            return all(extent.read == extent.weights for extent in (self.ours[part], *theirs))
        return all(_whole(self.b.prepared.sample, to) for to in self.theirs)

    def _significant(self, score: PartScore) -> bool:
        """Whether a test of a part says that it is shared.

        Columns agree in layers that were trained over one residual stream, too: rows of a copy must
        be more alike than those of it that do not belong together. So do columns of heads.
        """
        if self._may_be_retrained(score):
            return False
        copied = score.test != MATCHED_COLUMNS or score.excess >= COPIED
        # One matrix of a feed-forward alone may have been copied, or some rows.
        united = score.parts[0].component in _UNITED and score.excess >= ALONE * score.share
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
        scores = [one.score for one in self.scores.get(part, ()) if one.partner == partner]
        ours, theirs = self.ours[part], self.theirs.get(partner)
        nothing = PartFinding(
            part, partner, PartState.NOT_READ,
            reason=Reason.PART_NOT_READ.message(), weights=size.weights, read=size.share,
        )  # fmt: skip
        if theirs is None and _has_nameless_codes(self.theirs):
            return replace(nothing, read=0.0, reason=Reason.PART_PACKED.message())
        if theirs is None and _may_be_hidden(partner, self.b, self.theirs):
            return replace(nothing, read=0.0)
        if theirs is None:
            state = PartState.NOT_COMPARABLE if ours.read else PartState.NOT_READ
            missing = Reason.PART_MISSING
            if _may_answer(self.theirs, part):
                missing = Reason.PART_UNANSWERED if ours.read else Reason.PART_UNREAD_HERE
            return replace(nothing, partner=None, state=state, reason=missing.message())
        if any(one.packed and one.share < _MOST_READ for one in (ours, theirs)):
            return _packed(nothing, ours, theirs)
        needs = _needs(ours, theirs)
        nothing = replace(
            nothing,
            read=min(ours.share, theirs.share),
            needs=needs,
            basis=ours.basis + theirs.basis if needs else 0,
        )
        if not ours.read or not theirs.read:
            return nothing
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
        equal = self._equal(finding)
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


def _together(finding: PartFinding, linked: Container[Component | None]) -> PartFinding:
    """A part that shows nothing by itself, where all of its kind together are linked."""
    alike = Component.FEED_FORWARD if finding.part.component is Component.EXPERT else None
    mixed = None in linked and finding.part.component in MATRICES
    if finding.state is not PartState.NOT_COMPARABLE or finding.partner is None:
        return finding
    if not (mixed or finding.part.component in linked or (alike and alike in linked)):
        return finding
    return replace(finding, reason=Reason.PART_TOGETHER.message(), needs=None)


def _with_invariants(finding: PartFinding, agreeing: Container[int | None]) -> PartFinding:
    """A feed-forward that no exact test links, where the invariants' tier speaks of it."""
    if not _speaks_alone(finding, agreeing):
        return finding
    reason, state = Reason.PART_INVARIANTS.message(), PartState.NOT_COMPARABLE
    return replace(finding, state=state, reason=reason, needs=None)


def _is_open(finding: PartFinding) -> bool:
    """Whether nothing was found of matrices and their partner."""
    silent = finding.state is PartState.NOT_COMPARABLE and finding.partner is not None
    return silent and finding.part.component in MATRICES


def _speaks_alone(finding: PartFinding, agreeing: Container[int | None]) -> bool:
    """Whether the invariants' tier speaks of a feed-forward that no exact test links."""
    silent = not finding.state.linked and finding.state is not PartState.NOT_READ
    feed_forward = finding.part.component is Component.FEED_FORWARD
    return silent and feed_forward and finding.part.layer in agreeing


def _carried_gains(pair: Pair, a: Side, finding: PartFinding) -> float | None:
    """Likeness of effective gains in the basis in which units match, for a linked matrix."""
    if finding.partner is None or pair.refusal(Group.UNIT_SIGN) is not None:
        return None
    alignment = pair.alignment(Group.UNIT_SIGN)
    matching = alignment.feed_forwards
    # Channels that were found by their gains agree in them.
    if matching is None or matching.residual.source in (MapSource.IDENTITY, MapSource.GAINS):
        return None
    parts = finding.part, finding.partner
    part, partner = parts if alignment.first is a else reversed(parts)
    first, second = alignment.first.prepared, alignment.second.prepared
    likeness = finding.likeness or 0.0
    return gain_likeness(first, second, part, partner, likeness, matching.residual)


def _whole(sample: Sample, part: Part) -> bool:
    """Whether all units of a feed-forward were read; other parts do not matter."""
    layer = -1 if part.layer is None else part.layer
    match part.component:
        case Component.FEED_FORWARD:
            units = sample.units.get(layer)
        case Component.EXPERT:
            units = sample.experts.get((layer, part.expert or 0))
        case _:
            return True
    return units is not None and len(units.index) == units.total


def _extents(sample: Sample) -> dict[Part, Extent]:
    """The parts of a tower, without its name: towers of other names may be the same."""
    return {replace(part, tower=""): extent for part, extent in sample.parts.items()}


def _in_towers(finding: PartFinding, tower: str, other: str) -> PartFinding:
    """The finding with the names of the towers that its parts belong to."""
    partner = finding.partner
    return replace(
        finding,
        part=replace(finding.part, tower=tower),
        partner=None if partner is None else replace(partner, tower=other),
    )


def _only_there(
    part: Part, extent: Extent, known: Collection[Part], packed: bool, alone: Message
) -> PartFinding:
    """A part of the second model that has no counterpart; it counts as much as one of the first.

    It may be `known` in the first model too, where it met another one, or what it may be made of,
    or `packed` there; `alone` says why it has none where it was read.
    """
    nothing = PartFinding(part, part, PartState.NOT_READ, weights=extent.weights, of_second=True)
    if (packed and part not in known) or (extent.packed and extent.share < _MOST_READ):
        return replace(nothing, reason=Reason.PART_PACKED.message())
    if extent.read:
        state = PartState.NOT_COMPARABLE
        return replace(nothing, state=state, reason=alone, read=extent.share)
    here = Reason.PART_UNREAD_HERE if _may_answer(known, part) else Reason.PART_MISSING
    unread = Reason.PART_NOT_READ if part in known else here
    return replace(nothing, reason=unread.message(), read=extent.share)


def _output(parts: Container[Part]) -> Part:
    """The table that logits come from: the head, or else the embedding."""
    return TABLE if HEAD not in parts and TABLE in parts else HEAD


def _is_tied(side: Side, stored: bool) -> bool:
    """Whether a head is the embedding: none is `stored`, or the same rows once more, no bias."""
    sample = side.prepared.stored
    table, head = sample.embedding, sample.head
    if not stored or table is None or head is None:
        return not stored
    again, once = (sum(tensor_sizes(sample, part).values()) for part in (HEAD, TABLE))
    same = np.array_equal(table.ids, head.ids) and np.array_equal(table.rows, head.rows)
    return same and again == once


def _not_met(part: Part, extent: Extent) -> PartFinding:
    """A part of the second model of which what would answer to it was not read in the first."""
    reason = Reason.PART_NOT_READ.message()
    nothing = PartFinding(part, part, PartState.NOT_READ, reason=reason, weights=extent.weights)
    return replace(nothing, of_second=True)


def _may_be_hidden(part: Part, side: Side, known: Mapping[Part, Extent]) -> bool:
    """Whether a part that is not known of a model may lie in a file whose header was not read.

    What no layer that is known has, others will not have either.
    """
    if part in known or not side.prepared.sample.partial:
        return False
    return part.layer is None or any(one.component is part.component for one in known)


def _may_answer(known: Iterable[Part], part: Part) -> bool:
    """Whether a model has feed-forwards, which experts are made of, or the other way round."""
    return part.component in _UNITED and any(one.component in _UNITED for one in known)


def _unread_there(part: Part, known: Mapping[Part, Extent]) -> bool:
    """Whether a layer has other feed-forwards in place of one, experts, and none of them was read.

    Each may be made of it.
    """
    others = [
        extent
        for one, extent in known.items()
        if one.layer == part.layer and one.component in _UNITED and part.component in _UNITED
    ]
    return bool(others) and part not in known and not any(one.read for one in others)


def _has_nameless_codes(parts: Mapping[Part, Extent]) -> bool:
    """Whether a model holds packed weights whose names do not say what they are."""
    return any(one.packed for part, one in parts.items() if part.component is Component.OTHER)


def _packed(finding: PartFinding, ours: Extent, theirs: Extent) -> PartFinding:
    """The finding of a part that is packed in a model: the numbers are those of the other."""
    plain = next((one for one in (ours, theirs) if not one.packed), ours)
    reason = Reason.PART_PACKED.message()
    return replace(finding, reason=reason, weights=plain.weights, read=0.0)


def _moved(evidence: Sequence[Evidence]) -> float:
    """How far gains have moved from their start; one where nobody looked."""
    known = [one.gain_spread for one in evidence if one.gain_spread is not None]
    return max(known, default=1.0)
