"""Comparisons, matrices and plans as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kinprint import text
from kinprint.errors import printable
from kinprint.reader.sizes import in_words
from kinprint.records import Relation, Tier
from kinprint.report import answer
from kinprint.report.evidence import Finding, findings, leading, reason, silent
from kinprint.report.numbers import p_value
from kinprint.report.relations import SIGNS
from kinprint.report.schema import ComparisonDocument, MatrixDocument, PlanDocument
from kinprint.report.translation import translated
from kinprint.report.views.terminal.layout import Line, Look, answer_look, lines
from kinprint.text.lines import columns_of, padded, wrapped

NARROW = 60  # columns, so that an answer fits half a screen
_SHOWN = 5  # tests in the table of a terminal
_NAME, _WORD = 16, 12  # columns of a model's name, and of a relation


def comparison_lines(document: ComparisonDocument, language: str) -> Iterator[Line]:
    """The headline, the five statements, the strongest tests, and remarks on reading."""
    verdict = document.verdict
    summary = printable(answer.summary(document, verdict, language), 1000)
    yield from lines(summary, look=answer_look(verdict.relation), width=NARROW)
    yield from _labels(document, language)
    for one in answer.statements(document, verdict, language):
        yield Line()
        yield Line(one.title, Look.TITLE)
        said = printable(one.says, 5000)
        yield from (Line("  " + line) for line in wrapped(said, width=NARROW - 2))
    found = findings(document)
    shown, rest = leading(found, _SHOWN)
    if shown:
        yield Line()
        yield from _table(shown, document, language)
    mute = silent(document)
    counts = (("more", len(rest)), ("silent", len(mute)))
    told = [text.say(f"report.terminal.{key}", language, number=one) for key, one in counts if one]
    if told:
        yield from (
            Line("  " + line, Look.ASIDE) for line in wrapped(" ".join(told), width=NARROW - 2)
        )
    for note in document.notes:
        note = printable(translated(document, note, language), 1000)
        yield from lines(f"- {note}", "  ", Look.ASIDE, NARROW)


def matrix_lines(document: MatrixDocument, language: str) -> Iterator[Line]:
    """A grid of signs where it fits, then all pairs that show something."""
    names = {one.given: printable(one.title or one.name, 200) for one in document.models}
    yield from _labels(document, language)
    if 4 + _NAME + 2 * len(document.models) <= NARROW:
        yield from _grid(document, names, language)
    telling = [one for one in document.pairs if one.relation != Relation.NO_EVIDENCE]
    for one in sorted(telling, key=lambda one: one.log10_p or 0.0):
        a, b = (_fitted(names.get(given, given)) for given in (one.a, one.b))
        word = padded(_word(one.relation, language), _WORD)
        shown = f"{a} {b} {word} {p_value(one.log10_p):>10}".rstrip()
        yield Line(shown, SIGNS[one.relation].terminal)
    pairs, rest = len(document.pairs), len(document.pairs) - len(telling)
    yield Line(text.say("report.terminal.no-evidence", language, rest=rest, pairs=pairs))
    for lost in document.unread:
        why = printable(answer.error(document, lost, language), 1000)
        yield from lines(f"! {printable(lost.given, 200)}: {why}", "  ", Look.WARNING, NARROW)
    for pair in document.failed:
        both = " × ".join(printable(given, 200) for given in (pair.a, pair.b))
        why = printable(answer.error(document, pair, language), 1000)
        yield from lines(f"! {both}: {why}", "  ", Look.WARNING, NARROW)


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
        yield from lines(f"! {shown}", "  ", Look.WARNING, NARROW)


def _grid(document: MatrixDocument, names: dict[str, str], language: str) -> Iterator[Line]:
    known = {(one.a, one.b): one.relation for one in document.pairs}
    given = [one.given for one in document.models]
    for row, mine in enumerate(given):
        pairs = (((mine, other), (other, mine)) for other in given)
        cells = [next((SIGNS[known[at]].mark for at in both if at in known), " ") for both in pairs]
        yield Line(f"{row + 1:>2} {_fitted(names[mine])} " + " ".join(cells).rstrip())
    seen = set(known.values())
    key = (
        f"{sign.mark} {_word(relation, language)}"
        for relation, sign in SIGNS.items()
        if relation in seen
    )
    yield from lines(", ".join(key), width=NARROW)
    yield Line()


def _table(rows: Sequence[Finding], document: ComparisonDocument, language: str) -> Iterator[Line]:
    """What each test compares, in words, with its own p-value."""
    grid = [("p", text.say("report.column.compares", language))]
    for one in rows:
        words = one.words[language] or reason(document, one.part, language) or one.test
        mark = " *" if one.part.tier == Tier.CALIBRATED else ""
        grid.append((p_value(one.p), words + mark))
    width = max(columns_of(row[0]) for row in grid)
    room = NARROW - width - 4
    for at, (p, words) in enumerate(grid):
        look = Look.PLAIN if at else Look.ASIDE
        first, *rest = wrapped(words, width=room)
        yield Line(f"  {padded(p, width)}  {first}".rstrip(), look)
        yield from (Line(" " * (width + 4) + line) for line in rest)


def _left_out(document: PlanDocument, steps: Sequence[str], language: str) -> Iterator[Line]:
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
