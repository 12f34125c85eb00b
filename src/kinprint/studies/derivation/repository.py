"""What repositories say about themselves: licences, copyright lines, code they share.

These are claims of their authors with the file and commit they stand in. Nothing of it says
anything about weights, and nothing of it is counted as evidence.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from kinprint import text
from kinprint.records import FileEntry
from kinprint.studies.derivation.pairwise import A, B
from kinprint.studies.results import Cell, Fact, Output, RowStatus, Table
from kinprint.studies.study import Document, Procedure, StudyInput
from kinprint.text import Sentence, Words

LARGEST = 256 * 1024
MOST_FILES = 40
MOST_COMMITS = 50
LONGEST_LINE = 200
# The files that matter most come first, in case a repository has very many.
_KINDS = (
    re.compile(r"^(licen[cs]e|notice|copying|copyright)", re.IGNORECASE),
    re.compile(r"^(modeling|modelling|configuration|tokenization)_.*\.py$"),
    re.compile(r"^readme", re.IGNORECASE),
    re.compile(r"\.py$"),
    re.compile(r"\.(md|txt|rst)$", re.IGNORECASE),
)
_NOT_PROSE = re.compile(r"^(merges|vocab|tokens?)\.txt$", re.IGNORECASE)
_CLAIMS = {
    "copyright": re.compile(r"copyright\s*(\(c\)|©|\d{4}|[A-Z])", re.IGNORECASE),
    "licence": re.compile(
        r"^\W*(licen[cs]e\w*\s*:|licensed under|.{0,30}\blicen[cs]e,? version\b)", re.IGNORECASE
    ),
    "base_model": re.compile(r"^base_model(_relation)?\s*:", re.IGNORECASE),
    "generated": re.compile(r"automatically generated from|modified from|adapted from", re.I),
}
_CODE = re.compile(r"(?:^|/)(?:modeling|modelling)_(?P<stem>\w+)\.py$")


class Claim(Struct, frozen=True):
    """One line of a file that claims something."""

    model: int
    path: str
    line: int
    kind: str
    text: str


def papers(files: Iterable[FileEntry]) -> list[str]:
    """Paths of small text files that may hold such claims, the likeliest first."""
    ranked: list[tuple[int, str]] = []
    for entry in files:
        name = posixpath.basename(entry.path)
        if entry.size > LARGEST or not entry.size or _NOT_PROSE.match(name):
            continue
        rank = next((at for at, kind in enumerate(_KINDS) if kind.search(name)), None)
        if rank is not None:
            ranked.append((rank, entry.path))
    return [path for _, path in sorted(ranked)[:MOST_FILES]]


def claims_in(model: int, path: str, content: str) -> list[Claim]:
    """Lines that name a licence, a copyright holder or an origin."""
    found: list[Claim] = []
    for number, line in enumerate(content.splitlines(), 1):
        for kind, pattern in _CLAIMS.items():
            if pattern.search(line):
                found.append(Claim(model, path, number, kind, _shown(line)))
                break
    return found


def code_lines(path: str, content: str) -> set[str]:
    """Lines of modelling code without blanks, comments and the model's own name.

    Classes are renamed when code is reused; the name comes from the file's.
    """
    match = _CODE.search(path)
    stem = match["stem"] if match else ""
    name = re.compile(re.escape(stem.replace("_", "")), re.IGNORECASE) if stem else None
    spelled = re.compile(re.escape(stem), re.IGNORECASE) if stem else None
    lines: set[str] = set()
    for raw in content.splitlines():
        line = raw.strip()
        if len(line) < 8 or line.startswith(("#", '"""', "import ", "from ")):
            continue
        for pattern in filter(None, (spelled, name)):
            line = pattern.sub("Model", line)
        lines.add(line)
    return lines


def _documents(inputs: StudyInput) -> list[Document]:
    return [
        (at, path)
        for at in (A, B)
        if not _is_replica(inputs, at)
        for path in papers(inputs.models[at].checkpoint.files.values())
    ]


def _is_replica(inputs: StudyInput, model: int) -> bool:
    """Whether its files are those of a replica, which say nothing of the model's repository."""
    return bool(inputs.models[model].checkpoint.labels)


def _not_there() -> Sentence:
    return text.sentence("study.reason.no-repository")


def _run(inputs: StudyInput) -> Output:
    texts = {document: raw.decode("utf-8", "replace") for document, raw in inputs.documents.items()}
    claims = [one for (at, path), content in texts.items() for one in claims_in(at, path, content)]
    overlap = _overlap_table(inputs, texts)
    shares = [share for share in overlap.column("shared_of_smaller") if isinstance(share, float)]
    largest = max(shares, default=None)
    return Output(
        (_claim_table(inputs, claims), overlap, _commit_table(inputs)),
        _facts(inputs, texts, claims, largest),
        (),
        _findings(inputs, claims, largest),
    )


def _shown(line: str) -> str:
    shown = line.strip().strip("#*/ ").strip()
    return shown if len(shown) <= LONGEST_LINE else f"{shown[:LONGEST_LINE]}…"


