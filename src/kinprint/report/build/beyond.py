"""What two models share beyond a base, as a part of a document."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kinprint import text
from kinprint.records import BeyondState
from kinprint.report import schema
from kinprint.report.translation import Translator
from kinprint.text import Message
from kinprint.titles import full_titles

if TYPE_CHECKING:
    from kinprint.diff.given import Beyond, BeyondFinding

_WHICH: tuple[schema.Which, schema.Which] = ("a", "b")


def beyond_part(found: Beyond, titles: Sequence[str], translator: Translator) -> schema.BeyondPart:
    """The finding as a document has it; `titles` are those of the two models."""
    title = full_titles((found.base,))[0]
    return schema.BeyondPart(
        given=found.base.given,
        name=found.base.name,
        title=title,
        commit=found.base.commit or None,
        relations=found.relations,
        state=found.answer,
        refused=None if found.refused is None else _WHICH[found.refused],
        summary=translator.said(_summary(found, (*titles, title))),
        parts=[_row(one, translator) for one in found.findings],
    )


def _summary(found: Beyond, titles: Sequence[str]) -> Message:
    """One sentence on all parts."""
    a, b, base = titles
    if found.refused is not None:
        why = text.message(f"report.given.refused.{found.relations[found.refused]}")
        return text.message("report.given.refused", model=titles[found.refused], base=base, why=why)
    compared = [one for one in found.findings if one.state not in _OPEN]
    if found.answer is BeyondState.UNCHANGED:
        still = [
            name for at, name in enumerate((a, b)) if all(one.unchanged[at] for one in compared)
        ]
        models = ", ".join(still) or f"{a}, {b}"
        return text.message("report.given.says.unchanged", models=models, base=base)
    told = [one for one in compared if one.state.common] or [
        one for one in compared if one.state is found.answer
    ]
    cosines = [abs(one.updates.cosine or 0.0) for one in told if one.updates is not None]
    low, high = (f"{most(cosines, default=0.0):.2f}" for most in (min, max))
    between = text.message("report.given.between", low=low, high=high)
    return text.message(
        f"report.given.says.{found.answer}",
        a=a,
        b=b,
        base=base,
        count=len(told),
        all=len(compared),
        cosines=high if low == high else between,
        high=high,
    )


_OPEN = (BeyondState.NOT_COMPARABLE, BeyondState.NOT_READ)


def _row(one: BeyondFinding, translator: Translator) -> schema.BeyondRow:
    part, known, space = one.part, one.updates, one.overlap
    measured: dict[str, Any] = {}
    if known is not None:
        measured = {
            "cosine": _short(known.cosine),
            "b_on_a": _short(known.of_b_on_a),
            "a_on_b": _short(known.of_a_on_b),
            "in_common": _short(known.in_common),
            "sizes": tuple(_short(size) for size in known.sizes),
        }
    if space is not None:
        shares = {"overlap": _short(space.share), "chance": _short(space.chance)}
        measured |= {**shares, "ranks": space.ranks}
    return schema.BeyondRow(
        tower=part.tower,
        component=part.component,
        layer=part.layer,
        expert=part.expert,
        state=one.state,
        unchanged=[name for name, same in zip(_WHICH, one.unchanged, strict=True) if same],
        bits=one.bits,
        reason=translator.said(one.reason),
        weights=one.weights,
        read=float(f"{one.read:.6g}"),
        **measured,
    )


def _short(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
