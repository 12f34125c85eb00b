"""The studies of a public dispute done again, with every published number beside the one found."""

from __future__ import annotations

from msgspec import Struct

from kinprint.report.schema.common import ReadPart
from kinprint.report.schema.study import SourcePart
from kinprint.studies.reproduction.published import NumberStatus
from kinprint.text import Words

REPRODUCTION_SCHEMA = "kinprint.reproduction/1"


class NumberPart(Struct, frozen=True, kw_only=True):
    """A published number and the one found now."""

    analysis: str
    number: str
    published: str
    found: float | None
    status: NumberStatus
    source: str

    @property
    def difference(self) -> float | None:
        """Found less published."""
        return None if self.found is None else self.found - float(self.published)


class ReproductionDocument(
    Struct, frozen=True, kw_only=True, tag_field="schema", tag=REPRODUCTION_SCHEMA
):
    """A dispute done again; the results of its studies are documents of their own."""

    name: str
    replica: bool
    models: dict[str, SourcePart]
    missing: dict[str, Words]
    studies: tuple[str, ...]
    numbers: tuple[NumberPart, ...]
    read: ReadPart
