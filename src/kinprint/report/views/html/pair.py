"""The page of a comparison: the question, the answer, how sure, what it does not show, and why.

Everything on it stands in the document. Texts from models and files are data: they are shown,
escaped and cut to a bearable length, and never become links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from markupsafe import Markup
from msgspec import Struct

from kinprint import text
from kinprint.errors import printable
from kinprint.reader.sizes import in_words
from kinprint.records import (
    Component,
    PartState,
    Relation,
    Status,
    Tier,
    VerdictReason,
)
from kinprint.report import answer as answers
from kinprint.report import controls
from kinprint.report.beyond import traces_in
from kinprint.report.changes import sampled_view
from kinprint.report.grids import Cell, part_grids
from kinprint.report.numbers import (
    are_equal,
    finite,
    likeness_in_words,
    reading,
    share_in_words,
)
from kinprint.report.relations import SIGNS, words_for
from kinprint.report.schema import (
    ComparisonDocument,
    MatrixDocument,
    PartRow,
    Subject,
    VerdictPart,
)
from kinprint.report.translation import translated
from kinprint.report.views.html import drawings, evidence, frame, shapes
from kinprint.report.views.html.beyond import LAYERS, TOWERS, Heads, Rows, beyond_view
from kinprint.report.views.html.likeness import dispute, heat, ties
from kinprint.report.views.html.subjects import models, settings
from kinprint.report.views.html.words import NAME, Say, cut, kept, named, speaker
from kinprint.text import languages
from kinprint.titles import public_name

_OPEN = 6  # cards of tests that are open at once
_POWER = 12
_NEARLY_ALL = 0.95  # of the weights: what holds so much is the pair
_CONTROLS = 4
_LABEL = 240
_CODE = 16  # letters of a commit or a digest on the first screen
_DATE = 10  # letters of a date without the time of day
_LIST = 40  # labels, notes and reasons
_UNDATED = (Relation.NO_EVIDENCE, Relation.UNTESTABLE)


class Chosen(Struct, frozen=True):
    """The answer as a page shows it."""

    relation: Relation
    word: str
    glyph: Markup
    question: Markup
    says: Markup
    statements: tuple[tuple[str, str, Markup], ...]
    parts: Markup
    labels: tuple[str, ...]
    pins: tuple[tuple[str, tuple[Markup | str, ...]], ...]
    made: Markup


class Limits(Struct, frozen=True):
    """What the answer does not show, how it could be wrong, what would have been seen."""

    absence: bool
    shows_not: tuple[str, ...]
    wrong: tuple[str, ...]
    dates: Markup | None
    powers: tuple[tuple[Markup | str, str], ...]


class ControlsView(Struct, frozen=True):
    """p of every test for this pair and for controls beside it."""

    heads: tuple[Markup, ...]
    rows: tuple[tuple[Markup | str, tuple[Markup, ...]], ...]
    more: int
    warnings: tuple[Markup, ...]


def pair_page(document: ComparisonDocument, language: str = "en") -> str:
    """Two models compared as one HTML file in both languages; `language` shows first."""
    titles, bodies = {}, {}
    for one in languages():
        a, b = names(document)
        titles[one] = shapes.flat(speaker(one)("page.pair.title", a=cut(a), b=cut(b)))
        bodies[one] = _body(document, one)
    running = " · ".join(filter(None, (" × ".join(map(cut, names(document))), document.read.day)))
    return frame.assemble(titles, bodies, language, running)


def names(document: ComparisonDocument) -> tuple[str, str]:
    """What the two models are called in sentences."""
    known = [one.title or one.name or one.given for one in document.models[:2]]
    given = [document.a, document.b]
    a, b = known + given[len(known) :]
    return a, b


def _body(document: ComparisonDocument, language: str) -> Markup:
    say = speaker(language)
    shown = evidence.view(document, language, say, _OPEN)
    a, b = (cut(name) for name in names(document))
    verdict = document.verdict
    return frame.render(
        "pair.html.j2",
        language,
        a=a,
        b=b,
        answer=_answer(document, language, say),
        ruler=_ruler(verdict, language, say),
        alpha=shapes.level(verdict.link.alpha),
        likeness=_likeness(verdict, language, say),
        grids=tuple(_grids(document, say)),
        diff=answers.diff_command(document),
        beyond=beyond_view(document, language, say),
        direction=_direction(document, language),
        changes=sampled_view(document, language),
        limits=_limits(document, language, say),
        tests=shown.tests,
        first=shown.first,
        rest=shown.rest,
        silent=shown.silent,
        elsewhere=shown.link_is_elsewhere,
        controls=_controls(document, say),
        heat=heat(document, language, say),
        ties=ties(document.shared, (a, b), language, say),
        dispute=dispute(document.seeds, language, say),
        models=models(document, language, say),
        settings=settings(document.configuration),
        tokens=document.tokens,
        facts=tuple(_facts(document, language, say)),
        command=frame.whole(document.made.command),
        shortened=" ./" in document.made.command,
        notes=[translated(document, note, language) for note in document.notes[:_LIST]],
        answers=tuple(_answers(language)),
        glyph_small=shapes.glyph(verdict.relation, "glyph-small"),
        version=document.made.kinprint,
    )


def _answer(document: ComparisonDocument, language: str, say: Say) -> Chosen:
    verdict = document.verdict
    a, b = names(document)
    return Chosen(
        relation=verdict.relation,
        word=words_for(verdict.relation)[language],
        glyph=shapes.glyph(verdict.relation),
        question=say("page.pair.question", a=kept(a), b=kept(b)),
        says=shapes.powers(answers.summary(document, verdict, language)),
        statements=tuple(
            (one.name, one.title, shapes.powers(one.says))
            for one in answers.statements(document, verdict, language)
        ),
        parts=_parts_are(verdict, say),
        labels=tuple(
            printable(translated(document, one, language), _LABEL)
            for one in document.labels[:_LIST]
        ),
        pins=tuple((cut(one.title), tuple(_pins(document, one, say))) for one in document.models),
        made=made_by(document, say),
    )


def _parts_are(part: VerdictPart, say: Say) -> Markup:
    """What the parts are that statements name, in plain words."""
    known = {one.component for one in part.parts}
    keys = [f"page.part.{one}" for one in Component if one in known]
    return Markup("; ").join(say(key) for key in keys if text.knows(key))


def _pins(document: ComparisonDocument, one: Subject, say: Say) -> Iterator[Markup | str]:
    """Which state of a model was read, and how much of it."""
    known = [each.sha256 for each in one.digests if each.sha256]
    if one.commit:
        yield say("page.pair.pinned-commit", commit=_mono(one.commit))
    if len(known) == 1 == one.files:
        yield Markup("sha256 {}").format(_mono(known[0]))
    elif known and not one.commit:
        yield say("page.pair.pinned-files", count=len(known), title=say("page.models.digests"))
    elif not one.commit:
        yield say("page.pair.pinned-none")
    if one.published:
        yield say("page.pair.published", date=one.published[:_DATE])
    if one.bytes:
        key = "all" if document.verdict.amount.read == 1 else "of" if one.read else "unknown"
        if VerdictReason.SAME_FILES in document.verdict.kind.reasons:
            key = "files"
        yield say(f"page.read.{key}", bytes=in_words(one.bytes), read=in_words(one.read))


def _mono(code: str) -> Markup:
    return Markup('<span class="mono">{}</span>').format(printable(code, NAME)[:_CODE])


def made_by(document: ComparisonDocument | MatrixDocument, say: Say) -> Markup:
    """When a document was made, by which version, and at which level."""
    date, level = document.read.day, named(say, "page.level.", document.asked.level)
    key = "page.pair.made" if date else "page.pair.made-undated"
    return say(key, date=date, version=document.made.kinprint, level=level)


def _likeness(part: VerdictPart, language: str, say: Say) -> Markup | None:
    known = finite(part.amount.likeness)
    if known is None:
        return None
    linked = [(one.state, one.likeness) for one in part.parts if one.state.linked]
    shown = likeness_in_words(known, bool(linked) and are_equal(linked))
    told = say("page.likeness.pair", likeness=shown)
    share = finite(part.amount.linked)
    if share is not None and share < _NEARLY_ALL:  # else the dot would speak for the whole
        told = say("page.likeness.linked", share=share_in_words(share), likeness=shown)
    return drawings.likeness_ruler(f"{language}-likeness", known, told, say)


def _answers(language: str) -> Iterator[tuple[Relation, Markup, str]]:
    """Every relation with its glyph and its words, so that one answer is seen among all."""
    for relation in SIGNS:
        yield relation, shapes.glyph(relation, "glyph-small"), words_for(relation)[language]


def _ruler(part: VerdictPart, language: str, say: Say) -> Markup | None:
    if part.relation in (Relation.IDENTICAL, Relation.UNTESTABLE):
        return None
    return drawings.ruler(f"{language}-ruler", part.link.log10_p, part.link.alpha, say)


def _grids(document: ComparisonDocument, say: Say) -> Iterator[tuple[str, Heads, Rows]]:
    """Layers down, components across: the state of each part in words, and its likeness."""
    for grid in part_grids(document.verdict.parts)[:TOWERS]:
        rows = tuple(
            (
                say("report.parts.outside") if layer is None else f"{layer}",
                tuple(_part_cell(cell, say) for cell in cells),
            )
            for layer, cells in grid.rows[:LAYERS]
        )
        heads = tuple(say(f"verdict.part.{component}") for component in grid.components)
        yield printable(grid.tower, NAME), heads, rows


def _part_cell(cell: Cell[PartRow] | None, say: Say) -> tuple[str, Markup | str]:
    if cell is None:
        return "", ""
    word, known = say(f"report.state.{cell.state}"), finite(cell.rows[0].likeness)
    if cell.state is not PartState.SHARED or known is None or len(cell.rows) > 1:
        return cell.state, word
    alike = likeness_in_words(known, are_equal([(cell.state, known)]))
    shown, share = Markup("{} {}").format(word, alike), cell.rows[0].share
    if share >= _NEARLY_ALL:
        return cell.state, shown
    return cell.state, Markup("{} ({})").format(shown, share_in_words(share))


def _direction(document: ComparisonDocument, language: str) -> tuple[str, tuple[str, ...]] | None:
    part = document.direction
    if part is None:
        return None
    says = (printable(one, 1000) for one in traces_in(document, part, language))
    return printable(translated(document, part.summary, language), 1000), tuple(says)


def _limits(document: ComparisonDocument, language: str, say: Say) -> Limits:
    part = document.verdict
    absence = part.relation == Relation.NO_EVIDENCE
    known = [(test, size) for test, size in part.coverage.power.items() if finite(size)]
    return Limits(
        absence=absence,
        shows_not=tuple(answers.not_shown((part.relation,), language)),
        wrong=tuple(answers.ways_to_be_wrong(part, language)),
        dates=None if part.relation in _UNDATED else _dates(document.models, say),
        powers=tuple(
            (evidence.title(test, say), reading(size))
            for test, size in sorted(known, key=lambda one: one[1])[:_POWER]
        ),
    )


def _dates(subjects: Sequence[Subject], say: Say) -> Markup | None:
    """When each was published, as hosts tell it; None where no host tells anything."""
    if len(subjects) < 2 or not any(one.published for one in subjects):
        return None
    listed = [
        say("page.limits.date", name=kept(one.title), date=one.published)
        if one.published
        else say("page.limits.no-date", name=kept(one.title))
        for one in subjects[:2]
    ]
    return say("page.limits.dates", a=listed[0], b=listed[1])


def _controls(document: ComparisonDocument, say: Say) -> ControlsView | None:
    shown = document.controls[:_CONTROLS]
    if not shown:
        return None
    mine = [one for one in document.evidence if one.status == Status.OK and one.tier == Tier.EXACT]
    tables = [{one.test: one for one in control.evidence} for control in shown]
    rows = []
    for one in sorted(mine, key=lambda one: finite(one.log10_p) or 0.0):
        beside = (table.get(one.test) for table in tables)
        others = (
            shapes.chance(each.log10_p if each is not None and each.status == Status.OK else None)
            for each in beside
        )
        rows.append((evidence.title(one.test, say), (shapes.chance(one.log10_p), *others)))
    heads = [
        say(
            "page.controls.of",
            model=cut(controls.model_of(document, one)),
            control=cut(public_name(one.control)),
        )
        for one in shown
    ]
    more = len(document.controls) - len(shown)
    warnings = tuple(
        say(
            "report.controls.warning",
            control=kept(one.control),
            models=Markup(", ").join(map(kept, one.linked)),
        )
        for one in controls.findings(document)
        if one.linked
    )
    return ControlsView((say("page.controls.pair"), *heads), tuple(rows), more, warnings)


def _facts(
    document: ComparisonDocument, language: str, say: Say
) -> Iterable[tuple[Markup, object]]:
    """What making this took, and with what."""
    asked, plan, made, read = document.asked, document.plan, document.made, document.read
    cost = {"seconds": f"{read.seconds:.1f}", "count": read.requests}
    key = "page.again.cost-of" if read.bytes or read.requests else "page.again.cost-none"
    if read.answered:
        yield say("page.again.answered"), say("page.again.answered-on", date=read.answered)
    yield say("page.again.cost"), say(key, bytes=in_words(read.bytes), **cost)
    if plan.bytes_at_most:
        yield say("page.again.limit"), in_words(plan.bytes_at_most)
    if asked.budget is not None:
        yield say("page.again.budget"), in_words(asked.budget)
    if plan.stages:
        yield (
            say("page.again.stages"),
            say("page.again.stages-of", read=plan.stages_read, all=plan.stages),
        )
    if plan.left_out:
        left = (translated(document, one, language) for one in plan.left_out[:_LIST])
        yield say("page.again.left"), ", ".join(left)
    yield say("page.again.level"), named(say, "page.level.", asked.level)
    yield say("page.again.alpha"), shapes.level(asked.alpha)
    yield say("page.again.seed"), asked.seed
    if asked.base:
        yield say("page.again.base"), asked.base
    if asked.given:
        yield say("page.again.given"), asked.given
    yield say("page.again.versions"), made.versions
