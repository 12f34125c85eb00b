"""The tower of a model that is compared: its sizes, what it has, and what reading that costs.

Bytes are counted from lengths alone, so that a plan is the same wherever a model lies.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from math import prod

from kinprint import text
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
from kinprint.text import Message

# Feed-forwards that every token goes through: the plain one, or the expert that all share.
_PLAIN, _SHARED, _EXPERT = "", "shared_", "expert_"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of one logical tensor.

    Attributes
    ----------
    address
        Which tensor.
    rows
        Which of its rows; None for all.
    inputs
        Whether rows are counted along its inputs (what a unit or a value dimension sends out), so
        that they come as rows too.
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
    """The stack of layers of one model that is compared.

    A model may have several stacks, such as an encoder beside a decoder; `stack` names the one
    that is read. `notes` are remarks on how it was read.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.stack = main_stack(model.stacks)
        self.notes: list[Message] = []
        self._readings: dict[Piece, list[Reading]] = {}
        if len(model.stacks) > 1:
            self.notes.append(
                text.message(
                    "note.one-stack",
                    model=model.name,
                    stacks=len(model.stacks),
                    stack=self.stack or text.message("note.text-stack"),
                )
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
        """Its conditions for symmetries, as the model stores its rows."""
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
        norms = (address for address in self.places if address.role.startswith("norm"))
        return tuple(address for address in sorted(norms, key=str) if self._readable(address))

    def feed_forward(self, layer: int, expert: int | None = None) -> str | None:
        """The prefix of a layer's feed-forward, or of one expert's; None if there is none."""
        if expert is not None:
            present = Address("expert_up", layer, expert, self.stack) in self.places
            return _EXPERT if present else None
        for prefix in (_PLAIN, _SHARED):
            if self.has(f"{prefix}up", layer):
                return prefix
        return None

    @cached_property
    def experts(self) -> dict[int, tuple[int, ...]]:
        """Numbers of the experts by layer."""
        numbers: dict[int, list[int]] = {}
        for address in self.places:
            if address.role != "expert_up":
                continue
            if address.layer is not None and address.expert is not None:
                numbers.setdefault(address.layer, []).append(address.expert)
        return {layer: tuple(sorted(experts)) for layer, experts in numbers.items()}

    @cached_property
    def embedding(self) -> Address | None:
        """Where the token embedding is, for the stack that is compared or for all."""
        return self._table("embed")

    @cached_property
    def head(self) -> Address | None:
        """Where the output head is, if it is a table of its own with a row for each token."""
        head, embedding = self._table("lm_head"), self.embedding
        if head is None or embedding is None:
            return None
        return head if self.places[head].shape == self.places[embedding].shape else None

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
        """Whether there is such a tensor, and it can be read."""
        return self._readable(self.address(role, layer, expert))

    def address(self, role: str, layer: int | None = None, expert: int | None = None) -> Address:
        """The address of a tensor in this tower."""
        return Address(role, layer, expert, self.stack)

    def length(self, address: Address) -> int:
        """Rows of a tensor; 0 where its shape is not known."""
        shape = self.places[address].shape
        return shape[0] if shape else 0

    def readings(self, piece: Piece) -> list[Reading]:
        """How to read a piece: one reading, or one for each run of inputs.

        A piece is priced, planned and read by the same readings.
        """
        if piece not in self._readings:
            place = self.places[piece.address]
            if not piece.inputs:
                readings = [self.model.reading(place, piece.rows)]
            elif piece.rows is None:
                readings = [self.model.reading(place)]
            else:
                readings = [self.model.reading(place, None, run) for run in runs_of(piece.rows)]
            self._readings[piece] = readings
        return self._readings[piece]

    def cost(self, pieces: Sequence[Piece]) -> int:
        """Bytes that reading pieces takes, wherever the model lies."""
        spans: dict[str, list[ByteRange]] = {}
        for piece in pieces:
            for reading in self.readings(piece):
                for checkpoint, slices in reading.parts():
                    for one in slices:
                        file = f"{id(checkpoint)} {one.tensor.file}"
                        spans.setdefault(file, []).extend(slice_bytes(one))
        gap = self.model.checkpoint.fetcher.policy.gap
        return sum(total(bridge(union(wanted), (), gap)) for wanted in spans.values())

    def stored_bytes(self, address: Address) -> int:
        """Length of a tensor as stored, or of its share where several share one."""
        place = self.places[address]
        spec, shape = place.weight.spec, place.shape
        count = prod(shape) if shape is not None else spec.count
        return min(spec.nbytes, -(-spec.nbytes * count // max(spec.count, 1)))

    def stores_inputs_as_rows(self, address: Address) -> bool:
        """Whether some inputs of a tensor cost no more than they are long."""
        weight = self.places[address].weight
        return (
            weight.quantised is None
            and weight.layout is not None
            and weight.layout.orient == IN_OUT
        )

    @property
    def whole_bytes(self) -> int:
        """Length of all its weights."""
        specs = {place.weight.spec.name: place.weight.spec for place in self.places.values()}
        return sum(spec.nbytes for spec in specs.values())

    @property
    def known_bytes(self) -> int:
        """What opening the model has cost."""
        model = self.model
        adapter = model.adapter_checkpoint.known_bytes if isinstance(model, AdaptedModel) else 0
        return model.checkpoint.known_bytes + adapter

    @cached_property
    def tokenizer(self) -> VocabularyChoice | None:
        """The file that holds the vocabulary."""
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

    def _table(self, role: str) -> Address | None:
        for tower in dict.fromkeys((self.stack, "")):
            address = Address(role, tower=tower)
            place = self.model.places.get(address)
            if place is not None and not place.weight.refusal and place.shape is not None:
                self.places.setdefault(address, place)
                return address
        return None

    def _readable(self, address: Address) -> bool:
        place: Place | None = self.places.get(address)
        return place is not None and not place.weight.refusal and place.shape is not None


def tower_of(model: Model) -> Tower:
    """The tower of a model; shapes that only a stored tensor tells are read now."""
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
    runs = []
    for _, group in groupby(enumerate(rows), key=lambda pair: pair[1] - pair[0]):
        numbers = [number for _, number in group]
        runs.append(range(numbers[0], numbers[-1] + 1))
    return runs


def in_halves(facts: Facts) -> Facts:
    """The same facts for rows that were put in halves."""
    return replace(facts, rope="half") if facts.rope == "interleaved" else facts
