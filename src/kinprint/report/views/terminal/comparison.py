"""Comparisons, matrices and plans as lines of a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kinprint import text
from kinprint.errors import printable
from kinprint.reader.sizes import in_words
from kinprint.records import Relation, Tier
from kinprint.report import answer, controls
from kinprint.report.beyond import beyond_table, traces_in
from kinprint.report.evidence import (
    Finding,
    findings,
    leading,
    link_is_elsewhere,
    reason,
    silent,
)
from kinprint.report.matrix import (
    Group,
    error_says,
    group_name,
    group_says,
    groups_of,
    ordered,
    overview,
    telling,
    unlinked_names,
)
from kinprint.report.numbers import p_value
from kinprint.report.relations import SIGNS
from kinprint.report.schema import (
    BeyondPart,
    ComparisonDocument,
    MatrixDocument,
    PlanDocument,
    PrecedencePart,
)
from kinprint.report.translation import Translatable, translated
from kinprint.report.views.terminal.layout import Line, Look, answer_look, lines
from kinprint.text.lines import columns_of, padded, wrapped

NARROW = 60  # columns, so that an answer fits half a screen
_SHOWN = 5  # tests in the table of a terminal
_NAME, _WORD = 16, 12  # columns of a model's name, and of a relation
_WIDEST = NARROW - _NAME - 5  # models of a group up to which it has a grid
_PAIRS = 20  # linked pairs up to which a terminal lists them


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
    if document.beyond is not None:
        yield from beyond_lines(document, document.beyond, language)
    if document.direction is not None:
        yield from _direction(document, document.direction, language)
    found = findings(document)
    shown, rest = leading(found, _SHOWN)
    if shown:
        yield Line()
        yield from _table(shown, document, language)
    mute = silent(document)
    counts = (("more", len(rest)), ("silent", len(mute)))
    told = [text.say(f"report.terminal.{key}", language, number=one) for key, one in counts if one]
    if shown and link_is_elsewhere(document, found):
        told.insert(0, text.say("report.evidence.elsewhere", language))
    if told:
        yield from (
            Line("  " + line, Look.ASIDE) for line in wrapped(" ".join(told), width=NARROW - 2)
        )
    yield from _controls(document, language)
    if answer.diff_command(document):
        said = text.say("report.diff.terminal", language)
        yield from (Line("  " + line, Look.ASIDE) for line in wrapped(said, width=NARROW - 2))
    for note in document.notes:
        note = printable(translated(document, note, language), 1000)
        yield from lines(f"- {note}", "  ", Look.ASIDE, NARROW)


def beyond_lines(document: Translatable, part: BeyondPart, language: str) -> Iterator[Line]:
    """What the models share beyond a base: a sentence, then a line a component."""
    yield Line()
    yield Line(
        printable(text.say("report.beyond.title", language, base=part.title), 200), Look.TITLE
    )
    yield from _indented(printable(translated(document, part.summary, language), 2000))
    rows = beyond_table(part, language)
    width = max((columns_of(row[0]) for row in rows), default=0)
    for component, states, cosine in rows:
        first, *rest = wrapped(f"{states}  {cosine}".rstrip(), width=NARROW - width - 4)
        yield Line(f"  {padded(component, width)}  {first}")
        yield from (Line(" " * (width + 4) + line) for line in rest)
    if rows:
        said = text.say("report.beyond.calibrated", language)
        yield from (Line("  " + line, Look.ASIDE) for line in wrapped(said, width=NARROW - 2))


def _controls(document: ComparisonDocument, language: str) -> Iterator[Line]:
    """A line for each model that was given as unrelated, and a warning where it is not."""
    found = controls.findings(document)
    if found:
        yield Line()
        yield Line(text.say("report.controls.title", language), Look.TITLE)
    for one in found:
        look = Look.WARNING if one.linked else Look.PLAIN
        mark = "! " if one.linked else "- "
        said = printable(controls.says(one, language), 1000)
        yield from lines(f"{mark}{said}", "  ", look, NARROW)


def _direction(document: ComparisonDocument, part: PrecedencePart, language: str) -> Iterator[Line]:
    """Which model came first: a sentence, then what each trace says."""
    yield Line()
    yield Line(text.say("report.direction.title", language), Look.TITLE)
    yield from _indented(printable(translated(document, part.summary, language), 1000))
    for one in traces_in(document, part, language):
        yield from lines(f"- {printable(one, 1000)}", "  ", width=NARROW)


def matrix_lines(document: MatrixDocument, language: str) -> Iterator[Line]:
    """The groups with a grid of letters each, models without a link, then pairs if they are few."""
    names = [printable(one.title or one.name, 200) for one in document.models]
    groups = groups_of(document)
    yield from _labels(document, language)
    for at, sentence in enumerate(overview(document, groups, language)):
        yield from lines(sentence, look=Look.PLAIN if at else Look.TITLE, width=NARROW)
    numbers = {at: number for number, at in enumerate(ordered(document), 1)}
    for number, group in enumerate(groups, 1):
        yield Line()
        name = group_name(group, names, language)
        title = text.say("report.matrix.group-title", language, number=number, name=name)
        yield from lines(title, "  ", Look.TITLE, NARROW)
        yield from _indented(group_says(document, group, language))
        if len(group.places) > _WIDEST:
            yield from _indented(", ".join(names[at] for at in group.places))
        elif len(group.places) > 2:
            yield from _grid(group, names, numbers)
    alone = unlinked_names(document, groups, names, language)
    if groups and alone:
        yield Line()
        yield Line(text.say("report.matrix.alone", language), Look.TITLE)
        yield from _indented(", ".join(alone))
        yield from _indented(text.say("report.matrix.alone-says", language))
    yield Line()
    yield from _letters(groups, language)
    yield from _linked(document, names, language)
    if document.pairs:
        yield from lines(error_says(document, language), look=Look.ASIDE, width=NARROW)
    yield from _set_aside(document, language)


def plan_lines(document: PlanDocument, language: str) -> Iterator[Line]:
    """The price of each stage in words."""
    for number, one in enumerate(document.stages, 1):
        cost = {"size": in_words(one.bytes), "count": one.requests}
        key = "report.plan.stage" if one.requests else "report.plan.stage-nothing"
        yield Line(text.say(key, language, number=number, **cost))
    size = in_words(document.bytes_at_most)
    yield from lines(text.say("report.plan.limit", language, size=size), "  ", width=NARROW)
    yield from _left_out(document, document.left_out, language)


def _labels(document: ComparisonDocument | MatrixDocument, language: str) -> Iterator[Line]:
    for label in document.labels:
        shown = printable(translated(document, label, language), 1000)
        yield from lines(f"! {shown}", "  ", Look.WARNING, NARROW)


def _indented(said: str) -> Iterator[Line]:
    yield from (Line(f"  {line}") for line in wrapped(said, width=NARROW - 2))


def _grid(group: Group, names: Sequence[str], numbers: Mapping[int, int]) -> Iterator[Line]:
    """A letter for each pair of a group; blanks between them where there is room."""
    room = 2 * len(group.places) <= _WIDEST
    for mine in group.places:
        pairs = [group.pairs.get((min(mine, to), max(mine, to))) for to in group.places]
        cells = [" " if pair is None else SIGNS[pair.relation].mark for pair in pairs]
        shown = (" " if room else "").join(cells).rstrip()
        yield Line(f"{numbers[mine]:>3} {_fitted(names[mine])} {shown}".rstrip())


def _letters(groups: Sequence[Group], language: str) -> Iterator[Line]:
    """What the letters of the grids mean."""
    drawn = [one for one in groups if 2 < len(one.places) <= _WIDEST]
    shown = {pair.relation for one in drawn for pair in one.pairs.values()}
    key = (
        f"{sign.mark}\N{NO-BREAK SPACE}{_word(relation, language)}"
        for relation, sign in SIGNS.items()
        if relation in shown
    )
    if shown:
        yield from lines(", ".join(key), width=NARROW)


def _linked(document: MatrixDocument, names: Sequence[str], language: str) -> Iterator[Line]:
    """Linked pairs with their p-values, or where they are found if they are many."""
    called = {one.given: name for one, name in zip(document.models, names, strict=True)}
    linked = telling(document.pairs)
    if len(linked) > _PAIRS:
        yield Line(text.say("report.terminal.pairs", language, number=len(linked)))
        return
    for one in linked:
        a, b = (_fitted(called.get(given, given)) for given in (one.a, one.b))
        word = padded(_word(one.relation, language), _WORD)
        p = "" if one.relation is Relation.LAUNDERED else p_value(one.log10_p)
        yield Line(f"{a} {b} {word} {p:>10}".rstrip(), SIGNS[one.relation].terminal)


def _set_aside(document: MatrixDocument, language: str) -> Iterator[Line]:
    """Models and pairs that failed, and why."""
    models = ((one.given, answer.error(document, one, language)) for one in document.unread)
    pairs = (
        (f"{one.a} × {one.b}", answer.error(document, one, language)) for one in document.failed
    )
    for name, why in (*models, *pairs):
        said = f"! {printable(name, 400)}: {printable(why, 1000)}"
        yield from lines(said, "  ", Look.WARNING, NARROW)


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
