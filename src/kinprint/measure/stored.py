"""Equality of what is stored, bit by bit and byte by byte.

Takes arrays as they lie in the file: a decoded copy has lost what these ask for. Minus zero
differs from zero, a NaN equals the same NaN, and a different number format equals nothing.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.measure.blocks import BLOCK


class RawHash(Struct, frozen=True):
    """What a stored tensor is: the sha256 of its bytes in row-major order, type and shape."""

    sha256: str
    dtype: str
    shape: tuple[int, ...]


def bit_equal_share(a: NDArray[Any], b: NDArray[Any], block: int = BLOCK) -> float:
    """Share of elements whose stored bits are equal; NaN unless type and length agree."""
    x, y = np.asarray(a).reshape(-1), np.asarray(b).reshape(-1)
    if x.dtype != y.dtype or len(x) != len(y) or not len(x):
        return math.nan
    equal = 0
    for start in range(0, len(x), block):
        part = slice(start, start + block)
        equal += int((stored_words(x[part]) == stored_words(y[part])).all(axis=1).sum())
    return equal / len(x)


def raw_hash(a: NDArray[Any]) -> RawHash:
    """Hash the stored bytes; type and shape stand beside, for equal bytes may differ in them."""
    x = np.asarray(a)
    digest = hashlib.sha256()
    vector = x.reshape(-1)
    for start in range(0, len(vector), BLOCK):
        digest.update(stored_words(vector[start : start + BLOCK]).reshape(-1).data)
    return RawHash(digest.hexdigest(), str(x.dtype), tuple(x.shape))


def raw_hash_equal(a: NDArray[Any], b: NDArray[Any]) -> float:
    """One if bytes, type and shape are all equal, else zero."""
    return float(raw_hash(a) == raw_hash(b))


def stored_words(part: NDArray[Any]) -> NDArray[Any]:
    """Elements as unsigned words along a last axis; odd widths fall apart into bytes."""
    size = part.dtype.itemsize
    word = size if size in (1, 2, 4, 8) else 1
    return np.ascontiguousarray(part).view(f"u{word}").reshape(*part.shape, -1)
