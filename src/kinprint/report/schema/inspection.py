"""What a model holds, from its headers alone."""

from __future__ import annotations

from msgspec import UNSET, Struct, UnsetType

from kinprint.report.schema.common import Count, ReadPart, Translations

INSPECT_SCHEMA = "kinprint.inspect/1"


class GeometryPart(Struct, frozen=True, kw_only=True):
    """Sizes of a model as its configuration gives them; null where it does not say."""

    family: str | None
    architecture: str | None
    layers: Count | None
    hidden: Count | None
    heads: Count | None
    kv_heads: Count | None
    head_dim: Count | None
    feed_forward: Count | None
    experts: Count | None
    experts_active: Count | None
    vocabulary: Count | None
    tied: bool | None


class FilePart(Struct, frozen=True, kw_only=True):
    """A weight file."""

    path: str
    size: Count
    sha256: str | None


class QuantisationPart(Struct, frozen=True, kw_only=True):
    """How the weights say they are quantised."""

    method: str
    bits: int | None
    group: int | None
    formats: dict[str, Count]
    refusal: str | None


class AdapterPart(Struct, frozen=True, kw_only=True):
    """What an adapter adds to which base; one that cannot be merged has its `refusal` alone."""

    method: str | UnsetType = UNSET
    words: str | UnsetType = UNSET
    base: str | UnsetType | None = UNSET
    revision: str | UnsetType | None = UNSET
    ranks: tuple[Count, ...] | UnsetType = UNSET
    updates: tuple[str, ...] | UnsetType = UNSET
    refusal: str | None


class SplitsPart(Struct, frozen=True, kw_only=True):
    """What a fused tensor holds, along which axis, in the order of its rows."""

    dim: Count
    pattern: str


class TensorPart(Struct, frozen=True, kw_only=True, gc=False):
    """One stored tensor: where it lies, how it is written, and what it is."""

    name: str
    shape: tuple[Count, ...]
    dtype: str
    file: str
    offset: Count
    nbytes: Count
    role: str
    detail: str | None
    tower: str | None
    layer: Count | None
    expert: Count | str | None
    axes: tuple[str, ...]
    splits: SplitsPart | None


class TensorGroupPart(Struct, frozen=True, kw_only=True):
    """Tensors that differ by a number in their name alone, such as the layer's."""

    pattern: str
    role: str
    shape: tuple[Count, ...]
    dtype: str
    count: Count


class InspectionDocument(Struct, frozen=True, kw_only=True, tag_field="schema", tag=INSPECT_SCHEMA):
    """A model without its numbers: files, tensors, number formats and dimensions."""

    model: str
    name: str
    kind: str
    commit: str | None
    format: str
    geometry: GeometryPart
    parameters: Count
    codes: Count = 0
    bytes: Count
    dtypes: dict[str, Count]
    files: tuple[FilePart, ...]
    family: str
    quantisation: QuantisationPart | None
    adapter: AdapterPart | None
    fused: dict[str, Count]
    tokenizer: str | None
    tokenizer_bytes: Count | None = None
    layers: Count = 0
    tied: bool | None = None
    unknown: tuple[str, ...]
    tensors: tuple[TensorPart, ...]
    groups: tuple[TensorGroupPart, ...] = ()
    warnings: tuple[str, ...]
    labels: tuple[str, ...]
    others: tuple[str, ...]
    notes: tuple[str, ...]
    translations: Translations | UnsetType = UNSET
    read: ReadPart
