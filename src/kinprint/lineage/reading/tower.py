"""The model that sits for a sample: its stack, its sizes, and what can be read of it.

Bytes are counted from lengths alone, so that a plan is the same wherever a model lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from math import prod

from kinprint.lineage.identity import digest_of
from kinprint.model.adapted import AdaptedModel
from kinprint.model.layout.parts import IN_OUT
from kinprint.model.model import Model, Reading
from kinprint.model.places import Address, Place
from kinprint.model.symmetries import Facts, facts_of
from kinprint.model.tokens import VocabularyChoice, choose_vocabulary
from kinprint.reader.extents import bridge, total, union
from kinprint.reader.plan import slice_bytes
from kinprint.records import ByteRange

# Feed-forwards that every token goes through: the plain one, or the expert that all share.
_PLAIN, _SHARED, _EXPERT = "", "shared_", "expert_"


@dataclass(frozen=True, slots=True)
class Part:
    """Some of one logical tensor: `rows` of it, all if None.

    With `inputs` rows are counted along its inputs (what a unit or a value dimension sends
    out), so that they come as rows too.
    """

    address: Address
    rows: tuple[int, ...] | None = None
    inputs: bool = False


@dataclass(frozen=True, slots=True)
class HeadShape:
    """Heads of one layer: query heads, key-value groups, rows of a head, and value rows."""

    heads: int
    groups: int
    size: int
    values: int


class Tower:
    """A model, the stack of it that is compared, and the parts it has."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.stack = main_stack(model.stacks)
        self.notes: list[str] = []
        self._readings: dict[Part, list[Reading]] = {}
        if len(model.stacks) > 1:
            named = self.stack or "text"
            self.notes.append(
                f"{model.name}: of {len(model.stacks)} stacks the {named} one is read"
            )
        self.depth = model.geometry.layers or len(model.layers(self.stack))
        self.places = {
            address: place
            for address, place in model.places.items()
            if address.tower == self.stack and (address.layer is None or address.layer < self.depth)
        }

    @property
    def name(self) -> str:
        """What the model is called."""
        return self.model.name

    @cached_property
    def facts(self) -> Facts:
        """Its conditions for symmetries; rows of heads are always given in halves."""
        roles = {address.role for address in self.places}
        biased = any(role.startswith("norm") and role.endswith(".bias") for role in roles)
        return facts_of(self.model.config, roles, self.model.metadata, biased)

    @cached_property
    def width(self) -> int:
        """Length of the residual stream."""
        if self.model.geometry.hidden is not None:
            return self.model.geometry.hidden
        lengths = [self.length(address) for address in self.norms]
        return max(lengths, default=0)

    @cached_property
    def norms(self) -> tuple[Address, ...]:
        """Norm vectors and their biases, outside the layers and in them."""
        found = (one for one in self.places if one.role.startswith("norm"))
        return tuple(one for one in sorted(found, key=str) if self._readable(one))

    def feed_forward(self, layer: int, expert: int | None = None) -> str | None:
        """The prefix of a layer's feed-forward, or of one expert's; None if there is none."""
        if expert is not None:
            return (
                _EXPERT if Address("expert_up", layer, expert, self.stack) in self.places else None
            )
        for prefix in (_PLAIN, _SHARED):
            if self.has(f"{prefix}up", layer):
                return prefix
        return None

    @cached_property
    def experts(self) -> dict[int, tuple[int, ...]]:
        """Numbers of the experts by layer."""
        found: dict[int, list[int]] = {}
        for one in self.places:
            if one.role == "expert_up" and one.layer is not None and one.expert is not None:
                found.setdefault(one.layer, []).append(one.expert)
        return {layer: tuple(sorted(all_of)) for layer, all_of in found.items()}

    @cached_property
    def fewest_units(self) -> int:
        """Units of its smallest feed-forward."""
        ups = [one for one in self.places if one.role in ("up", "shared_up", "expert_up")]
        return min((size for one in ups if (size := self.length(one))), default=0)

    @cached_property
    def embedding(self) -> Address | None:
        """Where the token embedding is, for the stack that is compared or for all."""
        for tower in dict.fromkeys((self.stack, "")):
            address = Address("embed", tower=tower)
            place = self.model.places.get(address)
            if place is not None and not place.weight.refusal and place.shape is not None:
                self.places.setdefault(address, place)
                return address
        return None

    @property
    def row_bytes(self) -> int:
        """Bytes of one row of the embedding."""
        return 0 if self.embedding is None else self.cost([Part(self.embedding, (0,))])

    @property
    def partial(self) -> bool:
        """Whether only some of its headers were read."""
        return not self.model.checkpoint.complete

    def heads(self, layer: int) -> HeadShape | None:
        """How q, k and v of a layer are made of heads; None where they do not fit."""
        if not (self.has("q", layer) and self.has("k", layer)):
            return None
        q, k = (self.length(self.address(role, layer)) for role in ("q", "k"))
        size = self.facts.head_dim or self.model.geometry.head_dim
        if size is None and self.model.geometry.heads:
            size = q // self.model.geometry.heads
        if not size or q % size or k % size or not k or (q // size) % (k // size):
            return None
        groups = k // size
        v = self.length(self.address("v", layer)) if self.has("v", layer) else 0
        return HeadShape(q // size, groups, size, v // groups if v % groups == 0 else 0)

    def has(self, role: str, layer: int | None = None, expert: int | None = None) -> bool:
        """Whether there is such a tensor."""
        return self._readable(self.address(role, layer, expert))

    def address(self, role: str, layer: int | None = None, expert: int | None = None) -> Address:
        """The address of a tensor in this model's stack."""
        return Address(role, layer, expert, self.stack)

    def length(self, address: Address, axis: int = 0) -> int:
        """Rows of a tensor, or its inputs."""
        shape = self.places[address].shape
        return shape[axis] if shape is not None and len(shape) > axis else 0

    def readings(self, part: Part) -> list[Reading]:
        """How to read a part: one reading, or one for each run of inputs.

        A part is priced, planned and read by the same readings.
        """
        if part not in self._readings:
            self._readings[part] = self._planned(part)
        return self._readings[part]

    def _planned(self, part: Part) -> list[Reading]:
        place = self.places[part.address]
        if not part.inputs:
            return [self.model.reading(place, part.rows)]
        if part.rows is None:
            return [self.model.reading(place)]
        return [self.model.reading(place, None, run) for run in runs_of(part.rows)]

    def cost(self, parts: Sequence[Part]) -> int:
        """Bytes that reading parts takes, wherever the model lies."""
        spans: dict[str, list[ByteRange]] = {}
        for part in parts:
            for reading in self.readings(part):
                for checkpoint, slices in reading.parts():
                    for one in slices:
                        file = f"{id(checkpoint)} {one.tensor.file}"
                        spans.setdefault(file, []).extend(slice_bytes(one))
        gap = self.model.checkpoint.fetcher.policy.gap
        return sum(total(bridge(union(wanted), (), gap)) for wanted in spans.values())

    def stored_bytes(self, address: Address) -> int:
        """Length of the tensor that a part lies in, or of its share where several share it."""
        place = self.places[address]
        spec, shape = place.weight.spec, place.shape
        count = prod(shape) if shape is not None else spec.count
        return min(spec.nbytes, -(-spec.nbytes * count // max(spec.count, 1)))

    def turned(self, address: Address) -> bool:
        """Whether inputs are stored as rows, so that some of them cost no more than they are."""
        weight = self.places[address].weight
        return (
            weight.quantised is None
            and weight.layout is not None
            and weight.layout.orient == IN_OUT
        )

    @property
    def whole_bytes(self) -> int:
        """Length of all weights of the stack that is compared."""
        specs = {place.weight.spec.name: place.weight.spec for place in self.places.values()}
        return sum(spec.nbytes for spec in specs.values())

    @property
    def known_bytes(self) -> int:
        """What opening it has cost."""
        model = self.model
        above = model.adapter_checkpoint.known_bytes if isinstance(model, AdaptedModel) else 0
        return model.checkpoint.known_bytes + above

    @cached_property
    def tokenizer(self) -> VocabularyChoice | None:
        """The file that holds its vocabulary."""
        checkpoint = self.model.checkpoint
        return choose_vocabulary(checkpoint.files.values(), checkpoint.choice.weights.label)

    @property
    def tokenizer_bytes(self) -> int:
        """Length of the files that hold the vocabulary, 0 where a header has it already."""
        choice, files = self.tokenizer, self.model.checkpoint.files
        if choice is None or choice.in_header:
            return 0
        return sum(files[path].size for path in (choice.path, *choice.companions))

    @cached_property
    def tokenizer_digest(self) -> str:
        """The sha256 of the tokenizer file, empty where it is not known for nothing."""
        choice = self.tokenizer
        return "" if choice is None else digest_of(self.model.checkpoint.files[choice.path])

    def _readable(self, address: Address) -> bool:
        place: Place | None = self.places.get(address)
        return place is not None and not place.weight.refusal and place.shape is not None


def tower_of(model: Model) -> Tower:
    """A model as a tower; shapes that only a stored tensor tells are read now."""
    if any(weight.layout is None for weight in model.weights.values()):
        model.locate(list(model.places))
    return Tower(model)


def main_stack(stacks: Sequence[str]) -> str:
    """The stack that is compared: the text model's only one, else the decoder, else the first."""
    for name in ("", "decoder"):
        if name in stacks or not stacks:
            return name
    return stacks[0]


def runs_of(rows: Sequence[int]) -> list[range]:
    """Consecutive numbers as ranges."""
    found = []
    for _, group in groupby(enumerate(rows), key=lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in group]
        found.append(range(numbers[0], numbers[-1] + 1))
    return found


def in_halves(facts: Facts) -> Facts:
    """The same facts for rows that were put in halves."""
    return replace(facts, rope="half") if facts.rope == "interleaved" else facts
