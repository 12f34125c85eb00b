"""A quantised weight as the rooms above see it: rows of floats, whatever lies on disk.

Every format is a codec, a pure pair: which slices of which stored tensors some rows need,
and the arithmetic from those arrays to numbers. Nothing here reads a byte, so that what a
comparison costs is known before it starts, for quantised models as for plain ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Protocol, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from kinprint import text
from kinprint.errors import BadQuantisation, SliceOutside
from kinprint.reader.decode import Array, as_float32
from kinprint.records import Slice, TensorSpec

Rows = range | tuple[int, ...]
Floats = NDArray[np.float32]
Wanted = Mapping[str, tuple[Slice, ...]]
Pieces = Mapping[str, Sequence[Array]]
_DIVIDES = "global_scale"


class NumberFormat(msgspec.Struct, frozen=True):
    """How the numbers of a weight are written: what the format is called, and bits of a number.

    Scales are not counted among the bits; None where only a stored tensor's values tell them.
    """

    name: str
    bits: int | None


class Codec(Protocol):
    """How one format turns stored numbers into floats.

    `wanted` and `floats` speak of the same parts by the same names: the arrays come back
    part by part, one for each slice that was wanted, in that order.
    """

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Logical shape, inputs last; None while only a stored tensor's values tell it."""

    @property
    def summary(self) -> text.Message:
        """What the format is, in a few words for people."""

    @property
    def format(self) -> NumberFormat:
        """What the format is called, and its bits."""

    def describing(self) -> tuple[Slice, ...]:
        """Small tensors whose values say what the header does not."""

    def described(self, arrays: Sequence[Array]) -> Codec:
        """The same codec once those values are known."""

    def wanted(self, rows: Rows) -> Wanted:
        """Slices that `rows` need, by part."""

    def floats(self, rows: Rows, pieces: Pieces) -> Floats:
        """The rows, from what was wanted."""


class HeaderCodec(msgspec.Struct, frozen=True):
    """A codec of which headers and the configuration tell all."""

    def describing(self) -> tuple[Slice, ...]:
        """Nothing."""
        return ()

    def described(self, arrays: Sequence[Array]) -> Self:
        """Itself."""
        return self


