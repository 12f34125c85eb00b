"""What changed from one model to another, tensor by tensor."""

from __future__ import annotations

from typing import Self

from msgspec import UNSET, Struct, UnsetType

from kinprint.records import Component, ModelRef, Operation, Relation, Side, TensorStatus
from kinprint.report.schema.beyond import BeyondPart
from kinprint.report.schema.common import Count, Layer, Made, ReadPart, Share, Translations
from kinprint.report.schema.direction import PrecedencePart

DIFF_SCHEMA = "kinprint.diff/1"


class DiffModel(Struct, frozen=True, kw_only=True):
    """One of the two models, and which state of it was read."""

    given: str
    name: str
    title: str
    kind: str
    commit: str | None = None

    @classmethod
    def of(cls, ref: ModelRef, title: str) -> Self:
        """What a document says of the state of a model."""
        return cls(
            given=ref.given, name=ref.name, title=title, kind=ref.kind, commit=ref.commit or None
        )


class EstimatePart(Struct, frozen=True, kw_only=True):
    """A number, with bounds for the whole tensor where some of it was read."""

    value: float | None
    low: float | None = None
    high: float | None = None


class RoundingPart(Struct, frozen=True, kw_only=True):
    """That one tensor holds the numbers of the other, rounded."""

    bits: Count
    coarser: Side
    exact: bool


class DirectionsPart(Struct, frozen=True, kw_only=True):
    """How a change is spread over directions."""

    effective: float
    rank: Count | None
    low: Count
    high: Count
    whiteness: Share


class TensorChangePart(Struct, frozen=True, kw_only=True):
    """What became of one tensor."""

    role: str
    tower: str = ""
    layer: Layer | None = None
    expert: Count | None = None
    from_layer: Layer | None = None
    from_expert: Count | None = None
    component: Component | None = None
    a: str | None = None
    b: str | None = None
    a_format: str | None = None
    b_format: str | None = None
    shape: tuple[Count, ...] = ()
    status: TensorStatus
    reason: str = ""
    numbers: Count = 0
    read: Count = 0
    changed: EstimatePart | None = None
    relative: EstimatePart | None = None
    largest: float | None = None
    scale: float | None = None
    cosine: float | None = None
    broken: Count = 0
    zeroed: Share = 0.0
    zeros: Share = 0.0
    rounding: RoundingPart | None = None
    directions: DirectionsPart | None = None
    rounding_errors: float | None = None


class ChangedTensor(Struct, frozen=True, kw_only=True):
    """What became of one tensor, as far as the rows that a comparison read tell."""

    role: str
    tower: str = ""
    layer: Layer | None = None
    expert: Count | None = None
    from_layer: Layer | None = None
    numbers: Count
    read: Count
    changed: EstimatePart
    relative: EstimatePart


class OperationPart(Struct, frozen=True, kw_only=True):
    """Something that was done to the first model, and what shows it."""

    kind: Operation
    evidence: str
    components: tuple[Component, ...] = ()
    format: str | None = None
    bits: Count | None = None
    rank: Count | None = None
    recipe: str = ""
    yaml: str = ""
    hub: str | None = None


class ChangesPart(Struct, frozen=True, kw_only=True):
    """What changed from the first model to the second, from what a comparison read anyway."""

    operations: list[OperationPart] = []
    tensors: list[ChangedTensor] = []


class LayerSource(Struct, frozen=True, kw_only=True):
    """A layer of the second model, and the layer of the first that it is from."""

    tower: str = ""
    layer: Layer
    source: Layer


class ExpertSource(Struct, frozen=True, kw_only=True):
    """An expert of the second model, and what it is from: null is a dense feed-forward."""

    layer: Layer
    expert: Count
    source: Count | None


class AxisPart(Struct, frozen=True, kw_only=True):
    """What became of channels, units, heads or tokens: how many there are, are kept, and moved."""

    what: str
    layer: Layer | None = None
    expert: Count | None = None
    before: Count
    after: Count
    kept: Count
    moved: Count
    flipped: Count = 0


class TurnPart(Struct, frozen=True, kw_only=True):
    """What agrees after the residual stream of one model was turned into that of the other."""

    units: Count
    alike: Share
    cosine: float


class MapPart(Struct, frozen=True, kw_only=True):
    """How parts of the two models correspond, where that is not by equal number."""

    layers: list[LayerSource] = []
    experts: list[ExpertSource] = []
    axes: list[AxisPart] = []
    turned: TurnPart | None = None


class DiffTotals(Struct, frozen=True, kw_only=True):
    """Tensors and numbers of both models, by what became of them.

    `compared_numbers` are those of the tensors that were compared, `read` how many of them were
    read. `changed` is the share of them that differ; `relative` is the root mean square of the
    relative changes of tensors. Tensors count by their numbers in both.
    """

    tensors: Count
    compared: Count
    equal: Count
    only_a: Count
    only_b: Count
    other: Count
    numbers: Count
    compared_numbers: Count
    read: Count
    changed: Share
    relative: float | None = None


class DiffDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=DIFF_SCHEMA):
    """Two models, and what changed from the first to the second."""

    a: str
    b: str
    models: list[DiffModel]
    relation: Relation
    operations: list[OperationPart]
    totals: DiffTotals
    map: MapPart
    tensors: list[TensorChangePart]
    beyond: BeyondPart | None = None
    direction: PrecedencePart | None = None
    sampled: bool = False
    notes: list[str] = []
    labels: list[str] = []
    translations: Translations | UnsetType = UNSET
    made: Made
    read: ReadPart
