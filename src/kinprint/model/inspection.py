"""Everything that headers and configuration tell about a model, in one record."""

from __future__ import annotations

import re
from collections import Counter
from math import prod

from msgspec import Struct

from kinprint.errors import BadAdapter
from kinprint.model.adapters import Adapter, parse_adapter
from kinprint.model.geometry import Geometry
from kinprint.model.model import Model
from kinprint.model.opening import adapter_config
from kinprint.model.places import Weight, word_of
from kinprint.model.quantised import Scheme, scheme_for
from kinprint.model.tensor_map import MappedTensor, TensorMap
from kinprint.model.tokens import VocabularyChoice, choose_vocabulary, has_vocabulary
from kinprint.reader.checkpoint import Checkpoint
from kinprint.records import FileEntry, ModelRef, Role, TensorSpec
from kinprint.text import Message, message

_Role = tuple[str, bool, str, bool]
_Key = tuple[str, str, tuple[int, ...], _Role]
_NUMBER = re.compile(r"(?<=[./])\d+(?=[./])")


class Inspection(Struct, frozen=True):
    """A model without its numbers: files, tensors, types and dimensions."""

    model: Model
    adapter: Adapter | None = None
    refusal: Message | None = None  # why an adapter cannot be merged

    @property
    def ref(self) -> ModelRef:
        """Which model this is, pinned."""
        return self.model.checkpoint.ref

    @property
    def format(self) -> str:
        """The format of the weight files."""
        return self.model.checkpoint.format

    @property
    def geometry(self) -> Geometry:
        """Dimensions as the configuration gives them."""
        return self.model.geometry

    @property
    def tensor_map(self) -> TensorMap:
        """What each tensor is."""
        return self.model.tensor_map

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        """All stored tensors."""
        return tuple(one.spec for one in self.tensor_map.tensors)

    @property
    def shards(self) -> tuple[FileEntry, ...]:
        """The weight files."""
        checkpoint = self.model.checkpoint
        return tuple(checkpoint.files[shard] for shard in checkpoint.shards)

    @property
    def parameters(self) -> int:
        """Numbers in the model; quantised weights count as what they stand for, scales as none, and
        those in a format that is not read are not counted: see `codes`."""
        quantised = self.quantisation is not None
        packed = {_stem(weight) for weight, _ in self.model.kinds if weight.refusal is not None}
        return sum(
            _numbers(weight) * times
            for weight, times in self.model.kinds
            if (weight.role.role is Role.BIAS or _stem(weight) not in packed)
            and not (quantised and word_of(weight.role) is None)
        )

    @property
    def codes(self) -> int:
        """Stored numbers of weights in a format that is not read: how many weights they stand for
        is not known."""
        return sum(
            _numbers(weight) * times
            for weight, times in self.model.kinds
            if weight.refusal is not None
        )

    @property
    def nbytes(self) -> int:
        """Length of the weight files."""
        return sum(entry.size for entry in self.shards)

    @property
    def dtypes(self) -> dict[str, int]:
        """Number formats with how many stored numbers each holds, most first."""
        counts: Counter[str] = Counter()
        for one, times in self.tensor_map.kinds:
            counts[one.spec.dtype] += prod(one.spec.shape) * times
        return dict(counts.most_common())

    @property
    def quantisation(self) -> Scheme | None:
        """How the weights say they are quantised."""
        names = [one.spec.name for one, _ in self.tensor_map.kinds]
        return scheme_for(self.model.config, names)

    @property
    def quantised(self) -> dict[Message, int]:
        """Formats of quantised weights, with how many weights each holds."""
        found = (one.quantised for one, _ in self.model.kinds)
        return dict(Counter(one.summary for one in found if one is not None).most_common())

    @property
    def fused(self) -> dict[str, int]:
        """What is stored as one tensor, by role and parts, with how many tensors."""
        counts: Counter[str] = Counter()
        for one, times in self.tensor_map.kinds:
            if one.layout.fused and one.role.role is not Role.BIAS:
                parts = ", ".join(part.role for part in one.layout.parts)
                counts[f"{one.role.role}: {parts}"] += times
        return dict(counts.most_common())

    @property
    def tokenizer(self) -> VocabularyChoice | None:
        """The file that holds the vocabulary; it is not read. A header may have none."""
        checkpoint = self.model.checkpoint
        found = choose_vocabulary(checkpoint.files.values(), checkpoint.shards[0])
        if found is not None and found.in_header and not has_vocabulary(self.model.metadata or {}):
            return None
        return found


class TensorGroup(Struct, frozen=True):
    """Tensors that differ by a number in their name alone, such as the layer's."""

    pattern: str
    dtype: str
    shape: tuple[int, ...]
    role: str | Message
    count: int


def inspect_checkpoint(checkpoint: Checkpoint) -> Inspection:
    """Read all headers and gather what they say; an adapter is shown without its base."""
    specs = checkpoint.tensors()
    model = Model(checkpoint, specs)
    config = adapter_config(checkpoint)
    if config is None:
        return Inspection(model)
    try:
        return Inspection(model, parse_adapter(config, specs))
    except BadAdapter as error:
        return Inspection(model, None, error.cause)


def group_tensors(tensor_map: TensorMap) -> list[TensorGroup]:
    """Fold names that repeat for every layer and expert into one line each."""
    groups: Counter[_Key] = Counter()
    for one, times in tensor_map.kinds:
        name = _NUMBER.sub("*", one.spec.name)
        groups[name, one.spec.dtype, one.spec.shape, _role(one)] += times
    return [
        TensorGroup(*key[:3], _role_in_words(*key[3]), groups[key])
        for key in sorted(groups, key=_place_in_model)
    ]


def _role(one: MappedTensor) -> _Role:
    """What people are told of a role: its word, whether it is a bias, its tower, if it is fused."""
    role, detail = one.role.role, one.role.detail
    word = detail if detail and role in (Role.BIAS, Role.OTHER) else role
    return word, role is Role.BIAS and word is not role, one.role.tower or "", one.layout.fused


def _role_in_words(word: str, bias: bool, tower: str, fused: bool) -> str | Message:
    said: str | Message = message("note.role.bias", role=word) if bias else word
    if tower:
        said = message("note.role.tower", tower=tower, role=said)
    return message("note.role.fused", role=said) if fused else said


def _stem(weight: Weight) -> str:
    """What the names of codes, scales and zeros of one weight begin with."""
    return weight.name.rpartition(".")[0]


def _numbers(weight: Weight) -> int:
    """How many numbers a weight has; by its bits where only stored values tell its shape."""
    if weight.quantised is None:
        return prod(weight.spec.shape)
    shape, bits = weight.quantised.shape, weight.format.bits
    if shape is not None:
        return prod(shape)
    return weight.spec.nbytes * 8 // bits if bits else prod(weight.spec.shape)


def _place_in_model(key: _Key) -> tuple[int, str]:
    """Embeddings, then layers, then what comes after them, by name: as a reader thinks."""
    name = key[0]
    if "*" in name:
        return 1, name
    return (0 if "embed" in name or "wte" in name else 2), name
