"""Results as a notebook shows them: the heart of the page, without scripts.

Colours follow the notebook's own theme: text inherits, lines are the text's colour made faint,
and the one colour of a relation reads on dark and on light. Nothing outside is styled.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup, escape

from kinprint.errors import printable
from kinprint.reader.sizes import in_words
from kinprint.report.comparison_charts import asks, by_strength, ordered, pairs_by_place
from kinprint.report.comparison_page import count_related, explained, linked_pairs, verdict_of
from kinprint.report.documents import (
    ComparisonDocument,
    EvidencePart,
    MatrixDocument,
    Subject,
)
from kinprint.report.outputs import Drawn, warning_of
from kinprint.report.relations import SIGNS, own_p, p_value
from kinprint.report.verdict_words import not_shown

_ROWS, _PAIRS, _GRID = 8, 12, 40
_WIDE, _TALL, _BINS = 190, 26, 38
_COLOURS = {
    "identical": "#8e5cc0",
    "derived": "#1f7fc4",
    "partial": "#c0558f",
    "same-init": "#a98600",
    "dependent": "#d9691e",
    "no-evidence": "#7d8793",
    "untestable": "#7d8793",
}


def fragment(document: Drawn, language: str = "en") -> str:
    """The result as HTML that can stand anywhere in a page."""
    if isinstance(document, MatrixDocument):
        return _framed(_matrix(document, language), "#7d8793", document, language)
    colour = _COLOURS[document.verdict.relation]
    return _framed(_comparison(document, language), colour, document, language)


def _framed(parts: Sequence[Markup], colour: str, document: Drawn, language: str) -> str:
    read, size = document.read, in_words(document.read.bytes)
    cost = _say(
        language,
        f"{size} read in {read.requests:,} requests, {read.seconds:.1f} s",
        f"{size}를 요청 {read.requests:,}번에 읽음, {read.seconds:.1f}초",
    )
    if not read.requests:
        nothing = _say(language, "nothing was read over the network", "네트워크로 읽은 것은 없음")
        cost = f"{nothing}, {read.seconds:.1f} s"
    warning = warning_of(document, language)
    above = _tag("p", warning, "kp-warn") if warning else Markup("")
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
    says = _say(language, verdict.summary, verdict.summary_ko)
    limits = not_shown(verdict_of(verdict), language)
    return [
        _tag("p", says, "kp-says"),
        *(_tag("p", text) for text in explained(verdict, language)),
        _evidence(document, language),
        Markup("<details><summary>{}</summary>{}</details>").format(
            _say(language, "What this does not show", "이 결과가 보여 주지 않는 것"),
            Markup("").join(_tag("p", text) for text in limits),
        ),
    ]


def _evidence(document: ComparisonDocument, language: str) -> Markup:
    rows = []
    spoken = by_strength(document.evidence)
    for one in spoken[:_ROWS]:
        words = asks(one.test, document.asked.level)
        says = _say(language, words.en, words.ko)
        effect = "–" if one.effect is None else f"{one.effect:.3f}"
        cells = (
            _cell(says or one.test),
            Markup("<td>{}</td>").format(_strip(one, _COLOURS[document.verdict.relation])),
            _cell(p_value(own_p(one))),
            _cell(effect),
        )
        rows.append(Markup("<tr>{}</tr>").format(Markup("").join(cells)))
    if not rows:
        return Markup("")
    more = len(spoken) - _ROWS
    rest = _say(language, f"{more} more in the page", f"그 밖의 {more}개는 페이지에 있음")
    heads = (
        _say(language, "test", "검정"),
        _say(language, "chance (grey) and this pair", "우연(회색)과 이 두 모델"),
        "p ≤",
        _say(language, "effect", "효과"),
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
    count, close = len(document.models), linked_pairs(document)
    related, pairs = count_related(document), len(document.pairs)
    says = _say(
        language,
        f"{count} models: {related} of {pairs} pairs share trained weights.",
        f"모델 {count}개: 전체 {pairs}쌍 가운데 {related}쌍이 학습된 가중치를 공유합니다.",
    )
    parts = [_tag("p", says, "kp-says")]
    if count <= _GRID:
        parts.append(_grid(document, language))
    parts += [
        _tag("p", _say(language, one.summary, one.summary_ko)) for one in close[:_PAIRS]
    ]  # fmt: skip
    if len(close) > _PAIRS:
        more = len(close) - _PAIRS
        text = _say(language, f"{more} more linked pairs", f"그 밖에 연결된 {more}쌍")
        parts.append(_tag("p", text, "kp-soft"))
    parts += [
        _tag("p", f"{one.given}: {_say(language, one.error, one.error_ko)}", "kp-warn")
        for one in document.unread
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
            words = SIGNS[pair.relation].words
            cells.append(
                Markup('<td class="kp-cell" style="color:{}" title="{}">{}</td>').format(
                    _COLOURS[pair.relation],
                    _say(language, words.en, words.ko),
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
        f"{sign.mark} {_say(language, sign.words.en, sign.words.ko)}"
        for name, sign in SIGNS.items()
        if name in seen
    )
    return Markup(
        '<div class="kp-scroll"><table><thead><tr><td></td>{}</tr></thead>{}</table></div>{}'
    ).format(heads, Markup("").join(rows), _tag("p", key, "kp-soft"))


def _name(subject: Subject) -> str:
    return printable(subject.title, 200)


def _cell(text: str) -> Markup:
    return Markup("<td>{}</td>").format(printable(text, 500))


def _tag(name: str, text: str, style: str = "") -> Markup:
    told = escape(printable(text, 2000))
    return (
        Markup(f'<{name} class="{style}">' if style else f"<{name}>") + told + Markup(f"</{name}>")
    )


def _say(language: str, english: str, korean: str) -> str:
    return korean if language == "ko" else english
