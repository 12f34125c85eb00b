"""What a diff gives: frozen records that hold all a document says, and compute nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from kinprint.diff.pairing import Correspondence
from kinprint.records import Component, Cost, ModelRef, Operation, Relation, Side, TensorStatus
from kinprint.text import Message

if TYPE_CHECKING:  # what few diffs have, and what most of the room is loaded for
    from kinprint.diff.direction import Direction
    from kinprint.diff.given import Beyond
    from kinprint.diff.merge_records import Unmerging


class Estimate(Struct, frozen=True):
    """A number, and bounds that hold the one of the whole tensor where only some of it was read."""

    value: float
    low: float | None = None
    high: float | None = None


class Rounding(Struct, frozen=True):
    """That one tensor holds the numbers of the other, rounded.

    `bits` are those of a number of the coarser one.
    """

    bits: int
    coarser: Side
    exact: bool


class Directions(Struct, frozen=True):
    """How a change is spread over directions: see `measure.low_rank.ChangeSpectrum`."""

    effective: float
    rank: int | None
    low: int
    high: int
    whiteness: float


class TensorChange(Struct, frozen=True):
    """What became of one tensor.

    Attributes
    ----------
    role, tower, layer, expert : what it is, in the second model where that has it.
    from_layer, from_expert : what it is from in the first model.
    component : the part of a model that it belongs to.
    a, b : its name in the files of either model.
    a_format, b_format : how its numbers are stored; `a_bits` and `b_bits` are bits of a number.
    shape : outputs and inputs that were compared.
    status : whether it was compared, or why not; `reason` says more.
    numbers, read : how many numbers correspond, and how many of them were read.
    changed : the share of numbers that are not equal.
    relative : the size of the change in terms of what was there.
    largest : the largest change of a number.
    scale, cosine : the factor between the two, and how nearly one is a multiple of the other.
    centred : of a vector, the same cosine once the mean was taken off both; None where that leaves
        next to nothing.
    broken : numbers that are not finite in either.
    zeroed, filled : the share of numbers that became zero, or were zero and are not any more.
    zeros : the share of numbers that are zero in both, which is no likeness.
    rounding : where one is the other rounded.
    grid : bits of a coarse grid that the second lies on and the first does not, where neither is
        the other rounded.
    directions : how the change is spread, where it was read whole.
    left : how much of the second lies in the directions of the change, 1 for as much as by chance.
    uneven : how far the factors of single rows or columns are from that of all.
    rounding_errors : the size of what rounding to the second model's type changes, in terms of the
        change.
    row_factors, column_factors : of the first rows or columns, what each was multiplied by, where
        each is a multiple of what it was.
    """

    role: str
    tower: str
    layer: int | None
    expert: int | None
    from_layer: int | None
    from_expert: int | None
    component: Component | None
    a: str | None
    b: str | None
    a_format: str | None
    b_format: str | None
    a_bits: int | None
    b_bits: int | None
    shape: tuple[int, ...]
    status: TensorStatus
    reason: Message | None = None
    numbers: int = 0
    read: int = 0
    changed: Estimate | None = None
    relative: Estimate | None = None
    largest: float | None = None
    scale: float | None = None
    cosine: float | None = None
    centred: float | None = None
    broken: int = 0
    zeroed: float = 0.0
    filled: float = 0.0
    zeros: float = 0.0
    rounding: Rounding | None = None
    grid: int | None = None
    directions: Directions | None = None
    left: float | None = None
    uneven: float | None = None
    rounding_errors: float | None = None
    row_factors: tuple[float, ...] = ()
    column_factors: tuple[float, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether all numbers that were read are equal."""
        return self.changed is not None and self.changed.value == 0.0


class OperationFound(Struct, frozen=True):
    """An operation, and what shows it.

    Attributes
    ----------
    kind : which one.
    evidence : what shows it, in a sentence.
    components : parts of the model that it is about, where not all.
    format, bits : of quantised and cast numbers.
    rank : of a merged adapter.
    """

    kind: Operation
    evidence: Message
    components: tuple[Component, ...] = ()
    format: str | None = None
    bits: int | None = None
    rank: int | None = None


class Diff(Struct, frozen=True):
    """Two models and what changed from the first to the second.

    Attributes
    ----------
    a, b : the two models, and which state of each was read.
    tensors : every tensor of both.
    relation : how a comparison says the two are related.
    operations : what was done to the first, as far as numbers tell; none where a comparison does
        not say that the second has weights of the first.
    map : how their parts correspond.
    sampled : whether a part of each tensor was read.
    cost : what reading took.
    beyond : what the two share beyond a base, where one was given.
    direction : which came first, where an operation looks the same either way.
    merge : the merge that one of the two is, where one is proved.
    candidates : models that were asked for as parents of a merge.
    notes, labels : remarks on how models were read, and what they say they are not.
    """

    a: ModelRef
    b: ModelRef
    tensors: tuple[TensorChange, ...]
    relation: Relation
    operations: tuple[OperationFound, ...]
    map: Correspondence
    sampled: bool
    cost: Cost
    beyond: Beyond | None = None
    direction: Direction | None = None
    merge: Unmerging | None = None
    candidates: tuple[str, ...] = ()
    notes: tuple[Message, ...] = ()
    labels: tuple[Message, ...] = ()
