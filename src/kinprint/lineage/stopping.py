"""What was not read because the answer was clear before: said as such, and not as a need.

Evidence and parts of the last stage that was read are put right: a test without its tokens, and a
part of which nothing was read, say that reading ended, where a later stage would have read them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from kinprint.records import (
    Component,
    Evidence,
    Part,
    PartFinding,
    PartState,
    Reason,
    Status,
    Verdict,
)
from kinprint.text import Message

# What a test had needed, and the component that a later stage would have read for it.
_NEEDED = {
    Reason.SHARED_TOKENS: Component.EMBEDDING,
    Reason.ATTENTION_HEADS: Component.ATTENTION,
    Reason.ROUTERS: Component.ROUTER,
    Reason.FEED_FORWARD_UNITS: Component.FEED_FORWARD,
}


def stopped_evidence(
    evidence: Iterable[Evidence], unread: Collection[Part], stages: tuple[int, int]
) -> tuple[Evidence, ...]:
    """Evidence in which tests that later stages would have served say that reading ended."""
    components = {part.component for part in unread}
    reason = _reason(stages)

    def told(one: Evidence) -> Evidence:
        key = None if one.reason is None else one.reason.key
        needed = next((component for why, component in _NEEDED.items() if why == key), None)
        if one.status is not Status.NEEDS or needed not in components:
            return one
        return replace(one, status=Status.UNREAD, reason=reason)

    return tuple(map(told, evidence))


def stopped_verdict(verdict: Verdict, unread: Collection[Part], stages: tuple[int, int]) -> Verdict:
    """A verdict whose unread parts say that reading ended, where later stages would have read
    them."""
    reason = _reason(stages)

    def told(finding: PartFinding) -> PartFinding:
        later = finding.part in unread or finding.partner in unread
        if finding.state is not PartState.NOT_READ or not later:
            return finding
        return replace(finding, reason=reason)

    return replace(verdict, parts=tuple(map(told, verdict.parts)))


def _reason(stages: tuple[int, int]) -> Message:
    stage, of = stages
    return Reason.STOPPED_EARLY.message(stage=stage, stages=of)
