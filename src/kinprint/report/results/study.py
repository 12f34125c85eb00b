"""A named study, done: the result of `study`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kinprint.report.results.result import DrawnResult, Failure
from kinprint.report.schema import SourcePart, StudyDocument
from kinprint.report.study import in_language
from kinprint.studies.results import Fact, Table

if TYPE_CHECKING:
    from kinprint.report.figures.drawing import Picture


class StudyResult(DrawnResult[StudyDocument]):
    """What a named study of some models gave: the result of `kinprint.study`.

    A study measures and reaches no verdict.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.study("same-layer", zoo / "base-a", zoo / "base-b", layers=[3])
    >>> found.name, found.models
    ('same-layer', ('base-a', 'base-b'))
    """

    def __init__(
        self, document: StudyDocument, language: str = "en", *, failures: tuple[Failure, ...] = ()
    ) -> None:
        super().__init__(document, language)
        self._failures = failures

    @property
    def name(self) -> str:
        """The name of the study."""
        return self._document.study.name

    @property
    def title(self) -> str:
        """What the study compares, in the result's language."""
        return self._document.study.title[self.language]

    @property
    def shows(self) -> str:
        """What the study can show, in the result's language."""
        return self._document.study.shows[self.language]

    @property
    def cannot(self) -> str:
        """What the study cannot show, in the result's language."""
        return self._document.study.cannot[self.language]

    @property
    def models(self) -> tuple[str, ...]:
        """The models by the names that tables and pictures use."""
        return self._document.models

    @property
    def sources(self) -> tuple[SourcePart, ...]:
        """The exact state of each model that was read."""
        return self._document.sources

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Models that were set aside because they could not be opened; not kept in files."""
        return self._failures

    @property
    def findings(self) -> tuple[str, ...]:
        """What came out in words, in the result's language."""
        return tuple(one[self.language] for one in self._document.findings)

    @property
    def facts(self) -> Mapping[str, Fact]:
        """The few numbers that sum it up, by name."""
        return self._document.facts

    @property
    def statuses(self) -> Mapping[str, int]:
        """How many rows of all tables could be measured, and how many not, by reason."""
        return self._document.statuses

    @property
    def tables(self) -> Mapping[str, Table]:
        """Its tables by name."""
        return {table.name: table for table in self._document.tables}

    def _pictures(self) -> Mapping[str, Picture]:
        return {chart.name: chart for chart in self._document.charts}

    def _in_short(self) -> str:
        return f"study {self.name} of {', '.join(self.models)}"

    def _repr_html_(self) -> str:
        from kinprint.report.results.html import fragment

        first = next(iter(self._document.tables), None)
        table = None if first is None else in_language(self._document, first, self.language)
        return fragment(self.title, self.findings, table, self.language)
