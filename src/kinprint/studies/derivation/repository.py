"""What repositories say about themselves: licences, copyright lines, code they share.

These are claims of their authors with the file and commit they stand in. Nothing of it says
anything about weights, and nothing of it is counted as evidence.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kinprint import text
from kinprint.records import FileEntry
from kinprint.studies.catalogue import Procedure, Study
from kinprint.studies.derivation.pairwise import A, B
from kinprint.studies.results import Cell, Fact, Result, Table
from kinprint.studies.scene import MISSING, OK, Document, Item, Scene
from kinprint.text import Words

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


@dataclass(frozen=True, slots=True)
class Claim:
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


def claims_in(model: int, path: str, text: str) -> list[Claim]:
    """Lines that name a licence, a copyright holder or an origin."""
    found: list[Claim] = []
    for number, line in enumerate(text.splitlines(), 1):
        for kind, pattern in _CLAIMS.items():
            if pattern.search(line):
                found.append(Claim(model, path, number, kind, _shown(line)))
                break
    return found


def code_lines(path: str, text: str) -> set[str]:
    """Lines of modelling code without blanks, comments and the model's own name.

    Classes are renamed when code is reused; the name comes from the file's.
    """
    match = _CODE.search(path)
    stem = match["stem"] if match else ""
    name = re.compile(re.escape(stem.replace("_", "")), re.IGNORECASE) if stem else None
    spelled = re.compile(re.escape(stem), re.IGNORECASE) if stem else None
    lines: set[str] = set()
    for raw in text.splitlines():
        line = raw.strip()
        if len(line) < 8 or line.startswith(("#", '"""', "import ", "from ")):
            continue
        for pattern in filter(None, (spelled, name)):
            line = pattern.sub("Model", line)
        lines.add(line)
    return lines


def _needs(study: Study, scene: Scene) -> list[Item]:
    return []


def _documents(study: Study, scene: Scene) -> list[Document]:
    return [
        (at, path) for at in (A, B) for path in papers(scene.models[at].checkpoint.files.values())
    ]


def _run(study: Study, scene: Scene) -> Result:
    texts = {key: raw.decode("utf-8", "replace") for key, raw in scene.documents.items()}
    mine = {key: texts[key] for key in _documents(study, scene) if key in texts}
    claims = [one for (at, path), text in mine.items() for one in claims_in(at, path, text)]
    overlap = _overlap(mine)
    facts = _facts(scene, mine, claims, overlap)
    return Result(
        study.name,
        scene.names,
        (_claim_table(scene, claims), overlap, _commit_table(scene)),
        facts,
        (),
        _findings(scene, claims, overlap),
        scene.labels,
    )


def _shown(line: str) -> str:
    text = line.strip().strip("#*/ ").strip()
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}…"


def _source(scene: Scene, model: int) -> str:
    ref = scene.models[model].checkpoint.ref
    return f"{ref.name}@{ref.commit}" if ref.commit else ref.name


def _claim_table(scene: Scene, claims: Iterable[Claim]) -> Table:
    rows = tuple(
        (scene.names[one.model], one.kind, one.text, one.path, one.line, _source(scene, one.model))
        for one in claims
    )
    title = text.words("study.repository.table.claims")
    return Table("claims", title, ("model", "kind", "text", "file", "line", "source"), rows)


def _commit_table(scene: Scene) -> Table:
    """What the hosts tell of the repositories' past; dates are theirs, and can be set by hand."""
    rows: list[tuple[Cell, ...]] = []
    for at, commits in enumerate(scene.histories):
        name = scene.names[at]
        rows += [(name, one.date, one.title, one.id, OK, "") for one in commits[:MOST_COMMITS]]
        if not commits:
            rows.append((name, None, None, None, MISSING, "its place keeps no history"))
    columns = ("model", "date", "title", "commit", "status", "reason")
    title = text.words("study.repository.table.commits")
    return Table("commits", title, columns, tuple(rows))


def _overlap(texts: dict[Document, str]) -> Table:
    columns = (
        "file_A", "file_B", "status", "lines_A", "lines_B", "shared", "shared_of_smaller", "reason",
    )  # fmt: skip
    code = [
        {path: code_lines(path, text) for (model, path), text in texts.items() if model == at
         and _CODE.search(path)}
        for at in (A, B)
    ]  # fmt: skip
    rows: list[tuple[Cell, ...]] = []
    for first, mine in code[A].items():
        for second, theirs in code[B].items():
            shared = len(mine & theirs)
            smaller = min(len(mine), len(theirs))
            share = shared / smaller if smaller else None
            rows.append((first, second, OK, len(mine), len(theirs), shared, share, ""))
    if not rows:
        lacking = " and ".join(name for name, one in zip("AB", code, strict=True) if not one)
        reason = f"no modelling code in the repository of {lacking}"
        rows.append((None, None, MISSING, None, None, None, None, reason))
    title = text.words("study.repository.table.code")
    return Table("code_overlap", title, columns, tuple(rows))


def _facts(
    scene: Scene, texts: dict[Document, str], claims: list[Claim], overlap: Table
) -> dict[str, Fact]:
    facts: dict[str, Fact] = {"counted_as_evidence": False}
    for key, at in (("A", A), ("B", B)):
        kinds: dict[str, Fact] = {
            kind: sum(one.kind == kind for one in claims if one.model == at) for kind in _CLAIMS
        }
        ref = scene.models[at].checkpoint.ref
        facts[key] = {
            "repo": ref.name,
            "commit": ref.commit or None,
            "files_read": [path for model, path in texts if model == at],
            "claims": kinds,
        }
    shares = [one for one in overlap.column("shared_of_smaller") if isinstance(one, float)]
    facts["largest_code_overlap"] = max(shares, default=None)
    return facts


def _findings(scene: Scene, claims: list[Claim], overlap: Table) -> tuple[Words, ...]:
    counts = [sum(one.model == at for one in claims) for at in (A, B)]
    told = [
        text.words(
            "study.repository.finding.claims",
            a=scene.names[A],
            count_a=counts[A],
            b=scene.names[B],
            count_b=counts[B],
        )
    ]
    shares = [one for one in overlap.column("shared_of_smaller") if isinstance(one, float)]
    if shares:
        told.append(text.words("study.repository.finding.code", share=max(shares)))
    if not all(scene.models[at].checkpoint.ref.commit for at in (A, B)):
        told.append(text.words("study.repository.finding.no-commit"))
    return tuple(told)


REPOSITORY = Procedure(_needs, _run, _documents)
