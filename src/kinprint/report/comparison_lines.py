"""Comparisons as lines of a terminal, eighty columns wide, drawn from their documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace

from kinprint.errors import printable
from kinprint.lineage.tests.menu import menu
from kinprint.records import Verdict
from kinprint.report.documents import (
    ComparisonDocument,
    EvidencePart,
    MatrixDocument,
    PlanDocument,
    VerdictPart,
)
from kinprint.report.relations import SIGNS, own_p, p_value
from kinprint.report.terminal import WIDTH, columns_of, wrapped
from kinprint.report.verdict_words import power, reasons

_SHOWN = 10  # tests in the table of a terminal
_NAME = 26


def comparison_lines(found: ComparisonDocument, language: str) -> Iterator[str]:
    """What a person wants to know: the sentence, the evidence, what was not looked at."""
    korean = language == "ko"
    summary = found.verdict.summary_ko if korean else found.verdict.summary
    yield from wrapped(printable(summary, 1000))
    for label in found.labels:
        yield from wrapped(f"! {printable(label, 1000)}", "  ")
    yield from _explained(found.verdict, language)
    spoken = sorted((one for one in found.evidence if one.status == "ok"), key=_strength)
    if spoken:
        yield ""
        yield from _table(spoken[:_SHOWN], found.asked.level, korean)
    more = len(spoken) - _SHOWN
    silent = [one for one in found.evidence if one.status != "ok"]
    if more > 0:
        text = f"  그 밖의 검정 {more}개는 JSON에 있음" if korean else f"  {more} more in the JSON"
        yield text
    if silent:
        names = ", ".join(one.test for one in silent)
        yield from wrapped(("말하지 않은 검정: " if korean else "silent: ") + names, "  ")
    for note in (*found.notes, *_left_out(found.plan.left_out, korean)):
        yield from wrapped(f"- {printable(note, 1000)}", "  ")


def matrix_lines(found: MatrixDocument, language: str) -> Iterator[str]:
    """A grid of signs where it fits, then all pairs that show something."""
    korean = language == "ko"
    names = {
        one.given: printable(_name(one.kind, one.name, one.title), 200) for one in found.models
    }
    for label in found.labels:
        yield from wrapped(f"! {printable(label, 1000)}", "  ")
    if 4 + _NAME + 2 * len(found.models) <= WIDTH:
        yield from _grid(found, names)
    telling = [one for one in found.pairs if one.relation != "no-evidence"]
    for one in sorted(telling, key=lambda one: one.log10_p or 0.0):
        a, b = (_fitted(names.get(given, given)) for given in (one.a, one.b))
        yield f"{a} {b} {one.relation:<11} {p_value(one.log10_p):>10}"
    rest, count = len(found.pairs) - len(telling), len(found.pairs)
    if korean:
        yield f"전체 {count}쌍 가운데 {rest}쌍에는 증거가 없음"
    else:
        yield f"no evidence for {rest} of {count} pairs"
    for lost in found.unread:
        why = lost.error_ko if korean else lost.error
        yield from wrapped(f"! {printable(lost.given, 200)}: {printable(why, 1000)}", "  ")
    for pair in found.failed:
        both = " × ".join(printable(given, 200) for given in (pair.a, pair.b))
        why = pair.error_ko if korean else pair.error
        yield from wrapped(f"! {both}: {printable(why, 1000)}", "  ")


def plan_lines(found: PlanDocument, language: str) -> Iterator[str]:
    """The price of each stage in words."""
    from kinprint.reader.sizes import in_words

    korean = language == "ko"
    for number, one in enumerate(found.stages, 1):
        name = f"{number}단계" if korean else f"stage {number}"
        unit = "요청" if korean else "requests"
        yield f"{name}: {in_words(one.bytes)}, {one.requests:,} {unit}"
    limit = in_words(found.bytes_at_most)
    yield f"헤더를 포함해 최대 {limit}" if korean else f"at most {limit} in all, headers included"
    for note in _left_out(found.left_out, korean):
        yield from wrapped(f"- {note}", "  ")


def _explained(part: VerdictPart, language: str) -> Iterator[str]:
    """Why, and what would have been seen where nothing was."""
    verdict = Verdict(part.relation, 0.0, part.alpha, power=tuple(part.power.items()))
    told: list[str] = []
    if part.relation == "no-evidence":
        told.append(power(verdict, language))
    for key in part.reasons if part.relation != "no-evidence" else ():
        with suppress(KeyError):  # a later version may know more reasons
            told += reasons(replace(verdict, reasons=(key,)), language)
    for text in told:
        yield from wrapped(printable(text, 1000))


def _grid(found: MatrixDocument, names: dict[str, str]) -> Iterator[str]:
    known = {(one.a, one.b): one.relation for one in found.pairs}
    given = [one.given for one in found.models]
    for row, mine in enumerate(given):
        pairs = (((mine, other), (other, mine)) for other in given)
        cells = [next((SIGNS[known[at]].mark for at in both if at in known), " ") for both in pairs]
        yield f"{row + 1:>2} {_fitted(names[mine])} " + " ".join(cells).rstrip()
    yield from wrapped(", ".join(f"{sign.mark} {relation}" for relation, sign in SIGNS.items()))
    yield ""


def _table(rows: Sequence[EvidencePart], level: str, korean: bool) -> Iterator[str]:
    words = {entry.name: entry.words["ko" if korean else "en"] for entry in menu(level)}
    head = ("검정", "p", "효과") if korean else ("test", "p", "effect")
    grid = [(*head, "")]
    for one in rows:
        effect = "" if one.effect is None else f"{one.effect:.3f}"
        mark = " *" if one.tier == "calibrated" else ""
        told = words.get(one.test, one.reason) + mark
        grid.append((one.test, p_value(own_p(one)), effect, told))
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


def _strength(one: EvidencePart) -> tuple[bool, float]:
    return one.tier != "exact", one.log10_p if one.log10_p is not None else 0.0


def _left_out(steps: Sequence[str], korean: bool) -> list[str]:
    if not steps:
        return []
    listed = ", ".join(steps)
    if korean:
        return [f"예산 때문에 읽지 않은 것: {listed}"]
    return [f"left out for the budget: {listed}"]


def _name(kind: str, name: str, title: str) -> str:
    return title if kind == "local" else name


def _fitted(name: str) -> str:
    shown = name if columns_of(name) <= _NAME else "…" + name[-_NAME + 1 :]
    return shown + " " * (_NAME - columns_of(shown))
