"""Eight-bit numbers times a scale: fp8 of every breed, and int8.

One rule covers them all: a scale tensor has on each axis either one entry for everything,
one for each index, or one for each block. So come per-tensor, per-row, per-group and
DeepSeek's 128×128 blocks out of the same arithmetic, the last block of an axis being
whatever is left of it (DeepSeek-V3, inference/kernel.py, `weight_dequant`; transformers,
integrations/finegrained_fp8.py and fbgemm_fp8.py; compressed-tensors, naive_quantized).
`weight_scale_inv`, in spite of its name, is multiplied.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import msgspec
import numpy as np
from numpy.typing import NDArray

from kinprint.errors import Malformed
from kinprint.model.quantised.codes import FP8, scale_floats
from kinprint.model.quantised.weight import (
    Floats,
    HeaderCodec,
    NumberFormat,
    Overall,
    Pieces,
    Rows,
    Wanted,
    conflict,
    indices,
    join_rows,
    row_slices,
)
from kinprint.reader.decode import as_float32
from kinprint.records import Slice, TensorSpec
from kinprint.text import Message, message

_USUAL = (128, 64, 32, 16, 256, 512)


class Grid(msgspec.Struct, frozen=True):
    """A scale tensor as a grid over the weight: its shape, and the block of each axis."""

    shape: tuple[int, ...]
    block: tuple[int, ...]

    def rows(self, rows: Rows, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """Which row of the grid each row of the weight falls into."""
        left, row = indices(rows), np.zeros(len(rows), np.int64)
        step = 1
        for axis in reversed(range(len(shape) - 1)):
            row += left % shape[axis] // self.block[axis] * step
            left = left // shape[axis]
            step *= self.shape[axis]
        return row


def lay_grid(
    scale: TensorSpec, shape: tuple[int, ...], block: tuple[int, int] | None = None
) -> Grid:
    """How a scale tensor lies over a weight; `block` is what the configuration says."""
    try:
        return _grid(scale.shape, shape, block)
    except Malformed as error:
        raise conflict(scale, error.cause.key, **error.cause.fields) from None


@lru_cache(maxsize=1024)  # thousands of experts have one shape
def _grid(scale: tuple[int, ...], shape: tuple[int, ...], block: tuple[int, int] | None) -> Grid:
    if not shape:
        raise Malformed("cause.quantised.single")
    sizes = _full_shape(scale, shape)
    told = (*(1 for _ in shape[:-2]), *block) if block is not None and len(shape) > 1 else None
    blocks: list[int] = []
    open_axes: list[int] = []
    for axis, (have, full) in enumerate(zip(sizes, shape, strict=True)):
        if told is not None and -(-full // told[axis]) == have and have not in (1, full):
            blocks.append(told[axis])
        elif have == 1:
            blocks.append(max(full, 1))
        elif have == full:
            blocks.append(1)
        else:
            blocks.append(0)
            open_axes.append(axis)
    if open_axes:
        size = _guess(scale, [(sizes[a], shape[a]) for a in open_axes], shape)
        for axis in open_axes:
            blocks[axis] = size
    return Grid(sizes, tuple(blocks))


def _full_shape(scale: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The scale's shape with as many axes as the weight has."""
    count = prod(scale)
    if count == 1:
        return (1,) * len(shape)
    if len(scale) == len(shape):
        return scale
    lead = prod(shape[:-1])
    if count == lead and scale in ((lead,), shape[:-1]):
        return (*shape[:-1], 1)
    if len(shape) == 3 and scale == (shape[0],):
        return (shape[0], 1, 1)
    raise Malformed("cause.quantised.scale-shape", shape=list(scale), weight=list(shape))


