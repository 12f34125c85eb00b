"""Comparisons as documents and as lines of a terminal. Computes nothing: all numbers come along."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from kinprint.comparison import Comparison, Matrix, PairVerdict, Prospect, Settings
from kinprint.errors import printable
from kinprint.records import Cost, Evidence, ModelRef, Verdict
from kinprint.report.terminal import WIDTH, columns_of, wrapped
from kinprint.report.verdict_words import power, reasons, sentence, sureness
from kinprint.studies.lineage.menu import menu

COMPARE_SCHEMA, MATRIX_SCHEMA = "kinprint.compare/1", "kinprint.matrix/1"
PLAN_SCHEMA = "kinprint.compare-plan/1"
_SHOWN = 10  # tests in the table of a terminal
_NAME = 26
_MARKS = {
    "identical": "=",
    "derived": "D",
    "partial": "P",
    "same-init": "S",
    "dependent": "?",
    "untestable": "x",
    "no-evidence": "·",
}


def comparison_document(found: Comparison, cost: Cost) -> dict[str, Any]:
    """A comparison as plain data; `cost` is what the run took as a whole."""
    return {
        "schema": COMPARE_SCHEMA,
        "a": found.a.given,
        "b": found.b.given,
        "models": [_model(found.a), _model(found.b)],
        "verdict": _verdict(found.verdict, found.a, found.b),
        "evidence": [_evidence(one) for one in found.evidence],
        "controls": [
            {
                "model": one.model,
                "control": one.control,
                "evidence": [_short(each) for each in one.evidence],
            }
            for one in found.controls
        ],
        "asked": _asked(found.settings),
        "plan": {
            "stages_read": found.stages[0],
            "stages": found.stages[1],
            "bytes_at_most": found.limit,
            "left_out": found.left_out,
        },
        "notes": found.notes,
        "labels": found.labels,
        "read": _read(cost),
    }


def matrix_document(found: Matrix, cost: Cost) -> dict[str, Any]:
    """All pairs as plain data."""
    return {
        "schema": MATRIX_SCHEMA,
        "models": [_model(ref) for ref in found.models],
        "pairs": [_pair(found, one) for one in found.pairs],
        "asked": _asked(found.settings),
        "notes": found.notes,
        "labels": found.labels,
        "read": _read(cost),
    }


def plan_document(found: Prospect, spent: Cost) -> dict[str, Any]:
    """What a comparison would cost; `spent` is what knowing it took."""
    return {
        "schema": PLAN_SCHEMA,
        "models": [ref.given for ref in found.models],
        "bytes": found.cost.bytes,
        "requests": found.cost.requests,
        "stages": [{"bytes": one.bytes, "requests": one.requests} for one in found.stages],
        "bytes_at_most": found.limit,
        "left_out": found.left_out,
        "asked": _asked(found.settings),
        "spent": {"bytes": spent.bytes, "requests": spent.requests},
    }


def comparison_lines(found: Comparison, language: str) -> Iterator[str]:
    """What a person wants to know: the sentence, the evidence, what was not looked at."""
    korean = language == "ko"
    yield from wrapped(sentence(found.verdict, _name(found.a), _name(found.b), language))
    for label in found.labels:
        yield from wrapped(f"! {printable(label, 1000)}", "  ")
    yield from _explained(found.verdict, language)
    spoken = sorted((one for one in found.evidence if one.status == "ok"), key=_strength)
    if spoken:
        yield ""
        yield from _table(spoken[:_SHOWN], found.settings.level, korean)
    more = len(spoken) - _SHOWN
    silent = [one for one in found.evidence if one.status != "ok"]
    if more > 0:
        text = f"  그 밖의 검정 {more}개는 JSON에 있음" if korean else f"  {more} more in the JSON"
        yield text
    if silent:
        names = ", ".join(one.test for one in silent)
        yield from wrapped(("말하지 않은 검정: " if korean else "silent: ") + names, "  ")
    for note in (*found.notes, *_left_out(found.left_out, korean)):
        yield from wrapped(f"- {printable(note, 1000)}", "  ")


def _explained(verdict: Verdict, language: str) -> Iterator[str]:
    """Why, and what would have been seen where nothing was."""
    silent = verdict.relation == "no-evidence"
    told = (power(verdict, language),) if silent else reasons(verdict, language)
    for text in told:
        yield from wrapped(printable(text, 1000))


def matrix_lines(found: Matrix, language: str) -> Iterator[str]:
    """A grid of signs where it fits, then all pairs that show something."""
    names = [printable(_name(ref), 200) for ref in found.models]
    for label in found.labels:
        yield from wrapped(f"! {printable(label, 1000)}", "  ")
    grid = {(one.a, one.b): one.verdict.relation for one in found.pairs}
    if 4 + _NAME + 2 * len(names) <= 80:
        for row, name in enumerate(names):
            cells = [
                _MARKS.get(grid.get((min(row, at), max(row, at)), ""), " ")
                for at in range(len(names))
            ]
            yield f"{row + 1:>2} {_fitted(name)} " + " ".join(cells).rstrip()
        signs = ", ".join(f"{mark} {relation}" for relation, mark in _MARKS.items())
        yield from wrapped(signs)
        yield ""
    telling = [one for one in found.pairs if one.verdict.relation != "no-evidence"]
    for one in sorted(telling, key=lambda one: one.verdict.log10_p):
        verdict = one.verdict
        a, b = _fitted(names[one.a]), _fitted(names[one.b])
        yield f"{a} {b} {verdict.relation:<11} {_power(verdict.log10_p):>10}"
    rest = len(found.pairs) - len(telling)
    if language == "ko":
        yield f"전체 {len(found.pairs)}쌍 가운데 {rest}쌍에는 증거가 없음"
    else:
        yield f"no evidence for {rest} of {len(found.pairs)} pairs"


def plan_lines(found: Prospect, language: str) -> Iterator[str]:
    """The price of each stage in words."""
    from kinprint.reader.sizes import in_words

    korean = language == "ko"
    for number, one in enumerate(found.stages, 1):
        name = f"{number}단계" if korean else f"stage {number}"
        unit = "요청" if korean else "requests"
        yield f"{name}: {in_words(one.bytes)}, {one.requests:,} {unit}"
    limit = in_words(found.limit)
    yield f"헤더를 포함해 최대 {limit}" if korean else f"at most {limit} in all, headers included"
    for note in _left_out(found.left_out, korean):
        yield from wrapped(f"- {note}", "  ")


def _table(rows: Sequence[Evidence], level: str, korean: bool) -> Iterator[str]:
    words = {entry.name: entry.words.ko if korean else entry.words.en for entry in menu(level)}
    head = ("검정", "p", "효과") if korean else ("test", "p", "effect")
    grid = [(*head, "")]
    for one in rows:
        effect = "" if one.effect is None else f"{one.effect:.3f}"
        mark = " *" if one.tier == "calibrated" else ""
        told = words.get(one.test, one.reason) + mark
        grid.append((one.test, _power(one.log10_p), effect, told))
    widths = [max(columns_of(row[at]) for row in grid) for at in range(3)]
    room = WIDTH - sum(widths) - 8
    for row in grid:
        cells = (
            text + " " * (width - columns_of(text))
            for text, width in zip(row, widths, strict=False)
        )
        first, *rest = wrapped(row[3], width=room)
        yield "  " + "  ".join((*cells, first)).rstrip()
        yield from (" " * (WIDTH - room) + line for line in rest)


def _strength(one: Evidence) -> tuple[bool, float]:
    return one.tier != "exact", one.log10_p


def _power(log10_p: float) -> str:
    """A p-value in one short word: 0.31, 10^-7.2, 10^-5074."""
    if log10_p > -2:
        return f"{10**log10_p:.2f}"
    return f"10^{log10_p:.1f}" if log10_p > -100 else f"10^{log10_p:.0f}"


def _left_out(steps: Sequence[str], korean: bool) -> list[str]:
    if not steps:
        return []
    listed = ", ".join(steps)
    if korean:
        return [f"예산 때문에 읽지 않은 것: {listed}"]
    return [f"left out for the budget: {listed}"]


def _name(ref: ModelRef) -> str:
    return ref.given.rstrip("/").rpartition("/")[2] if ref.kind == "local" else ref.name


def _fitted(name: str) -> str:
    shown = name if columns_of(name) <= _NAME else "…" + name[-_NAME + 1 :]
    return shown + " " * (_NAME - columns_of(shown))


def _model(ref: ModelRef) -> dict[str, Any]:
    return {"given": ref.given, "name": ref.name, "commit": ref.commit or None}


def _verdict(verdict: Verdict, a: ModelRef, b: ModelRef) -> dict[str, Any]:
    return {
        "relation": verdict.relation,
        "log10_p": _number(verdict.log10_p),
        "alpha": verdict.alpha,
        "summary": sentence(verdict, _name(a), _name(b), "en"),
        "summary_ko": sentence(verdict, _name(a), _name(b), "ko"),
        "sureness": sureness(verdict, "en"),
        "roles": verdict.roles,
        "power": dict(verdict.power),
        "reasons": verdict.reasons,
    }


def _pair(found: Matrix, one: PairVerdict) -> dict[str, Any]:
    strongest = min(one.evidence, key=_strength, default=None)
    return {
        "a": found.models[one.a].given,
        "b": found.models[one.b].given,
        "relation": one.verdict.relation,
        "log10_p": _number(one.verdict.log10_p),
        "roles": one.verdict.roles,
        "strongest": None if strongest is None else strongest.test,
        "evidence": [_short(each) for each in one.evidence],
    }


def _evidence(one: Evidence) -> dict[str, Any]:
    return {
        "test": one.test,
        "tier": one.tier,
        "group": one.group,
        "status": one.status,
        "log10_p": _number(one.log10_p),
        "statistic": _number(one.statistic),
        "effect": _number(one.effect),
        "n": one.n,
        "bound": one.bound,
        "floor": _number(one.floor),
        "null": [_number(value) for value in one.null],
        "roles": one.roles,
        "layers": one.layers,
        "reason": one.reason,
        "learnt": one.learnt,
        "details": {name: _number(value) for name, value in one.details},
    }


def _short(one: Evidence) -> dict[str, Any]:
    return {
        "test": one.test,
        "status": one.status,
        "log10_p": _number(one.log10_p),
        "effect": _number(one.effect),
    }


def _asked(settings: Settings) -> dict[str, Any]:
    return {
        "level": settings.level,
        "alpha": settings.alpha,
        "budget": settings.budget,
        "seed": settings.seed,
        "base": settings.base,
    }


def _read(cost: Cost) -> dict[str, Any]:
    return {"bytes": cost.bytes, "requests": cost.requests, "seconds": round(cost.seconds, 3)}


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value
