"""What of two models is shared, part by part: equal, equal after rounding, shared, or why not.

A part gets the strongest state that something supports, and no stronger one:

| state          | what supports it                                                             |
|----------------|------------------------------------------------------------------------------|
| equal          | all numbers read of it are the same in both models                           |
| rounded        | they are the same after rounding to the grid of the coarser model            |
| shared         | a test of this part alone is significant, paid for all tests of all parts,   |
|                | or one of its tensors is equal, or some rows of one                          |
| no-trace       | no test is, and its units were matched in a basis that is known to be right, |
|                | with all of the other model's, so that a renumbered or turned copy would     |
|                | have been seen                                                               |
| not-comparable | no test is, and a copy with other numbers would not have been seen           |
| not-read       | nothing of it was read in one of the models                                  |

A shared part was *taken over* if it is more alike than one initialisation leaves it, or if the
gains that feed the linked parts are (`gains.py`); the limits are measured ones, below.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kinprint.lineage.charge import Charge
from kinprint.lineage.equality import EqualNumbers, equal_numbers
from kinprint.lineage.gains import gain_likeness
from kinprint.lineage.pair import Pair
from kinprint.lineage.part_tests import PartScore, part_scores
from kinprint.lineage.reading.sample import Extent, Sample
from kinprint.lineage.side import Side
from kinprint.lineage.tests.invariants import agreeing_layers
from kinprint.records import Component, Evidence, Part, PartFinding, PartState, Reason
from kinprint.text import Message

LEARNT_GAINS, APART_GAINS = 0.66, 0.45
"""Mean correlation of the effective gains that feed linked matrices, from which on they were taken
over, and up to which they only started alike; between them nobody can tell."""
SURE_MATRICES, LEARNT_MATRICES = 0.90, 0.60
"""Correlation of matrices from which on they were taken over, if gains have moved by `TRAINED`:
whatever gains say, and where they cannot speak (folded away, in another basis)."""
TRAINED = 0.03
"""How far gains of trained models have moved from their start, as a share of it."""
LEARNT_NORMS = 0.75
"""Correlation of gains from which on they were learnt together: they start at a constant. Pairs of
one initialisation reach 0.33, on the same data 0.73."""
LEARNT_EMBEDDING = 0.85
"""Correlation of embedding columns that pairs of one initialisation do not reach, although rows of
rare tokens hardly move."""
ARRANGED_NORMS = 0.85
"""What numbering the channels of a stranger anew gives the mean correlation of k gains over d
channels, as a share of √(2 ln d / k), with a margin: 0.79 of it was measured at d = 128, k = 13."""
ARRANGED = 1.25
"""How far above the best of n random rows the likeness of arranged strangers may lie. Measured, all
units of width 128 assigned so as to be most alike: 0.87 of it, whatever they were trained on."""

MATRICES = (Component.ATTENTION, Component.FEED_FORWARD, Component.EXPERT)
"""Components that are matrices of the layers."""
_REST = 0.1  # likeness beyond the share of equal rows from which on the other rows are alike too
_FEED_FORWARDS = (Component.FEED_FORWARD, Component.EXPERT)
_TABLE, _HEAD = Part(Component.EMBEDDING), Part(Component.HEAD)


@dataclass(frozen=True, slots=True)
class Sharing:
    """What is known about the parts of two models.

    Attributes
    ----------
    own : every part of the first model.
    alone : the parts of the second model that no part of the first was found to answer to.
    arranged : the likeness that numbering units anew gives strangers of this shape.
    """

    own: tuple[PartFinding, ...] = ()
    alone: tuple[PartFinding, ...] = ()
    arranged: float = 1.0

    @property
    def parts(self) -> tuple[PartFinding, ...]:
        """Every part of the first model, then those that only the second has."""
        return self.own + self.alone

    def swapped(self) -> Sharing:
        """The same with the second model called the first."""
        linked = {one.partner for one in self.own if one.state.linked}
        own = [replace(one, partner=None, reason=_answerless(one, here=True)) for one in self.alone]
        alone = []
        for one in self.own:
            if one.partner is None or (one.partner in linked and not one.state.linked):
                reason = _answerless(one, here=False)
                alone.append(replace(one, partner=one.part, reason=reason))
            else:
                own.append(replace(one, part=one.partner, partner=one.part))
        return Sharing(_in_order(own), _in_order(alone), self.arranged)


def _answerless(finding: PartFinding, here: bool) -> Message | None:
    """Why a part has no partner, if that is all there is to say of it."""
    if finding.state is not PartState.NOT_COMPARABLE:
        return finding.reason
    return (Reason.PART_MISSING if here else Reason.PART_ONLY_THERE).message()


def _in_order(findings: Iterable[PartFinding]) -> tuple[PartFinding, ...]:
    return tuple(sorted(findings, key=lambda one: _order(one.part)))


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
    met = {one.partner for one in found}
    alone = {one.part: one for sharing in towers for one in sharing.alone if one.part not in met}
    arranged = max(one.arranged for one in towers)
    return Sharing(tuple(best.values()), _in_order(alone.values()), arranged)


def _says(finding: PartFinding) -> tuple[int, float]:
    order = tuple(PartState).index(finding.state)
    return order, 0.0 if finding.log10_p is None else finding.log10_p


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
    judge = _Judge(a, b, ours, theirs, by_part, len(scores), charge, _moved(evidence))
    own = [judge.finding(part) for part in sorted(ours, key=_order)]
    own += judge.further(own)
    matched = {part for part, all_of in by_part.items() if any(one.score.matched for one in all_of)}
    if not all(_whole(b.prepared.sample, part) for part in theirs):
        matched = set()  # its counterpart may be among what was not read
    towers = a.prepared.sample.tower, b.prepared.sample.tower
    judged = _judged(own, judge.moved, arranged_norms(pair))
    met = {one.partner for one in own}
    alone = (_only_there(part, extent) for part, extent in theirs.items() if part not in met)
    agreeing = agreeing_layers(evidence, first=a is pair.sides[0])
    settled = [_with_invariants(one, agreeing) for one in _settled(judged, matched)]
    return Sharing(
        tuple(_in_towers(one, *towers) for one in settled),
        _in_order(_in_towers(one, towers[1], towers[1]) for one in alone),
        arranged_likeness(pair),
    )


def arranged_likeness(pair: Pair) -> float:
    """The most that numbering units anew gives the mean correlation of two strangers.

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
    return min(1.0, ARRANGED * best)


