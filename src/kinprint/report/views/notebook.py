"""Results as a notebook shows them: the heart of the page, without scripts.

Colours follow the notebook's own theme: text inherits, lines are the text's colour made faint,
and the one colour of a relation reads on dark and on light. Nothing outside is styled.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from pathlib import Path

from markupsafe import Markup, escape

from kinprint import text
from kinprint.errors import printable
from kinprint.reader.sizes import in_words
from kinprint.report import answer
from kinprint.report.beyond import beyond_table, traces_in
from kinprint.report.changes import sampled_view
from kinprint.report.evidence import findings
from kinprint.report.matrix import (
    group_name,
    group_says,
    groups_of,
    ordered,
    overview,
    pairs_by_place,
    telling,
)
from kinprint.report.numbers import NOTHING, fixed, p_value
from kinprint.report.relations import SIGNS, words_for
from kinprint.report.schema import ComparisonDocument, EvidencePart, MatrixDocument, Subject
from kinprint.report.translation import translated, warning

_ROWS, _PAIRS, _GRID = 8, 12, 40
_WIDE, _TALL, _BINS = 190, 26, 38
_NEUTRAL = "#7d8793"


def fragment(document: ComparisonDocument | MatrixDocument, language: str = "en") -> str:
    """The result as HTML that can stand anywhere in a page."""
    if isinstance(document, MatrixDocument):
        return _framed(_matrix(document, language), _NEUTRAL, document, language)
    colour = SIGNS[document.verdict.relation].notebook
    return _framed(_comparison(document, language), colour, document, language)


def _framed(
    parts: Sequence[Markup],
    colour: str,
    document: ComparisonDocument | MatrixDocument,
    language: str,
) -> str:
    read = document.read
    cost = text.say(
        "report.notebook.cost" if read.requests else "report.notebook.no-cost",
        language,
        size=in_words(read.bytes),
        count=read.requests,
        seconds=f"{read.seconds:.1f}",
    )
    if read.answered:
        cost = f"{text.say('report.answered', language, date=read.answered)} {cost}"
    told = warning(document, language)
    above = _tag("p", told, "kp-warn") if told else Markup("")
    inside = Markup("").join((above, *parts, _tag("p", cost, "kp-soft")))
    return str(
        Markup(
            '<div class="kinprint-result" lang="{}" style="border-left-color:{}">'
            "<style>{}</style>{}</div>"
        ).format(language, colour, _style(), inside)
    )


@functools.cache
def _style() -> Markup:
    return Markup(Path(__file__).with_name("notebook.css").read_text(encoding="utf-8"))


def _comparison(document: ComparisonDocument, language: str) -> list[Markup]:
    verdict = document.verdict
    limits = answer.not_shown((verdict.relation,), language)
    return [
        _tag("p", answer.summary(document, verdict, language), "kp-says"),
        *(
            Markup("<p><b>{}.</b> {}</p>").format(one.title, printable(one.says, 5000))
            for one in answer.statements(document, verdict, language)
        ),
        *_beyond(document, language),
        *_direction(document, language),
        _evidence(document, language),
        *_diff(document, language),
        Markup("<details><summary>{}</summary>{}</details>").format(
            text.say("report.not-shown", language),
            Markup("").join(_tag("p", sentence) for sentence in limits),
        ),
    ]


def _beyond(document: ComparisonDocument, language: str) -> Iterator[Markup]:
    """What the models share beyond a base: a sentence, then a row a component."""
    part = document.beyond
    if part is None:
        return
    title = text.say("report.beyond.title", language, base=part.title)
    says = translated(document, part.summary, language)
    yield Markup("<p><b>{}.</b> {}</p>").format(printable(title, 200), printable(says, 2000))
    rows = beyond_table(part, language)
    cells = (Markup("<tr>{}</tr>").format(Markup("").join(map(_cell, row))) for row in rows)
    if rows:
        yield Markup('<div class="kp-scroll"><table>{}</table></div>').format(
            Markup("").join(cells)
        )
        yield _tag("p", text.say("report.beyond.calibrated", language), "kp-soft")


def _direction(document: ComparisonDocument, language: str) -> Iterator[Markup]:
    """Which model came first: a sentence, then what each trace says."""
    part = document.direction
    if part is None:
        return
    title = text.say("report.direction.title", language)
    says = translated(document, part.summary, language)
    yield Markup("<p><b>{}.</b> {}</p>").format(title, printable(says, 1000))
    for one in traces_in(document, part, language):
        yield _tag("p", printable(one, 1000))


def _diff(document: ComparisonDocument, language: str) -> Iterator[Markup]:
    """What changed as far as was read, and how to ask for more."""
    view = sampled_view(document, language)
    if view is not None:
        title = text.say("report.diff.title", language)
        first, *evidence = (printable(one, 2000) for one in view.sentences)
        yield Markup("<p><b>{}.</b> {}</p>").format(title, first)
        yield from (_tag("p", one) for one in evidence)
        cells = (
            Markup("<tr>{}</tr>").format(Markup("").join(map(_cell, row))) for row in view.rows
        )
        table = Markup('<div class="kp-scroll"><table>{}</table></div>')
        yield table.format(Markup("").join(cells))
    if command := answer.diff_command(document):
        says = text.say("report.diff.says", language)
        yield Markup("<p>{} <code>{}</code></p>").format(says, printable(command, 2000))


def _evidence(document: ComparisonDocument, language: str) -> Markup:
    rows = []
    found = findings(document)
    colour = SIGNS[document.verdict.relation].notebook
    for one in found[:_ROWS]:
        effect = NOTHING if one.part.effect is None else fixed(one.part.effect, 3)
        cells = (
            _cell(one.words[language] or one.test),
            Markup("<td>{}</td>").format(_strip(one.part, colour)),
            _cell(p_value(one.p)),
            _cell(effect),
        )
        rows.append(Markup("<tr>{}</tr>").format(Markup("").join(cells)))
    if not rows:
        return Markup("")
    more = len(found) - _ROWS
    rest = text.say("report.notebook.more", language, number=more)
    heads = (
        text.say("report.column.test", language),
        text.say("report.notebook.chance", language),
        "p ≤",
        text.say("report.column.effect", language),
    )
    return Markup(
        '<div class="kp-scroll"><table><thead><tr>{}</tr></thead>{}</table></div>{}'
    ).format(
        Markup("").join(Markup('<th scope="col">{}</th>').format(head) for head in heads),
        Markup("").join(rows),
        _tag("p", rest, "kp-soft") if more > 0 else Markup(""),
    )  # fmt: skip


def _strip(one: EvidencePart, colour: str) -> Markup:
    """What chance gives as a hill, and the pair as a line with a dot."""
    sample = [value for value in one.null if value is not None]
    if not sample or one.statistic is None:
        return Markup("")
    low, high = min(*sample, one.statistic), max(*sample, one.statistic)
    span = high - low or 1.0
    counts = [0] * _BINS
    for value in sample:
        counts[min(int((value - low) / span * _BINS), _BINS - 1)] += 1
    step = (_WIDE - 12) / _BINS
    bars = "".join(
        f"M{6 + at * step:.1f} {_TALL}v-{(_TALL - 4) * count / max(counts):.1f}h{step:.1f}V{_TALL}z"
        for at, count in enumerate(counts)
        if count
    )
    x = 6 + (_WIDE - 12) * (one.statistic - low) / span
    return Markup(
        '<svg width="{w}" height="{h}" viewBox="0 0 {w} {h}" role="img" aria-label="{label}">'
        '<path d="{bars}" fill="currentColor" opacity=".35"/>'
        '<path d="M{x:.1f} 2V{h}" stroke="{colour}" stroke-width="2"/>'
        '<circle cx="{x:.1f}" cy="8" r="4.5" fill="{colour}"/></svg>'
    ).format(
        w=_WIDE, h=_TALL, bars=bars, x=x, colour=colour, label=f"{one.test}: {one.statistic:g}"
    )


def _matrix(document: MatrixDocument, language: str) -> list[Markup]:
    groups, linked = groups_of(document), telling(document.pairs)
    names = [_name(one) for one in document.models]
    headline, *more = overview(document, groups, language)
    parts = [_tag("p", headline, "kp-says"), *(_tag("p", sentence) for sentence in more)]
    parts += [
        Markup("<p><b>{}.</b> {}</p>").format(
            group_name(one, names, language), printable(group_says(document, one, language), 2000)
        )
        for one in groups[:_PAIRS]
    ]
    if len(document.models) <= _GRID:
        parts.append(_grid(document, language))
    told = [_tag("p", answer.summary(document, one, language)) for one in linked[:_PAIRS]]
    if len(linked) > _PAIRS:
        rest = text.say("report.notebook.more-pairs", language, number=len(linked) - _PAIRS)
        told.append(_tag("p", rest, "kp-soft"))
    if told:
        heading = f"{text.say('report.matrix.linked', language)}: {len(linked)}"
        parts.append(
            Markup("<details><summary>{}</summary>{}</details>").format(
                heading, Markup("").join(told)
            )
        )
    parts += [
        _tag("p", f"{one.given}: {answer.error(document, one, language)}", "kp-warn")
        for one in document.unread
    ]
    parts += [
        _tag("p", f"{one.a} × {one.b}: {answer.error(document, one, language)}", "kp-warn")
        for one in document.failed[:_PAIRS]
    ]
    return parts


def _grid(document: MatrixDocument, language: str) -> Markup:
    order, pairs = ordered(document), pairs_by_place(document)
    heads = Markup("").join(
        Markup('<th scope="col" class="kp-cell" title="{}">{}</th>').format(
            _name(document.models[at]), number
        )
        for number, at in enumerate(order, 1)
    )
    rows = []
    for number, one in enumerate(order, 1):
        cells = []
        for other in order:
            pair = pairs.get((min(one, other), max(one, other)))
            if pair is None:
                cells.append(Markup('<td class="kp-cell"></td>'))
                continue
            cells.append(
                Markup('<td class="kp-cell" style="color:{}" title="{}">{}</td>').format(
                    SIGNS[pair.relation].notebook,
                    words_for(pair.relation)[language],
                    SIGNS[pair.relation].mark,
                )
            )
        name = _name(document.models[one])
        rows.append(
            Markup('<tr><th scope="row">{} {}</th>{}</tr>').format(
                number, name, Markup("").join(cells)
            )
        )
    seen = {pair.relation for pair in document.pairs}
    key = ", ".join(
        f"{sign.mark} {words_for(relation)[language]}"
        for relation, sign in SIGNS.items()
        if relation in seen
    )
    return Markup(
        '<div class="kp-scroll"><table><thead><tr><td></td>{}</tr></thead>{}</table></div>{}'
    ).format(heads, Markup("").join(rows), _tag("p", key, "kp-soft"))


def _name(subject: Subject) -> str:
    return printable(subject.title, 200)


def _cell(given: str) -> Markup:
    return Markup("<td>{}</td>").format(printable(given, 500))


def _tag(name: str, given: str, style: str = "") -> Markup:
    told = escape(printable(given, 2000))
    return (
        Markup(f'<{name} class="{style}">' if style else f"<{name}>") + told + Markup(f"</{name}>")
    )
