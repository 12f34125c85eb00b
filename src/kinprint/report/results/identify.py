"""What a model is built on: the result of `identify`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kinprint.records import Cost
from kinprint.report import identifying
from kinprint.report.results.result import FiledResult
from kinprint.report.schema import DeclaredPart, IdentifyDocument, RelativePart, UnlinkedPart
from kinprint.studies.results import Table


class Identification(FiledResult[IdentifyDocument]):
    """Which models of an atlas a model is built on.

    `kinprint.identify` makes it. Its files are .json, .html and .csv (a row a linked model).

    Examples
    --------
    >>> import kinprint, kinprint.demo, tempfile
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atlas = kinprint.Atlas(folder)
    ...     added = atlas.build([zoo / "base-a", zoo / "base-b"])
    ...     found = kinprint.identify(zoo / "a-cpt", atlas=folder)
    >>> found.searched, [one.title for one in found.parents]
    (2, ['base-a'])
    """

    ENDINGS = (".json", ".html", ".csv")
    _REFUSAL = "cause.identify.ending"

    @property
    def parents(self) -> tuple[RelativePart, ...]:
        """Linked models that together explain the model, the first one first."""
        return tuple(self._document.parents)

    @property
    def descendants(self) -> tuple[RelativePart, ...]:
        """Linked models of which traces say that they came later."""
        return tuple(self._document.descendants)

    @property
    def relatives(self) -> tuple[RelativePart, ...]:
        """All other linked models, the nearest first."""
        return tuple(self._document.relatives)

    @property
    def unlinked(self) -> tuple[UnlinkedPart, ...]:
        """Models that were compared without finding a link, with what would have been seen."""
        return tuple(self._document.unlinked)

    @property
    def declared(self) -> tuple[DeclaredPart, ...]:
        """Origins that the model declares, and what became of them in the atlas."""
        return tuple(self._document.declared)

    @property
    def searched(self) -> int:
        """How many models were candidates."""
        return self._document.searched

    @property
    def compared(self) -> int:
        """How many of them were compared."""
        return self._document.compared

    @property
    def undecided(self) -> int:
        """How many could not be tested: they are neither linked nor cleared."""
        return identifying.undecided(self._document)

    @property
    def summary(self) -> str:
        """The headline."""
        return identifying.summary(self._document, self.language)

    @property
    def cost(self) -> Cost:
        """What was read, and how long all of it took."""
        return self._document.read.cost

    @property
    def tables(self) -> Mapping[str, Table]:
        """All linked models."""
        table = identifying.table_of(self._document)
        return {table.name: table}

    def _content(self, file: Path) -> bytes:
        match file.suffix.lower():
            case ".html":
                from kinprint.report.views.html.identify import identify_page

                return identify_page(self._document, self.language).encode("utf-8")
            case ".csv":
                from kinprint.report.views.csv import sheet

                return sheet(identifying.table_of(self._document))
        return self.to_json()

    def _in_short(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        from kinprint.report.results.html import fragment

        document, language = self._document, self.language
        said = identifying.sentences(document, language)
        return fragment(self.summary, said, identifying.table_of(document), language)
