"""MLX's weights. Affine ones are whole numbers of a few bits, each group with scale and bias:

    weight   uint32 [out, in·bits/32]   fields from the lowest bit on, those of 3, 5, 6 across words
    scales   [out, groups]              groups of consecutive inputs
    biases   [out, groups]              added after scaling: code · scale + bias

Bits and group size stand in the configuration, for single modules under their own names. Stacked
experts put an axis in front of all of these.

Its other modes have floats in the words and bytes for scales, and no biases: mxfp4 and mxfp8 an
exponent for each 32 inputs, nvfp4 an e4m3 number for each 16 and nothing over the whole tensor.
How many words a group takes tells them apart. Source: ml-explore/mlx,
mlx/backend/cpu/quantized.cpp (`extract_bits`, `_qmm_t`, `dequantize_scale`), mlx/ops.cpp
(`fp_quantize`) and mlx/nn/layers/quantized.py.
"""

from __future__ import annotations

from math import prod

import numpy as np
from msgspec.structs import replace

from kinprint.model.quantised.codes import fields, words_for
from kinprint.model.quantised.fp4 import Fp4
from kinprint.model.quantised.scaled import scaled
from kinprint.model.quantised.weight import (
    Codec,
    Floats,
    HeaderCodec,
    NumberFormat,
    Pieces,
    Rows,
    Wanted,
    conflict,
    join_rows,
    row_slices,
)
from kinprint.reader.decode import as_float32
from kinprint.records import TensorSpec
from kinprint.text import Message, message

BITS = (2, 3, 4, 5, 6, 8)
# Words of a group, and the inputs, codes and scales that it has.
_FLOATS = {4: (32, "U8", "U8"), 2: (16, "U8", "F8_E4M3"), 8: (32, "F8_E4M3", "U8")}


class Affine(HeaderCodec, frozen=True):
    """A weight of MLX in its affine mode."""

    weight: TensorSpec
    scales: TensorSpec
    biases: TensorSpec
    bits: int
    group: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Logical shape, inputs last."""
        return (*self.weight.shape[:-1], self.scales.shape[-1] * self.group)

    @property
    def summary(self) -> Message:
        """What the format is, in a few words for people."""
        return message("note.quantised.mlx", bits=self.bits, size=self.group)

    @property
    def format(self) -> NumberFormat:
        """What the format is called, and its bits."""
        return NumberFormat("MLX", self.bits)

    def wanted(self, rows: Rows) -> Wanted:
        """The same rows of all three tensors."""
        groups = self.scales.shape[-1]
        return {
            "weight": row_slices(self.weight, self.weight.shape[-1], rows),
            "scales": row_slices(self.scales, groups, rows),
            "biases": row_slices(self.biases, groups, rows),
        }

    def floats(self, rows: Rows, pieces: Pieces) -> Floats:
        """Code times scale plus bias, each input by its own group."""
        groups = self.scales.shape[-1]
        starts = np.arange(self.shape[-1], dtype=np.int64) * self.bits
        codes = fields(join_rows(pieces["weight"], self.weight.shape[-1]), starts, self.bits)
        scales = as_float32(join_rows(pieces["scales"], groups))
        biases = as_float32(join_rows(pieces["biases"], groups))
        values = codes.astype(np.float32).reshape(len(codes), groups, self.group)
        values *= scales[..., None]
        values += biases[..., None]
        return values.reshape(len(codes), -1)


def affine(parts: dict[str, TensorSpec], bits: int | None, group: int | None) -> Affine:
    """An affine weight; the words of a row must be as many as its groups take."""
    weight, scales, biases = parts["weight"], parts["scales"], parts["biases"]
    if len(weight.shape) < 2 or scales.shape != biases.shape:
        shape = list(weight.shape)
        raise conflict(weight, "cause.quantised.packed-shape", shape=shape)
    if scales.shape[:-1] != weight.shape[:-1]:
        shapes = {"shape": list(scales.shape), "weight": list(weight.shape)}
        raise conflict(scales, "cause.quantised.scale-weight", **shapes)
    if bits not in BITS or group is None or group < 1:
        raise conflict(weight, "cause.quantised.no-width")
    groups = scales.shape[-1]
    if not groups or words_for(groups * group, bits) != weight.shape[-1]:
        inputs = weight.shape[-1] * 32 // bits
        raise conflict(scales, "cause.quantised.groups", groups=groups, inputs=inputs)
    return Affine(weight, scales, biases, bits, group)


def floats_in_words(weight: TensorSpec, scales: TensorSpec) -> Codec:
    """A weight of floats, whose words are the bytes of their codes one after another."""
    groups, words = (prod(one.shape[-1:]) for one in (scales, weight))
    alike = len(weight.shape) > 1 and weight.shape[:-1] == scales.shape[:-1] and groups > 0
    if not alike or words % groups or words // groups not in _FLOATS:
        shapes = {"shape": list(scales.shape), "codes": list(weight.shape)}
        raise conflict(scales, "cause.quantised.scale-codes", **shapes)
    size, code, scale = _FLOATS[words // groups]
    codes = replace(weight, dtype=code, shape=(*weight.shape[:-1], 4 * words))
    scales = replace(scales, dtype=scale)
    if code == "U8":
        return Fp4(codes, scales, (*weight.shape[:-1], groups * size))
    return scaled(codes, scales)
