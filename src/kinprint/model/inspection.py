"""Everything that headers and configuration tell about a model, in one record."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from kinprint.model.geometry import Geometry, geometry_of
from kinprint.model.quantised import Scheme, scheme_for
from kinprint.model.understanding import Understanding, understand
from kinprint.reader.checkpoint import Checkpoint
from kinprint.reader.weights import GGUF
from kinprint.records import FileEntry, ModelRef, TensorSpec

_Key = tuple[str, str, tuple[int, ...], str]
_NUMBER = re.compile(r"(?<=[./])\d+(?=[./])")


@dataclass(frozen=True, slots=True)
class Inspection:
    """A model without its numbers: files, tensors, types and dimensions."""

    ref: ModelRef
    format: str
    geometry: Geometry
    shards: tuple[FileEntry, ...]
    tensors: tuple[TensorSpec, ...]
    others: tuple[str, ...]
    notes: tuple[str, ...]
    understanding: Understanding
    quantisation: Scheme | None = None
    labels: tuple[str, ...] = ()

    @property
    def parameters(self) -> int:
        """Numbers in all tensors together; packed ones count as they are stored."""
        return sum(spec.count for spec in self.tensors)

    @property
    def nbytes(self) -> int:
        """Length of the weight files."""
        return sum(entry.size for entry in self.shards)

    @property
    def dtypes(self) -> dict[str, int]:
        """Number formats with how many numbers each holds, most first."""
        counts: Counter[str] = Counter()
        for spec in self.tensors:
            counts[spec.dtype] += spec.count
        return dict(counts.most_common())


@dataclass(frozen=True, slots=True)
class TensorGroup:
    """Tensors that differ by a number in their name alone, such as the layer's."""

    pattern: str
    dtype: str
    shape: tuple[int, ...]
    role: str
    count: int


def inspect_checkpoint(checkpoint: Checkpoint) -> Inspection:
    """Read all headers and gather what they say."""
    headers = checkpoint.headers()
    tensors = tuple(checkpoint.tensors().values())
    metadata = headers[checkpoint.shards[0]].metadata if checkpoint.format == GGUF else None
    return Inspection(
        ref=checkpoint.ref,
        format=checkpoint.format,
        geometry=geometry_of(checkpoint.config, metadata),
        shards=tuple(checkpoint.files[shard] for shard in checkpoint.shards),
        tensors=tensors,
        others=tuple(item.label for item in checkpoint.choice.others),
        notes=tuple(checkpoint.notes),
        understanding=understand(tensors, checkpoint.config, checkpoint.format, metadata),
        quantisation=scheme_for(checkpoint.config, [spec.name for spec in tensors]),
        labels=tuple(checkpoint.labels),
    )


def group_tensors(understanding: Understanding) -> list[TensorGroup]:
    """Fold names that repeat for every layer and expert into one line each."""
    groups: dict[_Key, int] = {}
    for one in understanding.tensors:
        role = one.role.role if one.role.tower is None else f"{one.role.tower}: {one.role.detail}"
        if one.splits is not None:
            role += " (fused)"
        key = (_NUMBER.sub("*", one.spec.name), one.spec.dtype, one.spec.shape, role)
        groups[key] = groups.get(key, 0) + 1
    return [TensorGroup(*key, groups[key]) for key in sorted(groups, key=_place_in_model)]


def _place_in_model(key: _Key) -> tuple[int, str]:
    """Embeddings, then layers, then what comes after them, by name: as a reader thinks."""
    name = key[0]
    if "*" in name:
        return 1, name
    return (0 if "embed" in name or "wte" in name else 2), name
