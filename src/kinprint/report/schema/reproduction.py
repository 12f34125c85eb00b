"""The studies of a public dispute done again, with every published number beside the one found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from msgspec import Struct

from kinprint.records import Mark, NumberStatus
from kinprint.report.schema.common import Count, ReadPart
from kinprint.report.schema.study import SourcePart
from kinprint.text import Words

if TYPE_CHECKING:
    from kinprint.studies.reproduction.published import Pairs

REPRODUCTION_SCHEMA = "kinprint.reproduction/1"


class PairsPart(Struct, frozen=True, kw_only=True):
    """What an average was taken over, of how many pairs that were published.

    `same` is the published average over the same pairs, to `digits` decimals; null where they are
    all of them, or where nothing was published of some.
    """

    names: tuple[str, ...]
    published: Count
    same: float | None
    digits: Count

    @classmethod
    def of(cls, pairs: Pairs) -> Self:
        """As the results have it."""
        return cls(
            names=pairs.names, published=pairs.published, same=pairs.same, digits=pairs.digits
        )


class NumberPart(Struct, frozen=True, kw_only=True):
    """A published number and the one found now.

    `mark` says where the number comes from; `interval` holds it with 95 % where rows of matrices
    were sampled; `pairs` are what an average was taken over.
    """

    analysis: str
    number: str
    published: str
    found: float | None
    status: NumberStatus
    mark: Mark | None = None
    interval: tuple[float, float] | None = None
    pairs: PairsPart | None = None
    source: str

    @property
    def difference(self) -> float | None:
        """Found less published, where both are of the same pairs."""
        if self.found is None or self.status is NumberStatus.OTHER_PAIRS:
            return None
        return self.found - float(self.published)


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
