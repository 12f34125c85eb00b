"""The families of an atlas: the result of `Atlas.tree`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kinprint.records import Cost
from kinprint.report import trees
from kinprint.report.results.result import FiledResult
from kinprint.report.schema import TreeDocument, TreeEdge, TreeLink, TreeModel
from kinprint.studies.results import Table


class FamilyTree(FiledResult[TreeDocument]):
    """Which models of an atlas belong together, and who was plausibly made from whom.

    `kinprint.Atlas.tree` makes it. Its files are .json, .html, .svg, .graphml and .csv (a row an
    edge).

    Examples
    --------
    >>> import kinprint, kinprint.demo, tempfile
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     atlas = kinprint.Atlas(folder)
    ...     added = atlas.build([zoo / "base-a", zoo / "a-cpt"])
    ...     found = atlas.tree()
    >>> [[one.title for one in family] for family in found.families]
    [['a-cpt', 'base-a']]
    >>> [one.basis for one in found.edges]  # two models alone do not tell who came first
    [None]
    """

    ENDINGS = (".json", ".html", ".svg", ".graphml", ".csv")
    _REFUSAL = "cause.tree.ending"

    @property
    def models(self) -> tuple[TreeModel, ...]:
        """All models that took part; edges name them by their places."""
        return tuple(self._document.models)

    @property
    def families(self) -> tuple[tuple[TreeModel, ...], ...]:
        """Models that are linked, directly or through others; the largest family first."""
        models = self._document.models
        return tuple(tuple(models[at] for at in one) for one in self._document.families)

    @property
    def edges(self) -> tuple[TreeEdge, ...]:
        """Who takes whom for its parent."""
        return tuple(self._document.edges)

    @property
    def links(self) -> tuple[TreeLink, ...]:
        """Linked pairs without an edge."""
        return tuple(self._document.links)

    @property
    def pairs(self) -> int:
        """How many pairs there are; all of them are paid for."""
        return self._document.pairs

    @property
    def compared(self) -> int:
        """How many of them were compared."""
        return self._document.compared

    @property
    def summary(self) -> str:
        """The headline."""
        return trees.summary(self._document, self.language)

    @property
    def cost(self) -> Cost:
        """What was read, and how long all of it took."""
        return self._document.read.cost

    @property
    def tables(self) -> Mapping[str, Table]:
        """All edges and links."""
        table = trees.table_of(self._document)
        return {table.name: table}

    def _content(self, file: Path) -> bytes:
        match file.suffix.lower():
            case ".html":
                from kinprint.report.views.html.tree import tree_page

                return tree_page(self._document, self.language).encode("utf-8")
            case ".svg":
                from kinprint.report.views.html.tree import tree_svg

                return tree_svg(self._document, self.language).encode("utf-8")
            case ".graphml":
                from kinprint.report.views.graphml import graphml

                return graphml(self._document)
            case ".csv":
                from kinprint.report.views.csv import sheet

                return sheet(trees.table_of(self._document))
        return self.to_json()

    def _in_short(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        from kinprint.report.results.html import fragment

        document, language = self._document, self.language
        said = trees.sentences(document, language)
        return fragment(self.summary, said, trees.table_of(document), language)