class QuantisedWeight(msgspec.Struct, frozen=True):
    """One logical weight and the stored tensors that hold it.

    `name` is what an unquantised model would call it. `shape` has the inputs last; with
    stacked experts it has three axes, and rows then count through all experts. It is None
    where the file writes it into a tensor of its own: read `describing` and give it to
    `described`. `parts` are the stored tensors, none of which is a weight by itself.
    """

    name: str
    codec: Codec
    parts: Mapping[str, TensorSpec]

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Logical shape, inputs last."""
        return self.codec.shape

    @property
    def summary(self) -> text.Message:
        """What the format is, in a few words for people."""
        return self.codec.summary

    @property
    def format(self) -> NumberFormat:
        """What the format is called, and its bits."""
        return self.codec.format

    @property
    def stored_bytes(self) -> int:
        """Bytes that the weight takes on disk, companions included."""
        return sum(spec.nbytes for spec in self.parts.values())


def describing(weight: QuantisedWeight) -> tuple[Slice, ...]:
    """Slices to read before `needed` can be asked; empty for nearly every format.

    Where `shape` is known without them they only make sure of it.
    """
    return weight.codec.describing()


def described(weight: QuantisedWeight, arrays: Sequence[Array]) -> QuantisedWeight:
    """The weight once what `describing` asked for has been read."""
    if not describing(weight):
        return weight
    return QuantisedWeight(weight.name, weight.codec.described(arrays), weight.parts)


def needed(weight: QuantisedWeight, rows: Rows) -> tuple[Slice, ...]:
    """Slices of the stored tensors that hold `rows` of the logical weight."""
    _check_rows(weight, rows)
    groups = weight.codec.wanted(rows)
    return tuple(part for group in groups.values() for part in group)


def float_rows(weight: QuantisedWeight, rows: Rows, arrays: Sequence[Array]) -> Floats:
    """Rows of the logical weight in single precision, from the arrays of `needed`.

    Nothing is rounded to the half precision that a library would compute in: two models
    are compared by what their files say, not by what a kernel makes of it.
    """
    shape = _check_rows(weight, rows)
    groups = weight.codec.wanted(rows)
    expected = sum(len(group) for group in groups.values())
    if expected != len(arrays):
        raise ValueError(f"{weight.name} needs {expected} arrays, got {len(arrays)}")
    if not len(rows):
        return np.zeros((0, shape[-1]), np.float32)
    source = iter(arrays)
    pieces = {part: [next(source) for _ in group] for part, group in groups.items()}
    # What is infinite or not a number on disk stays so, without a warning about it.
    with np.errstate(over="ignore", invalid="ignore"):
        return weight.codec.floats(rows, pieces)


def conflict(spec: TensorSpec, key: str, /, **fields: object) -> BadQuantisation:
    """The refusal of a tensor whose companions, or whose configuration, say something else."""
    fault = text.message(key, **fields)
    cause = text.message("cause.quantised.tensor", tensor=spec.name, fault=fault)
    return BadQuantisation(file=spec.file, cause=cause)


class Overall(msgspec.Struct, frozen=True):
    """One more scale for a whole tensor, or for each of stacked experts.

    modelopt multiplies by it (`weight_scale_2`), compressed-tensors divides
    (`weight_global_scale`).
    """

    spec: TensorSpec
    outputs: int

    @classmethod
    def over(cls, shape: tuple[int, ...], spec: TensorSpec | None) -> Self | None:
        """The scale over a weight of some shape, if there is one."""
        if spec is None:
            return None
        if spec.count not in (1, prod(shape[:-2])):
            raise conflict(spec, "cause.quantised.overall", numbers=spec.count, shape=list(shape))
        return cls(spec, prod(shape[-2:-1]))

    def applied(self, scale: Floats, rows: Rows, pieces: Pieces) -> Floats:
        """Scales of some rows with this one."""
        overall = as_float32(pieces["overall"][0]).reshape(-1)
        experts = indices(rows) // self.outputs if overall.size > 1 else [0] * len(rows)
        factor = overall[experts][:, None]
        return scale / factor if self.spec.name.endswith(_DIVIDES) else scale * factor


def runs(rows: Rows) -> Iterator[range]:
    """Rows as stretches of consecutive ones, in the order asked for."""
    if isinstance(rows, range) and rows.step == 1:
        if len(rows):
            yield rows
        return
    stretch: range | None = None
    for row in rows:
        if stretch is not None and row == stretch.stop:
            stretch = range(stretch.start, row + 1)
            continue
        if stretch is not None:
            yield stretch
        stretch = range(row, row + 1)
    if stretch is not None:
        yield stretch


def row_slices(spec: TensorSpec, width: int, rows: Rows) -> tuple[Slice, ...]:
    """Slices of a tensor seen as rows of `width` numbers, whatever axes it has."""
    columns = spec.shape[-1] if spec.shape else 0
    parts: list[Slice] = []
    for part in runs(rows):
        if len(part) * width == spec.count:
            parts.append(Slice(spec))
        elif columns and width % columns == 0:
            times = width // columns
            parts.append(Slice(spec, rows=range(part.start * times, part.stop * times)))
        else:
            parts.append(Slice(spec, elements=range(part.start * width, part.stop * width)))
    return tuple(parts)


def join_rows(arrays: Sequence[Array], width: int) -> Array:
    """What `row_slices` asked for, as one matrix."""
    return join([array.reshape(-1) for array in arrays]).reshape(-1, width)


def join(arrays: Sequence[Array], axis: int = 0) -> Array:
    """Arrays one after another, or the only one as it is."""
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis)


def indices(rows: Rows) -> NDArray[np.int64]:
    """Rows as an array."""
    return np.asarray(rows, np.int64)


def _check_rows(weight: QuantisedWeight, rows: Rows) -> tuple[int, ...]:
    shape = weight.shape
    if shape is None:
        tensor = next(iter(describing(weight))).tensor
        raise conflict(tensor, "cause.quantised.unread", weight=weight.name)
    height = prod(shape[:-1])
    if len(rows) and (min(rows) < 0 or max(rows) >= height):
        worst = max(rows) if max(rows) >= height else min(rows)
        what = text.message("cause.slice.row", number=worst)
        raise SliceOutside(tensor=weight.name, shape=list(shape), what=what)
    return shape
