"""Which of two models came first."""

from __future__ import annotations

from msgspec import Struct

from kinprint.records import Precedence, Trace


class TraceRow(Struct, frozen=True, kw_only=True):
    """What one trace says of who came first, and whether that counts."""

    trace: Trace
    speaks: Precedence
    counted: bool
    says: str


class PrecedencePart(Struct, frozen=True, kw_only=True):
    """Which of two linked models came first, as far as traces tell; it has no p-value."""

    answer: Precedence
    summary: str
    traces: list[TraceRow] = []
