"""Small codes out of large words: fields of a few bits, nibbles, and the values of fp4 and e8m0.

One place for the bit arithmetic that all formats share, so that each of them is left with
its own layout only.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from kinprint.reader.decode import Array, as_float32
from kinprint.reader.dtypes import dtype_named
from kinprint.records import TensorSpec

# E2M1 of the OCP Microscaling specification (MX v1.0, table 5): sign, two bits of exponent,
# one of mantissa.
FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)

FP8 = frozenset({"F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E5M2FNUZ"})
FLOATS = frozenset({"F32", "F16", "BF16", "F64"})
EXPONENTS = frozenset({"U8", "F8_E8M0"})


def words_spanning(fields: range, bits: int) -> range:
    """Which 32-bit words hold consecutive fields, packed one after another from the lowest bit."""
    return range(fields.start * bits // 32, -(-fields.stop * bits // 32))


def words_for(count: int, bits: int) -> int:
    """How many 32-bit words `count` fields take."""
    return -(-count * bits // 32)


def fields(words: Array, starts: NDArray[np.int64], bits: int) -> NDArray[np.int32]:
    """Fields of `bits` bits that begin at bit `starts` of each row of 32-bit words.

    A field may lie across two words, as those of three bits do.
    """
    plain = np.ascontiguousarray(words).view(np.uint32)
    home, shift = starts // 32, (starts % 32).astype(np.uint32)
    mask = np.uint32((1 << bits) - 1)
    found = plain[..., home] >> shift
    across = np.flatnonzero(shift + bits > 32)
    if across.size:
        found[..., across] |= plain[..., home[across] + 1] << (np.uint32(32) - shift[across])
    return (found & mask).astype(np.int32)


def nibbles(packed: Array, low_first: bool = True) -> NDArray[np.uint8]:
    """The two four-bit codes of each byte, along the last axis."""
    codes = packed.view(np.uint8)
    out = np.empty((*codes.shape, 2), np.uint8)
    low, high = (0, 1) if low_first else (1, 0)
    np.bitwise_and(codes, 0x0F, out=out[..., low])
    np.right_shift(codes, 4, out=out[..., high])
    return out.reshape(*codes.shape[:-1], codes.shape[-1] * 2)


def scale_floats(array: Array) -> NDArray[np.float32]:
    """Scales as numbers; plain bytes are exponents of two with a bias of 127 (OCP's E8M0)."""
    if array.dtype == np.uint8:
        array = array.view(ml_dtypes.float8_e8m0fnu)
    return as_float32(array)


def item_size(spec: TensorSpec) -> int:
    """Bytes of one stored number."""
    return dtype_named(spec.dtype, spec.file).size
