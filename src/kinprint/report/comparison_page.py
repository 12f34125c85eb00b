"""A comparison or a matrix as Markdown: the answer first, then what it rests on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kinprint.errors import printable
from kinprint.reader.sizes import in_words
from kinprint.records import Verdict
from kinprint.report import phrases, verdict_words
from kinprint.report.comparison_charts import asks, by_strength, ordered, titles
from kinprint.report.documents import (
    ComparisonDocument,
    MatrixDocument,
    PairPart,
    Subject,
    VerdictPart,
)
from kinprint.report.markdown import escaped, table
from kinprint.report.relations import CLOSE, RELATED, SIGNS, own_p, p_value
from kinprint.studies.results import Cell
from kinprint.text import Words

_COMMIT = 12  # letters of a commit that are shown
_MOST = 200  # pairs in a list; the file beside has all


@dataclass(frozen=True, slots=True)
class Beside:
    """Files that lie beside the page, by their names; a page alone links to nothing."""

    data: str
    sheet: str
    report: str
    pictures: tuple[tuple[str, Words], ...] = ()


class _Writer:
    """Lines of a page in one language."""

    def __init__(self, language: str) -> None:
        self.korean = language == "ko"
        self.language = language
        self.lines: list[str] = []

    def say(self, english: str, korean: str) -> str:
        return korean if self.korean else english

    def put(self, *lines: str) -> None:
        self.lines += [*lines, ""]

    def heading(self, english: str, korean: str) -> None:
        self.put(f"## {self.say(english, korean)}")

    def items(self, texts: Sequence[str]) -> None:
        if texts:
            self.put(*(f"- {escaped(text)}" for text in texts))

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
        self.put(*table(columns, rows, self.language))


def page(
    document: ComparisonDocument | MatrixDocument, language: str, beside: Beside | None = None
) -> str:
    """The page in one language."""
    out = _Writer(language)
    if isinstance(document, MatrixDocument):
        _matrix(out, document, beside)
    else:
        _comparison(out, document, beside)
    _costs(out, document)
    if beside is not None:
        out.put(phrases.DATA[out.language])
        out.lines[-2] = out.lines[-2].format(file=beside.data, link=beside.data)
        told = out.say("The same as a page:", "같은 내용을 웹 페이지로:")
        out.put(f"{told} [{beside.report}]({beside.report}).")
    return "\n".join(out.lines)


def verdict_of(part: VerdictPart) -> Verdict:
    """The verdict as its words want it."""
    return Verdict(
        part.relation,
        part.log10_p or 0.0,
        part.alpha,
        tuple(part.roles),
        tuple(part.power.items()),
        tuple(part.reasons),
    )


def explained(part: VerdictPart, language: str) -> Iterator[str]:
    """How sure, why, and what would have been seen where nothing was."""
    verdict = verdict_of(part)
    yield part.sureness_ko if language == "ko" else part.sureness
    yield from verdict_words.reasons(verdict, language)
    if part.relation == "no-evidence":
        yield verdict_words.power(verdict, language)


def _comparison(out: _Writer, document: ComparisonDocument, beside: Beside | None) -> None:
    verdict = document.verdict
    a, b = (escaped(name) for name in titles(document))
    out.put(f"# {a}, {b}")
    _top(out, document.labels, beside)
    out.put(f"**{escaped(out.say(verdict.summary, verdict.summary_ko))}**")
    out.put(" ".join(escaped(text) for text in explained(verdict, out.language)))
    _subjects(out, document.models)
    _pictures(out, beside)
    out.heading("Evidence", "증거")
    _evidence(out, document, beside)
    if document.controls:
        out.put(
            out.say(
                f"Control models were compared too: {len(document.controls)} pairs, in the JSON.",
                f"대조 모델과도 비교함: {len(document.controls)}쌍, JSON에 있음.",
            )
        )
    spoken = verdict_of(verdict)
    out.heading("What this does not show", "이 결과가 보여 주지 않는 것")
    out.items(verdict_words.not_shown(spoken, out.language))
    wrong = verdict_words.ways_to_be_wrong(spoken, out.language)
    if wrong:
        out.heading("How it could be wrong", "틀릴 수 있는 경우")
        out.items(wrong)
    out.items(document.notes)


def _evidence(out: _Writer, document: ComparisonDocument, beside: Beside | None) -> None:
    level = document.asked.level
    rows = [
        (
            one.test,
            out.say(asks(one.test, level).en, asks(one.test, level).ko),
            _p_cell(own_p(one)),
            one.effect,
            one.n or None,
            one.tier,
        )
        for one in by_strength(document.evidence)
    ]
    head = (
        out.say("test", "검정"), out.say("what it compares", "비교하는 것"), "p",
        out.say("effect", "효과"), "n", out.say("kind", "종류"),
    )  # fmt: skip
    if rows:
        out.table(head, rows)
    silent = [one for one in document.evidence if one.status != "ok"]
    if silent:
        words = out.say("Silent, with nothing to compare: ", "비교할 것이 없어 말하지 않은 검정: ")
        out.put(words + escaped(", ".join(one.test for one in silent)))
    if any(one.tier == "calibrated" for one in document.evidence):
        out.put(
            out.say(
                "What is calibrated ranks the pair among known strangers and decides nothing; "
                "what is a rule has no p-value and tells kinds of relation apart.",
                "calibrated는 무관하다고 알려진 쌍들과 견준 순위이며 판정에 쓰이지 않습니다. "
                "rule은 p-값이 없고 관계의 종류를 가립니다.",
            )
        )
    if beside is not None:
        out.put(out.say("As a file: ", "파일: ") + f"[{beside.sheet}]({beside.sheet})")


def _matrix(out: _Writer, document: MatrixDocument, beside: Beside | None) -> None:
    count = len(document.models)
    out.put(out.say(f"# {count} models, every pair", f"# 모델 {count}개, 모든 쌍"))
    _top(out, document.labels, beside)
    close = linked_pairs(document)
    related, pairs = count_related(document), len(document.pairs)
    linked = len(close) - related
    out.put(
        out.say(
            f"**{related} of {pairs} pairs share trained weights**, {linked} more only initial "
            "weights, or it stays undecided. For the others there is no evidence, which is not "
            "proof of independence, or they cannot be tested.",
            f"**전체 {pairs}쌍 가운데 {related}쌍이 학습된 가중치를 공유합니다.** 그 밖에 "
            f"{linked}쌍은 초기 가중치만 공유하거나 어느 쪽인지 가릴 수 없습니다. 나머지는 증거를 "
            "찾지 못했거나(서로 독립이라는 증명은 아님) 검정할 수 없습니다.",
        )
    )
    _pictures(out, beside)
    if close:
        out.heading("Linked pairs", "연결된 쌍")
        out.put(
            *(
                f"- **{SIGNS[one.relation].mark}** {escaped(out.say(one.summary, one.summary_ko))}"
                for one in close[:_MOST]
            )
        )
    if len(close) > _MOST:
        more = len(close) - _MOST
        out.put(out.say(f"{more} more in the table.", f"그 밖의 {more}쌍은 표에 있음."))
    if document.unread:
        out.heading("Models that could not be read", "읽지 못한 모델")
        out.items([f"{one.given}: {out.say(one.error, one.error_ko)}" for one in document.unread])
    _subjects(out, [document.models[at] for at in ordered(document)])
    out.items(document.notes)
    if beside is not None:
        out.put(out.say("All pairs: ", "모든 쌍: ") + f"[{beside.sheet}]({beside.sheet})")


def count_related(document: MatrixDocument) -> int:
    """How many pairs share trained weights; one initialisation is no relation."""
    return sum(one.relation in RELATED for one in document.pairs)


def linked_pairs(document: MatrixDocument) -> list[PairPart]:
    """Pairs that show something, the most telling relation first, then the smallest p."""
    order = {name: at for at, name in enumerate(SIGNS)}
    close = [one for one in document.pairs if one.relation in CLOSE]
    return sorted(close, key=lambda one: (order[one.relation], one.log10_p or 0.0))


def _top(out: _Writer, labels: Sequence[str], beside: Beside | None) -> None:
    for label in labels:
        out.put(f"**{escaped(label)}**")
    if beside is not None:
        out.put(phrases.OTHER_LANGUAGE[out.language])


def _pictures(out: _Writer, beside: Beside | None) -> None:
    for name, title in () if beside is None else beside.pictures:
        out.put(f"![{escaped(title[out.language])}]({name})")


def _subjects(out: _Writer, models: Sequence[Subject]) -> None:
    out.heading("Models", "모델")
    head = (
        out.say("model", "모델"), out.say("commit", "커밋"),
        out.say("architecture", "아키텍처"), out.say("weights", "가중치"),
    )  # fmt: skip
    rows = [
        (
            one.given, (one.commit or "–")[:_COMMIT], one.architecture or "–",
            in_words(one.bytes) if one.bytes else "–",
        )
        for one in models
    ]  # fmt: skip
    out.table(head, rows)
    claims = [
        out.say(
            f"{one.title} says that it comes from {claim.model} ({claim.where})",
            f"{one.title}: {claim.model}에서 나왔다고 밝힘({claim.where})",
        )
        for one in models
        for claim in one.claims
    ]
    if claims:
        out.put(
            out.say(
                "What models declare about their origin is shown and never counted:",
                "모델이 스스로 밝힌 출처는 보여 주기만 하고 증거로 치지 않습니다.",
            )
        )
        out.items(claims)


def _costs(out: _Writer, document: ComparisonDocument | MatrixDocument) -> None:
    out.heading("How it was made", "만든 방법")
    read = document.read
    out.put(
        out.say(
            f"{in_words(read.bytes)} read in {read.requests:,} requests, {read.seconds:.1f} s.",
            f"{in_words(read.bytes)}를 요청 {read.requests:,}번, {read.seconds:.1f}초에 읽음.",
        )
    )
    made = document.made
    command = printable(made.command, 5000).replace("`", "'")
    out.put(f"    {command}")
    versions = (
        f"kinprint {made.kinprint}, Python {made.python}, NumPy {made.numpy}, SciPy {made.scipy}"
    )
    out.put(escaped(versions))


def _p_cell(log10_p: float | None) -> Cell:
    return 10**log10_p if log10_p is not None and log10_p > -2 else p_value(log10_p)
