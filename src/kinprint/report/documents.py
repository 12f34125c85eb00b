"""Comparisons as documents: the one form from which pages, tables and pictures are drawn.

These records are the JSON, field by field; `schema/` holds the same as JSON Schema, made from
them. Texts that depend on a language stand in the catalogues, except the verdict's sentences,
which travel with it. Numbers that are none (an infinite bound, an empty mean) are null. All but
`read` is the same from run to run.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

COMPARE_SCHEMA, MATRIX_SCHEMA = "kinprint.compare/1", "kinprint.matrix/1"
PLAN_SCHEMA = "kinprint.compare-plan/1"

Relation = Literal[
    "identical", "derived", "partial", "same-init", "dependent", "no-evidence", "untestable"
]


Level = Literal["quick", "standard", "deep"]
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
"""A number of things; limits are held against files, not against what is made here."""
Layer = Annotated[int, Meta(ge=-1, le=2**31 - 1)]
"""The number of a layer, -1 outside the layers."""
LogP = Annotated[float, Meta(le=0, ge=-1e12)]
Alpha = Annotated[float, Meta(gt=0, lt=1)]
Likeness = Annotated[float, Meta(ge=-2, le=2)]
"""log10 of a p-value."""


class FileDigest(Struct, frozen=True, kw_only=True):
    """A weight file and what pins its content."""

    path: str
    bytes: Count
    sha256: str | None = None


class Claim(Struct, frozen=True, kw_only=True):
    """What somebody declared about a model's origin: a claim, never evidence.

    `where` is the file and field that says so, `relation` its word for it ("finetune",
    "quantized", "adapter", "merge"; empty where it has none), `model` what it names.
    """

    where: str
    model: str
    relation: str = ""


class Tokenizer(Struct, frozen=True, kw_only=True):
    """A tokenizer as its files tell it; `tokens` is None where it was not read."""

    file: str
    kind: str = ""
    tokens: Count | None = None
    bytes: Count | None = None
    sha256: str | None = None


class Subject(Struct, frozen=True, kw_only=True):
    """One of the models: which state of it was read, and what it says about itself.

    `published` and `changed` are dates as the host tells them. `digests` lists weight files,
    the first few of many; `files` counts all of them, `bytes` is their size together.
    """

    given: str
    name: str
    title: str
    kind: str
    commit: str | None = None
    published: str | None = None
    changed: str | None = None
    architecture: str | None = None
    formats: list[str] = []
    files: Count = 0
    bytes: Count = 0
    digests: list[FileDigest] = []
    tokenizer: Tokenizer | None = None
    claims: list[Claim] = []


class VerdictPart(Struct, frozen=True, kw_only=True):
    """The relation, how sure, and why; sentences in both languages."""

    relation: Relation
    log10_p: LogP | None
    alpha: Alpha
    summary: str
    summary_ko: str
    sureness: str
    sureness_ko: str
    roles: list[str] = []
    power: dict[str, float] = {}
    reasons: list[str] = []


class EvidencePart(Struct, frozen=True, kw_only=True):
    """What one test found; `null` is a sample of its statistic under the null.

    `share` is the part of the error that the menu gave it in advance, `adjusted` its log10 p
    after paying for that and for the stage of reading: it decides whether a link was found.
    """

    test: str
    tier: Literal["exact", "calibrated", "rule", "extension"]
    group: str
    status: str
    log10_p: LogP | None
    adjusted: LogP | None = None
    share: float | None = None
    statistic: float | None = None
    deviations: float | None = None
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


class EvidenceShort(Struct, frozen=True, kw_only=True):
    """A test's result in a list of many pairs."""

    test: str
    status: str
    log10_p: LogP | None
    effect: float | None = None


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


class Asked(Struct, frozen=True, kw_only=True):
    """What the user asked for."""

    level: Level
    alpha: Alpha
    budget: Count | None = None
    seed: Count = 0
    base: str | None = None
    controls: list[str] = []


class PlanPart(Struct, frozen=True, kw_only=True):
    """How much was planned and how far reading went."""

    stages_read: Count = 0
    stages: Count = 0
    bytes_at_most: Count = 0
    left_out: list[str] = []


class Made(Struct, frozen=True, kw_only=True):
    """With what a document was made, so that another can make it again."""

    kinprint: str
    python: str
    numpy: str
    scipy: str
    command: str


class ReadPart(Struct, frozen=True, kw_only=True):
    """What reading took: the one part that differs from run to run."""

    bytes: Count
    requests: Count
    seconds: float


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
    asked: Asked
    plan: PlanPart
    notes: list[str] = []
    labels: list[str] = []
    made: Made
    read: ReadPart


class PairPart(Struct, frozen=True, kw_only=True):
    """One pair of many; `likeness` is its largest correlation of weights, 0 where none."""

    a: str
    b: str
    relation: Relation
    log10_p: LogP | None
    summary: str
    summary_ko: str
    roles: list[str] = []
    reasons: list[str] = []
    strongest: str | None = None
    likeness: Likeness = 0.0
    evidence: list[EvidenceShort] = []


class Merge(Struct, frozen=True, kw_only=True):
    """Two branches of the tree that meet: leaves are places of models, then earlier merges."""

    one: Count
    other: Count
    height: float


class Unread(Struct, frozen=True, kw_only=True):
    """A model that could not be read, and why."""

    given: str
    error: str
    error_ko: str


class FailedPair(Struct, frozen=True, kw_only=True):
    """A pair that could not be compared, and why."""

    a: str
    b: str
    error: str
    error_ko: str


class MatrixDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=MATRIX_SCHEMA):
    """All pairs of some models; `tree` joins those that are most alike first."""

    models: list[Subject]
    pairs: list[PairPart]
    order: list[Count] = []
    tree: list[Merge] = []
    unread: list[Unread] = []
    failed: list[FailedPair] = []
    asked: Asked
    notes: list[str] = []
    labels: list[str] = []
    made: Made
    read: ReadPart


class StageCost(Struct, frozen=True, kw_only=True):
    """What one stage of reading would cost."""

    bytes: Count
    requests: Count


class PlanDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=PLAN_SCHEMA):
    """What a comparison would cost; `spent` is what knowing it took."""

    models: list[str]
    bytes: Count
    requests: Count
    stages: list[StageCost]
    bytes_at_most: Count
    left_out: list[str] = []
    asked: Asked
    spent: StageCost


Document = ComparisonDocument | MatrixDocument | PlanDocument