def arranged_norms(pair: Pair) -> float:
    """The most that numbering channels anew gives the mean correlation of strangers' gains."""
    first, second = (side.prepared.scores for side in pair.sides)
    vectors, width = len(first.keys() & second.keys()), pair.sides[0].prepared.width
    if not vectors or width < 2:
        return 1.0
    return min(1.0, ARRANGED_NORMS * math.sqrt(2.0 * math.log(width) / vectors))


@dataclass(frozen=True, slots=True)
class _Score:
    """A score of a part, seen from the model that is called the first."""

    part: Part
    partner: Part
    score: PartScore

    @classmethod
    def seen_from(cls, score: PartScore, first: bool) -> _Score:
        part, partner = score.parts if first else reversed(score.parts)
        return cls(part, partner, score)


@dataclass(frozen=True, slots=True)
class _Judge:
    """Gives every part of `a` its state; `count` is how many tests of parts must be paid for."""

    a: Side
    b: Side
    ours: Mapping[Part, Extent]
    theirs: Mapping[Part, Extent]
    scores: Mapping[Part, Sequence[_Score]]
    count: int
    charge: Charge
    moved: float

    def finding(self, part: Part) -> PartFinding:
        """What is known about one part and the one that is most alike, or else in its place."""
        scores = self.scores.get(part, ())
        best = min(scores, key=lambda one: (one.score.log10_p, one.partner != part), default=None)
        if best is not None and best.partner != part:
            found = self._between(part, best.partner, self.ours[part])
            if found.state.linked:
                return found
        # A tied embedding is a head as well.
        tied = part == _HEAD and _HEAD not in self.theirs and _TABLE in self.theirs
        return self._between(part, _TABLE if tied else part, self.ours[part])

    def further(self, known: Sequence[PartFinding]) -> list[PartFinding]:
        """Parts of the second model that are linked to a part with a closer partner.

        Experts made of one feed-forward, and a head that is the embedding written again.
        """
        met = {one.partner for one in known}
        pairs = {
            one.partner: one.part
            for scores in self.scores.values()
            for one in scores
            if one.partner not in met and self._significant(one.score)
        }
        found = [self._between(part, to, self.theirs[to]) for to, part in pairs.items()]
        if _HEAD in self.theirs and _HEAD not in met and _TABLE in self.ours:
            head = self._between(_TABLE, _HEAD, self.theirs[_HEAD])
            found += [head] if head.state.linked else []
        return found

    def _significant(self, score: PartScore) -> bool:
        return self.charge.significant_part(score.log10_p, self.count)

    def _between(self, part: Part, partner: Part, size: Extent) -> PartFinding:
        """What is known about two parts; `size` is that of the one that is counted."""
        scores = [one.score for one in self.scores.get(part, ()) if one.partner == partner]
        ours, theirs = self.ours[part], self.theirs.get(partner)
        nothing = PartFinding(
            part, partner, PartState.NOT_READ,
            reason=Reason.PART_NOT_READ.message(),
            weights=size.weights, read=size.read / max(size.weights, 1),
        )  # fmt: skip
        if theirs is None:
            missing, state = Reason.PART_MISSING.message(), PartState.NOT_COMPARABLE
            return replace(nothing, partner=None, state=state, reason=missing)
        nothing = replace(nothing, needs=_needs(ours, theirs))
        if not ours.read or not theirs.read:
            return nothing
        found = [one for one in scores if self._significant(one)]
        # What no test speaks of follows the other parts; gains of strangers are too much alike.
        untested = not scores and part.component is not Component.NORMS
        tested = bool(found) or (self.count > 0 and untested)
        samples = self.a.prepared.sample, self.b.prepared.sample
        equal = equal_numbers(*samples, part, partner, tested=tested)
        known = [one.log10_p + math.log10(len(scores)) for one in scores]
        # One row of equal numbers among all arrangements of it: channels are numbered by chance.
        known += [-equal.information] if equal.information else []
        likeness = max((one.likeness for one in found or scores), default=None)
        state = _state(equal, found)
        as_stored = equal.any or any(one.as_stored for one in found)
        return replace(
            nothing,
            state=state,
            likeness=1.0 if equal.all and equal.bits is None else likeness,
            log10_p=min((*known, 0.0)) if known else None,
            gains=self._gains(part, partner) if as_stored else None,
            learnt=self._learnt(part, equal, likeness) if state.linked else None,
            share=_linked_share(equal, found) if state.linked else 1.0,
            bits=equal.bits if state is PartState.ROUNDED else None,
            reason=None if state.linked else _why_not(part),
            needs=None if state.linked else nothing.needs,
            tests=tuple(sorted({one.test for one in (found or scores)})),
        )

    def _gains(self, part: Part, partner: Part) -> float | None:
        if part.component not in MATRICES:
            return None
        return gain_likeness(self.a.prepared, self.b.prepared, part, partner)

    def _learnt(self, part: Part, equal: EqualNumbers, likeness: float | None) -> bool | None:
        """Whether a linked part was taken over, where it tells that by itself."""
        if equal.kept:
            return True
        known = -1.0 if likeness is None else likeness
        match part.component:
            case Component.NORMS:
                return True if known >= LEARNT_NORMS else None
            case Component.EMBEDDING | Component.HEAD:
                return True if known >= LEARNT_EMBEDDING else None
            case Component.ROUTER:
                return None
        return True if known >= SURE_MATRICES and self.moved >= TRAINED else None


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


