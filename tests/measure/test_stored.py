"""Equality of stored bits and bytes."""

from __future__ import annotations

import hashlib
import math

import ml_dtypes
import numpy as np
import pytest

from kinprint.measure.stored import bit_equal_share, raw_hash, raw_hash_equal


def test_bits_decide_and_not_values() -> None:
    a = np.array([0.0, np.nan, 1.0, 2.0], np.float32)
    b = np.array([-0.0, np.nan, 1.0, 2.5], np.float32)
    assert bit_equal_share(a, b) == 0.5
    other_nan = np.array([0x7FC00001], np.uint32).view(np.float32)
    assert bit_equal_share(a[1:2], other_nan) == 0
    assert bit_equal_share(a, a) == 1


@pytest.mark.parametrize(
    "kind", [ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.float64, np.complex128]
)
def test_any_width(kind: type) -> None:
    a: np.ndarray = np.arange(10).astype(kind)
    b = a.copy()
    b[[2, 7]] = 1
    assert bit_equal_share(a.reshape(2, 5), b.reshape(2, 5), block=3) == 0.8


def test_another_format_or_length_has_no_share() -> None:
    assert math.isnan(bit_equal_share(np.ones(3, np.float16), np.ones(3, np.float32)))
    assert math.isnan(bit_equal_share(np.ones(3), np.ones(4)))
    assert math.isnan(bit_equal_share(np.ones(0), np.ones(0)))


def test_the_hash_is_that_of_the_bytes() -> None:
    a = np.arange(6, dtype="<f4").reshape(2, 3)
    assert raw_hash(a).sha256 == hashlib.sha256(a.tobytes()).hexdigest()
    assert raw_hash(np.ones(0, np.float32)).sha256 == hashlib.sha256(b"").hexdigest()
    assert raw_hash(a.T).sha256 == hashlib.sha256(a.T.tobytes()).hexdigest()


def test_equal_bytes_of_other_type_or_shape_differ() -> None:
    zeros = np.zeros(4, np.float32)
    assert raw_hash_equal(zeros, zeros.copy()) == 1
    assert raw_hash_equal(zeros, zeros.reshape(2, 2)) == 0
    assert raw_hash_equal(zeros, zeros.view(np.int32)) == 0
    assert raw_hash_equal(zeros, -zeros) == 0
