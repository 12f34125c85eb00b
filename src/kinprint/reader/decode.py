"""From bytes to numbers: every format on disk becomes a flat array of the fitting type.

Values keep the type they were written in, so that equal bytes can be told from nearly equal
ones; `as_float32` makes them ready for arithmetic. Bytes are little-endian in all formats,
and are viewed rather than copied wherever the host agrees.

How numbers smaller than a byte are packed: the OCP Microscaling Formats specification (MX
v1.0, section 5.3) defines the values but leaves the order in memory open.

- F4: two in a byte, the first in the low four bits. So PyTorch defines its
  `float4_e2m1fn_x2` (torch/headeronly/util/Float4_e2m1fn_x2.h), which is what safetensors
  writes as F4.
- F6: four in three bytes, read as one little-endian number with the first value in its
  lowest six bits. No writer is authoritative here, PyTorch having no six-bit type; this is
  F4's order continued, and that of AMD's kernels (rocRoller, DataTypes_FP6).
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kinprint.errors import DtypeUnknown
from kinprint.reader.dtypes import GGML, dtype_named

Array = NDArray[Any]

# How the bytes are viewed, and the type that the numbers have. Where the second is not
# numpy's own it knows no byte order: the bits are brought in order first, then viewed.
_WIRE: dict[str, tuple[str, Any]] = {
    "U8": ("<u1", np.uint8),
    "I8": ("<i1", np.int8),
    "U16": ("<u2", np.uint16),
    "I16": ("<i2", np.int16),
    "U32": ("<u4", np.uint32),
    "I32": ("<i4", np.int32),
    "U64": ("<u8", np.uint64),
    "I64": ("<i8", np.int64),
    "F16": ("<f2", np.float16),
    "F32": ("<f4", np.float32),
    "F64": ("<f8", np.float64),
    "C64": ("<c8", np.complex64),
    "C128": ("<c16", np.complex128),
    "BF16": ("<u2", ml_dtypes.bfloat16),
    "F8_E4M3": ("<u1", ml_dtypes.float8_e4m3fn),
    "F8_E5M2": ("<u1", ml_dtypes.float8_e5m2),
    "F8_E4M3FNUZ": ("<u1", ml_dtypes.float8_e4m3fnuz),
    "F8_E5M2FNUZ": ("<u1", ml_dtypes.float8_e5m2fnuz),
    "F8_E8M0": ("<u1", ml_dtypes.float8_e8m0fnu),
}

_SUBBYTE: dict[str, Any] = {
    "F4": ml_dtypes.float4_e2m1fn,
    "F6_E2M3": ml_dtypes.float6_e2m3fn,
    "F6_E3M2": ml_dtypes.float6_e3m2fn,
}


def decode(raw: bytes | memoryview, dtype: str, count: int, file: str) -> Array:
    """The `count` numbers that `raw` holds, as a flat array of their own type.

    `raw` must be exactly as long as its numbers need, so that a range that was cut or
    shifted is noticed here and not in a result. Quantised types of GGUF come out as
    float32, since their numbers have no type of their own. The array may be read-only and
    share memory with `raw`.
    """
    needed = dtype_named(dtype, file).nbytes(count)
    size = memoryview(raw).nbytes
    if count < 0 or size != needed:
        raise ValueError(f"{count} numbers of {dtype} take {needed} bytes, got {size} of {file}")
    if dtype in GGML:
        from kinprint.reader.formats.gguf.blocks import decode_blocks

        return np.asarray(decode_blocks(bytes(raw), dtype, file)).reshape(-1)[:count]
    if dtype == "BOOL":
        # Any byte but zero is true, as PyTorch and numpy read it; comparing leaves ones
        # and zeros behind, where a mere view would carry odd bytes into sums.
        return np.not_equal(np.frombuffer(raw, np.uint8), 0)
    if dtype in _SUBBYTE:
        codes = np.frombuffer(raw, np.uint8)
        unpacked = _unpack_nibbles(codes) if dtype == "F4" else _unpack_sixes(codes)
        return unpacked[:count].view(_SUBBYTE[dtype])
    wire, native = _WIRE[dtype]
    numbers = np.frombuffer(raw, wire)
    ordered = numbers.astype(numbers.dtype.newbyteorder("="), copy=False)
    return ordered.view(native)


def decode_run(raw: bytes | memoryview, dtype: str, skip: int, count: int, file: str) -> Array:
    """The `count` numbers that follow the first `skip` in `raw`.

    A range is rounded out to whole blocks before it is read; this cuts the numbers that
    were asked for out of their blocks again.
    """
    return decode(raw, dtype, skip + count, file)[skip:]


def widen(array: Array) -> Array:
    """Floats of sixteen bits and fewer as float32, all else as it is.

    Every such number is a float32, so nothing is lost; and sums of it come out right, which
    those of a short type do not.
    """
    kind = array.dtype.kind
    if kind in "biuc" or (kind == "f" and array.itemsize > 2):
        return array
    with np.errstate(invalid="ignore"):  # a NaN may be of the kind that signals
        return array.astype(np.float32)


def as_float32(array: Array, file: str = "the model") -> NDArray[np.float32]:
    """The same numbers in single precision, for arithmetic.

    Every small type fits exactly; float64 and wide integers are rounded, and what exceeds
    the range becomes infinite. Complex numbers are refused: as pairs of reals they would
    have another shape than their tensor, and without their imaginary part another meaning.
    """
    if array.dtype == np.float32:
        return array
    if array.dtype.kind == "c":
        raise DtypeUnknown(dtype=array.dtype.name, file=file)
    if array.dtype.itemsize == 1 and array.dtype.kind == "V":
        # The types of ml_dtypes convert number by number; a table is two to four times faster.
        table = np.arange(256, dtype=np.uint8).view(array.dtype).astype(np.float32)
        return table.take(array.view(np.uint8))
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(np.float32)


def is_single(array: Array) -> bool:
    """Whether single precision has all numbers of an array."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = as_float32(array)
        if array.dtype.kind in "iu":  # the largest round to what their type has not
            beyond = 2.0 ** (8 * array.dtype.itemsize - (array.dtype.kind == "i"))
            rounded = np.where(rounded < beyond, rounded, np.float32(0))
        return np.array_equal(rounded.astype(array.dtype), array, equal_nan=True)


def _unpack_nibbles(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    out = np.empty((codes.size, 2), np.uint8)
    np.bitwise_and(codes, 0x0F, out=out[:, 0])
    np.right_shift(codes, 4, out=out[:, 1])
    return out.reshape(-1)


def _unpack_sixes(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    low, middle, high = codes.reshape(-1, 3).T
    out = np.empty((low.size, 4), np.uint8)
    out[:, 0] = low & 0x3F
    out[:, 1] = (low >> 6) | (middle & 0x0F) << 2
    out[:, 2] = (middle >> 4) | (high & 0x03) << 4
    out[:, 3] = high >> 2
    return out.reshape(-1)
