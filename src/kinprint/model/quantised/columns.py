"""GPTQ and AWQ: weights of a few bits stored with inputs down and outputs across.

    GPTQ   qweight [in·bits/32, out]   a word holds consecutive inputs of one output
    AWQ    qweight [in, out/8]         a word holds eight outputs of one input
    both   scales [groups, out]        qzeros [groups, out·bits/32]

One output is a *column* here, so a few rows of the logical weight are a few bytes from each
stored row. Sixteen rows of a 4096×4096 GPTQ weight need 32 KiB of its 8 MiB, in 512 pieces
16 KiB apart; a reader that joins pieces less than 64 KiB apart reads the 8 MiB. That is the
layout's doing, and no arithmetic here can mend it: plan such models by bytes, not by rows.

Sources: AutoGPTQ 0.7.1, nn_modules/qlinear/qlinear_cuda_old.py (fields packed from the
lowest bit on, those of three bits across words; zero points stored less one); GPTQModel
7.7.0, utils/model.py (format v2 stores them as they are); AutoAWQ 0.2.9, awq/utils/
packing_utils.py and modules/linear/gemm.py (order of the eight outputs in a word).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kinprint.errors import BadQuantisation
from kinprint.model.quantised.codes import fields, words_for, words_spanning
from kinprint.model.quantised.weight import (
    Floats,
    HeaderCodec,
    NumberFormat,
    Pieces,
    Rows,
    Wanted,
    conflict,
    indices,
    join,
    runs,
)
from kinprint.reader.decode import Array, as_float32
from kinprint.records import Slice, TensorSpec
from kinprint.text import Message, message

GPTQ_BITS = (2, 3, 4, 8)
# Where in a word output 0, 1, 2 … of eight lies: the inverse of 0, 2, 4, 6, 1, 3, 5, 7.
_AWQ_PLACE = np.array([0, 4, 1, 5, 2, 6, 3, 7], np.int64)


class Gptq(HeaderCodec, frozen=True):
    """GPTQ in its first and second format, with groups in order or by activation."""

    qweight: TensorSpec
    scales: TensorSpec
    qzeros: TensorSpec | None
    g_idx: TensorSpec | None
    bits: int
    inputs: int
    group: int
    stored_less_one: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """Logical shape, inputs last."""
        return (self.qweight.shape[1], self.inputs)

    @property
    def summary(self) -> Message:
        """What the format is, in a few words for people."""
        return message("note.quantised.gptq", bits=self.bits, size=self.group)

    @property
    def format(self) -> NumberFormat:
        """What the format is called, and its bits."""
        return NumberFormat("GPTQ", self.bits)

    def wanted(self, rows: Rows) -> Wanted:
        """Columns of the packed tensors, and the whole of the group index."""
        stretches = tuple(runs(rows))
        parts = {
            "qweight": tuple(Slice(self.qweight, columns=part) for part in stretches),
            "scales": tuple(Slice(self.scales, columns=part) for part in stretches),
        }
        if self.qzeros is not None:
            spans = [words_spanning(part, self.bits) for part in stretches]
            parts["qzeros"] = tuple(Slice(self.qzeros, columns=span) for span in spans)
        if self.g_idx is not None:
            parts["g_idx"] = (Slice(self.g_idx),)
        return parts

    def floats(self, rows: Rows, pieces: Pieces) -> Floats:
        """(code - zero point) times scale, each input by its own group."""
        packed = join(pieces["qweight"], axis=1)
        starts = np.arange(self.inputs, dtype=np.int64) * self.bits
        codes = fields(packed.T, starts, self.bits)
        scales = as_float32(join(pieces["scales"], axis=1)).T
        group = self._groups(pieces)
        values = (codes - self._zeros(rows, pieces, scales.shape)[:, group]).astype(np.float32)
        return np.multiply(values, scales[:, group], out=values)

    def _groups(self, pieces: Pieces) -> NDArray[np.int64]:
        if self.g_idx is None:
            return np.arange(self.inputs, dtype=np.int64) // self.group
        group = pieces["g_idx"][0].astype(np.int64)
        count = self.scales.shape[0]
        group = np.where(group < 0, group + count, group)  # as PyTorch indexes
        if group.size and (group.min() < 0 or group.max() >= count):
            raise conflict(self.g_idx, "cause.quantised.group-beyond", groups=count)
        return group

    def _zeros(self, rows: Rows, pieces: Pieces, shape: tuple[int, ...]) -> NDArray[np.int32]:
        if self.qzeros is None:
            return np.full(shape, 1 << (self.bits - 1), np.int32)
        unpacked = []
        for part, packed in zip(runs(rows), pieces["qzeros"], strict=True):
            first = words_spanning(part, self.bits).start * 32
            unpacked.append(fields(packed, indices(part) * self.bits - first, self.bits))
        zeros = join(unpacked, axis=1).T
        return (zeros + 1) & ((1 << self.bits) - 1) if self.stored_less_one else zeros


class Awq(HeaderCodec, frozen=True):
    """AWQ in the layout that its `gemm` kernels read, by far the commonest."""

    qweight: TensorSpec
    scales: TensorSpec
    qzeros: TensorSpec
    group: int

    @property
    def shape(self) -> tuple[int, ...]:
        """Logical shape, inputs last."""
        return (self.scales.shape[1], self.qweight.shape[0])

    @property
    def summary(self) -> Message:
        """What the format is, in a few words for people."""
        return message("note.quantised.awq", size=self.group)

    @property
    def format(self) -> NumberFormat:
        """What the format is called, and its bits."""
        return NumberFormat("AWQ", 4)

    def wanted(self, rows: Rows) -> Wanted:
        """Columns of the packed tensors, whole words at a time."""
        stretches = tuple(runs(rows))
        spans = [words_spanning(part, 4) for part in stretches]
        return {
            "qweight": tuple(Slice(self.qweight, columns=span) for span in spans),
            "qzeros": tuple(Slice(self.qzeros, columns=span) for span in spans),
            "scales": tuple(Slice(self.scales, columns=part) for part in stretches),
        }

    def floats(self, rows: Rows, pieces: Pieces) -> Floats:
        """(code - zero point) times scale, each input by its own group."""
        codes, zeros = self._unpack(rows, pieces["qweight"]), self._unpack(rows, pieces["qzeros"])
        scales = as_float32(join(pieces["scales"], axis=1)).T
        group = np.arange(self.qweight.shape[0]) // self.group
        values = (codes - zeros[:, group]).astype(np.float32)
        return np.multiply(values, scales[:, group], out=values)

    def _unpack(self, rows: Rows, pieces: Sequence[Array]) -> NDArray[np.int32]:
        unpacked = []
        for part, packed in zip(runs(rows), pieces, strict=True):
            inside = indices(part) - words_spanning(part, 4).start * 8
            unpacked.append(fields(packed, (inside // 8 * 8 + _AWQ_PLACE[inside % 8]) * 4, 4))
        return join(unpacked, axis=1).T


def gptq(
    parts: dict[str, TensorSpec], bits: int | None, group: int | None, stored_less_one: bool
) -> Gptq:
    """A GPTQ weight from its tensors; `bits` and `group` are what the configuration says."""
    qweight, scales = parts["qweight"], parts["scales"]
    qzeros, g_idx = parts.get("qzeros"), parts.get("g_idx")
    outputs = qweight.shape[1]
    if scales.shape[1] != outputs:
        raise conflict(
            scales,
            "cause.quantised.outputs",
            found=scales.shape[1],
            other=qweight.name,
            outputs=outputs,
        )
    if qzeros is not None and outputs:
        found = next((b for b in GPTQ_BITS if words_for(outputs, b) == qzeros.shape[1]), None)
        if found is None or qzeros.shape[0] != scales.shape[0]:
            raise _misfit(qzeros, scales)
        # Very few outputs take the same number of words at several widths.
        bits = bits if bits and words_for(outputs, bits) == qzeros.shape[1] else found
    if g_idx is not None and not (bits and words_for(g_idx.count, bits) == qweight.shape[0]):
        raise conflict(g_idx, "cause.quantised.inputs-held", inputs=g_idx.count, other=qweight.name)
    if bits not in GPTQ_BITS:
        raise conflict(qweight, "cause.quantised.gptq-bits", bits=bits)
    inputs = g_idx.count if g_idx is not None else qweight.shape[0] * 32 // bits
    size = group_size(scales, inputs, group)
    return Gptq(qweight, scales, qzeros, g_idx, bits, inputs, size, stored_less_one)


def awq(parts: dict[str, TensorSpec], group: int | None) -> Awq:
    """An AWQ weight from its tensors; `group` is what the configuration says."""
    qweight, scales, qzeros = parts["qweight"], parts["scales"], parts.get("qzeros")
    if qzeros is None:
        raise conflict(qweight, "cause.quantised.awq-zeros")
    if qweight.shape[1] * 8 != scales.shape[1]:
        held = qweight.shape[1]
        raise conflict(scales, "cause.quantised.words", found=scales.shape[1], words=held)
    if qzeros.shape != (scales.shape[0], qweight.shape[1]):
        raise _misfit(qzeros, scales)
    return Awq(qweight, scales, qzeros, group_size(scales, qweight.shape[0], group))


def group_size(scales: TensorSpec, inputs: int, told: int | None) -> int:
    """Inputs that share a scale: as told if the scales agree, else as the scales say."""
    count = scales.shape[0]
    if told is not None and told > 0 and -(-inputs // told) == count:
        return told
    if count and inputs % count == 0 and (told is None or told <= 0 or inputs < told or count == 1):
        return max(inputs // count, 1)
    key = "cause.quantised.told-groups" if told else "cause.quantised.groups"
    raise conflict(scales, key, groups=count, inputs=inputs, size=told)


def _misfit(qzeros: TensorSpec, scales: TensorSpec) -> BadQuantisation:
    zeros, shape = list(qzeros.shape), list(scales.shape)
    return conflict(qzeros, "cause.quantised.zeros", zeros=zeros, scales=shape)
