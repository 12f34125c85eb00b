"""Numbers of tensors that correspond, block by block: memory stays small, however large they are.

A block is cut along the axis along which its tensors are stored, so that it is one run of bytes in
each file. Where two tensors are stored the other way round, there is no such axis: they are one
block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import numpy as np
from msgspec import Struct

from kinprint.model.layout.parts import IN_OUT
from kinprint.model.model import Floats, Model, Reading
from kinprint.model.places import Place
from kinprint.reader.decode import Array, as_float32

NUMBERS = 1 << 21
"""Numbers of one tensor in a block, about."""


class Extent(Struct, frozen=True):
    """Rows and columns of a matrix; a vector is one column."""

    rows: range
    columns: range

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return len(self.rows) * len(self.columns)


def matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """Outputs by inputs; a vector has one column."""
    return shape[0] if shape else 1, prod(shape[1:])


def extents(places: Sequence[Place], numbers: int = NUMBERS) -> list[Extent]:
    """Blocks that together are all of tensors of one shape; one without numbers where these have
    none."""
    shape = places[0].shape
    assert shape is not None
    rows, columns = matrix_shape(shape)
    turned = {_is_turned(place) for place in places}
    if len(turned) > 1 or len(shape) < 2 or not rows * columns:
        return [Extent(range(rows), range(columns))]
    long, short = (columns, rows) if turned == {True} else (rows, columns)
    each = max(1, numbers // max(short, 1))
    runs = [range(start, min(start + each, long)) for start in range(0, long, each)]
    if turned == {True}:
        return [Extent(range(rows), run) for run in runs]
    return [Extent(run, range(columns)) for run in runs]


def reading_of(model: Model, place: Place, extent: Extent) -> Reading:
    """Plan reading a block of a tensor."""
    rows, columns = matrix_shape(place.shape or ())
    some_rows = None if len(extent.rows) == rows else extent.rows
    some_columns = None if len(extent.columns) == columns else extent.columns
    return model.reading(place, some_rows, some_columns)


def stored_block(model: Model, place: Place, extent: Extent) -> Array:
    """The numbers of a block in the type they are stored in, as a matrix."""
    found = reading_of(model, place, extent).take_stored()
    return found.reshape(len(extent.rows), len(extent.columns))


def blocks(
    tensors: Sequence[tuple[Model, Place]], *, numbers: int = NUMBERS
) -> Iterator[tuple[Floats, ...]]:
    """Tensors of one shape side by side: the same block of each, one block after another."""
    for extent in extents([place for _, place in tensors], numbers):
        yield tuple(
            np.asarray(as_float32(stored_block(model, place, extent))) for model, place in tensors
        )


def _is_turned(place: Place) -> bool:
    layout = place.weight.layout
    return layout is not None and layout.orient == IN_OUT and place.weight.quantised is None