def _guess(scale: tuple[int, ...], axes: list[tuple[int, int]], shape: tuple[int, ...]) -> int:
    """The block size that explains every axis, the usual ones first."""
    exact = [full // have for have, full in axes if have and full and full % have == 0]
    for size in (*_USUAL, *exact):
        if all(-(-full // size) == have for have, full in axes):
            return size
    raise Malformed("cause.quantised.no-block", shape=list(scale), weight=list(shape))


class Scaled(HeaderCodec, frozen=True):
    """Numbers of eight bits with scales on a grid, and perhaps zero points on the same."""

    weight: TensorSpec
    scale: TensorSpec
    grid: Grid
    zero: TensorSpec | None = None
    layout: TensorSpec | None = None
    factor: float = 1.0
    overall: Overall | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Logical shape, inputs last."""
        return self.weight.shape

    @property
    def summary(self) -> Message:
        """What the format is, in a few words for people."""
        return _summary("fp8" if self.weight.dtype in FP8 else "int8", self.shape, self.grid)

    @property
    def format(self) -> NumberFormat:
        """What the format is called, and its bits."""
        return NumberFormat("fp8" if self.weight.dtype in FP8 else "int8", 8)

    def wanted(self, rows: Rows) -> Wanted:
        """Rows of the weight, and those rows of the grid that they fall into."""
        width = self.grid.shape[-1]
        grid_rows = tuple(np.unique(self.grid.rows(rows, self.shape)).tolist())
        parts = {
            "weight": row_slices(self.weight, self.shape[-1], rows),
            "scale": row_slices(self.scale, width, grid_rows),
        }
        if self.zero is not None:
            parts["zero"] = row_slices(self.zero, width, grid_rows)
        if self.layout is not None:
            parts["layout"] = (Slice(self.layout),)
        if self.overall is not None:
            parts["overall"] = (Slice(self.overall.spec),)
        return parts

    def floats(self, rows: Rows, pieces: Pieces) -> Floats:
        """Each number, less its zero point, times its scale."""
        if self.layout is not None and np.any(pieces["layout"][0]):
            # bitsandbytes 0.43 and before could save tiles of the GPU's kernels.
            raise conflict(self.layout, "cause.quantised.tiles")
        columns, width = self.shape[-1], self.grid.shape[-1]
        values = as_float32(join_rows(pieces["weight"], columns))
        places = self.grid.rows(rows, self.shape)
        home = np.searchsorted(np.unique(places), places)
        across = np.minimum(np.arange(columns) // self.grid.block[-1], width - 1)
        scale = scale_floats(join_rows(pieces["scale"], width))[home]
        if self.zero is not None:
            zero = as_float32(join_rows(pieces["zero"], width))[home]
            values = values - (zero if width == 1 else zero[:, across])
        if self.factor != 1.0:
            scale = scale * np.float32(self.factor)
        if self.overall is not None:
            scale = self.overall.applied(scale, rows, pieces)
        return np.multiply(values, scale if width == 1 else scale[:, across], dtype=np.float32)


@lru_cache(maxsize=1024)
def _summary(kind: str, shape: tuple[int, ...], grid: Grid) -> Message:
    if grid.shape[-1] == 1:
        whole = prod(grid.shape[:-1])
        if whole == 1:
            return message("note.quantised.one-scale", format=kind)
        rows = whole == prod(shape[:-1])
        key = "note.quantised.scale-per-row" if rows else "note.quantised.scale-per-part"
        return message(key, format=kind)
    rows_of_block = grid.block[-2] if len(grid.block) > 1 else 1
    block = f"{rows_of_block}×{grid.block[-1]}"
    return message("note.quantised.scale-per-block", format=kind, block=block)


def scaled(
    weight: TensorSpec,
    scale: TensorSpec,
    zero: TensorSpec | None = None,
    block: tuple[int, int] | None = None,
    overall: TensorSpec | None = None,
) -> Scaled:
    """An fp8 or int8 weight with its scales."""
    grid = lay_grid(scale, weight.shape, block)
    if zero is not None and zero.count != scale.count:
        raise conflict(
            zero, "cause.quantised.zero-scales", shape=list(zero.shape), scales=list(scale.shape)
        )
    return Scaled(weight, scale, grid, zero, overall=Overall.over(weight.shape, overall))


def bitsandbytes_int8(weight: TensorSpec, absmax: TensorSpec, layout: TensorSpec | None) -> Scaled:
    """LLM.int8(): each row was divided by its largest magnitude (`SCB`) and times 127."""
    grid = lay_grid(absmax, weight.shape)
    return Scaled(weight, absmax, grid, layout=layout, factor=1 / 127)
