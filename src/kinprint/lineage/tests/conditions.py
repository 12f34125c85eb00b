"""What several tests need before they can run; where it is missing, the test has no result."""

from __future__ import annotations

from kinprint.lineage.pair import Alignment, Pair
from kinprint.lineage.tests.registry import LineageTest, NoResult
from kinprint.records import Evidence, Group, Reason, Status

_SPEAKS = -3.0  # log10 p


def granted_alignment(pair: Pair, group: Group) -> Alignment:
    """The alignment for tests of a group, where labels of some model can be called random."""
    refusal = pair.refusal(group)
    if refusal is not None:
        raise NoResult(refusal, Status.GUARDED)
    return pair.alignment(group)


def unless_untrusted(test: LineageTest, found: Evidence, alignment: Alignment) -> Evidence:
    """The evidence of matched parts; none where it is silent in a basis that cannot be trusted.

    A copy might not have matched there. What speaks in spite of the map is exact all the same, and
    a p-value that is left out was a weak one, so that nothing is chosen by it.
    """
    if alignment.trusted or found.status is not Status.OK or found.log10_p <= _SPEAKS:
        return found
    return test.no_result(Reason.RESIDUAL_MAP_UNTRUSTED)


def require_width(alignment: Alignment, same: bool) -> None:
    """Go on only if both models have one width, or two where that is what a test is for."""
    equal = alignment.first.prepared.width == alignment.second.prepared.width
    if equal is not same:
        raise NoResult(Reason.MODELS_OF_ONE_WIDTH if same else Reason.MODELS_OF_DIFFERENT_WIDTH)
