"""What reading would cost: the result of `plan` and its kin."""

from __future__ import annotations

from collections.abc import Mapping

from kinprint import text
from kinprint.records import Cost
from kinprint.report.costs import cost_message
from kinprint.report.results.result import Result
from kinprint.report.schema import Plan as PlanOf
from kinprint.report.schema import PlanDocument, ReadingPlanDocument
from kinprint.studies.results import Table


class Plan(Result[PlanOf]):
    """What reading would cost, known before a weight is read.

    `kinprint.plan`, `plan_comparison`, `plan_study` and `plan_inspection` make it. Neither
    number is exceeded by the reading itself, but where nothing says beforehand how long headers
    are (`at_least`).

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> plan = kinprint.plan(kinprint.demo.FOLDER / "zoo" / "base-a", tensors="*norm*")
    >>> plan.tensors, plan.cost.bytes  # files on this machine are read in place
    (13, 0)
    """

    def __init__(
        self,
        document: PlanOf,
        language: str = "en",
        *,
        local: bool = False,
        files: int | None = None,
    ) -> None:
        super().__init__(document, language)
        self._local, self._files = local, files

    @property
    def models(self) -> tuple[str, ...]:
        """The models, as they were given."""
        if isinstance(self._document, ReadingPlanDocument):
            return tuple(self._document.models or (self._document.model,))
        return tuple(self._document.models)

    @property
    def cost(self) -> Cost:
        """Bytes and requests that it would take."""
        return Cost(self._document.bytes, self._document.requests)

    @property
    def spent(self) -> Cost:
        """What knowing this took."""
        return self._document.spent.cost

    @property
    def local(self) -> bool:
        """Whether all models lie on this machine, where they are read in place for nothing."""
        return self._local

    @property
    def at_least(self) -> bool:
        """Whether it may cost more, because nothing says beforehand how long headers are."""
        return isinstance(self._document, ReadingPlanDocument) and self._document.at_least

    @property
    def files(self) -> int | None:
        """How many weight files the model has, where one model was asked about."""
        return self._files

    @property
    def stages(self) -> tuple[Cost, ...]:
        """The stages of a comparison, which ends as soon as the answer is clear."""
        if isinstance(self._document, PlanDocument):
            return tuple(one.cost for one in self._document.stages)
        return (self.cost,)

    @property
    def bytes_at_most(self) -> int:
        """Most bytes that all of it may cost, headers included."""
        if isinstance(self._document, PlanDocument):
            return self._document.bytes_at_most
        return self._document.bytes + self._document.spent.bytes

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is not read because of the budget."""
        return tuple(self._document.left_out) if isinstance(self._document, PlanDocument) else ()

    @property
    def tensors(self) -> int | None:
        """How many tensors would be read, where tensors were asked for by name."""
        return self._document.tensors if isinstance(self._document, ReadingPlanDocument) else None

    @property
    def tables(self) -> Mapping[str, Table]:
        """ "stages": one row a stage."""
        rows = tuple((number, one.bytes, one.requests) for number, one in enumerate(self.stages, 1))
        title = text.words("report.plan.stages")
        return {"stages": Table("stages", title, ("stage", "bytes", "requests"), rows)}

    def _in_short(self) -> str:
        models = ", ".join(self.models)
        return text.say(
            "report.plan.in-short", self.language, models=models, cost=cost_message(self.cost)
        )

    def _repr_html_(self) -> str:
        from kinprint.report.results.html import fragment

        return fragment(self._in_short(), (), self.tables["stages"], self.language)
