"""Which merge made a child: the result of `unmerge`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kinprint import text
from kinprint.errors import BadOption
from kinprint.records import Cost, MergeDoubt, MergeMethod, MergeOutcome
from kinprint.report import merging
from kinprint.report.results.result import FiledResult
from kinprint.report.schema import (
    DiffModel,
    MergedTensor,
    MergeGroup,
    MergeWeight,
    RecipePart,
    UnmergeDocument,
)
from kinprint.studies.results import Table


class Unmerged(FiledResult[UnmergeDocument]):
    """Which merge made a child, with the recipe and how much of the child it gives.

    `kinprint.unmerge` makes it. Its files are .json, .html, .csv (a row a tensor) and .yaml (the
    recipe for mergekit, if there is one).

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.unmerge(zoo / "base-a", [zoo / "a-cpt", zoo / "base-b"])
    >>> found.outcome is kinprint.MergeOutcome.UNDECIDED
    True
    """

    ENDINGS = (".json", ".html", ".csv", ".yaml", ".yml")
    _REFUSAL = "cause.unmerge.ending"

    @property
    def outcome(self) -> MergeOutcome:
        """Whether a recipe was found, the child is a copy, another merge, or neither is known."""
        return self._document.outcome

    @property
    def doubt(self) -> MergeDoubt | None:
        """Why no recipe is given."""
        return self._document.doubt

    @property
    def methods(self) -> tuple[MergeMethod, ...]:
        """Methods that fit and cannot be told apart by the numbers, the recipe's first."""
        return self._document.methods

    @property
    def recipe(self) -> RecipePart | None:
        """The recipe, and the same as a file for mergekit in `yaml`."""
        return self._document.recipe

    @property
    def sources(self) -> tuple[DiffModel, ...]:
        """The parents, and last the base if it is none of them; weights number them from 0."""
        return tuple(self._document.sources)

    @property
    def share(self) -> float | None:
        """Numbers of the child that the recipe gives bit by bit; None without a recipe."""
        if self._document.recipe is None:
            return None
        return self._document.equal / max(self._document.compared, 1)

    @property
    def weights(self) -> tuple[MergeWeight, ...]:
        """Of the mixture nearest to all tensors that every source has, with intervals."""
        return self._document.weights

    @property
    def tensors(self) -> tuple[MergedTensor, ...]:
        """Every stored tensor of the child."""
        return tuple(self._document.tensors)

    @property
    def roles(self) -> tuple[MergeGroup, ...]:
        """The nearest mixture by role."""
        return tuple(self._document.roles)

    @property
    def layers(self) -> tuple[MergeGroup, ...]:
        """The nearest mixture by layer."""
        return tuple(self._document.layers)

    @property
    def summary(self) -> str:
        """The headline."""
        return merging.summary(self._document, self.language)

    @property
    def cost(self) -> Cost:
        """What was read, and how long all of it took."""
        return self._document.read.cost

    @property
    def tables(self) -> Mapping[str, Table]:
        """Tensors, roles and layers."""
        return {table.name: table for table in merging.tables_of(self._document)}

    def _content(self, file: Path) -> bytes:
        from kinprint.report.views.csv import sheet
        from kinprint.report.views.html.unmerge import unmerge_page

        match file.suffix.lower():
            case ".json":
                return self.to_json()
            case ".html":
                return unmerge_page(self._document, self.language).encode("utf-8")
            case ".csv":
                return sheet(merging.tables_of(self._document)[0])
        if self._document.recipe is None:
            cause = text.message("cause.unmerge.no-recipe")
            raise BadOption(option="paths", value=str(file), cause=cause)
        return self._document.recipe.yaml.encode("utf-8")

    def _in_short(self) -> str:
        return self.summary

    def _repr_html_(self) -> str:
        from kinprint.report.results.html import fragment

        document, language = self._document, self.language
        columns = tuple(
            text.say(f"unmerge.column.{name}", language) for name in ("model", "weight", "interval")
        )
        rows = tuple(
            (name, one.value, merging.weight_words(one)[1])
            for name, one in merging.weight_rows(document)
        )
        table = Table("weights", text.words("unmerge.table.weights"), columns, rows)
        return fragment(self.summary, merging.sentences(document, language), table, language)
