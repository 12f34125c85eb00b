"""Two models compared, and all pairs of some models: results of `compare` and `matrix`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from kinprint import text
from kinprint.errors import BadOption
from kinprint.records import Part, PartFinding, Reason, Relation
from kinprint.report import answer
from kinprint.report.results.result import DrawnResult, Failure
from kinprint.report.schema import (
    AmountPart,
    Asked,
    BeyondPart,
    ChangesPart,
    ComparisonDocument,
    ControlPart,
    CoveragePart,
    EvidencePart,
    FailedPair,
    KindPart,
    LinkPart,
    MatrixDocument,
    Merge,
    PairPart,
    PartRow,
    PlacePart,
    PlanPart,
    PrecedencePart,
    SeedMetric,
    SettingRow,
    SharedMap,
    SharedTokens,
    Subject,
    Unread,
    VerdictPart,
)
from kinprint.studies.results import Table

if TYPE_CHECKING:
    from kinprint.report.figures.drawing import Picture


Found = TypeVar("Found", ComparisonDocument, MatrixDocument)


class _Compared(DrawnResult[Found]):
    """What comparisons and matrices have in common."""

    @property
    def models(self) -> tuple[Subject, ...]:
        """The models: which state was read, and what they say about themselves."""
        return tuple(self._document.models)

    @property
    def asked(self) -> Asked:
        """The level, the error, the budget and the rest of what was asked for."""
        return self._document.asked

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on how a model was read."""
        return tuple(self._document.notes)

    @property
    def command(self) -> str:
        """The command line that asks for the same again."""
        return self._document.made.command

    @property
    def tables(self) -> Mapping[str, Table]:
        """Parts and tests of a comparison, or the pairs of a matrix."""
        from kinprint.report.views.csv import tables_of

        return {table.name: table for table in tables_of(self._document)}

    def _pictures(self) -> Mapping[str, Picture]:
        from kinprint.report.figures.comparison import charts_of

        return {chart.name: chart for chart in charts_of(self._document)}

    def _repr_html_(self) -> str:
        from kinprint.report.views.notebook import fragment

        return fragment(self._document, self.language)


class Comparison(_Compared[ComparisonDocument]):
    """How two models are related, and on what that rests: the result of `kinprint.compare`.

    The answer is five statements, each with a basis of its own: `link`, `parts`, `kind`, `amount`
    and `coverage`; `statements` has them in words.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> found = kinprint.compare(zoo / "base-a", zoo / "a-cpt")
    >>> found.relation
    <Relation.DERIVED: 'derived'>
    >>> found.link.log10_p < -6
    True
    >>> sorted({part.state.value for part in found.parts})
    ['shared']
    """

    @property
    def relation(self) -> Relation:
        """How the models are related, as far as the evidence goes."""
        return Relation(self._document.verdict.relation)

    @property
    def link(self) -> LinkPart:
        """Whether the models are independent: the p-value of the link, and the level asked for."""
        return self._document.verdict.link

    @property
    def answered(self) -> str:
        """The day on which an earlier run found the answer; empty where this one did."""
        return self._document.read.answered

    @property
    def parts(self) -> tuple[PartFinding, ...]:
        """What is known about each part of the two models."""
        return tuple(_finding(one) for one in self._document.verdict.parts)

    @property
    def kind(self) -> KindPart:
        """The kind of relation and the steps that led to it; it has no p-value."""
        return self._document.verdict.kind

    @property
    def amount(self) -> AmountPart:
        """How much is shared, and how alike that is."""
        return self._document.verdict.amount

    @property
    def coverage(self) -> CoveragePart:
        """What was read of what there is, and what a silent test would have seen."""
        return self._document.verdict.coverage

    @property
    def beyond(self) -> BeyondPart | None:
        """What the models share beyond a base; None where none was given."""
        return self._document.beyond

    @property
    def direction(self) -> PrecedencePart | None:
        """Traces of which model came first; None where none were looked for."""
        return self._document.direction

    @property
    def changes(self) -> ChangesPart | None:
        """What changed, from what was read anyway; None where nothing says that weights were taken
        over, and without `details`. `diff` says more."""
        return self._document.changes

    @property
    def log10_p(self) -> float:
        """log10 of the p-value of the link, all tests and stages paid for."""
        found = self._document.verdict.link.log10_p
        return -math.inf if found is None else found

    @property
    def alpha(self) -> float:
        """The chance of calling strangers related that was asked for."""
        return self._document.verdict.link.alpha

    @property
    def summary(self) -> str:
        """The headline, in the result's language."""
        return answer.summary(self._document, self._document.verdict, self.language)

    @property
    def statements(self) -> Mapping[str, str]:
        """The five statements by name, in the result's language."""
        verdict = self._document.verdict
        told = answer.statements(self._document, verdict, self.language)
        return {one.name: one.says for one in told}

    @property
    def verdict(self) -> VerdictPart:
        """The whole answer as the document has it."""
        return self._document.verdict

    @property
    def evidence(self) -> tuple[EvidencePart, ...]:
        """What each test found."""
        return tuple(self._document.evidence)

    @property
    def controls(self) -> tuple[ControlPart, ...]:
        """Both models against those that are known to be unrelated."""
        return tuple(self._document.controls)

    @property
    def shared(self) -> SharedMap | None:
        """Where weights are alike: which layer answers to which, and how alike each role is. None
        without `details`."""
        return self._document.shared

    @property
    def norms(self) -> tuple[SeedMetric, ...]:
        """Cosines and correlations of norm vectors, which decide nothing.

        Empty without `details`.
        """
        return tuple(self._document.seeds)

    @property
    def configuration(self) -> tuple[SettingRow, ...]:
        """Fields of both configurations side by side."""
        return tuple(self._document.configuration)

    @property
    def tokens(self) -> SharedTokens | None:
        """How many tokens both vocabularies have, where both were read."""
        return self._document.tokens

    @property
    def plan(self) -> PlanPart:
        """How much was planned, how far reading went, and what was left out."""
        return self._document.plan

    def _in_short(self) -> str:
        return f"{self.relation}: {self.summary}"


