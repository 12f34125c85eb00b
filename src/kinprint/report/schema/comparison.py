"""Two models compared."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from kinprint.records import Component, PartState, Relation, Status, Tier
from kinprint.report.schema.beyond import BeyondPart
from kinprint.report.schema.common import (
    Alpha,
    Asked,
    Count,
    EvidenceShort,
    Layer,
    Likeness,
    LogP,
    Made,
    ReadPart,
    SampleRead,
    Share,
    Subject,
    Translations,
)
from kinprint.report.schema.diff import ChangesPart
from kinprint.report.schema.direction import PrecedencePart

COMPARE_SCHEMA = "kinprint.compare/2"


class PlacePart(Struct, frozen=True, kw_only=True):
    """Where a part of a model lies: its tower, component, layer and expert."""

    component: Component
    layer: Count | None = None
    expert: Count | None = None
    tower: str = ""


class PartRow(Struct, frozen=True, kw_only=True):
    """What is known about one part of two models, and from what."""

    tower: str = ""
    component: Component
    layer: Count | None = None
    expert: Count | None = None
    partner: PlacePart | None = None
    state: PartState
    share: Share = 1.0
    likeness: Likeness | None = None
    log10_p: LogP | None = None
    learnt: bool | None = None
    bits: Count | None = None
    reason: str = ""
    tests: list[str] = []
    weights: Count = 0
    read: Share = 0.0
    needs: Count | None = None
    of_second: bool = False


class LinkPart(Struct, frozen=True, kw_only=True):
    """Whether the models are independent: the p-value of the link, and the level asked for."""

    log10_p: LogP | None
    alpha: Alpha


class KindPart(Struct, frozen=True, kw_only=True):
    """The kind of relation and the steps that led to it; it has no p-value of its own."""

    relation: Relation
    reasons: list[str] = []


class AmountPart(Struct, frozen=True, kw_only=True):
    """How much is shared, and how alike that is."""

    linked: Share | None = None
    layers: Share | None = None
    likeness: Likeness | None = None
    read: Share | None = None


class OpenParts(Struct, frozen=True, kw_only=True):
    """Parts about which nothing can be said, for one reason."""

    state: PartState
    component: Component
    layers: list[Count] = []
    tower: str = ""
    reason: str = ""
    weights: Count = 0
    needs: Count | None = None


class CoveragePart(Struct, frozen=True, kw_only=True):
    """What was read of what there is, and what a silent test would have seen."""

    read: Share | None = None
    power: dict[str, float] = {}
    open: list[OpenParts] = []
    missing: list[str] = []
    needs: Count | None = None


class Statements(Struct, frozen=True, kw_only=True):
    """The answer in five statements, each with a basis of its own."""

    link: str
    what: str
    kind: str
    amount: str
    coverage: str


class VerdictPart(Struct, frozen=True, kw_only=True):
    """The relation and the five statements behind it, in numbers and in words."""

    relation: Relation
    summary: str
    statements: Statements
    link: LinkPart
    parts: list[PartRow] = []
    kind: KindPart
    amount: AmountPart
    coverage: CoveragePart


class EvidencePart(Struct, frozen=True, kw_only=True):
    """What one test found; `null` is a sample of its statistic under the null.

    `share` is the part of the error that the menu gave it in advance, `adjusted` its log10 p
    after paying for that and for the stage of reading: it decides whether a link was found.
    """

    test: str
    tier: Tier
    group: str
    status: Status
    log10_p: LogP | None
    adjusted: LogP | None = None
    share: float | None = None
    statistic: float | None = None
    effect: float | None = None
    n: Count = 0
    bound: str = ""
    floor: LogP | None = None
    null: list[float | None] = []
    roles: list[str] = []
    layers: list[Layer] = []
    reason: str = ""
    learnt: bool = False
    details: dict[str, float | None] = {}


class ControlPart(Struct, frozen=True, kw_only=True):
    """One of the two models against one that is known to be unrelated."""

    model: str
    control: str
    evidence: list[EvidenceShort] = []


class LayerPair(Struct, frozen=True, kw_only=True):
    """Layers that correspond; `quality` is how well their units match, None if by number."""

    a: Layer
    b: Layer
    quality: float | None = None


class MapCell(Struct, frozen=True, kw_only=True):
    """How alike one role is in two layers that correspond, after alignment.

    `likeness` is a mean correlation; `chance` the standard deviation that independent labels
    would give it. Layer -1 is outside the layers. `count` numbers rows or channels compared.
    """

    role: str
    a: Layer
    b: Layer
    likeness: Likeness
    chance: float | None = None
    count: Count = 0


class SharedMap(Struct, frozen=True, kw_only=True):
    """Where shared weights are: which layer answers to which, and how alike each role is there."""

    depths: tuple[Count, Count]
    layers: list[LayerPair] = []
    cells: list[MapCell] = []
    alignment: str = ""


class SeedMetric(Struct, frozen=True, kw_only=True):
    """A norm vector of both models, as the disputes of January 2026 measured it."""

    role: str
    a: Layer
    b: Layer
    cosine: float | None
    pearson: float | None
    relative_l2: float | None = None
    n: Count = 0


class SettingRow(Struct, frozen=True, kw_only=True):
    """A field of both configurations; None where a model does not say."""

    name: str
    a: str | None = None
    b: str | None = None


class SharedTokens(Struct, frozen=True, kw_only=True):
    """How many tokens both vocabularies have, where both were read."""

    a: Count
    b: Count
    common: Count
    same_ids: Count


class PlanPart(Struct, frozen=True, kw_only=True):
    """How much was planned and how far reading went."""

    stages_read: Count = 0
    stages: Count = 0
    bytes_at_most: Count = 0
    left_out: list[str] = []


class ComparisonDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=COMPARE_SCHEMA):
    """Two models compared."""

    a: str
    b: str
    models: list[Subject]
    verdict: VerdictPart
    evidence: list[EvidencePart]
    controls: list[ControlPart] = []
    shared: SharedMap | None = None
    seeds: list[SeedMetric] = []
    configuration: list[SettingRow] = []
    tokens: SharedTokens | None = None
    beyond: BeyondPart | None = None
    direction: PrecedencePart | None = None
    changes: ChangesPart | None = None
    asked: Asked
    plan: PlanPart
    samples: list[list[SampleRead]] = []
    notes: list[str] = []
    labels: list[str] = []
    translations: Translations | UnsetType = UNSET
    made: Made
    read: ReadPart
