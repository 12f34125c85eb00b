"""The page of a comparison: the question, the answer, how sure, what it does not show, and why.

Everything on it stands in the document. Texts from models and files are data: they are shown,
escaped and cut to a bearable length, and never become links.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kinprint.errors import printable
from kinprint.reader.sizes import in_words
from kinprint.records import Verdict
from kinprint.report import phrases, verdict_words
from kinprint.report.documents import ComparisonDocument, Subject, VerdictPart
from kinprint.report.relations import SIGNS
from kinprint.report.web import drawings, evidence, frame, shapes
from kinprint.report.web.likeness import DisputeView, HeatView, TiesView, dispute, heat, ties
from kinprint.report.web.subjects import ModelsView, SettingsView, models, settings
from kinprint.report.web.words import Say, speaker, told

_OPEN = 6  # cards of tests that are open at once
_POWER = 12
_CONTROLS = 4
_NAME = 80  # letters of a name in a sentence
_SHORT = 24  # letters of a name that is not broken over lines
_LABEL = 240
_LIST = 40  # labels, notes and reasons
_UNDATED = ("no-evidence", "untestable")


@dataclass(frozen=True, slots=True)
class Chosen:
    """The answer as a page shows it."""

    relation: str
    word: str
    glyph: Markup
    question: Markup
    says: Markup
    reasons: tuple[Markup, ...]
    chips: tuple[Markup, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Limits:
    """What the answer does not show, how it could be wrong, what would have been seen."""

    absence: bool
    shows_not: tuple[str, ...]
    wrong: tuple[str, ...]
    dates: Markup | None
    power: str
    powers: tuple[tuple[Markup | str, str], ...]


@dataclass(frozen=True, slots=True)
class ControlsView:
    """p of every test for this pair and for controls beside it."""

    heads: tuple[Markup, ...]
    rows: tuple[tuple[Markup | str, tuple[Markup, ...]], ...]
    more: int


def pair_page(document: ComparisonDocument, language: str = "en") -> str:
    """Two models compared as one HTML file in both languages; `language` shows first."""
    titles, bodies = {}, {}
    for one in frame.LANGUAGES:
        a, b = names(document)
        titles[one] = shapes.flat(speaker(one)("pair.title", a=_cut(a), b=_cut(b)))
        bodies[one] = _body(document, one)
    return frame.assemble(titles, bodies, language)


def names(document: ComparisonDocument) -> tuple[str, str]:
    """What the two models are called in sentences."""
    known = [one.title or one.name or one.given for one in document.models[:2]]
    given = [document.a, document.b]
    a, b = known + given[len(known) :]
    return a, b


def _body(document: ComparisonDocument, language: str) -> Markup:
    say = speaker(language)
    tests = evidence.spoken(document, language, say)
    first, rest = evidence.leading(tests, _OPEN)
    a, b = (_cut(name) for name in names(document))
    heat_view: HeatView | None = heat(document.shared, language, say)
    ties_view: TiesView | None = ties(document.shared, (a, b), language, say)
    dispute_view: DisputeView | None = dispute(document.seeds, language, say)
    models_view: ModelsView = models(document.models, say)
    settings_view: SettingsView | None = settings(document.configuration)
    return frame.render(
        "pair.html.j2",
        language,
        a=a,
        b=b,
        answer=_answer(document, tests, language, say),
        sureness=shapes.powers(_in(document.verdict, "sureness", language)),
        ruler=_ruler(document.verdict, language, say),
        alpha=_power_of(document.verdict.alpha),
        limits=_limits(document, language, say),
        tests=tests,
        first=first,
        rest=rest,
        silent=evidence.silent(document, say),
        controls=_controls(document, say),
        heat=heat_view,
        ties=ties_view,
        dispute=dispute_view,
        models=models_view,
        settings=settings_view,
        tokens=document.tokens,
        facts=tuple(_facts(document, say)),
        command=frame.whole(document.made.command),
        notes=document.notes[:_LIST],
        answers=tuple(_answers(language)),
        glyph_small=shapes.glyph(document.verdict.relation, "glyph-small"),
        version=document.made.kinprint,
    )


def _in(part: VerdictPart, field: str, language: str) -> str:
    found: str = getattr(part, field + ("_ko" if language == "ko" else ""))
    return found


def _cut(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


def _kept(name: str) -> Markup:
    """A name in a sentence: read in its own direction, and short ones on one line."""
    shown = printable(_cut(name), _NAME)
    if len(shown) > _SHORT:
        return Markup("<bdi>{}</bdi>").format(shown)
    return Markup('<bdi class="keep">{}</bdi>').format(shown)


def _answer(
    document: ComparisonDocument, tests: Sequence[evidence.TestView], language: str, say: Say
) -> Chosen:
    verdict = document.verdict
    words = SIGNS[verdict.relation].words
    a, b = names(document)
    return Chosen(
        relation=verdict.relation,
        word=words[language],
        glyph=shapes.glyph(verdict.relation),
        question=say("pair.question", a=_kept(a), b=_kept(b)),
        says=shapes.powers(_in(verdict, "summary", language)),
        reasons=tuple(shapes.powers(one) for one in _reasons(verdict, language)),
        chips=tuple(_chips(document, tests, say)),
        labels=tuple(_label(one, language) for one in document.labels[:_LIST]),
    )


def _answers(language: str) -> Iterator[tuple[str, Markup, str]]:
    """Every relation with its glyph and its words, so that one answer is seen among all."""
    for relation, sign in SIGNS.items():
        words = sign.words[language]
        yield relation, shapes.glyph(relation, "glyph-small"), words


def _reasons(part: VerdictPart, language: str) -> Iterator[str]:
    """The steps to the relation; one that has no words yet is shown as it is."""
    for reason in part.reasons[:_LIST]:
        try:
            yield from verdict_words.reasons(_verdict(part, (reason,)), language)
        except KeyError:
            yield reason


def _verdict(part: VerdictPart, reasons: tuple[str, ...] = ()) -> Verdict:
    log10_p = shapes.finite(part.log10_p) or 0.0
    known = tuple((test, size) for test, size in part.power.items() if shapes.finite(size))
    return Verdict(part.relation, log10_p, part.alpha, tuple(part.roles), known, reasons)


def _chips(
    document: ComparisonDocument, tests: Sequence[evidence.TestView], say: Say
) -> Iterator[Markup]:
    exact = [one for one in tests if one.state not in evidence.ASIDE]
    if exact:
        found = sum(one.state == "found" for one in exact)
        yield say("pair.tests", found=found, spoken=len(exact))
    yield say("pair.level", level=told(say, "level", document.asked.level))
    read = document.read
    if read.requests or read.bytes:
        yield say("pair.read", bytes=in_words(read.bytes), requests=f"{read.requests:,}")
    else:
        yield say("pair.cached")


def _label(label: str, language: str) -> str:
    known = phrases.LABELS_KO.get(label, label) if language == "ko" else label
    return printable(known, _LABEL)


def _ruler(part: VerdictPart, language: str, say: Say) -> Markup | None:
    if part.relation in ("identical", "untestable"):
        return None
    return drawings.ruler(f"{language}-ruler", part.log10_p, part.alpha, say)


def _power_of(value: float) -> Markup:
    """A level of error: a power of ten where it is one."""
    if not 0 < value < 1:
        return Markup("–")
    power = math.log10(value)
    near = round(power)
    return shapes.ten_to(near) if near <= -3 and abs(power - near) < 1e-9 else Markup(f"{value:g}")


def _limits(document: ComparisonDocument, language: str, say: Say) -> Limits:
    part = document.verdict
    verdict = _verdict(part)
    sizes = sorted(verdict.power, key=lambda one: one[1])[:_POWER]
    seen = verdict_words.power(verdict, language) if part.relation == "no-evidence" else ""
    return Limits(
        absence=part.relation == "no-evidence",
        shows_not=verdict_words.not_shown(verdict, language),
        wrong=verdict_words.ways_to_be_wrong(verdict, language),
        dates=None if part.relation in _UNDATED else _dates(document.models, say),
        power=seen,
        powers=tuple((evidence.title(test, say), shapes.reading(size)) for test, size in sizes),
    )


def _dates(subjects: Sequence[Subject], say: Say) -> Markup | None:
    """When each was published, as hosts tell it; None where no host tells anything."""
    if len(subjects) < 2 or not any(one.published for one in subjects):
        return None
    listed = [
        say("limits.date", name=_kept(one.title), date=one.published)
        if one.published
        else say("limits.no-date", name=_kept(one.title))
        for one in subjects[:2]
    ]
    return say("limits.dates", a=listed[0], b=listed[1])


def _controls(document: ComparisonDocument, say: Say) -> ControlsView | None:
    shown = document.controls[:_CONTROLS]
    if not shown:
        return None
    mine = [one for one in document.evidence if one.status == "ok" and one.tier == "exact"]
    tables = [{one.test: one for one in control.evidence} for control in shown]
    rows = []
    for one in sorted(mine, key=lambda one: shapes.finite(one.log10_p) or 0.0):
        beside = (table.get(one.test) for table in tables)
        others = (
            shapes.chance(each.log10_p if each is not None and each.status == "ok" else None)
            for each in beside
        )
        rows.append((evidence.title(one.test, say), (shapes.chance(one.log10_p), *others)))
    heads = [say("controls.of", model=_cut(one.model), control=_cut(one.control)) for one in shown]
    more = len(document.controls) - len(shown)
    return ControlsView((say("controls.pair"), *heads), tuple(rows), more)


def _facts(document: ComparisonDocument, say: Say) -> Iterable[tuple[Markup, object]]:
    """What making this took, and with what."""
    asked, plan, made, read = document.asked, document.plan, document.made, document.read
    cost = {"bytes": in_words(read.bytes), "requests": f"{read.requests:,}"}
    key = "again.cost-of" if read.bytes or read.requests else "again.cost-none"
    yield say("again.cost"), say(key, seconds=f"{read.seconds:.1f}", **cost)
    if plan.bytes_at_most:
        yield say("again.limit"), in_words(plan.bytes_at_most)
    if asked.budget is not None:
        yield say("again.budget"), in_words(asked.budget)
    if plan.stages:
        yield say("again.stages"), say("again.stages-of", read=plan.stages_read, all=plan.stages)
    if plan.left_out:
        yield say("again.left"), ", ".join(plan.left_out[:_LIST])
    yield say("again.level"), told(say, "level", asked.level)
    yield say("again.alpha"), _power_of(asked.alpha)
    yield say("again.seed"), asked.seed
    if asked.base:
        yield say("again.base"), asked.base
    yield (
        say("again.versions"),
        say(
            "again.versions-of",
            kinprint=made.kinprint,
            python=made.python,
            numpy=made.numpy,
            scipy=made.scipy,
        ),
    )
