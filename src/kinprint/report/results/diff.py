"""What changed from one model to another: the result of `diff`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kinprint import text
from kinprint.records import Relation
from kinprint.report import changes
from kinprint.report.results.result import DrawnResult
from kinprint.report.schema import (
    BeyondPart,
    DiffDocument,
    DiffModel,
    DiffTotals,
    MapPart,
    OperationPart,
    PrecedencePart,
    TensorChangePart,
)
from kinprint.report.translation import translated
from kinprint.studies.results import Table

if TYPE_CHECKING:
    from kinprint.report.figures.drawing import Picture


class Diff(DrawnResult[DiffDocument]):
    """What changed from one model to another, and what was done to it.

    `kinprint.diff` makes it.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.diff(zoo / "base-a", zoo / "a-cpt")
    >>> [one.kind.value for one in found.operations]
    ['continued-pretraining']
    """

    @property
    def models(self) -> tuple[DiffModel, ...]:
        """The two models, and which state of each was read."""
        return tuple(self._document.models)

    @property
    def relation(self) -> Relation:
        """How a comparison says the two are related."""
        return self._document.relation

    @property
    def operations(self) -> tuple[OperationPart, ...]:
        """What was done to the first model, with what shows it; none where nothing links them."""
        return tuple(self._document.operations)

    @property
    def tensors(self) -> tuple[TensorChangePart, ...]:
        """Every tensor of both models, and what became of it."""
        return tuple(self._document.tensors)

    @property
    def totals(self) -> DiffTotals:
        """How many tensors and numbers were compared, and how many are equal."""
        return self._document.totals

    @property
    def map(self) -> MapPart:
        """How layers, experts, channels, units, heads and tokens correspond."""
        return self._document.map

    @property
    def beyond(self) -> BeyondPart | None:
        """What the models share beyond a base; None where none was given."""
        return self._document.beyond

    @property
    def direction(self) -> PrecedencePart | None:
        """Which model came first, where an operation looks the same whichever did."""
        return self._document.direction

    @property
    def summary(self) -> str:
        """The headline."""
        return changes.summary(self._document, self.language)

    @property
    def tables(self) -> Mapping[str, Table]:
        """Tensors and operations."""
        from kinprint.report.views.csv import tables_of

        return {table.name: table for table in tables_of(self._document)}

    def _pictures(self) -> Mapping[str, Picture]:
        from kinprint.report.figures.changes import charts_of

        return {chart.name: chart for chart in charts_of(self._document)}

    def _in_short(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        from kinprint.report.results.html import fragment

        document, language = self._document, self.language
        told = [changes.totals_say(document, language)]
        told += [f"{words}: {shown}" for words, shown in changes.evidence_of(document, language)]
        told += changes.map_lines(document, language)
        if document.beyond is not None:
            told.append(translated(document, document.beyond.summary, language))
        columns = tuple(
            text.say(f"diff.column.{name}", language) for name in ("tensor", "relative", "changed")
        )
        rows = tuple(
            (
                changes.tensor_name(one, language),
                one.relative.value if one.relative else None,
                one.changed.value if one.changed else None,
            )
            for one in changes.top_changes(document.tensors)
        )
        table = Table("changes", text.words("diff.largest"), columns, rows)
        return fragment(self.summary, told, table, language)
