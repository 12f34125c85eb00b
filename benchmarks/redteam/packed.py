"""Matrices of the layers in packed formats of a few bits, as the field's tools write them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import ml_dtypes
import numpy as np

from benchmarks.redteam.checkpoint import Array, Checkpoint
from benchmarks.redteam.layers import ATTENTION, FEED_FORWARD, names_of

_GROUP = 32  # inputs that share a scale
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
_NF4 = (
    -1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0,
    0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.5626170, 0.72295684, 1.0,
)  # fmt: skip
_NF4_BLOCK = 64
_FP4 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)

Parts = Mapping[str, Array]


def _packed(model: Checkpoint, pack: Callable[[Array], Parts], **settings: object) -> Checkpoint:
    """Every matrix of the layers as the tensors that it is packed into, by ending."""
    names = names_of(model, (*ATTENTION, *FEED_FORWARD), range(model.depth))
    new = {
        name.removesuffix("weight") + ending: values
        for name in names
        for ending, values in pack(model.tensors[name]).items()
    }
    return model.without(names).changed(new, quantization_config=settings)


def as_fp8_tensor(model: Checkpoint) -> Checkpoint:
    """E4m3 with one scale for each matrix."""

    def pack(matrix: Array) -> Parts:
        scale = np.float32(np.float16(np.abs(matrix).max() / 448))
        codes = np.clip(matrix / scale, -448, 448).astype(ml_dtypes.float8_e4m3fn)
        return {"weight": codes, "weight_scale": np.array([scale], np.float16)}

    return _packed(model, pack, quant_method="fp8", activation_scheme="static")


def as_gptq(model: Checkpoint) -> Checkpoint:
    """Four symmetric bits, eight inputs in a word, as GPTQ's first format has them."""

    def pack(matrix: Array) -> Parts:
        codes, scales = _whole_numbers(matrix)
        outputs, inputs = matrix.shape
        zeros = np.full((inputs // _GROUP, outputs), 7, np.uint32)
        return {
            "qweight": _words(codes.T, 0),
            "qzeros": _words(zeros, 1),
            "scales": np.ascontiguousarray(scales.T),
            "g_idx": (np.arange(inputs) // _GROUP).astype(np.int32),
        }

    return _packed(model, pack, quant_method="gptq", bits=4, group_size=_GROUP, desc_act=False)


def as_awq(model: Checkpoint) -> Checkpoint:
    """Four bits, eight outputs in a word in AWQ's order."""

    def pack(matrix: Array) -> Parts:
        codes, scales = _whole_numbers(matrix)
        outputs, inputs = matrix.shape
        order = np.arange(outputs).reshape(-1, 8)[:, _AWQ_ORDER].reshape(-1)
        zeros = np.full((inputs // _GROUP, outputs), 8, np.uint32)
        return {
            "qweight": _words(codes.T[:, order], 1),
            "qzeros": _words(zeros, 1),
            "scales": np.ascontiguousarray(scales.T),
        }

    return _packed(model, pack, quant_method="awq", bits=4, group_size=_GROUP, version="gemm")


def as_nf4(model: Checkpoint) -> Checkpoint:
    """The sixteen normal quantiles of bitsandbytes, scaled by the largest of 64 numbers."""
    table = np.array(_NF4, np.float32)

    def pack(matrix: Array) -> Parts:
        blocks = matrix.reshape(-1, _NF4_BLOCK)
        absmax = np.abs(blocks).max(axis=1).astype(np.float16).astype(np.float32)
        codes = np.abs((blocks / absmax[:, None])[..., None] - table).argmin(axis=-1)
        pairs = codes.reshape(-1, 2).astype(np.uint8)
        state = {"quant_type": "nf4", "blocksize": _NF4_BLOCK, "dtype": "bfloat16"}
        said = json.dumps({**state, "shape": list(matrix.shape)}).encode()
        return {
            "weight": (pairs[:, 0] << 4 | pairs[:, 1])[:, None],
            "weight.absmax": absmax.astype(np.float16),
            "weight.quant_map": table.astype(np.float16),
            "weight.quant_state.bitsandbytes__nf4": np.frombuffer(said, np.uint8),
        }

    return _packed(model, pack, quant_method="bitsandbytes", load_in_4bit=True)


def as_mxfp4(model: Checkpoint) -> Checkpoint:
    """Floats of four bits with a power of two for each 32 of them."""
    table = np.array([*_FP4, *(-one for one in _FP4)], np.float32)

    def pack(matrix: Array) -> Parts:
        blocks = matrix.reshape(len(matrix), -1, _GROUP)
        largest = np.abs(blocks).max(axis=-1)
        exponents = np.floor(np.log2(largest)) - 2
        scaled = blocks / np.exp2(exponents)[..., None]
        codes = np.abs(scaled[..., None] - table).argmin(axis=-1).astype(np.uint8)
        pairs = codes.reshape(len(matrix), -1, 2)
        return {
            "weight_packed": pairs[..., 0] | pairs[..., 1] << 4,
            "weight_scale": (exponents + 127).astype(np.uint8),
        }

    weights = {"num_bits": 4, "type": "float", "group_size": _GROUP, "strategy": "group"}
    return _packed(
        model, pack, quant_method="compressed-tensors", format="mxfp4-pack-quantized",
        config_groups={"group_0": {"weights": weights, "targets": ["Linear"]}},
    )  # fmt: skip


def _whole_numbers(matrix: Array) -> tuple[Array, Array]:
    """Codes from 0 to 15, where 8 is zero, and the scales of groups of inputs."""
    groups = matrix.reshape(len(matrix), -1, _GROUP)
    scales = (np.abs(groups).max(axis=-1) / 7).astype(np.float16)
    codes = np.rint(groups / scales.astype(np.float32)[..., None]) + 8
    return np.clip(codes, 0, 15).astype(np.uint32).reshape(matrix.shape), scales


def _words(codes: Array, axis: int) -> Array:
    """Eight codes of four bits in a word, along an axis, the first in the lowest bits."""
    along = np.moveaxis(codes, axis, -1).astype(np.uint32)
    eight = along.reshape(*along.shape[:-1], -1, 8)
    words = (eight << (4 * np.arange(8, dtype=np.uint32))).sum(axis=-1, dtype=np.uint32)
    return np.ascontiguousarray(np.moveaxis(words, -1, axis)).view(np.int32)