def _finding(row: PartRow) -> PartFinding:
    """A part of a document as a record."""
    return PartFinding(
        part=_part(row),
        partner=None if row.partner is None else _part(row.partner),
        state=row.state,
        share=row.share,
        likeness=row.likeness,
        log10_p=row.log10_p,
        learnt=row.learnt,
        bits=row.bits,
        reason=Reason.STATED.message(text=row.reason) if row.reason else None,
        tests=tuple(row.tests),
        weights=row.weights,
        read=row.read,
        needs=row.needs,
        of_second=row.of_second,
    )


def _part(place: PartRow | PlacePart) -> Part:
    return Part(place.component, place.layer, place.expert, place.tower)


class Matrix(_Compared[MatrixDocument]):
    """How all pairs of some models are related: the result of `kinprint.matrix`.

    Examples
    --------
    >>> import kinprint, kinprint.demo
    >>> zoo = kinprint.demo.FOLDER / "zoo"
    >>> names = [str(zoo / name) for name in ("base-a", "a-cpt", "base-b")]
    >>> found = kinprint.matrix(names)
    >>> [str(pair.relation) for pair in found.pairs]
    ['derived', 'no-evidence', 'no-evidence']
    """

    def __init__(
        self,
        document: MatrixDocument,
        language: str = "en",
        *,
        failures: tuple[Failure, ...] = (),
    ) -> None:
        super().__init__(document, language)
        self._failures = failures

    @property
    def pairs(self) -> tuple[PairPart, ...]:
        """All pairs of them, each with its relation."""
        return tuple(self._document.pairs)

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations of `pairs`, in the same order."""
        return tuple(Relation(pair.relation) for pair in self._document.pairs)

    @property
    def unread(self) -> tuple[Unread, ...]:
        """Models that were set aside because they could not be read, and why."""
        return tuple(self._document.unread)

    @property
    def failed(self) -> tuple[FailedPair, ...]:
        """Pairs that were set aside because comparing them failed, and why."""
        return tuple(self._document.failed)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """What was set aside, models and pairs, with the errors, which are not kept in files."""
        return self._failures

    @property
    def order(self) -> tuple[int, ...]:
        """Places of `models` such that those that are alike stand side by side."""
        return tuple(self._document.order)

    @property
    def tree(self) -> tuple[Merge, ...]:
        """Which models and branches join, the most alike first."""
        return tuple(self._document.tree)

    def pair(self, a: str | os.PathLike[str], b: str | os.PathLike[str]) -> PairPart:
        """One of the pairs, in either order.

        Parameters
        ----------
        a, b : str or path
            Two of the models, as they were given.

        Returns
        -------
        PairPart
            The relation of the two.

        Raises
        ------
        BadOption
            They are no pair of the matrix.

        Examples
        --------
        >>> import kinprint, kinprint.demo
        >>> zoo = kinprint.demo.FOLDER / "zoo"
        >>> found = kinprint.matrix([zoo / "base-a", zoo / "a-cpt"])
        >>> str(found.pair(zoo / "a-cpt", zoo / "base-a").relation)
        'derived'
        """
        wanted = {os.fspath(a), os.fspath(b)}
        for one in self._document.pairs:
            if {one.a, one.b} == wanted:
                return one
        known = ", ".join(model.given for model in self._document.models)
        cause = text.message("cause.option.choice", choices=known)
        raise BadOption(option="a", value=" / ".join(sorted(wanted)), cause=cause)

    def _in_short(self) -> str:
        from kinprint.report.matrix import count_related

        document = self._document
        return text.say(
            "report.short.matrix",
            self.language,
            number=len(document.models),
            related=count_related(document),
            pairs=len(document.pairs),
        )
