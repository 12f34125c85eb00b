"""The towers of a model: their sizes, what they have, and what reading that costs.

Bytes are counted from lengths alone, so that a plan is the same wherever a model lies.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, groupby
from math import prod
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kinprint.lineage.about.description import card_bytes
from kinprint.lineage.identity import digest_of
from kinprint.lineage.reading.parts import is_without_scale, part_of
from kinprint.model.consistency import contradiction_notes, stream_width
from kinprint.model.geometry import text_parts
from kinprint.model.layout.parts import IN_OUT
from kinprint.model.layout.sizes import tower_of
from kinprint.model.model import ADAPTER_CONFIG, SIDECARS, Model, Reading
from kinprint.model.names.towers import BESIDE, PROJECTOR
from kinprint.model.places import Address, Place
from kinprint.model.symmetries import Facts, facts_of
from kinprint.model.tokens import VocabularyChoice, choose_vocabulary
from kinprint.reader.extents import bridge, total, union
from kinprint.reader.plan import slice_bytes
from kinprint.records import DRAFT, EXPERT_PREFIX, SHARED_PREFIX, ByteRange, Component, Part, Role
from kinprint.text import Message, message

# Stacks that the configuration of the model itself is about.
_OF_THE_MODEL = ("", "encoder", "decoder", DRAFT)
_READERS = ("up", "q")  # matrices whose inputs are the residual stream
_JOINING = "mtp_eh_proj"  # joins a token and the stream, in layers that draft
# What is said of names and shapes wherever a model is compared.
_SHOWN = (
    "note.layers", "note.rival-names", "note.rival-stack", "note.rival-stacks",
    "note.rival-tensors", "note.shape",
)  # fmt: skip
# What is said of a configuration that is there and was not read.
_UNREAD = ("error.BadConfig", "note.large-configuration")
# Files that say how weights were packed or adapted.
_SMALL_FILES = (*SIDECARS, ADAPTER_CONFIG)
_LISTS, _LISTED = 32_000, 400  # bytes of what a host says about a model, and about each file
# Feed-forwards that every token goes through: the plain one, or the expert that all share.
_FOR_ALL_TOKENS = ("", SHARED_PREFIX)


class Piece(Struct, frozen=True):
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


class HeadShape(Struct, frozen=True):
    """Heads of one layer: query heads, key-value groups, rows of a head, and value rows."""

    heads: int
    groups: int
    size: int
    values: int


class Tower:
    """One stack of layers of a model.

    Parameters
    ----------
    model
        The model that it is a part of.
    stack
        Its name among the stacks of the model; "" is the text model.
    component
        The folder of the model where it is one of several of a pipeline.
    draft
        Whether it is what comes after the last layer of that stack: layers that draft further
        tokens, counted on from the others.

    Attributes
    ----------
    label
        What it is called among the towers of its model.
    main
        Whether it is the tower that the configuration's sizes are about.
    first
        Whether it is also the one that its model is known for: tokens are read of this one.
    layers
        Numbers of its layers.
    notes
        Remarks on how it was read.
    """

    def __init__(
        self, model: Model, stack: str | None = None, *, draft: bool = False, component: str = ""
    ) -> None:
        main = main_stack(model.stacks)
        self.model = model
        self.stack = main if stack is None else stack
        self.main = self.stack == main and not draft
        self.first = self.main and not component
        own = DRAFT if draft else self.stack
        self.label = "/".join(filter(None, (component, own)))
        self.notes: list[Message] = []
        self._readings: dict[Piece, list[Reading]] = {}
        self._spans: dict[Piece, Mapping[str, Sequence[ByteRange]]] = {}
        stated = model.geometry.layers if self.stack == main else None
        self.layers = _layers(model, self.stack, stated, draft)
        own_layers = frozenset(self.layers)
        # Where every stack has a name, what stands in none belongs to the first: heads, biases.
        nameless = self.first and "" not in model.stacks
        places = {
            address: place
            for address, place in model.places.items()
            if (address.tower == self.stack or (nameless and not address.tower))
            and (address.layer in own_layers if address.layer is not None else not draft)
        }
        self.places = {
            address: place for address, place in places.items() if place.contradiction is None
        }
        self.notes += (
            message("note.about-model", model=model.name, note=note)
            for note in (
                *(_settings_notes(model) if self.main else ()),
                *contradiction_notes(places.values(), model.checkpoint.complete),
                *_scale_notes(self.places.values()),
                *_packing_notes(self.places.values()),
            )
        )

    def take_projector(self) -> None:
        """Count what lies between the towers of the model as a part of this one."""
        self.places |= {
            address: place
            for address, place in self.model.places.items()
            if address.tower == PROJECTOR and place.contradiction is None
        }

    def owns(self, address: Address) -> bool:
        """Whether a tensor is one of the tower itself, rather than of what lies between towers."""
        return (address.tower != PROJECTOR or self.stack == PROJECTOR) and not self.is_outside(
            address
        )

    def is_outside(self, address: Address) -> bool:
        """Whether a tensor outside the stack has the place of one in it, as a second table has."""
        if address.tower or not self.stack:
            return False
        return replace(address, tower=self.stack) in self.places

    @property
    def depth(self) -> int:
        """How many layers there are."""
        return len(self.layers)

    @property
    def name(self) -> str:
        """What the model is called."""
        return self.model.name

    @cached_property
    def facts(self) -> Facts:
        """Its conditions for symmetries, as the model stores its rows."""
        roles = {address.role for address in self.places if self.owns(address)}
        biased = any(role.startswith("norm") and role.endswith(".bias") for role in roles)
        return facts_of(self._config, roles, self.model.metadata if self.main else None, biased)

    @cached_property
    def width(self) -> int:
        """Length of the residual stream."""
        if self.main:
            return stream_width(self.model.places, self.model.geometry, self.stack)
        lengths = [self.length(address) for address in self.norms if ".bias" not in address.role]
        inputs = [shape[1] for role in _READERS for shape in self._shapes(role) if len(shape) > 1]
        return max(inputs or lengths, default=0)

    @cached_property
    def norms(self) -> tuple[Address, ...]:
        """Norm vectors and their biases, outside the layers and in them."""
        norms = (one for one in self.places if one.role.startswith("norm") and self.owns(one))
        readable = (address for address in sorted(norms, key=str) if self._readable(address))
        return tuple(one for one in readable if len(self.places[one].shape or ()) == 1)

    def feed_forward(self, layer: int, expert: int | None = None) -> str | None:
        """The prefix of a layer's feed-forward, or of one expert's; None if there is none."""
        if expert is not None:
            present = Address("expert_up", layer, expert, self.stack) in self.places
            return EXPERT_PREFIX if present else None
        for prefix in _FOR_ALL_TOKENS:
            if self.has(f"{prefix}up", layer):
                return prefix
        return None

    def tensor_name(self, address: Address) -> str:
        """What a tensor is called among those of its part: all feed-forwards have a gate."""
        layer, expert = address.layer, address.expert
        if self.is_outside(address):
            return f"{Role.OTHER}:{address.role}"
        if not self.owns(address):
            return ".".join(str(one) for one in (layer, expert, address.role) if one is not None)
        prefix = None if layer is None else self.feed_forward(layer, expert)
        return address.role.removeprefix(prefix or "")

    @cached_property
    def weights(self) -> dict[Address, Part]:
        """All tensors that can be read and are weights, and what they are parts of.

        None where no name is known: contents alone can tell them apart.
        """
        tables = [table for table in (self.embedding, self.head) if table is not None]
        parts = {
            address: Part(Component.OTHER, tower=self.label)
            if self.is_outside(address)
            else part_of(self.places[address], self.label)
            for address in dict.fromkeys((*self.places, *tables))
        }
        found = {
            address: part
            for address, part in parts.items()
            if part is not None and self._readable(address)
        }
        named = any(part.component is not Component.OTHER for part in found.values())
        return found if named else {}

    @cached_property
    def packed(self) -> dict[Address, Part]:
        """Tensors that hold weights in a way that cannot be read, and what they are parts of."""
        refused = {at: one for at, one in self.places.items() if one.weight.refusal is not None}
        parts = {at: part_of(one, self.label) for at, one in refused.items()}
        return {at: part for at, part in parts.items() if part is not None}

    @cached_property
    def experts(self) -> dict[int, tuple[int, ...]]:
        """Numbers of the experts by layer."""
        numbers: dict[int, list[int]] = {}
        for address in self.places:
            if address.role != "expert_up" or not self.owns(address):
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
    def testable(self) -> bool:
        """Whether it has units or heads in a residual stream."""
        return bool(self.width) and any(self._shapes(role) for role in _READERS)

    @property
    def partial(self) -> bool:
        """Whether only some of its headers were read."""
        parts = self.model, *self.model.components
        return not all(model.checkpoint.complete for model in parts)

    @property
    def model_weights(self) -> int:
        """About how many weights its model has, by the length of all files."""
        checkpoint = self.model.checkpoint
        length = sum(checkpoint.files[shard].size for shard in checkpoint.shards)
        specs = {place.weight.spec.name: place.weight.spec for place in self.model.places.values()}
        known = sum(prod(spec.shape) for spec in specs.values())
        return round(length * known / max(sum(spec.nbytes for spec in specs.values()), 1))

    def heads(self, layer: int) -> HeadShape | None:
        """How q, k and v of a layer are made of heads; None where they do not fit."""
        if not (self.has("q", layer) and self.has("k", layer)):
            return None
        q, k = (self.length(self.address(role, layer)) for role in ("q", "k"))
        size = self.facts.head_dim
        if self.main and size is None:
            size = self.model.geometry.head_dim
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
        readings = self._readings.get(piece)
        if readings is None:
            place = self.places[piece.address]
            if not piece.inputs:
                readings = [self.model.reading(place, piece.rows)]
            elif piece.rows is None:
                readings = [self.model.reading(place)]
            else:
                readings = [self.model.reading(place, None, run) for run in runs_of(piece.rows)]
            self._readings[piece] = readings
        return readings

    def spans(self, piece: Piece) -> Mapping[str, Sequence[ByteRange]]:
        """Bytes of a piece, by file."""
        known = self._spans.get(piece)
        if known is not None:
            return known
        spans: dict[str, list[ByteRange]] = {}
        for reading in self.readings(piece):
            for checkpoint, slices in reading.parts():
                for one in slices:
                    file = f"{id(checkpoint)} {one.tensor.file}"
                    spans.setdefault(file, []).extend(slice_bytes(one))
        found = self._spans[piece] = {file: union(ranges) for file, ranges in spans.items()}
        return found

    def cost(self, pieces: Sequence[Piece]) -> int:
        """Bytes that reading pieces takes, wherever the model lies."""
        files: dict[str, list[Sequence[ByteRange]]] = {}
        for piece in pieces:
            for file, ranges in self.spans(piece).items():
                files.setdefault(file, []).append(ranges)
        gap = self.model.checkpoint.fetcher.policy.gap
        return sum(bytes_of(spans, gap) for spans in files.values())

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
        """Length of all its weights, but for what came with the headers."""
        weights = (self.places[address].weight for address in self.weights)
        specs = {spec.name: spec for weight in weights for spec in weight.stored}
        known = self.model.checkpoint.came_with_header
        return sum(spec.nbytes - known(spec) for spec in specs.values())

    @cached_property
    def opening_bytes(self) -> int:
        """What opening the model takes at most: lists of files and commits, card, small files,
        headers.

        The same wherever the model lies, so that a budget cuts the same way everywhere.
        """
        model = self.model
        checkpoints = [model.checkpoint, *(part.checkpoint for part in model.components)]
        if model.adapter_checkpoint is not None:
            checkpoints.append(model.adapter_checkpoint)
        repositories = {id(one.source): one for one in checkpoints}.values()
        lists = sum(_LISTS + _LISTED * len(one.files) for one in repositories)
        small = sum(
            file.size
            for one in repositories
            for file in one.files.values()
            if posixpath.basename(file.path) in _SMALL_FILES
        )
        read = sum(one.known_bytes for one in checkpoints)
        return lists + small + read + card_bytes(list(repositories))

    def numbers(self, piece: Piece) -> int:
        """How many numbers a piece holds."""
        shape = self.places[piece.address].shape or (0,)
        axis = len(shape) - 1 if piece.inputs else 0
        return (
            prod(shape)
            // max(shape[axis], 1)
            * (shape[axis] if piece.rows is None else len(piece.rows))
        )

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

    @property
    def _config(self) -> Mapping[str, Any]:
        """The part of the configuration that is about this tower.

        Of two towers for pictures it may be about the other: it names the width of its own.
        """
        if self.main or self.stack in _OF_THE_MODEL or self.stack.endswith(BESIDE):
            return self.model.config
        inner: Mapping[str, Any] = tower_of(self.model.config, self.stack).get("text_config", {})
        about = any(self.width in level.values() for level in text_parts(inner))
        return inner if about else {}

    def _shapes(self, role: str) -> list[tuple[int, ...]]:
        own = {one: place for one, place in self.places.items() if self.owns(one)}
        places = (place for address, place in own.items() if address.role == role)
        return [place.shape for place in places if place.shape is not None]

    def _table(self, role: str) -> Address | None:
        if not self.first:
            return None
        for tower in dict.fromkeys((self.stack, "")):
            address = Address(role, tower=tower)
            place = self.model.places.get(address)
            if place is None or place.contradiction is not None:
                continue
            if not place.weight.refusal and place.shape is not None:
                self.places.setdefault(address, place)
                return address
        return None

    def _readable(self, address: Address) -> bool:
        place: Place | None = self.places.get(address)
        if place is None:
            return False
        return not place.weight.refusal and place.weight.layout is not None


def towers_of(model: Model, component: str = "") -> tuple[Tower, ...]:
    """All towers of a model and of the other models of its pipeline, the main one first.

    Shapes that only a stored tensor tells are read now. Towers without units and heads (blocks of
    convolutions) have no test; the main one says which they are.
    """
    if any(weight.layout is None for weight in model.weights.values()):
        model.locate(list(model.places))
    main = Tower(model, component=component)
    others = [
        Tower(model, stack, component=component) for stack in model.stacks if stack != main.stack
    ]
    others.append(Tower(model, main.stack, draft=True, component=component))
    for part in model.components:
        others += towers_of(part, part.checkpoint.choice.weights.folder)
    testable = [tower for tower in others if tower.depth and tower.testable]
    if PROJECTOR not in (main.stack, *(tower.stack for tower in testable)):
        main.take_projector()
    for tower in others:
        if tower.stack == PROJECTOR != main.stack:
            continue
        if (tower.depth or tower.main) and not tower.testable:
            main.notes.append(message("note.untested-tower", model=main.name, tower=tower.label))
    return main, *testable


def unclaimed_parts(towers: Sequence[Tower]) -> dict[Part, int]:
    """Parts of a model that none of its towers has, with how many numbers they have.

    Told by headers; what contradicts others has a remark of its own.
    """
    claimed = {(id(tower.model), address) for tower in towers for address in tower.places}
    model = towers[0].model
    folders = [(part, part.checkpoint.choice.weights.folder) for part in model.components]
    found: dict[Part, int] = {}
    for one, folder in ((model, ""), *folders):
        for address, place in one.places.items():
            if (id(one), address) in claimed or place.contradiction is not None:
                continue
            part = part_of(place, "/".join(filter(None, (folder, address.tower))))
            if part is not None and part.tower:
                shape = place.shape
                count = place.weight.spec.count if shape is None else prod(shape)
                found[part] = found.get(part, 0) + count
    return found


def could_match(one: Tower, other: Tower) -> bool:
    """Whether two towers have the same kind of block and as many channels; told by headers.

    The main towers of two models always meet, since depth and width may have been changed; layers
    that draft meet others that do.
    """
    if one.first and other.first:
        return True
    if one.label.endswith(DRAFT) != other.label.endswith(DRAFT):
        return False
    return one.width == other.width and one.facts.gated == other.facts.gated


def bytes_of(spans: Iterable[Sequence[ByteRange]], gap: int) -> int:
    """How much of one file is read for some ranges: small gaps between them are read through."""
    return total(bridge(union(chain.from_iterable(spans)), (), gap))


def _layers(model: Model, stack: str, stated: int | None, draft: bool) -> tuple[int, ...]:
    """Numbers of the layers of a stack, or of those after them that draft.

    The tensors tell them, whatever the configuration says, once all headers were read: layers that
    draft come after the others and join two streams. Before, the configuration has to be believed.
    """
    numbers = model.layers(stack)
    if model.checkpoint.complete:
        joining = {one.layer for one in model.places if (one.role, one.tower) == (_JOINING, stack)}
        drafting = [one for one in numbers if one in joining and one >= (stated or 0)]
        kept = sorted({*numbers} - {*drafting})
        return tuple(drafting if draft else kept) if kept else (() if draft else numbers)
    depth = stated or min(max(numbers, default=-1) + 1, 2 * len(numbers))
    if draft:
        return tuple(range(depth, depth + sum(number >= depth for number in numbers)))
    return tuple(range(depth))


def _settings_notes(model: Model) -> list[Message]:
    """Where shapes contradict the configuration, or tensors one another, and where there is none
    that says what attention is made of. One that cannot be read has a note of its own."""
    known = [note for note in model.tensor_map.warnings if note.key in _SHOWN]
    attends = any(address.role == "q" for address in model.places)
    unread = any(note.key in _UNREAD for note in model.checkpoint.notes)
    unknown = not (model.config or unread) and model.geometry.heads is None and attends
    return [*known, message("note.no-configuration")] if unknown else known


def _scale_notes(places: Iterable[Place]) -> list[Message]:
    """That matrices are compared as whole numbers, where their scales are not stored."""
    names = sorted({one.weight.spec.name for one in places if is_without_scale(one)})
    return [message("note.without-scale", tensor=names[0], count=len(names))] if names else []


def _packing_notes(places: Iterable[Place]) -> Iterator[Message]:
    """That packed tensors are left out, for every reason once."""
    reasons: dict[Message, set[str]] = {}
    for one in places:
        if one.weight.refusal is not None:
            reasons.setdefault(one.weight.refusal, set()).add(one.weight.spec.name)
    for cause, names in reasons.items():
        yield message("note.packed", cause=cause, tensor=min(names), count=len(names))


def main_stack(stacks: Sequence[str]) -> str:
    """The stack that is compared: the text model's only one, else the decoder, what talks, or the
    first."""
    for name in ("", "decoder", "talker"):
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
