"""What several tests need before they can run; where it is missing, the test has no result."""

from __future__ import annotations

from kinprint.lineage.pair import Alignment, Pair
from kinprint.lineage.tests.registry import NoResult
from kinprint.records import Group, Reason, Status


def granted_alignment(pair: Pair, group: Group) -> Alignment:
    """The alignment for tests of a group, where labels of some model can be called random."""
    refusal = pair.refusal(group)
    if refusal is not None:
        raise NoResult(refusal, Status.GUARDED)
    return pair.alignment(group)


def require_width(alignment: Alignment, same: bool) -> None:
    """Go on only if both models have one width, or two where that is what a test is for."""
    equal = alignment.first.prepared.width == alignment.second.prepared.width
    if equal is not same:
        raise NoResult(Reason.MODELS_OF_ONE_WIDTH if same else Reason.MODELS_OF_DIFFERENT_WIDTH)
