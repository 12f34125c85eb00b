"""What was read of one model for the lineage tests: arrays with their meaning, and no file.

A sample is what the tests see. Rows are logical (outputs first, heads in halves where they
rotate in halves), norms have their offset, quantised weights are floats. What was not read,
or what the model does not have, is absent; a test says what it needs and is silent without.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kinprint.model.places import Address
from kinprint.model.symmetries import Facts
from kinprint.records import ByteRange, Part
from kinprint.text import Message

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]
OUTSIDE = -1
"""The layer of norms and other tensors that belong to none."""


class Units(Struct, frozen=True):
    """Some or all units of one gated or plain feed-forward.

    Row i of each matrix belongs to unit `index[i]` of `total`. `gate` is None where the MLP
    has none; `down` has the unit's output weights as a row, so that all are units × width.
    """

    index: Indices
    total: int
    up: Floats
    down: Floats
    gate: Floats | None = None
    bias: Floats | None = None


class Attention(Struct, frozen=True):
    """Some or all heads of one layer, heads first: heads × rows of a head × width.

    `o` has the output weights of each head's value dimensions as rows. Biases are heads ×
    rows. Rows of q and k are in halves: row j turns with row j + rotated / 2.
    """

    q: Floats | None = None
    k: Floats | None = None
    v: Floats | None = None
    o: Floats | None = None
    q_bias: Floats | None = None
    k_bias: Floats | None = None
    v_bias: Floats | None = None
    rotated: int = 0  # rows of a head that rotate; 0 where positions are not rotary
    query_heads: Indices | None = None  # numbers of the heads of q; None for all from the first
    groups: Indices | None = None  # numbers of the heads of k and v


class ReadTensor(Struct, frozen=True):
    """What was read of one stored tensor.

    Attributes
    ----------
    file, tensor
        Where it lies, and what it is called there.
    ranges
        Bytes of the file that hold what was read.
    sha256
        Of the numbers as they are compared: float32, rows as the sample has them.
    """

    file: str
    tensor: str
    ranges: tuple[ByteRange, ...]
    sha256: str


class SampleRecord(Struct, frozen=True):
    """What a sample was made of: the tower, a digest of all its numbers, and where they were."""

    tower: str
    sha256: str
    tensors: tuple[ReadTensor, ...]


class Embedding(Struct, frozen=True):
    """Rows of a table of tokens for some of them, and which tokens they are.

    A token is known by its spelling, or where the vocabulary was not read by its number and the
    digest of the tokenizer, so that the tokens of two models are the same if their names are.
    """

    tokens: tuple[bytes, ...]
    ids: Indices
    rows: Floats
    read: tuple[ReadTensor, ...] = ()

    @property
    def names(self) -> Indices:
        """What tokens are called, as numbers: the same in all models and in every run."""
        return _numbers(self.tokens)


@lru_cache(4)
def _numbers(names: tuple[bytes, ...]) -> Indices:
    hashes = b"".join(blake2b(name, digest_size=8).digest() for name in names)
    found = np.frombuffer(hashes, "<i8").astype(np.int64)
    found.setflags(write=False)  # one for all who ask
    return found


class Extent(Struct, frozen=True):
    """How many numbers a part of a model has, and how many of them were read.

    `needs` are the bytes of this model that matching the part takes; None where no test does.
    `basis` are those among them that all parts of the tower take alike.
    `tensors` are the numbers of each of its tensors, by name. Of a `packed` part some or all are
    stored in a way that cannot be read; they count as many weights as there are codes.
    """

    weights: int = 0
    read: int = 0
    needs: int | None = None
    basis: int = 0
    tensors: Mapping[str, int] = field(default_factory=dict)
    packed: bool = False

    @property
    def share(self) -> float:
        """How much of it was read."""
        return self.read / max(self.weights, 1)


class Sample(Struct, frozen=True):
    """One model, or one tower of it, as the lineage tests see it.

    Attributes
    ----------
    name
        What the model is called.
    key
        A hash of what was read, to break ties without regard to the order of arguments.
    width, depth
        Length of the residual stream, and how many layers there are.
    facts
        The model's conditions for symmetries, as `model.symmetries.facts_of` gives them.
    norms, norm_biases
        Gains and biases of norms by role and layer; layer `OUTSIDE` is that of those in none.
    stored_gains
        Gains that are stored less one, as they are stored. Equality looks at them.
    units
        The dense feed-forward of a layer.
    attention
        The heads of a layer.
    experts
        The feed-forwards of experts, by layer and expert.
    routers
        Of each layer, one row an expert.
    embedding
        Rows of the token embedding; None where they were not read.
    head
        Rows of the output head for the same tokens; None where it is tied or was not read.
    headless
        Whether it has none, and says that its embedding is none either.
    few
        Rows of all tensors that tests see nothing of, or too little, by address (without the
        tower) and whether they lie along the inputs, with their numbers. Equality looks at them.
    parts
        The parts that the model has, read or not, as far as its headers are known.
    partial
        Whether headers of some of its files were not read.
    hidden
        About how many weights it has in these files beside the parts.
    rounded
        Digests of what is stored of tensors whose numbers single precision has not, by part
        (without the tower) and name.
    dtypes
        The stored number formats by role.
    notes
        Remarks on how the model was read.
    read
        Files, byte ranges and digests of all that was read.
    tower
        Which stack of layers of the model it is; "" is the text model.
    """

    name: str
    key: str
    width: int
    depth: int
    facts: Facts = field(default_factory=Facts)
    norms: Mapping[tuple[str, int], Floats] = field(default_factory=dict)
    norm_biases: Mapping[tuple[str, int], Floats] = field(default_factory=dict)
    stored_gains: Mapping[tuple[str, int], Floats] = field(default_factory=dict)
    units: Mapping[int, Units] = field(default_factory=dict)
    attention: Mapping[int, Attention] = field(default_factory=dict)
    experts: Mapping[tuple[int, int], Units] = field(default_factory=dict)
    routers: Mapping[int, Floats] = field(default_factory=dict)
    embedding: Embedding | None = None
    head: Embedding | None = None
    headless: bool = False
    few: Mapping[tuple[Address, bool], tuple[Indices, Floats]] = field(default_factory=dict)
    parts: Mapping[Part, Extent] = field(default_factory=dict)
    partial: bool = False
    hidden: int = 0
    rounded: Mapping[tuple[Part, str], str] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Message, ...] = ()
    read: tuple[ReadTensor, ...] = ()
    tower: str = ""