def _linked_share(equal: EqualNumbers, found: Sequence[PartScore]) -> float:
    """The share of a part's tensors that is linked.

    Where some rows are equal and make up all of the likeness, the others are not linked. Tests of
    keys and queries and tests of values and outputs speak of half of the attention each.
    """
    tests = {one.test for one in found}
    halves = [{"S2", "S2.numbered"}, {"E4.blocks", "S4"}]
    alike = max((one.likeness for one in found), default=0.0)
    if 0.0 < equal.share < 1.0 and alike <= equal.share + _REST:
        return equal.share
    asked = sum(bool(tests & half) for half in halves)
    by_tests = asked / 2 if asked else max((one.share for one in found), default=0.0)
    return max(equal.share, by_tests)


def _why_not(part: Part) -> Message:
    """Why nothing can be said of a part in which nothing was found."""
    match part.component:
        case Component.MIXER:
            return Reason.PART_WITHOUT_TEST.message()
        case Component.NORMS | Component.EMBEDDING | Component.HEAD | Component.ROUTER:
            return Reason.PART_CHANNELS_RENAMED.message()
        case Component.ATTENTION:
            return Reason.PART_HEADS_RENAMED.message()
    return Reason.PART_UNITS_RENAMED.message()


def _with_invariants(finding: PartFinding, agreeing: Container[int | None]) -> PartFinding:
    """A feed-forward that no exact test links, where the invariants' tier speaks of it."""
    silent = not finding.state.linked and finding.state is not PartState.NOT_READ
    if not silent or finding.part.component is not Component.FEED_FORWARD:
        return finding
    if finding.part.layer not in agreeing:
        return finding
    reason, state = Reason.PART_INVARIANTS.message(), PartState.NOT_COMPARABLE
    return replace(finding, state=state, reason=reason, needs=None)


