"""Four-bit floats in groups: MXFP4 (OCP, gpt-oss, Quark) and NVFP4 (modelopt and others).

    gpt-oss             X_blocks [E, out, in/32, 16], X_scales [E, out, in/32], bytes
    modelopt            weight [out, in/2], weight_scale e4m3 [out, in/16], weight_scale_2
    compressed-tensors  weight_packed, weight_scale (e4m3 or exponents), weight_global_scale

Two codes lie in a byte, the first in the low four bits. A group's scale is a power of two
in MXFP4 and an e4m3 number in NVFP4, where one more scale holds for the whole tensor:
modelopt multiplies by it, compressed-tensors divides. Sources: transformers 5.22.2,
integrations/mxfp4.py; modelopt 0.47.0, qtensor/nvfp4_tensor.py; compressed-tensors 0.20.0,
compressors/nvfp4. transformers hands gpt-oss experts on as [E, in, out]; what lies in the
file, and what comes out here, is [E, out, in], gate and up rows alternating.
"""

from __future__ import annotations

import numpy as np

from kinprint.model.quantised.codes import EXPONENTS, FP4, nibbles, scale_floats
from kinprint.model.quantised.weight import (
    Floats,
    HeaderCodec,
    NumberFormat,
    Overall,
    Pieces,
    Rows,
    Wanted,
    conflict,
    join_rows,
    row_slices,
)
from kinprint.records import Slice, TensorSpec
from kinprint.text import Message, message


class Fp4(HeaderCodec, frozen=True):
    """Four-bit floats with a scale for each group along the inputs."""

    codes: TensorSpec
    scale: TensorSpec
    shape: tuple[int, ...]
    overall: Overall | None = None

    @property
    def summary(self) -> Message:
        """What the format is, in a few words for people."""
        kind = "MXFP4" if self.scale.dtype in EXPONENTS else "NVFP4"
        size = self.shape[-1] // self.scale.shape[-1]
        return message("note.quantised.groups", format=kind, size=size)

    @property
    def format(self) -> NumberFormat:
        """What the format is called, and its bits."""
        return NumberFormat("MXFP4" if self.scale.dtype in EXPONENTS else "NVFP4", 4)

    def wanted(self, rows: Rows) -> Wanted:
        """Rows of codes and of scales, and the scale over all, if there is one."""
        parts = {
            "codes": row_slices(self.codes, self.shape[-1] // 2, rows),
            "scale": row_slices(self.scale, self.scale.shape[-1], rows),
        }
        if self.overall is not None:
            parts["overall"] = (Slice(self.overall.spec),)
        return parts

    def floats(self, rows: Rows, pieces: Pieces) -> Floats:
        """The value of each code, times its group's scale, times or by the one over all."""
        groups = self.scale.shape[-1]
        values = FP4.take(nibbles(join_rows(pieces["codes"], self.shape[-1] // 2)))
        scale = scale_floats(join_rows(pieces["scale"], groups))
        if self.overall is not None:
            scale = self.overall.applied(scale, rows, pieces)
        grouped = values.reshape(len(rows), groups, -1)
        return np.multiply(grouped, scale[:, :, None], out=grouped).reshape(len(rows), -1)


def fp4(codes: TensorSpec, scale: TensorSpec, overall: TensorSpec | None = None) -> Fp4:
    """A weight of packed fp4 codes [..., out, in/2] with scales [..., out, in/group]."""
    shape = (*codes.shape[:-1], codes.shape[-1] * 2)
    groups = scale.shape[-1] if scale.shape else 0
    if scale.shape[:-1] != shape[:-1] or not groups or shape[-1] % groups:
        raise conflict(
            scale, "cause.quantised.scale-codes", shape=list(scale.shape), codes=list(codes.shape)
        )
    if scale.dtype not in EXPONENTS and overall is None:
        raise conflict(codes, "cause.quantised.nvfp4")
    return Fp4(codes, scale, shape, Overall.over(shape, overall))


def mxfp4_blocks(blocks: TensorSpec, scales: TensorSpec) -> Fp4:
    """A weight in gpt-oss's blocks of sixteen bytes."""
    fits = len(blocks.shape) > 2 and blocks.shape[:-1] == scales.shape and blocks.shape[-2] > 0
    if not fits or blocks.shape[-1] != 16:
        raise conflict(
            scales,
            "cause.quantised.scale-blocks",
            shape=list(scales.shape),
            blocks=list(blocks.shape),
        )
    return Fp4(blocks, scales, (*blocks.shape[:-2], blocks.shape[-2] * 32))
