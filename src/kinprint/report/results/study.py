"""A named study, done: the result of `study`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kinprint.records import Cost
from kinprint.report.outputs import outputs, write_outputs
from kinprint.report.results.result import Failure, Result
from kinprint.report.schema import SourcePart, StudyDocument, encode
from kinprint.report.translation import warning
from kinprint.studies.results import Fact, Table

if TYPE_CHECKING:
    from kinprint.report.figures.drawing import Picture


class StudyResult(Result):
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
        self._document, self.language, self._failures = document, language, failures

    @property
    def document(self) -> StudyDocument:
        """The record from which everything is drawn."""
        return self._document

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
    def labels(self) -> tuple[str, ...]:
        """What models say they are not, as replicas do."""
        return self._document.labels

    @property
    def cost(self) -> Cost:
        """What was read, and how long all of it took."""
        read = self._document.read
        return Cost() if read is None else Cost(read.bytes, read.requests, read.seconds)

    @property
    def tables(self) -> Mapping[str, Table]:
        """Its tables by name."""
        return {table.name: table for table in self._document.tables}

    def to_json(self) -> bytes:
        """The result as the bytes of its JSON file."""
        return encode(self._document)

    def save(self, *paths: str | os.PathLike[str]) -> list[Path]:
        """Write everything about it to folders: data, tables, pictures and a page to read.

        Parameters
        ----------
        *paths : str or path
            Folders, which are made.

        Returns
        -------
        list of pathlib.Path
            The files written.

        Raises
        ------
        BadOption
            A place is no folder, or cannot be written to.

        Examples
        --------
        >>> import kinprint, kinprint.demo, tempfile
        >>> zoo = kinprint.demo.FOLDER / "zoo"
        >>> found = kinprint.study("same-layer", zoo / "base-a", zoo / "base-b", layers=[3])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     files = found.save(folder)
        >>> files[0].name
        'result.json'
        """
        wanted = outputs([os.fspath(path) for path in paths], "paths")
        return write_outputs(self._document, wanted, self.language)

    def _pictures(self) -> Mapping[str, Picture]:
        return {chart.name: chart for chart in self._document.charts}

    def _warning(self) -> str:
        return warning(self._document, self.language)

    def _in_short(self) -> str:
        return f"study {self.name} of {', '.join(self.models)}"

    def _repr_html_(self) -> str:
        from kinprint.report.results.html import fragment

        return fragment(
            self.title, self.findings, next(iter(self.tables.values()), None), self.language
        )