def _judged(
    findings: Sequence[PartFinding], moved: float, arranged_norms: float
) -> list[PartFinding]:
    """Linked matrices with what the gains of all of them say: taken over, or started alike.

    Gains of single layers scatter, so that the mean decides for those that do not tell themselves.
    Gains that are linked alone have no first weights in common: they were taken over if numbering
    channels anew does not make strangers' as alike.
    """
    linked = [one for one in findings if one.state.linked and one.part.component in MATRICES]
    only_norms = {one.part.component for one in findings if one.state.linked} == {Component.NORMS}
    gains = [one.gains for one in linked if one.gains is not None]
    mean = math.fsum(gains) / len(gains) if gains else None

    def learnt(one: PartFinding) -> bool | None:
        if only_norms and one.state.linked:
            return True if one.learnt or (one.likeness or 0.0) >= arranged_norms else None
        if one.learnt or one not in linked:
            return one.learnt
        if mean is None:
            alike = (one.likeness or 0.0) >= LEARNT_MATRICES and moved >= TRAINED
            return True if alike else None
        if mean >= LEARNT_GAINS:
            return True if one.gains is None or one.gains > APART_GAINS else None
        return False if mean <= APART_GAINS else None

    return [replace(one, learnt=learnt(one)) for one in findings]


def _settled(findings: Sequence[PartFinding], matched: Container[Part]) -> Iterator[PartFinding]:
    """Feed-forwards without a link whose units were matched, beside others that have one.

    What is linked shows that basis and layers are the right ones, and matching sees through other
    numbers of units: a copy would have been seen.
    """
    anchored = any(one.state.linked and one.part.component in _FEED_FORWARDS for one in findings)
    for one in findings:
        open_ = one.state is PartState.NOT_COMPARABLE and one.partner is not None
        if anchored and open_ and one.part in matched:
            one = replace(one, state=PartState.NO_TRACE, reason=None, needs=None)
        yield one


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


def _only_there(part: Part, extent: Extent) -> PartFinding:
    """A part of the second model that has no counterpart; it counts as much as one of the first."""
    return PartFinding(
        part, part, PartState.NOT_COMPARABLE if extent.read else PartState.NOT_READ,
        reason=Reason.PART_ONLY_THERE.message(),
        weights=extent.weights, read=extent.read / max(extent.weights, 1),
    )  # fmt: skip


def _moved(evidence: Sequence[Evidence]) -> float:
    """How far gains have moved from their start; one where nobody looked."""
    known = [one.gain_spread for one in evidence if one.gain_spread is not None]
    return max(known, default=1.0)


def _order(part: Part) -> tuple[str, int, str, int]:
    layer = -1 if part.layer is None else part.layer
    return part.tower, layer, part.component, part.expert or 0
