"""What follows for a part from what was found of all others."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from msgspec.structs import replace

from kinprint.lineage.parts.columns import UNLIKE
from kinprint.lineage.parts.judging import Judge
from kinprint.lineage.parts.other_roles import in_other_roles
from kinprint.lineage.parts.scores import MATCHED_COLUMNS
from kinprint.lineage.parts.taken_over import MATRICES
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.tests.invariants import agreeing_layers
from kinprint.lineage.tests.registry import registered_test
from kinprint.records import Component, Evidence, Part, PartFinding, PartState, Reason

ABLE = 0.75
"""The share of the least log10 p of a test that a copy may be counted on to reach. Columns of many
rows tell channels apart from a correlation of 0.2 on."""
HINT = -3.0
"""A part with a log10 p up to this is not called free of traces."""


def settled(
    judge: Judge, findings: Sequence[PartFinding], evidence: Sequence[Evidence]
) -> list[PartFinding]:
    """Findings with what follows from all of them together, and from `evidence` of the menu."""
    agreeing = agreeing_layers(evidence, first=judge.a is judge.pair.sides[0])
    told = [
        _with_invariants(one, agreeing)
        for one in _without_traces(judge, _with_plain_parts(judge, findings), agreeing)
    ]
    if any(one.state.linked for one in told):
        return told
    tests = [registered_test(one) for one in evidence if judge.charge.significant(one)]
    return [_together(one, {test.component for test in tests}) for one in told]


def _with_plain_parts(judge: Judge, findings: Sequence[PartFinding]) -> list[PartFinding]:
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
        equal = judge.equal(one)
        if not equal.consistent:
            return list(findings)
        grids.add(equal.bits)
    return [_completed(judge, one, grids) for one in findings]


def _completed(judge: Judge, finding: PartFinding, grids: Container[int | None]) -> PartFinding:
    if finding.state not in (PartState.SHARED, PartState.NOT_COMPARABLE):
        return finding
    equal = judge.equal(finding)
    if not equal.consistent or equal.bits not in grids:
        return finding
    state = PartState.EQUAL if equal.bits is None else PartState.ROUNDED
    likeness = 1.0 if equal.bits is None else finding.likeness
    return replace(
        finding, state=state, likeness=likeness, bits=equal.bits, share=1.0, least=None,
        reason=None, needs=None,
    )  # fmt: skip


def _without_traces(
    judge: Judge, findings: Sequence[PartFinding], agreeing: Container[int | None]
) -> Iterator[PartFinding]:
    """Matrices without a link, where a copy would have been seen, beside others that have one.

    What is linked as its channels are numbered shows that the residual basis is the other's.
    Gains do not: they can be written into any basis. Rows that were matched there and fit no
    better than chance are no copies, whatever their units, heads or values were made into.
    Layers in `agreeing` that are not linked may lie in another basis than the embedding.
    Matrices may also have changed roles.
    """
    turned = any(_speaks_alone(one, agreeing) for one in findings)
    if turned or not _anchored(judge, findings):
        yield from findings
        return
    open_ = [one.part for one in findings if _is_open(one)]
    samples = judge.a.prepared.stored, judge.b.prepared.stored
    moved = in_other_roles(*samples, open_, judge.theirs)
    for one in findings:
        if not _is_open(one):
            yield one
        elif one.part in moved:
            yield replace(one, reason=Reason.PART_OTHER_ROLES.message(), needs=None)
        elif _would_show(judge, one.part):
            yield replace(one, state=PartState.NO_TRACE, reason=None, needs=None)
        else:
            yield one


def _anchored(judge: Judge, findings: Sequence[PartFinding]) -> bool:
    """Whether models have one basis: most matrices of the layers say so.

    One raw matrix, or an embedding, can be put into a model that was turned.
    """
    matrices = [one for one in findings if one.part.component in MATRICES]
    stored = [one for one in matrices if one.state.linked and judge.as_stored(one)]
    return 2 * sum(one.weights for one in stored) > sum(one.weights for one in matrices)


def _would_show(judge: Judge, part: Part) -> bool:
    """Whether a copy of a part would have been found, and nothing hints at one."""
    scores = [one.score for one in judge.scores.get(part, ())]
    able = [
        one
        for one in scores
        if one.test == MATCHED_COLUMNS
        and one.matched
        and judge.charge.significant_part(ABLE * one.floor, judge.count)
    ]
    unlike = all(one.likeness < UNLIKE for one in able)
    silent = unlike and all(one.log10_p > HINT for one in scores)
    return bool(able) and silent and _all_read(judge, part)


def _all_read(judge: Judge, part: Part) -> bool:
    """Whether nothing that a part may be a copy of was left unread."""
    if part.component is Component.ATTENTION:
        theirs = (extent for to, extent in judge.theirs.items() if to.component == part.component)
        return all(extent.read == extent.weights for extent in (judge.ours[part], *theirs))
    return all(_whole(judge.b.prepared.sample, to) for to in judge.theirs)


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


def _is_open(finding: PartFinding) -> bool:
    """Whether nothing was found of matrices and their partner."""
    silent = finding.state is PartState.NOT_COMPARABLE and finding.partner is not None
    return silent and finding.part.component in MATRICES


def _speaks_alone(finding: PartFinding, agreeing: Container[int | None]) -> bool:
    """Whether the invariants' tier speaks of a feed-forward that no exact test links."""
    silent = not finding.state.linked and finding.state is not PartState.NOT_READ
    feed_forward = finding.part.component is Component.FEED_FORWARD
    return silent and feed_forward and finding.part.layer in agreeing


def _with_invariants(finding: PartFinding, agreeing: Container[int | None]) -> PartFinding:
    """A feed-forward that no exact test links, where the invariants' tier speaks of it."""
    if not _speaks_alone(finding, agreeing):
        return finding
    reason, state = Reason.PART_INVARIANTS.message(), PartState.NOT_COMPARABLE
    return replace(finding, state=state, reason=reason, needs=None)


def _together(finding: PartFinding, linked: Container[Component | None]) -> PartFinding:
    """A part that shows nothing by itself, where all of its kind together are linked."""
    alike = Component.FEED_FORWARD if finding.part.component is Component.EXPERT else None
    mixed = None in linked and finding.part.component in MATRICES
    if finding.state is not PartState.NOT_COMPARABLE or finding.partner is None:
        return finding
    if not (mixed or finding.part.component in linked or (alike and alike in linked)):
        return finding
    return replace(finding, reason=Reason.PART_TOGETHER.message(), needs=None)
