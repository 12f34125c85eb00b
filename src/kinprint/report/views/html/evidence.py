"""Evidence as a page shows it: each test with its question, its picture and its numbers."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from markupsafe import Markup
from msgspec import Struct

from kinprint import text
from kinprint.records import Tier
from kinprint.report import evidence
from kinprint.report.evidence import Finding, State
from kinprint.report.numbers import finite, log10_reading, reading
from kinprint.report.schema import ComparisonDocument, EvidencePart
from kinprint.report.views.html import drawings, shapes
from kinprint.report.views.html.words import Say, named
from kinprint.titles import role_title

_LAYERS = 12  # runs of layers that are listed
_DETAILS = 16  # numbers about a test that are listed
_MOST = 60  # tests of a document; ours have less than thirty


class TestView(Struct, frozen=True):
    """A test that gave a number, ready to be printed."""

    test: str
    title: Markup | str
    asks: Markup | str
    state: State
    outcome: Markup
    reading: Markup
    picture: Markup | None
    p: Markup
    claim: Markup | None
    p_sort: str
    adjusted: Markup
    adjusted_sort: str
    effect: str
    effect_sort: str
    marks: tuple[Markup, ...]
    facts: tuple[tuple[Markup | str, object], ...]


class SilentView(Struct, frozen=True):
    """A test that gave none, and why."""

    test: str
    title: Markup | str
    why: Markup


class EvidenceView(Struct, frozen=True):
    """All tests of a page: those that are open at once, the rest, and those without a number.

    `link_is_elsewhere` says that none of them found the link that was found.
    """

    tests: tuple[TestView, ...]
    first: tuple[TestView, ...]
    rest: tuple[TestView, ...]
    silent: tuple[SilentView, ...]
    link_is_elsewhere: bool


def view(document: ComparisonDocument, language: str, say: Say, most: int) -> EvidenceView:
    """The evidence of a document; `most` tests are open at once."""
    found = evidence.findings(document)[:_MOST]
    first, rest = evidence.leading(found, most)
    views = [_view(one, f"{language}-e{at}", language, say) for at, one in enumerate(found)]
    return EvidenceView(
        tests=tuple(views),
        first=tuple(views[found.index(one)] for one in first),
        rest=tuple(views[found.index(one)] for one in rest),
        silent=tuple(
            SilentView(one.test, title(one.test, say), _why(document, one, language, say))
            for one in evidence.silent(document)[:_MOST]
        ),
        link_is_elsewhere=evidence.link_is_elsewhere(document, found),
    )


def title(test: str, say: Say) -> Markup | str:
    """What a test is called; its own name where nobody gave it another."""
    return _said(evidence.title(test), say)


def roles_in_words(roles: Iterable[str], language: str) -> str:
    """Kinds of tensors by their names for people."""
    return ", ".join(role_title(role)[language] for role in roles)


def layers_in_words(layers: Iterable[int], say: Say) -> Markup | str:
    """Layers as runs: 0–5, 8; those outside the layers by their word."""
    known = sorted(set(layers))
    inside = [layer for layer in known if layer >= 0]
    runs = []
    for _, group in groupby(enumerate(inside), key=lambda pair: pair[1] - pair[0]):
        run = [layer for _, layer in group]
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}")
    if len(inside) < len(known):
        runs.append(str(say("page.evidence.outside-layers")))
    listed = ", ".join(runs[:_LAYERS])
    more = len(runs) - _LAYERS
    return say("page.evidence.more-layers", shown=listed, count=more) if more > 0 else listed


def _view(one: Finding, key: str, language: str, say: Say) -> TestView:
    part = one.part
    return TestView(
        test=one.test,
        title=_said(one.title, say),
        asks=say(one.question) if one.question else "",
        state=one.state,
        outcome=say(one.outcome),
        reading=Markup(" ").join(say(sentence) for sentence in one.reading),
        picture=drawings.histogram(key, part.null, part.statistic, say),
        p=shapes.chance(one.p),
        claim=None if part.tier == Tier.RULE else shapes.claim(one.p),
        p_sort=_sortable(one.p),
        adjusted=shapes.chance(one.adjusted),
        adjusted_sort=_sortable(one.adjusted),
        effect=reading(part.effect),
        effect_sort=_sortable(part.effect),
        marks=tuple(say(mark) for mark in one.marks),
        facts=tuple(_facts(one, language, say)),
    )


def _facts(one: Finding, language: str, say: Say) -> Iterable[tuple[Markup | str, object]]:
    """What experts ask next."""
    part = one.part
    if one.compares is not None:
        yield say("page.evidence.menu"), one.compares.say(language)
    yield say("page.evidence.group"), named(say, "page.group.", part.group)
    if part.bound:
        yield say("page.evidence.bound"), named(say, "page.bound.", part.bound)
    yield say("page.evidence.log"), log10_reading(part.log10_p)
    if part.adjusted is not None:
        yield say("page.evidence.adjusted"), shapes.chance(part.adjusted)
    if part.share is not None:
        yield say("page.evidence.share"), f"{100 * part.share:.1f} %"
    if part.floor is not None and part.floor < 0:
        yield say("page.evidence.floor"), shapes.chance(part.floor)
    if part.statistic is not None:
        yield say("page.evidence.statistic"), reading(part.statistic)
    if part.n:
        yield say("page.evidence.n"), f"{part.n:,}"
    if part.roles:
        yield say("page.evidence.roles"), roles_in_words(part.roles, language)
    if part.layers:
        yield say("page.evidence.layers"), layers_in_words(part.layers, say)
    for name, value in list(part.details.items())[:_DETAILS]:
        yield _detail(name, say), reading(value)


def _detail(name: str, say: Say) -> Markup | str:
    """What a further number is called; that of a layer has the layer's number in its name."""
    word, _, number = name.partition(" ")
    if word == "layer" and number.isdecimal():
        return say("page.detail.layer", layer=number)
    return named(say, "page.detail.", name)


def _why(document: ComparisonDocument, part: EvidencePart, language: str, say: Say) -> Markup:
    reason = evidence.reason(document, part, language)
    return say(f"page.silence.{part.status}", reason=reason)


def _said(told: text.Message | str, say: Say) -> Markup | str:
    return told if isinstance(told, str) else say(told)


def _sortable(value: float | None) -> str:
    return "" if finite(value) is None else f"{value:.6g}"
