"""Comparisons and matrices of schema 1, which told no parts apart: they are read, never written.

`today` makes a document of the present schema of them with what they know: the relation, its
p-value and the components that it rested on. What they do not know stays unsaid.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET, Struct, UnsetType

from kinprint import text
from kinprint.records import (
    Component,
    Part,
    PartFinding,
    PartState,
    Relation,
    Verdict,
    VerdictReason,
)
from kinprint.report.schema.common import (
    Alpha,
    Asked,
    EvidenceShort,
    Likeness,
    LogP,
    Made,
    ReadPart,
    Subject,
    Translations,
)
from kinprint.report.schema.comparison import (
    AmountPart,
    ComparisonDocument,
    ControlPart,
    CoveragePart,
    EvidencePart,
    KindPart,
    LinkPart,
    PlanPart,
    SeedMetric,
    SettingRow,
    SharedMap,
    SharedTokens,
    Statements,
    VerdictPart,
)
from kinprint.report.schema.matrix import FailedPair, MatrixDocument, Merge, PairPart, Unread
from kinprint.report.statements import Reading, Spoken, spoken

_MISSING = "missing:"


class FirstVerdict(Struct, frozen=True, kw_only=True):
    """A verdict of schema 1; its sentences are said anew."""

    relation: Relation
    log10_p: LogP | None
    alpha: Alpha
    roles: list[str] = []
    power: dict[str, float] = {}
    reasons: list[str] = []


class FirstComparison(
    Struct, frozen=True, kw_only=True, tag_field="schema", tag="kinprint.compare/1"
):
    """A comparison of schema 1."""

    a: str
    b: str
    models: list[Subject]
    verdict: FirstVerdict
    evidence: list[EvidencePart]
    controls: list[ControlPart] = []
    shared: SharedMap | None = None
    seeds: list[SeedMetric] = []
    configuration: list[SettingRow] = []
    tokens: SharedTokens | None = None
    asked: Asked
    plan: PlanPart
    notes: list[str] = []
    labels: list[str] = []
    translations: Translations | UnsetType = UNSET
    made: Made
    read: ReadPart

    def today(self) -> ComparisonDocument:
        """The same as a document of the present schema."""
        texts = _Texts(self.translations)
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        titles = [one.title or one.name or one.given for one in self.models]
        names = titles if len(titles) == 2 else [self.a, self.b]
        fields["verdict"] = _verdict(self.verdict, names, texts)
        fields["translations"] = texts.kept
        return ComparisonDocument(**fields)


class FirstPair(Struct, frozen=True, kw_only=True):
    """A pair of a matrix of schema 1."""

    a: str
    b: str
    relation: Relation
    log10_p: LogP | None
    roles: list[str] = []
    reasons: list[str] = []
    strongest: str | None = None
    likeness: Likeness = 0.0
    evidence: list[EvidenceShort] = []


class FirstUnread(Struct, frozen=True, kw_only=True):
    """A model of a matrix of schema 1 that could not be read."""

    given: str
    error: str
    error_ko: str


class FirstFailedPair(Struct, frozen=True, kw_only=True):
    """A pair of a matrix of schema 1 that could not be compared."""

    a: str
    b: str
    error: str
    error_ko: str


class FirstMatrix(Struct, frozen=True, kw_only=True, tag_field="schema", tag="kinprint.matrix/1"):
    """A matrix of schema 1."""

    models: list[Subject]
    pairs: list[FirstPair]
    order: list[int] = []
    tree: list[Merge] = []
    unread: list[FirstUnread] = []
    failed: list[FirstFailedPair] = []
    asked: Asked
    notes: list[str] = []
    labels: list[str] = []
    translations: Translations | UnsetType = UNSET
    made: Made
    read: ReadPart

    def today(self) -> MatrixDocument:
        """The same as a document of the present schema."""
        texts = _Texts(self.translations)
        names = {one.given: one.title or one.name or one.given for one in self.models}
        said = [(one.error, one.error_ko) for one in self.unread]
        said += [(one.error, one.error_ko) for one in self.failed]
        for english, korean in said:
            texts.keep(english, {"ko": korean})
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        fields["pairs"] = [_pair(one, names, self.asked.alpha, texts) for one in self.pairs]
        fields["unread"] = [Unread(given=one.given, error=one.error) for one in self.unread]
        fields["failed"] = [FailedPair(a=one.a, b=one.b, error=one.error) for one in self.failed]
        fields["translations"] = texts.kept
        return MatrixDocument(**fields)


class _Texts:
    """English texts of a document and what they are in other languages."""

    def __init__(self, carried: Translations | UnsetType) -> None:
        known = {} if carried is UNSET else carried
        self._kept = {language: dict(texts) for language, texts in known.items()}

    def keep(self, english: str, others: dict[str, str]) -> None:
        for language, said in others.items():
            if said != english:
                self._kept.setdefault(language, {})[english] = said

    def words(self, given: text.Words) -> str:
        english = str(given)
        self.keep(english, dict(given))
        return english

    @property
    def kept(self) -> Translations | UnsetType:
        return self._kept or UNSET


def _verdict(first: FirstVerdict, titles: Sequence[str], texts: _Texts) -> VerdictPart:
    said = _spoken(first.relation, first.log10_p, first.alpha, first.roles, first.reasons, titles)
    steps = [one for one in first.reasons if not one.startswith(_MISSING)]
    missing = [one.removeprefix(_MISSING) for one in first.reasons if one.startswith(_MISSING)]
    return VerdictPart(
        relation=first.relation,
        summary=texts.words(said.summary),
        statements=_statements(said, texts),
        link=LinkPart(log10_p=first.log10_p, alpha=first.alpha),
        kind=KindPart(relation=first.relation, reasons=steps),
        amount=AmountPart(),
        coverage=CoveragePart(power=first.power, missing=missing),
    )


def _pair(first: FirstPair, names: dict[str, str], alpha: float, texts: _Texts) -> PairPart:
    titles = [names.get(given, given) for given in (first.a, first.b)]
    said = _spoken(first.relation, first.log10_p, alpha, first.roles, first.reasons, titles)
    fields = {
        name: getattr(first, name) for name in ("a", "b", "relation", "log10_p", "reasons")
    } | {name: getattr(first, name) for name in ("strongest", "likeness", "evidence")}
    return PairPart(
        **fields,
        summary=texts.words(said.summary),
        statements=_statements(said, texts) if first.relation.linked else None,
        components=list(_components(first.roles)),
        amount=AmountPart(),
    )


def _spoken(
    relation: Relation,
    log10_p: float | None,
    alpha: float,
    roles: Sequence[str],
    reasons: Sequence[str],
    titles: Sequence[str],
) -> Spoken:
    """The statements that an earlier document supports."""
    parts = tuple(
        PartFinding(Part(component), Part(component), PartState.SHARED)
        for component in _components(roles)
    )
    known = tuple(VerdictReason(one) for one in reasons if one in set(VerdictReason))
    verdict = Verdict(relation, log10_p or 0.0, alpha, parts, reasons=known)
    return spoken(verdict, titles, Reading(earlier=True))


def _statements(said: Spoken, texts: _Texts) -> Statements:
    return Statements(
        **{name: texts.words(getattr(said, name)) for name in Statements.__struct_fields__}
    )


def _components(roles: Sequence[str]) -> Iterator[Component]:
    return (Component(role) for role in roles if role in set(Component))
