"""Parts of stored tensors as slices for the planner, and the way back to a matrix.

Only the bytes of the rows asked for are read, whichever way round the tensor is stored;
`Cut.assemble` turns what was read into rows by inputs, as every measure expects.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.errors import SliceOutside
from kinprint.model.layout.parts import IN_OUT, Layout
from kinprint.records import Slice, TensorSpec
from kinprint.text import message

# Columns closer than this are read through: they share a sector of any disk or packet.
_NEAR = 32


class Cut(Struct, frozen=True):
    """Slices to read and how to put them together: `shape` is that of the result.

    `pick` selects among the columns read where they lie too close to be read apart, or
    among rows read in stored order.
    """

    slices: tuple[Slice, ...]
    shape: tuple[int, ...]
    transpose: bool = False
    pick: tuple[int, ...] | None = None
    offset: float = 0.0

    def assemble(self, arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The logical matrix (or vector) from the arrays that reading the slices gave."""
        if self.transpose:
            flat = [a.reshape(prod(a.shape[:-1]), a.shape[-1]) for a in arrays]
            joined = _in_one(flat, axis=1)
            joined = (joined if self.pick is None else joined[:, self.pick]).T
        else:
            joined = _in_one([np.atleast_1d(a) for a in arrays], axis=0)
            joined = joined if self.pick is None else joined[list(self.pick)]
        joined = joined.reshape(self.shape)
        return joined + joined.dtype.type(self.offset) if self.offset else joined


def cut(
    spec: TensorSpec,
    layout: Layout,
    part: str,
    rows: Sequence[int] | None = None,
    *,
    columns: range | None = None,
    expert: int | None = None,
) -> Cut:
    """Plan reading `rows` (all if None) of a part of a tensor, of one expert if stacked.

    Rows and columns are logical: outputs and inputs, whichever way round they are stored.
    """
    if spec.shape != layout.shape and prod(spec.shape) == prod(layout.shape):
        spec = msgspec.structs.replace(spec, shape=layout.shape)  # its heads are folded
    found = layout.part(part)
    if found is None:
        raise SliceOutside(
            tensor=spec.name, shape=list(spec.shape), what=message("cause.slice.part", part=part)
        )
    wanted = range(found.rows) if rows is None else _compact(rows)
    if rows is not None and len(wanted) and (min(wanted) < 0 or max(wanted) >= found.rows):
        what = message("cause.slice.row", number=max(wanted))
        raise SliceOutside(tensor=spec.name, shape=list(spec.shape), what=what)
    if bool(layout.experts) != (expert is not None) or not 0 <= (expert or 0) < max(
        layout.experts, 1
    ):
        what = message("cause.slice.expert", number=expert)
        raise SliceOutside(tensor=spec.name, shape=list(spec.shape), what=what)
    if rows is None and len(spec.shape) < 2 and found.rows == spec.count and not found.paired:
        return Cut((Slice(spec),), (spec.count,), offset=layout.norm_offset)
    stored = found.places(wanted)
    if len(spec.shape) < 2:
        return _vector(spec, layout, stored)
    if layout.orient == IN_OUT or layout.axis == len(spec.shape) - 1:
        return _from_columns(spec, layout, stored, columns, expert or 0)
    return _from_rows(spec, layout, stored, columns, expert or 0)


def _in_one(arrays: Sequence[NDArray[Any]], axis: int) -> NDArray[Any]:
    """Arrays beside each other; a single one is taken as it is, unless it shows bytes as read.

    Whoever asked for numbers may change them.
    """
    if len(arrays) == 1 and arrays[0].flags.writeable:
        return arrays[0]
    return np.concatenate(arrays, axis=axis)


def _vector(spec: TensorSpec, layout: Layout, stored: Sequence[int]) -> Cut:
    """Single elements of a bias or a norm."""
    elements = _compact(stored)
    cells = (Slice(spec, elements=elements),)
    return Cut(cells, (len(stored),), offset=layout.norm_offset)


def _from_rows(
    spec: TensorSpec, layout: Layout, stored: Sequence[int], columns: range | None, expert: int
) -> Cut:
    """Outputs are rows: each is one stored row, or several where a row has two axes."""
    inner = prod(spec.shape[layout.axis + 1 : -1])
    first = expert * layout.outputs
    lines: Sequence[int]
    if isinstance(stored, range):
        lines = range((first + stored.start) * inner, (first + stored.stop) * inner)
    else:
        lines = [(first + row) * inner + i for row in stored for i in range(inner)]
    width = spec.shape[-1] if columns is None else len(columns)
    shape = (len(stored), inner * width)
    if columns is None and lines == range(prod(spec.shape[:-1])):
        return Cut((Slice(spec),), shape)
    if not lines:
        return Cut((Slice(spec, rows=range(0), columns=columns),), shape)
    return Cut((Slice(spec, rows=_compact(lines), columns=columns),), shape)


def _from_columns(
    spec: TensorSpec, layout: Layout, stored: Sequence[int], columns: range | None, expert: int
) -> Cut:
    """Outputs are columns: runs of columns of every stored row, turned when assembled."""
    if layout.flat:
        height = spec.shape[0] // layout.experts
    else:
        height = prod(spec.shape[1:-1]) if layout.experts else prod(spec.shape[:-1])
    inputs = range(height) if columns is None else columns
    start = expert * height
    lines = range(start + inputs.start, start + inputs.stop, inputs.step)
    runs = [stored] if isinstance(stored, range) else _gather(sorted(set(stored)))
    slices = [Slice(spec, rows=lines, columns=run) for run in runs]
    pick = None if isinstance(stored, range) else _picked(stored, runs)
    bias = layout.orient != IN_OUT
    shape = (len(stored),) if bias else (len(stored), len(lines))
    if not slices:
        slices.append(Slice(spec, rows=lines, columns=range(0)))
    return Cut(tuple(slices), shape, transpose=True, pick=pick)


def _picked(columns: Sequence[int], runs: Sequence[range]) -> tuple[int, ...] | None:
    """Places of columns among those that were read; None where they are all of them in order."""
    place = {column: at for at, column in enumerate(chain.from_iterable(runs))}
    pick = tuple(place[column] for column in columns)
    return None if pick == tuple(range(len(place))) else pick


def _gather(columns: list[int]) -> list[range]:
    """Ranges that cover sorted columns, joined where they lie close together."""
    runs: list[range] = []
    for column in columns:
        if runs and column - runs[-1].stop < _NEAR:
            runs[-1] = range(runs[-1].start, column + 1)
        else:
            runs.append(range(column, column + 1))
    return runs


def _compact(indices: Sequence[int]) -> range | tuple[int, ...]:
    """Indices as a range where they are one."""
    if isinstance(indices, range):
        return indices
    if len(indices) and list(indices) == list(range(indices[0], indices[0] + len(indices))):
        return range(indices[0], indices[0] + len(indices))
    return tuple(indices)