def _source(inputs: StudyInput, model: int) -> str:
    ref = inputs.models[model].checkpoint.ref
    return f"{ref.name}@{ref.commit}" if ref.commit else ref.name


def _claim_table(inputs: StudyInput, claims: Iterable[Claim]) -> Table:
    rows = tuple(
        (
            inputs.names[one.model],
            one.kind,
            one.text,
            one.path,
            one.line,
            *_changed(inputs, one),
            _source(inputs, one.model),
        )
        for one in claims
    )
    title = text.words("study.repository.table.claims")
    columns = ("model", "kind", "text", "file", "line", "changed", "by", "source")
    return Table("claims", title, columns, rows)


def _changed(inputs: StudyInput, claim: Claim) -> tuple[str | None, str | None]:
    """When the file of a claim was last changed, and by which commit, as its host tells."""
    changes = inputs.histories[claim.model].changes if inputs.histories else {}
    last = changes.get(claim.path)
    return (None, None) if last is None else (last.date, last.id)


def _commit_table(inputs: StudyInput) -> Table:
    """What the hosts tell of the repositories' past; dates are theirs, and can be set by hand."""
    rows: list[tuple[Cell, ...]] = []
    for at, history in enumerate(inputs.histories):
        name, commits = inputs.names[at], history.commits
        if _is_replica(inputs, at):
            rows.append((name, None, None, None, RowStatus.NOT_IN_REPLICA, _not_there()))
            continue
        rows += [
            (name, one.date, one.title, one.id, RowStatus.OK, "") for one in commits[:MOST_COMMITS]
        ]
        if not commits:
            reason = text.sentence("study.reason.no-history")
            rows.append((name, None, None, None, RowStatus.MISSING, reason))
    columns = ("model", "date", "title", "commit", "status", "reason")
    title = text.words("study.repository.table.commits")
    return Table("commits", title, columns, tuple(rows))


def _overlap_table(inputs: StudyInput, texts: dict[Document, str]) -> Table:
    columns = (
        "file_A", "file_B", "status", "lines_A", "lines_B", "shared", "shared_of_smaller", "reason",
    )  # fmt: skip
    code = [
        {
            path: code_lines(path, content)
            for (model, path), content in texts.items()
            if model == at and _CODE.search(path)
        }
        for at in (A, B)
    ]
    rows: list[tuple[Cell, ...]] = []
    for first, mine in code[A].items():
        for second, theirs in code[B].items():
            shared = len(mine & theirs)
            smaller = min(len(mine), len(theirs))
            share = shared / smaller if smaller else None
            rows.append((first, second, RowStatus.OK, len(mine), len(theirs), shared, share, ""))
    if not rows:
        lacking = "".join(name for name, one in zip("AB", code, strict=True) if not one)
        status, reason = RowStatus.MISSING, text.sentence(f"study.reason.no-code.{lacking}")
        if any(_is_replica(inputs, at) for at in (A, B)):
            status, reason = RowStatus.NOT_IN_REPLICA, _not_there()
        rows.append((None, None, status, None, None, None, None, reason))
    title = text.words("study.repository.table.code")
    return Table("code_overlap", title, columns, tuple(rows))


def _facts(
    inputs: StudyInput, texts: dict[Document, str], claims: list[Claim], largest: float | None
) -> dict[str, Fact]:
    facts: dict[str, Fact] = {"counted_as_evidence": False}
    for key, at in (("A", A), ("B", B)):
        kinds: dict[str, Fact] = {
            kind: None
            if _is_replica(inputs, at)
            else sum(one.kind == kind for one in claims if one.model == at)
            for kind in _CLAIMS
        }
        ref = inputs.models[at].checkpoint.ref
        facts[key] = {
            "repo": ref.name,
            "commit": ref.commit or None,
            "files_read": [path for model, path in texts if model == at],
            "claims": kinds,
        }
    facts["largest_code_overlap"] = largest
    return facts


def _findings(inputs: StudyInput, claims: list[Claim], largest: float | None) -> tuple[Words, ...]:
    replicas = [inputs.names[at] for at in (A, B) if _is_replica(inputs, at)]
    if replicas:
        models = ", ".join(replicas)
        return (text.words("study.repository.finding.replica", models=models),)
    counts = [sum(claim.model == at for claim in claims) for at in (A, B)]
    found = [
        text.words(
            "study.repository.finding.claims",
            a=inputs.names[A],
            count_a=counts[A],
            b=inputs.names[B],
            count_b=counts[B],
        )
    ]
    for at in (A, B):
        mine = {one.path: _changed(inputs, one) for one in claims if one.model == at}
        files = Counter((day[:10], by[:12]) for day, by in mine.values() if day and by)
        if files:
            told = "; ".join(f"{day} {by}: {count}" for (day, by), count in sorted(files.items()))
            name = inputs.names[at]
            found.append(text.words("study.repository.finding.changed", model=name, commits=told))
    if largest is not None:
        found.append(text.words("study.repository.finding.code", share=largest))
    if not all(inputs.models[at].checkpoint.ref.commit for at in (A, B)):
        found.append(text.words("study.repository.finding.no-commit"))
    return tuple(found)


REPOSITORY = Procedure(lambda inputs: [], _run, _documents)
