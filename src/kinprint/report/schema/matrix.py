"""All pairs of some models."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from kinprint.records import Component, Relation
from kinprint.report.schema.common import (
    Asked,
    Count,
    EvidenceShort,
    Likeness,
    LogP,
    Made,
    ReadPart,
    SampleRead,
    Subject,
    Translations,
)
from kinprint.report.schema.comparison import AmountPart, Statements

MATRIX_SCHEMA = "kinprint.matrix/2"


class PairPart(Struct, frozen=True, kw_only=True):
    """One pair of many; `likeness` counts parts without a link as 0, `amount`'s does not.

    What is said of each part stands in the statements; comparing the two alone lists the parts.
    """

    a: str
    b: str
    relation: Relation
    log10_p: LogP | None
    summary: str
    statements: Statements | None = None
    components: list[Component] = []
    reasons: list[str] = []
    amount: AmountPart
    strongest: str | None = None
    likeness: Likeness = 0.0
    evidence: list[EvidenceShort] = []


class Merge(Struct, frozen=True, kw_only=True):
    """Two branches of the tree that meet: leaves are places of models, then earlier merges."""

    one: Count
    other: Count
    height: float


class Unread(Struct, frozen=True, kw_only=True):
    """A model that could not be read, and why."""

    given: str
    error: str


class FailedPair(Struct, frozen=True, kw_only=True):
    """A pair that could not be compared, and why."""

    a: str
    b: str
    error: str


class MatrixDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=MATRIX_SCHEMA):
    """All pairs of some models; `tree` joins those that are most alike first."""

    models: list[Subject]
    pairs: list[PairPart]
    order: list[Count] = []
    tree: list[Merge] = []
    unread: list[Unread] = []
    failed: list[FailedPair] = []
    false_links: Annotated[float, Meta(ge=0)] | None = None
    asked: Asked
    samples: list[list[SampleRead]] = []
    notes: list[str] = []
    labels: list[str] = []
    translations: Translations | UnsetType = UNSET
    made: Made
    read: ReadPart
