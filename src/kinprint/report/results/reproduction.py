"""The studies of a public dispute, done again: the result of `reproduce`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Self

from kinprint import text
from kinprint.errors import BadOption
from kinprint.records import Cost, NumberStatus, Progress
from kinprint.report.outputs import outputs
from kinprint.report.results.result import Result, read_as, read_file
from kinprint.report.results.study import StudyResult
from kinprint.report.schema import NumberPart, ReproductionDocument, SourcePart, StudyDocument
from kinprint.report.views.reproduction import (
    DATA,
    STUDIES,
    published_table,
    write_reproduction,
)
from kinprint.studies.results import Table

if TYPE_CHECKING:
    from kinprint.report.figures.drawing import Picture


class Reproduction(Result[ReproductionDocument]):
    """A public dispute's analyses done again, with the published number beside every number.

    `kinprint.reproduce` makes it.

    Examples
    --------
    >>> import kinprint
    >>> found = kinprint.reproduce("solar-vs-glm", replica=True)  # doctest: +SKIP
    >>> found.counts["by construction"]  # doctest: +SKIP
    973
    """

    _DATA = DATA

    def __init__(
        self,
        document: ReproductionDocument,
        studies: Mapping[str, StudyDocument],
        language: str = "en",
    ) -> None:
        super().__init__(document, language)
        self._studies = dict(studies)

    @property
    def name(self) -> str:
        """The name of the dispute."""
        return self._document.name

    @property
    def replica(self) -> bool:
        """Whether sparse replicas were read, which are not the real models."""
        return self._document.replica

    @property
    def models(self) -> Mapping[str, SourcePart]:
        """What was read of each model, by its short name."""
        return self._document.models

    @property
    def missing(self) -> Mapping[str, str]:
        """Models that could not be opened, with the reason in the result's language."""
        return {name: why[self.language] for name, why in self._document.missing.items()}

    @property
    def numbers(self) -> tuple[NumberPart, ...]:
        """Every published number with the one found."""
        return self._document.numbers

    @property
    def counts(self) -> Mapping[NumberStatus, int]:
        """How many published numbers have which status."""
        return Counter(one.status for one in self._document.numbers)

    @property
    def studies(self) -> Mapping[str, StudyResult]:
        """The results of its studies, by the name of the step."""
        return {name: StudyResult(one, self.language) for name, one in self._studies.items()}

    @property
    def cost(self) -> Cost:
        """What was read, and how long all of it took."""
        return self._document.read.cost

    @property
    def tables(self) -> Mapping[str, Table]:
        """One table: a row a published number."""
        table = published_table(self._document)
        return {table.name: table}

    def save(
        self,
        *paths: str | os.PathLike[str],
        progress: Callable[[Progress], None] | None = None,
    ) -> list[Path]:
        """Write the whole tree of files into folders.

        Parameters
        ----------
        *paths : str or path
            Folders: no ending, or a slash at the end.
        progress : callable, optional
            Called with a `Progress` for every picture that was drawn.

        Returns
        -------
        list of pathlib.Path
            The files written.

        Raises
        ------
        BadOption
            A place cannot be written to, or it is no folder.

        Examples
        --------
        >>> import kinprint
        >>> found = kinprint.reproduce("solar-vs-glm", replica=True)  # doctest: +SKIP
        >>> files = found.save("out/solar-vs-glm/")  # doctest: +SKIP
        """
        wanted = outputs([os.fspath(path) for path in paths], data=self._DATA)
        for one in wanted:
            if one.form is not None:
                cause = text.message("cause.output.folder-alone")
                raise BadOption(option="paths", value=str(one.path), cause=cause)
        return [
            file
            for one in wanted
            for file in write_reproduction(
                self._document, self._studies, one.path, progress, self.language
            )
        ]

    @classmethod
    def load(cls, path: str | os.PathLike[str], language: str = "en") -> Self:
        """Read a reproduction back from its folder.

        Parameters
        ----------
        path : str or path
            The folder that `save` wrote.
        language : str
            What the result is to speak.

        Returns
        -------
        Reproduction
            The same as when it was computed.

        Raises
        ------
        FileMissing
            There is no such folder.
        FormatError
            It holds something else.

        Examples
        --------
        >>> import kinprint
        >>> found = kinprint.Reproduction.load("out/solar-vs-glm")  # doctest: +SKIP
        """
        folder = Path(path)
        document = read_as(ReproductionDocument, read_file(folder, DATA), str(folder / DATA))
        studies = {
            name: read_as(StudyDocument, read_file(file), str(file))
            for name in document.studies
            for file in [folder / STUDIES / f"{name}.json"]
        }
        return cls(document, studies, language)

    def _pictures(self) -> Mapping[str, Picture]:
        return {
            f"{name}/{chart.name}": chart
            for name, study in self._studies.items()
            for chart in study.charts
        }

    def _warning(self) -> str:
        return text.say("report.reproduction.warning", self.language) if self.replica else ""

    def _in_short(self) -> str:
        count = len(self._document.numbers)
        return text.say("report.short.reproduction", self.language, name=self.name, count=count)

    def _repr_html_(self) -> str:
        from kinprint.report.results.html import fragment

        told = [self._warning()] if self.replica else []
        return fragment(self._in_short(), told, self.tables["published"], self.language)
