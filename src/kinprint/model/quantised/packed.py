"""compressed-tensors' `pack-quantized`: whole numbers of a few bits, rows kept as rows.

    weight_packed      int32 [out, in·bits/32]    fields from the lowest bit on, with no gaps
    weight_scale       [out, groups]              one group for a scale per row
    weight_zero_point  int32 [out·bits/32, groups], packed downwards; or int8 [out, groups]
    weight_g_idx       int32 [in]                 each input's group, where not in order
    weight_shape       int64 [2]                  the logical shape

Codes are unsigned with 2^(bits-1) added (compressed-tensors 0.20.0, compressors/
pack_quantized). Stacked experts put an axis in front of all of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.model.quantised.codes import fields, words_for, words_spanning
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
)
from kinprint.reader.decode import Array, as_float32
from kinprint.records import Slice, TensorSpec
from kinprint.text import Message, message


class Packed(Struct, frozen=True):
    """A packed weight; without `bits` its own shape tensor has to be read first."""

    weight: TensorSpec
    scale: TensorSpec
    zero: TensorSpec | None
    g_idx: TensorSpec | None
    written: TensorSpec | None
    bits: int | None
    inputs: int | None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Logical shape, inputs last."""
        return None if self.inputs is None else (*self.weight.shape[:-1], self.inputs)

    @property
    def summary(self) -> Message:
        """What the format is, in a few words for people."""
        kind = "compressed-tensors" if self.bits is None else f"int{self.bits}"
        groups = self.scale.shape[-1]
        if groups == 1:
            return message("note.quantised.packed-row", format=kind)
        if self.inputs is None:
            return message("note.quantised.packed-scales", format=kind, scales=groups)
        return message("note.quantised.packed-groups", format=kind, size=self.inputs // groups)

    @property
    def format(self) -> NumberFormat:
        """What the format is called, and its bits."""
        return NumberFormat("int" if self.bits is None else f"int{self.bits}", self.bits)

    def describing(self) -> tuple[Slice, ...]:
        """The shape, where the file writes it down and nothing else makes it certain."""
        certain = self.g_idx is not None or self.scale.shape[-1] > 1
        if self.written is None or (self.inputs is not None and certain):
            return ()
        return (Slice(self.written),)

    def described(self, arrays: Sequence[Array]) -> Packed:
        """The width as written, and from it the bits if nothing else told them."""
        if self.written is None:
            return self
        told = [int(size) for size in arrays[0].reshape(-1)]
        if tuple(told[:-1]) not in (self.weight.shape[:-1], self.weight.shape[-2:-1]):
            rows = self.weight.shape[:-1]
            raise conflict(self.written, "cause.quantised.other-rows", said=told, rows=rows)
        inputs, words = told[-1], self.weight.shape[-1]
        bits = self.bits or next(
            (b for b in (4, 8, 2, 3, 5, 6, 7, 1) if _fits(inputs, b, words)), 0
        )
        if inputs < 1 or not _fits(inputs, bits, words):
            raise conflict(self.written, "cause.quantised.other-words", said=told, words=words)
        _check_groups(self.scale, inputs, self.g_idx)
        return replace(self, bits=bits, inputs=inputs)

    def wanted(self, rows: Rows) -> Wanted:
        """Rows of the weight and its scales, and the words that hold the zero points."""
        groups = self.scale.shape[-1]
        parts = {
            "weight": row_slices(self.weight, self.weight.shape[-1], rows),
            "scale": row_slices(self.scale, groups, rows),
        }
        if self.zero is not None and self.zero.dtype == "I32":
            parts["zero"] = row_slices(self.zero, groups, self._zero_rows(rows))
        elif self.zero is not None:
            parts["zero"] = row_slices(self.zero, groups, rows)
        if self.g_idx is not None:
            parts["g_idx"] = (Slice(self.g_idx),)
        if self.written is not None:
            parts["written"] = (Slice(self.written),)
        return parts

    def floats(self, rows: Rows, pieces: Pieces) -> Floats:
        """(code - zero point) times scale, each input by its own group."""
        assert self.inputs is not None and self.bits is not None
        if self.written is not None and int(pieces["written"][0].reshape(-1)[-1]) != self.inputs:
            raise conflict(self.written, "cause.quantised.other-width")
        groups, half = self.scale.shape[-1], 1 << (self.bits - 1)
        starts = np.arange(self.inputs, dtype=np.int64) * self.bits
        codes = fields(join_rows(pieces["weight"], self.weight.shape[-1]), starts, self.bits)
        scale = as_float32(join_rows(pieces["scale"], groups))
        group = self._groups(pieces)
        codes -= half
        if self.zero is not None:
            codes -= self._zeros(rows, pieces)[:, group]
        values = codes.astype(np.float32)
        return np.multiply(values, scale[:, group], out=values)

    def _groups(self, pieces: Pieces) -> NDArray[np.int64]:
        assert self.inputs is not None
        groups = self.scale.shape[-1]
        if self.g_idx is not None:
            group = pieces["g_idx"][0].astype(np.int64)
            if not np.all(group == -1):  # compressed-tensors' own mark for "in order"
                if np.any(group >= groups) or np.any(group < 0):
                    raise conflict(self.g_idx, "cause.quantised.group-beyond", groups=groups)
                return group
        return np.arange(self.inputs, dtype=np.int64) // max(-(-self.inputs // groups), 1)

    def _zero_rows(self, rows: Rows) -> tuple[int, ...]:
        """Rows of packed zero points that hold those of `rows`; experts begin anew."""
        assert self.bits is not None
        outputs = self.weight.shape[-2]
        tall = words_for(outputs, self.bits)
        found: set[int] = set()
        for row in rows:
            expert, inside = divmod(row, outputs)
            span = words_spanning(range(inside, inside + 1), self.bits)
            found.update(word + expert * tall for word in span)
        return tuple(sorted(found))

    def _zeros(self, rows: Rows, pieces: Pieces) -> NDArray[np.int32]:
        assert self.zero is not None and self.bits is not None
        groups = self.scale.shape[-1]
        stored = join_rows(pieces["zero"], groups)
        if self.zero.dtype != "I32":
            return stored.astype(np.int32)
        outputs = self.weight.shape[-2]
        expert, inside = np.divmod(indices(rows), outputs)
        first = inside * self.bits // 32 + expert * words_for(outputs, self.bits)
        home = np.searchsorted(np.asarray(self._zero_rows(rows)), first)
        starts = home * 32 + inside * self.bits % 32
        half = 1 << (self.bits - 1)
        return fields(stored.T, starts, self.bits).T - half


def packed(parts: dict[str, TensorSpec], options: Sequence[tuple[int, int | None]]) -> Packed:
    """A packed weight; `options` are the bits and group sizes that the configuration allows.

    Configurations say by patterns which module takes which; the shapes say it too, and
    cannot be wrong about it. Where several fit, the weight's own shape tensor decides.
    """
    weight, scale = parts["weight_packed"], parts["weight_scale"]
    zero, g_idx = parts.get("weight_zero_point"), parts.get("weight_g_idx")
    written = parts.get("weight_shape")
    if scale.count == 1 and prod(weight.shape[:-1]) != 1:
        raise conflict(scale, "cause.quantised.one-scale")
    if written is not None and (written.count < 2 or written.dtype not in ("I64", "I32")):
        count, dtype = written.count, written.dtype
        raise conflict(written, "cause.quantised.no-shape", numbers=count, dtype=dtype)
    if scale.shape[:-1] != weight.shape[:-1]:
        raise conflict(
            scale,
            "cause.quantised.scale-weight",
            shape=list(scale.shape),
            weight=list(weight.shape),
        )
    groups, words = scale.shape[-1], weight.shape[-1]
    found: set[tuple[int, int]] = set()
    for bits, group in options:
        inputs = g_idx.count if g_idx is not None else words * 32 // bits
        if groups > 1 and group is not None and group > 0:
            inputs = groups * group
        if _fits(inputs, bits, words) and _zeros_fit(zero, weight, groups, bits):
            found.add((bits, inputs))
    if len(found) == 1:
        bits, inputs = found.pop()
        _check_groups(scale, inputs, g_idx)
        return Packed(weight, scale, zero, g_idx, written, bits, inputs)
    if (
        options
        and zero is not None
        and not any(_zeros_fit(zero, weight, groups, bits) for bits, _ in options)
    ):
        raise conflict(
            zero, "cause.quantised.zero-weight", shape=list(zero.shape), weight=list(weight.shape)
        )
    if written is None:
        raise conflict(weight, "cause.quantised.no-width")
    return Packed(weight, scale, zero, g_idx, written, None, None)


def _fits(inputs: int, bits: int, words: int) -> bool:
    return bits > 0 and words_for(inputs, bits) == words


def _zeros_fit(zero: TensorSpec | None, weight: TensorSpec, groups: int, bits: int) -> bool:
    if zero is None:
        return True
    tall = words_for(weight.shape[-2], bits) if zero.dtype == "I32" else weight.shape[-2]
    return zero.shape == (*weight.shape[:-2], tall, groups)


def _check_groups(scale: TensorSpec, inputs: int, g_idx: TensorSpec | None) -> None:
    groups = scale.shape[-1]
    if g_idx is not None and g_idx.count != inputs:
        raise conflict(g_idx, "cause.quantised.inputs", found=g_idx.count, inputs=inputs)
    if not groups or (g_idx is None and inputs % groups and groups > 1):
        raise conflict(scale, "cause.quantised.groups", groups=groups, inputs=inputs)
