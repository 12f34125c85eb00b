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

from collections.abc import Sequence
from functools import cache, partial

from msgspec.structs import replace

from kinprint.lineage.alignment.residual import MapSource
from kinprint.lineage.charge import Charge
from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.arranged import arranged_norms, arranged_units, arranged_values
from kinprint.lineage.parts.equality import compare_numbers, copies, information_for
from kinprint.lineage.parts.findings import Sharing, in_order, order
from kinprint.lineage.parts.gains import gain_likeness
from kinprint.lineage.parts.judging import Judge, Score
from kinprint.lineage.parts.scores import part_scores
from kinprint.lineage.parts.settling import settled
from kinprint.lineage.parts.shares import counted_once
from kinprint.lineage.parts.silence import (
    has_nameless_codes,
    may_be_hidden,
    not_met,
    only_there,
    unread_there,
)
from kinprint.lineage.parts.taken_over import UNITS, Circumstances, judged
from kinprint.lineage.parts.untrained import marked, without_untrained
from kinprint.lineage.reading.sample import Extent, Sample
from kinprint.lineage.side import Side
from kinprint.records import Evidence, Group, Part, PartFinding


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
    judge = _judge(pair, a, evidence, charge)
    ours, theirs, b = judge.ours, judge.theirs, judge.b
    samples = a.prepared.stored, b.prepared.stored
    own = [judge.finding(part) for part in sorted(ours, key=order)]
    own = counted_once([*own, *judge.further(own)])
    arranged = arranged_units(pair)
    known = Circumstances(
        judge.limits,
        judge.moved,
        arranged,
        arranged_values(pair),
        arranged_norms(pair),
        partial(_carried_gains, pair, a),
        judge.columns,
        judge.as_stored,
        lambda one: marked(one, *samples),
        judge.turnable,
    )
    told = judged(own, known)
    told = list(without_untrained([judge.at_least(one) for one in told], *samples))
    met = {one.partner for one in own}
    packed = has_nameless_codes(ours)
    alone = (
        not_met(part, extent)
        if may_be_hidden(part, a, ours) or unread_there(part, ours)
        else only_there(part, extent, ours, packed, judge.why_alone(part))
        for part, extent in theirs.items()
        if part not in met
    )
    towers = a.prepared.sample.tower, b.prepared.sample.tower
    return Sharing(
        tuple(_in_towers(one, *towers) for one in settled(judge, told, evidence)),
        in_order(_in_towers(one, towers[1], towers[1]) for one in alone),
        arranged(
            sum(one.weights for one in told if one.state.linked and one.part.component in UNITS)
        ),
        max(side.prepared.sample.hidden for side in (a, b)),
    )


def _judge(pair: Pair, a: Side, evidence: Sequence[Evidence], charge: Charge) -> Judge:
    """What tests and equal numbers say of the parts; nothing is tested where nothing is linked."""
    linked = any(charge.significant(one) for one in evidence)
    scores = part_scores(pair, evidence) if linked else ()
    b = pair.sides[1] if a is pair.sides[0] else pair.sides[0]
    ours, theirs = (_extents(side.prepared.sample) for side in (a, b))
    by_part: dict[Part, list[Score]] = {}
    for score in scores:
        one = Score.seen_from(score, a is pair.sides[0])
        if one.part in ours and one.partner in theirs:
            by_part.setdefault(one.part, []).append(one)
    samples = a.prepared.stored, b.prepared.stored
    least = information_for(len(ours) * len(theirs))  # every part may meet every other one
    return Judge(
        pair,
        a,
        b,
        ours,
        theirs,
        by_part,
        len(scores),
        charge,
        copies(*samples, ours, theirs),
        _moved(evidence),
        cache(lambda part, partner: compare_numbers(*samples, part, partner, least)),
    )


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


def _moved(evidence: Sequence[Evidence]) -> float:
    """How far gains have moved from their start; one where nobody looked."""
    known = [one.gain_spread for one in evidence if one.gain_spread is not None]
    return max(known, default=1.0)
