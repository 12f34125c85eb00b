"""Comparisons, matrices and plans as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kinprint import text
from kinprint.errors import printable
from kinprint.reader.sizes import in_words
from kinprint.records import Relation, Tier
from kinprint.report import answer
from kinprint.report.evidence import Finding, findings, reason, silent
from kinprint.report.numbers import fixed, p_value
from kinprint.report.relations import SIGNS
from kinprint.report.schema import ComparisonDocument, MatrixDocument, PlanDocument
from kinprint.report.translation import translated
from kinprint.report.views.terminal.layout import Line, Look, answer_look, lines
from kinprint.text.lines import WIDTH, columns_of, padded, wrapped

_SHOWN = 10  # tests in the table of a terminal
_NAME, _WORD = 25, 12  # columns of a model's name, and of a relation


def comparison_lines(document: ComparisonDocument, language: str) -> Iterator[Line]:
    """What a person wants to know: the sentence, the evidence, what was not looked at."""
    verdict = document.verdict
    summary = printable(answer.summary(document, verdict, language), 1000)
    yield from lines(summary, look=answer_look(verdict.relation))
    yield from _labels(document, language)
    if verdict.relation == Relation.NO_EVIDENCE:
        told = [answer.power(verdict, language)]
    else:
        told = answer.reasons(document, language)
    for sentence in told:
        yield from lines(printable(sentence, 1000))
    found = findings(document)
    if found:
        yield Line()
        yield from _table(found[:_SHOWN], document, language)
    if len(found) > _SHOWN:
        more = text.say("report.terminal.more", language, number=len(found) - _SHOWN)
        yield Line("  " + more)
    mute = silent(document)
    if mute:
        tests = ", ".join(one.test for one in mute)
        told_silent = text.say("report.terminal.silent", language, tests=tests)
        yield from lines(told_silent, "  ", Look.ASIDE)
    for note in document.notes:
        shown = printable(translated(document, note, language), 1000)
        yield from lines(f"- {shown}", "  ", Look.ASIDE)
    yield from _left_out(document, document.plan.left_out, language)


def matrix_lines(document: MatrixDocument, language: str) -> Iterator[Line]:
    """A grid of signs where it fits, then all pairs that show something."""
    names = {
        one.given: printable(one.title if one.kind == "local" else one.name, 200)
        for one in document.models
    }
    yield from _labels(document, language)
    if 4 + _NAME + 2 * len(document.models) <= WIDTH:
        yield from _grid(document, names, language)
    telling = [one for one in document.pairs if one.relation != Relation.NO_EVIDENCE]
    for one in sorted(telling, key=lambda one: one.log10_p or 0.0):
        a, b = (_fitted(names.get(given, given)) for given in (one.a, one.b))
        word = padded(_word(one.relation, language), _WORD)
        shown = f"{a} {b} {word} {p_value(one.log10_p):>10}"
        yield Line(shown, SIGNS[one.relation].terminal)
    pairs, rest = len(document.pairs), len(document.pairs) - len(telling)
    yield Line(text.say("report.terminal.no-evidence", language, rest=rest, pairs=pairs))
    for lost in document.unread:
        why = printable(answer.error(document, lost, language), 1000)
        yield from lines(f"! {printable(lost.given, 200)}: {why}", "  ", Look.WARNING)
    for pair in document.failed:
        both = " × ".join(printable(given, 200) for given in (pair.a, pair.b))
        why = printable(answer.error(document, pair, language), 1000)
        yield from lines(f"! {both}: {why}", "  ", Look.WARNING)


def plan_lines(document: PlanDocument, language: str) -> Iterator[Line]:
    """The price of each stage in words."""
    for number, one in enumerate(document.stages, 1):
        size, requests = in_words(one.bytes), f"{one.requests:,}"
        yield Line(
            text.say("report.plan.stage", language, number=number, size=size, requests=requests)
        )
    yield Line(text.say("report.plan.limit", language, size=in_words(document.bytes_at_most)))
    yield from _left_out(document, document.left_out, language)


def _labels(document: ComparisonDocument | MatrixDocument, language: str) -> Iterator[Line]:
    for label in document.labels:
        shown = printable(translated(document, label, language), 1000)
        yield from lines(f"! {shown}", "  ", Look.WARNING)


def _grid(document: MatrixDocument, names: dict[str, str], language: str) -> Iterator[Line]:
    known = {(one.a, one.b): one.relation for one in document.pairs}
    given = [one.given for one in document.models]
    for row, mine in enumerate(given):
        pairs = (((mine, other), (other, mine)) for other in given)
        cells = [next((SIGNS[known[at]].mark for at in both if at in known), " ") for both in pairs]
        yield Line(f"{row + 1:>2} {_fitted(names[mine])} " + " ".join(cells).rstrip())
    key = (f"{sign.mark} {_word(relation, language)}" for relation, sign in SIGNS.items())
    yield from lines(", ".join(key))
    yield Line()


def _table(rows: Sequence[Finding], document: ComparisonDocument, language: str) -> Iterator[Line]:
    head = text.say("report.column.test", language), "p", text.say("report.column.effect", language)
    grid = [(*head, "")]
    for one in rows:
        effect = "" if one.part.effect is None else fixed(one.part.effect, 3)
        words = one.words[language] or reason(document, one.part, language)
        mark = " *" if one.part.tier == Tier.CALIBRATED else ""
        grid.append((one.test, p_value(one.p), effect, words + mark))
    widths = [max(columns_of(row[at]) for row in grid) for at in range(3)]
    room = WIDTH - sum(widths) - 8
    for at, row in enumerate(grid):
        look = Look.PLAIN if at else Look.ASIDE
        cells = (padded(cell, width) for cell, width in zip(row, widths, strict=False))
        first, *rest = wrapped(row[3], width=room)
        yield Line("  " + "  ".join((*cells, first)).rstrip(), look)
        yield from (Line(" " * (WIDTH - room) + line) for line in rest)


def _left_out(
    document: ComparisonDocument | PlanDocument, steps: Sequence[str], language: str
) -> Iterator[Line]:
    if steps:
        parts = ", ".join(translated(document, step, language) for step in steps)
        told = text.say("report.terminal.left-out", language, parts=parts)
        yield from lines(f"- {printable(told, 1000)}", "  ", Look.ASIDE)


def _word(relation: Relation, language: str) -> str:
    """A relation in a word or two."""
    return text.say(f"report.terminal.relation.{relation}", language)


def _fitted(name: str) -> str:
    shown = name if columns_of(name) <= _NAME else "…" + name[-_NAME + 1 :]
    return padded(shown, _NAME)
