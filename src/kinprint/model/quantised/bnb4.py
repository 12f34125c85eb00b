"""bitsandbytes' four bits (nf4 and fp4): flat blocks, a table of sixteen values, absmax.

    weight                       bytes [n/2, 1], two codes each, the first in the HIGH bits
    weight.absmax                one per block: float32, or bytes that are quantised again
    weight.quant_map             the sixteen values
    weight.nested_absmax, weight.nested_quant_map     the second quantisation
    weight.quant_state.bitsandbytes__nf4 (or __fp4)   JSON: shape, block sizes, offset

The logical shape stands only in that JSON, about a hundred bytes for each weight, which is
why such a weight has to be described before its rows can be planned. Sources: bitsandbytes
0.50.2, functional.py (`QuantState`, `dequantize_4bit`) and backends/default/ops.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isfinite, prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.model.quantised.codes import item_size, nibbles
from kinprint.model.quantised.weight import (
    Floats,
    NumberFormat,
    Pieces,
    Rows,
    Wanted,
    conflict,
    indices,
    join_rows,
    row_slices,
    runs,
)
from kinprint.reader.decode import Array, as_float32
from kinprint.records import Slice, TensorSpec
from kinprint.text import Message, message


class State(Struct, frozen=True):
    """What the JSON says."""

    shape: tuple[int, ...]
    block: int
    nested_block: int = 0
    nested_offset: float = 0.0


class Bnb4(Struct, frozen=True):
    """A four-bit weight of bitsandbytes; `state` is None until it was read."""

    packed: TensorSpec
    absmax: TensorSpec
    table: TensorSpec
    written: TensorSpec
    nested_absmax: TensorSpec | None = None
    nested_table: TensorSpec | None = None
    state: State | None = None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Logical shape, inputs last."""
        return None if self.state is None else self.state.shape

    @property
    def summary(self) -> Message:
        """What the format is, in a few words for people."""
        kind = self.written.name.rpartition("__")[2]
        size = None if self.state is None else self.state.block
        key = "note.quantised.bnb4" if size is None else "note.quantised.bnb4-blocks"
        plain = message(key, kind=kind, size=size)
        return message("note.quantised.twice", format=plain) if self.nested_absmax else plain

    @property
    def format(self) -> NumberFormat:
        """What the format is called, and its bits."""
        return NumberFormat(self.written.name.rpartition("__")[2].upper(), 4)

    def describing(self) -> tuple[Slice, ...]:
        """The JSON."""
        return (Slice(self.written),)

    def described(self, arrays: Sequence[Array]) -> Bnb4:
        """The weight with the shape and block sizes that the JSON gives."""
        try:
            told = json.loads(bytes(arrays[0].astype(np.uint8)))
            nested = self.nested_absmax is not None
            state = State(
                tuple(int(size) for size in told["shape"]),
                int(told["blocksize"]),
                int(told["nested_blocksize"]) if nested else 0,
                float(told["nested_offset"]) if nested else 0.0,
            )
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            raise conflict(self.written, "cause.quantised.no-json") from None
        count = prod(state.shape)
        held = self.packed.count * item_size(self.packed) * 2
        if len(state.shape) < 2 or min(state.shape) < 1 or not count <= held <= count + 1:
            shape = list(state.shape)
            raise conflict(self.written, "cause.quantised.codes", shape=shape, codes=held)
        if state.block < 1 or -(-count // state.block) != self.absmax.count:
            blocks = self.absmax.count
            raise conflict(
                self.absmax, "cause.quantised.blocks", blocks=blocks, size=state.block, count=count
            )
        if self.nested_absmax is not None and (
            state.nested_block < 1
            or -(-self.absmax.count // state.nested_block) != self.nested_absmax.count
            or not isfinite(state.nested_offset)
        ):
            raise conflict(self.nested_absmax, "cause.quantised.json-blocks")
        return replace(self, state=state)

    def wanted(self, rows: Rows) -> Wanted:
        """The bytes that hold the rows, the scales of their blocks, and the tables."""
        assert self.state is not None
        width, size = self.state.shape[-1], item_size(self.packed) * 2
        spans = (range(part.start * width, part.stop * width) for part in runs(rows))
        # Numbers may share a stored element with those of the next row.
        held = (range(span.start // size, -(-span.stop // size)) for span in spans)
        blocks = self._blocks(rows)
        parts = {
            "packed": tuple(part for span in held for part in row_slices(self.packed, 1, span)),
            "absmax": row_slices(self.absmax, 1, blocks),
            "table": (Slice(self.table),),
        }
        if self.nested_absmax is not None and self.nested_table is not None:
            outer = tuple(np.unique(indices(blocks) // self.state.nested_block).tolist())
            parts["nested_absmax"] = row_slices(self.nested_absmax, 1, outer)
            parts["nested_table"] = (Slice(self.nested_table),)
        return parts

    def floats(self, rows: Rows, pieces: Pieces) -> Floats:
        """The table's value for each code, times the scale of its block."""
        assert self.state is not None
        width, size = self.state.shape[-1], item_size(self.packed) * 2
        table = as_float32(pieces["table"][0]).reshape(-1)
        block, blocks = self.state.block, indices(self._blocks(rows))
        scale = self._scales(blocks, pieces)
        out = np.empty((len(rows), width), np.float32)
        filled = 0
        for part, stored in zip(runs(rows), pieces["packed"], strict=True):
            start, count = part.start * width, len(part) * width
            codes = nibbles(stored.reshape(-1).view(np.uint8), low_first=False)
            skip = start % size
            values = out[filled : filled + len(part)].reshape(-1)  # a view: rows lie together
            np.take(table, codes[skip : skip + count], out=values)
            first, last = start // block, -(-(start + count) // block)
            home = np.searchsorted(blocks, first)
            spread = np.repeat(scale[home : home + last - first], block)
            values *= spread[start - first * block :][:count]
            filled += len(part)
        return out

    def _scales(self, blocks: NDArray[np.int64], pieces: Pieces) -> Floats:
        assert self.state is not None
        absmax = join_rows(pieces["absmax"], 1)[:, 0]
        if self.nested_absmax is None:
            return as_float32(absmax)
        nested = as_float32(join_rows(pieces["nested_absmax"], 1)[:, 0])
        table = as_float32(pieces["nested_table"][0]).reshape(-1)
        outer = blocks // self.state.nested_block
        home = np.searchsorted(np.unique(outer), outer)
        return table[absmax] * nested[home] + np.float32(self.state.nested_offset)

    def _blocks(self, rows: Rows) -> Rows:
        """Blocks that the rows touch, in order."""
        assert self.state is not None
        width, block = self.state.shape[-1], self.state.block
        spans = [
            range(part.start * width // block, -(-part.stop * width // block))
            for part in runs(rows)
        ]
        if len(spans) == 1:
            return spans[0]
        return tuple(sorted({index for span in spans for index in span}))


def bnb4(parts: dict[str, TensorSpec]) -> Bnb4:
    """A four-bit weight from its tensors, named by what follows `weight.`."""
    packed, absmax = parts["weight"], parts["absmax"]
    written = next((spec for part, spec in parts.items() if part.startswith("quant_state")), None)
    table, nested = parts.get("quant_map"), parts.get("nested_absmax")
    nested_table = parts.get("nested_quant_map")
    if written is None or table is None:
        raise conflict(packed, "cause.quantised.no-state")
    if written.dtype != "U8" or written.count > 64 * 1024 or table.count != 16:
        raise conflict(written, "cause.quantised.odd-description")
    if (absmax.dtype == "U8") != (nested is not None and nested_table is not None):
        raise conflict(absmax, "cause.quantised.nested")
    if nested_table is not None and nested_table.count != 256:
        raise conflict(nested_table, "cause.quantised.values", values=nested_table.count)
    return Bnb4(packed, absmax, table, written, nested, nested_table)
