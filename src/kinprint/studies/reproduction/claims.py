"""What each side of the dispute claimed, where it stands, and what the numbers say of it.

`claims.toml` beside this module lists the claims with their repository, commit, file and line;
their words stand in the catalogues. What is found is computed from the published numbers, or from
those measured now where there are any, by the functions of `claim_checks`; of claims that no number
decides the table says it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, field
from msgspec.structs import replace

from kinprint import text
from kinprint.records import Mark
from kinprint.studies.reproduction.published import published
from kinprint.tables import read_table
from kinprint.text import Words


class Outcome(StrEnum):
    """What the numbers say of a claim."""

    TRUE = "true"
    FALSE = "false"
    DEPENDS = "depends"
    UNTESTABLE = "untestable"


class ClaimSource(Struct, frozen=True):
    """A state of a public repository.

    `date` is that of the commit; `written` the day that the text gives for itself, where it is
    another one.
    """

    name: str
    repository: str
    commit: str
    author: str
    date: str
    written: str | None = None


class Claim(Struct, frozen=True):
    """One claim and the line of the file in which it stands; `quote` is in its own language.

    `outcome` is what is found of a claim that no number decides; others have a check.
    """

    name: str
    source: ClaimSource
    file: str
    line: int
    command: str
    quote: str | None = None
    outcome: Outcome | None = None

    @property
    def address(self) -> str:
        """Where the claim can be read."""
        place = f"{self.source.repository}/blob/{self.source.commit}/{self.file}"
        return f"https://github.com/{place}#L{self.line}"


class Finding(Struct, frozen=True):
    """What came out of a check: the outcome, and the numbers that its sentence names."""

    outcome: Outcome
    fields: Mapping[str, object] = field(default_factory=dict)


class JudgedClaim(Struct, frozen=True):
    """A claim with what is found, in words."""

    claim: Claim
    says: Words
    outcome: Outcome
    finds: Words


class Heatmap(Struct, frozen=True):
    """The critique's matrix of cosines at layer 10, read off its picture to two digits."""

    models: tuple[str, ...]
    mixtures: tuple[str, ...]
    likely_kin: tuple[tuple[str, str], ...]
    values: tuple[tuple[float, ...], ...]


class Numbers(Struct, frozen=True):
    """Everything that checks compute from.

    By its key, a number is the one measured now, or else the published one. `published` are the
    printed ones alone, `stated` those that stand in no table of their source; `measured` are the
    keys of those that were measured.
    """

    known: Mapping[str, float]
    published: Mapping[str, float]
    stated: Mapping[str, Any]
    heatmap: Heatmap
    measured: frozenset[str] = frozenset()

    def mark(self, keys: Iterable[str]) -> Mark:
        """Where a number comes from that was made of these."""
        return Mark.MEASURED if self.measured.issuperset(keys) else Mark.RECONSTRUCTED

    def __getitem__(self, key: str) -> float:
        return self.known[key]

    def as_published(self) -> Numbers:
        """The same without what was measured, for claims about what a source prints."""
        return replace(self, known=self.published, measured=frozenset())


@cache
def _table() -> dict[str, Any]:
    return read_table(Path(__file__).with_name("claims.toml"))


@cache
def claim_sources() -> Mapping[str, ClaimSource]:
    """The repositories, by the name of the analysis, in the order of the dispute."""
    return {name: ClaimSource(name, **entry) for name, entry in _table()["source"].items()}


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim, source by source."""
    sources = claim_sources()
    return tuple(
        convert(entry | {"source": sources[entry["source"]]}, Claim) for entry in _table()["claim"]
    )


def numbers(measured: Mapping[str, float] | None = None) -> Numbers:
    """Published numbers, the one with most digits for each key, under those `measured` now."""
    best: dict[str, str] = {}
    for number in published():
        best[number.key] = max(best.get(number.key, ""), number.text, key=len)
    printed = {key: float(value) for key, value in best.items()}
    now = dict(measured or {})
    stated, heatmap = _table()["stated"], _heatmap()
    return Numbers(printed | now, printed, stated, heatmap, frozenset(now))


def _heatmap() -> Heatmap:
    """The critique's picture, from its published cells."""
    table = _table()["heatmap"]
    cells = {one.key: one.value for one in published() if one.source == table["picture"]}

    def cell(row: str, column: str) -> float:
        first, second = sorted((row, column), key=table["models"].index)
        return 1.0 if row == column else cells[f"cosine/norm_in/{first}[10]/{second}[10]"]

    return Heatmap(
        tuple(table["models"]),
        tuple(table["mixtures"]),
        tuple((one, other) for one, other in table["likely_kin"]),
        tuple(tuple(cell(row, column) for column in table["models"]) for row in table["models"]),
    )


def judged_claims(measured: Mapping[str, float] | None = None) -> tuple[JudgedClaim, ...]:
    """Every claim with what the numbers say of it."""
    from kinprint.studies.reproduction.claim_checks import CHECKS

    known = numbers(measured)
    found = []
    for claim in claims():
        finding = Finding(claim.outcome) if claim.outcome else CHECKS[claim.name](known)
        says = text.words(f"study.claim.{claim.name}.says")
        finds = text.words(f"study.claim.{claim.name}.finds", **finding.fields)
        found.append(JudgedClaim(claim, says, finding.outcome, finds))
    return tuple(found)
