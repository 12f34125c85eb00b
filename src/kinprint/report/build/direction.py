"""Which of two models came first, as a part of a document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kinprint import text
from kinprint.records import Precedence
from kinprint.report import schema
from kinprint.report.translation import Translator
from kinprint.text import Message

if TYPE_CHECKING:
    from kinprint.diff.direction import Direction, TraceFound


def direction_part(
    found: Direction, titles: Sequence[str], translator: Translator
) -> schema.PrecedencePart:
    """The finding as a document has it; `titles` are those of the two models."""
    names = {"a": titles[0], "b": titles[1]}
    counted = [one for one in found.traces if one.trace.counted]
    speaking = {one.speaks for one in counted}
    key = found.answer.value
    if found.answer is Precedence.UNDECIDED:
        key = "none" if not counted else "contradiction" if len(speaking) > 1 else "one"
    return schema.PrecedencePart(
        answer=found.answer,
        summary=translator.said(text.message(f"report.direction.says.{key}", **names)),
        traces=trace_rows(found.traces, names, translator),
    )


def trace_rows(
    traces: Iterable[TraceFound], names: Mapping[str, str], translator: Translator
) -> list[schema.TraceRow]:
    """What each trace says; `names` are those of the two models, `a` and `b`."""
    return [
        schema.TraceRow(
            trace=one.trace,
            speaks=one.speaks,
            counted=one.trace.counted,
            says=translator.said(Message(one.says.key, {**one.says.fields, **names})),
        )
        for one in traces
    ]
