"""A comparison or a matrix as Markdown: the answer first, then what it rests on."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kinprint import text
from kinprint.errors import printable
from kinprint.reader.sizes import in_words
from kinprint.records import Tier
from kinprint.report import answer, controls
from kinprint.report.beyond import traces_in
from kinprint.report.changes import sampled_view
from kinprint.report.evidence import findings, silent
from kinprint.report.grids import part_grids
from kinprint.report.matrix import (
    Group,
    error_says,
    group_name,
    group_says,
    groups_of,
    ordered,
    overview,
    seen_relations,
    unlinked_names,
)
from kinprint.report.numbers import NOTHING, SHORT, p_value, rounded_up
from kinprint.report.relations import SIGNS
from kinprint.report.schema import ComparisonDocument, MatrixDocument, Subject
from kinprint.report.translation import translated
from kinprint.report.views.markdown.beyond import beyond_blocks
from kinprint.report.views.markdown.escape import escaped, other_languages, table
from kinprint.studies.results import Cell
from kinprint.titles import public_name

_COMMIT = 12  # letters of a commit that are shown
_MOST = 200  # pairs in a list; the file beside has all
_LONG = 20_000  # letters of a list of names
_DECIMALS = 4  # of p-values that are no power of ten


class Beside(Struct, frozen=True):
    """Files that lie beside the page, by their names; a page alone links to nothing."""

    data: str
    sheets: tuple[str, ...]
    report: str
    pictures: tuple[tuple[str, text.Words], ...] = ()


class _Page:
    """Lines of a page in one language."""

    def __init__(self, document: ComparisonDocument | MatrixDocument, language: str) -> None:
        self.document = document
        self.language = language
        self.lines: list[str] = []

    def put(self, *lines: str) -> None:
        self.lines += [*lines, ""]

    def say(self, key: str, **fields: object) -> str:
        return text.say(key, self.language, **fields)

    def sentence(self, key: str, **fields: object) -> None:
        self.put(text.say(key, self.language, **fields))

    def heading(self, key: str) -> None:
        self.put(f"## {text.say(key, self.language)}")

    def items(self, texts: Sequence[str]) -> None:
        if texts:
            self.put(*(f"- {escaped(one)}" for one in texts))

    def notes(self) -> None:
        self.items([translated(self.document, one, self.language) for one in self.document.notes])

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        self.put(*table(columns, rows, self.language))


def page(
    document: ComparisonDocument | MatrixDocument, language: str, beside: Beside | None = None
) -> str:
    """The page in one language."""
    out = _Page(document, language)
    if isinstance(document, MatrixDocument):
        _matrix(out, document, beside)
    else:
        _comparison(out, document, beside)
    _costs(out, document)
    if beside is not None:
        out.sentence("report.data", file=beside.data, link=beside.data)
        out.sentence("report.same-as-page", file=beside.report, link=beside.report)
    return "\n".join(out.lines)


def _comparison(out: _Page, document: ComparisonDocument, beside: Beside | None) -> None:
    verdict, language = document.verdict, out.language
    a, b = (escaped(one.title) for one in document.models[:2])
    out.put(f"# {a}, {b}")
    _top(out, document, beside)
    out.put(f"**{escaped(answer.summary(document, verdict, language))}**")
    out.put(
        *(
            f"- **{escaped(one.title)}.** {escaped(one.says)}"
            for one in answer.statements(document, verdict, language)
        )
    )
    _parts(out, document)
    for block in beyond_blocks(document, language):
        out.put(*block)
    _direction(out, document)
    _changes(out, document)
    _subjects(out, document.models)
    _pictures(out, beside)
    out.heading("report.table.evidence")
    _evidence(out, document, beside)
    if document.controls:
        out.heading("report.controls.title")
        out.items([controls.says(one, language) for one in controls.findings(document)])
        for one in controls.warnings(document, language):
            out.put(f"**{escaped(one)}**")
        out.sentence("report.controls", number=len(document.controls))
    out.heading("report.not-shown")
    out.items(answer.not_shown((verdict.relation,), language))
    wrong = answer.ways_to_be_wrong(verdict, language)
    if wrong:
        out.heading("report.wrong")
        out.items(wrong)
    out.notes()


def _parts(out: _Page, document: ComparisonDocument) -> None:
    """Layers down, components across, the state of each part where they meet."""
    grids = part_grids(document.verdict.parts)
    if not grids:
        return
    out.heading("report.table.parts")
    for grid in grids:
        if len(grids) > 1:
            out.put(f"### {escaped(grid.tower or out.say('report.parts.main'))}")
        heads = [out.say(f"verdict.part.{component}") for component in grid.components]
        rows = [
            (
                out.say("report.parts.outside") if layer is None else f"{layer}",
                *("" if cell is None else out.say(f"report.state.{cell.state}") for cell in cells),
            )
            for layer, cells in grid.rows
        ]
        out.table((out.say("report.parts.layer"), *heads), rows)
    if command := answer.diff_command(document):
        out.put(f"{out.say('report.diff.says')} {escaped(command)}")


def _changes(out: _Page, document: ComparisonDocument) -> None:
    """What changed, as far as the samples tell."""
    view = sampled_view(document, out.language)
    if view is not None:
        out.heading("report.diff.title")
        first, *evidence = view.sentences
        out.put(escaped(first))
        out.items(evidence)
        out.table(view.heads, view.rows)
        if view.more:
            out.put(out.say("diff.more", count=view.more))


def _direction(out: _Page, document: ComparisonDocument) -> None:
    """Which model came first, and what each trace says."""
    part = document.direction
    if part is not None:
        out.heading("report.direction.title")
        out.put(escaped(translated(document, part.summary, out.language)))
        out.items(traces_in(document, part, out.language))


def _evidence(out: _Page, document: ComparisonDocument, beside: Beside | None) -> None:
    rows = [
        (
            one.words[out.language] or one.test,
            _p_cell(one.p),
            one.part.effect,
            one.part.n or None,
            out.say(f"report.tier.{one.part.tier}"),
            one.test,
        )
        for one in findings(document)
    ]
    head = (
        out.say("report.column.compares"),
        "p",
        out.say("report.column.effect"),
        "n",
        out.say("report.column.kind"),
        out.say("report.column.code"),
    )
    if rows:
        out.table(head, rows)
    mute = silent(document)
    if mute:
        out.sentence("report.silent", number=len(mute))
    if any(one.tier == Tier.CALIBRATED for one in document.evidence):
        out.sentence("report.tiers")
    for sheet in () if beside is None else beside.sheets:
        out.sentence("report.file", file=sheet, link=sheet)


def _matrix(out: _Page, document: MatrixDocument, beside: Beside | None) -> None:
    language, groups = out.language, groups_of(document)
    names = [printable(one.title or one.name, 200) for one in document.models]
    out.put(f"# {out.say('report.matrix.title', number=len(document.models))}")
    _top(out, document, beside)
    headline, *more = overview(document, groups, language)
    out.put(f"**{escaped(headline)}** {escaped(' '.join(more))}".strip())
    if document.pairs:
        out.put(escaped(error_says(document, language)))
    for number, group in enumerate(groups, 1):
        _group(out, document, number, group, names)
    alone = unlinked_names(document, groups, names, language)
    if groups and alone:
        out.heading("report.matrix.alone")
        out.put(escaped(", ".join(alone), _LONG))
        out.sentence("report.matrix.alone-says")
    if document.pairs:
        out.heading("report.not-shown")
        out.items(answer.not_shown(seen_relations(document), language))
    _pictures(out, beside)
    if document.unread:
        out.heading("report.matrix.unread")
        out.items(
            [
                f"{public_name(one.given)}: {answer.error(document, one, language)}"
                for one in document.unread
            ]
        )
    if document.failed:
        out.heading("report.matrix.failed")
        failed = document.failed[:_MOST]
        out.items([f"{one.a} × {one.b}: {answer.error(document, one, language)}" for one in failed])
    _subjects(out, [document.models[at] for at in ordered(document)])
    out.notes()
    if beside is not None:
        out.sentence("report.matrix.all", file=beside.sheets[0], link=beside.sheets[0])


def _group(
    out: _Page, document: MatrixDocument, number: int, group: Group, names: Sequence[str]
) -> None:
    """What links a group, its members, and its linked pairs folded away."""
    name = group_name(group, names, out.language)
    out.put(f"## {escaped(out.say('report.matrix.group-title', number=number, name=name))}")
    out.put(escaped(group_says(document, group, out.language)))
    linked = group.linked
    if len(linked) == 1:
        return
    out.put(escaped(", ".join(names[at] for at in group.places), _LONG))
    told = [
        f"- **{SIGNS[one.relation].mark}** " + escaped(answer.summary(document, one, out.language))
        for one in linked[:_MOST]
    ]
    out.put(
        f"<details><summary>{out.say('report.matrix.linked')}: {len(linked)}</summary>",
        "",
        *told,
        "",
        "</details>",
    )
    if len(linked) > _MOST:
        out.sentence("report.matrix.more", number=len(linked) - _MOST)


def _top(out: _Page, document: ComparisonDocument | MatrixDocument, beside: Beside | None) -> None:
    for label in document.labels:
        out.put(f"**{escaped(translated(document, label, out.language))}**")
    if beside is not None:
        out.put(other_languages(out.language))


def _pictures(out: _Page, beside: Beside | None) -> None:
    for name, title in () if beside is None else beside.pictures:
        out.put(f"![{escaped(title[out.language])}]({name})")


def _subjects(out: _Page, models: Sequence[Subject]) -> None:
    out.heading("report.models")
    head = [
        out.say(key)
        for key in (
            "report.column.model",
            "report.column.commit",
            "report.column.architecture",
            "report.column.weights",
        )
    ]
    rows = [
        (
            one.title or one.given,
            _pinned(one),
            one.architecture or NOTHING,
            in_words(one.bytes) if one.bytes else NOTHING,
        )
        for one in models
    ]
    out.table(head, rows)
    claims = [
        out.say("report.claim", title=one.title, model=claim.model, where=claim.where)
        for one in models
        for claim in one.claims
    ]
    if claims:
        out.sentence("report.claims")
        out.items(claims)


def _pinned(one: Subject) -> str:
    """The commit of a model, or the sha256 of its only file."""
    digests = [each.sha256 for each in one.digests if each.sha256]
    if one.commit or len(digests) != 1 or one.files != 1:
        return (one.commit or NOTHING)[:_COMMIT]
    return f"sha256 {digests[0][:_COMMIT]}"


def _costs(out: _Page, document: ComparisonDocument | MatrixDocument) -> None:
    out.heading("report.made")
    read, made = document.read, document.made
    if read.answered:
        out.sentence("report.answered", date=read.answered)
    out.sentence(
        "report.cost" if read.requests else "report.cost-none",
        size=in_words(read.bytes),
        count=read.requests,
        seconds=f"{read.seconds:.1f}",
    )
    command = printable(made.command, 5000).replace("`", "'")
    out.put(f"    {command}")
    out.put(escaped(made.versions))


def _p_cell(log10_p: float | None) -> Cell:
    """A p-value as a number where it is one, so that a column of them is set to the right."""
    if log10_p is not None and log10_p > SHORT.powers:
        return rounded_up(10**log10_p, _DECIMALS)
    return p_value(log10_p)
