"""Every code of every small type against formulas of the specifications, and packing."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from kinprint.errors import DtypeUnknown
from kinprint.reader.decode import as_float32, decode, decode_run, is_single, widen
from kinprint.reader.dtypes import PLAIN

Array = NDArray[Any]


def value(code: int, exponent_bits: int, mantissa_bits: int, bias: int) -> float:
    """The number that sign, exponent and mantissa stand for, special codes aside.

    (-1)^s 2^(e - bias) (1 + m/2^M), and without the leading one where e is 0: OCP MX v1.0,
    section 5.3, and OCP 8-bit floating point v1.0, section 5.
    """
    mantissa = code & (1 << mantissa_bits) - 1
    exponent = code >> mantissa_bits & (1 << exponent_bits) - 1
    sign = -1.0 if code >> (mantissa_bits + exponent_bits) else 1.0
    fraction = mantissa / (1 << mantissa_bits)
    if exponent == 0:
        return sign * 2.0 ** (1 - bias) * fraction
    return sign * 2.0 ** (exponent - bias) * (1 + fraction)


def e4m3(code: int) -> float:
    return math.nan if code & 0x7F == 0x7F else value(code, 4, 3, 7)


def e5m2(code: int) -> float:
    if code & 0x7F == 0x7C:
        return -math.inf if code & 0x80 else math.inf
    return math.nan if code & 0x7F > 0x7C else value(code, 5, 2, 15)


def e4m3fnuz(code: int) -> float:
    return math.nan if code == 0x80 else value(code, 4, 3, 8)


def e5m2fnuz(code: int) -> float:
    return math.nan if code == 0x80 else value(code, 5, 2, 16)


def e8m0(code: int) -> float:
    return math.nan if code == 0xFF else 2.0 ** (code - 127)


def f16(code: int) -> float:
    return float(struct.unpack("<e", struct.pack("<H", code))[0])


def bf16(code: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", code << 16))[0])


def same(found: Array, expected: list[float]) -> None:
    """Equal as float32, bit by bit, but for the payload of NaNs."""
    numbers = as_float32(found)
    assert numbers.dtype == np.float32
    wanted = np.array(expected, np.float64).astype(np.float32)
    nan = np.isnan(wanted)
    np.testing.assert_array_equal(np.isnan(numbers), nan)
    np.testing.assert_array_equal(numbers[~nan].view(np.uint32), wanted[~nan].view(np.uint32))


@pytest.mark.parametrize(
    ("dtype", "formula"),
    [
        ("F8_E4M3", e4m3),
        ("F8_E5M2", e5m2),
        ("F8_E4M3FNUZ", e4m3fnuz),
        ("F8_E5M2FNUZ", e5m2fnuz),
        ("F8_E8M0", e8m0),
        ("U8", float),
        ("I8", lambda code: float(code - 256 if code > 127 else code)),
        ("BOOL", lambda code: float(code != 0)),
    ],
)
def test_all_codes_of_one_byte(dtype: str, formula: Any) -> None:
    same(decode(bytes(range(256)), dtype, 256, "f"), [formula(code) for code in range(256)])


@pytest.mark.parametrize(("dtype", "formula"), [("F16", f16), ("BF16", bf16)])
def test_all_codes_of_two_bytes(dtype: str, formula: Any) -> None:
    raw = b"".join(struct.pack("<H", code) for code in range(65536))
    same(decode(raw, dtype, 65536, "f"), [formula(code) for code in range(65536)])


# Written out by hand from the tables of OCP MX v1.0, sections 5.3.2 and 5.3.3.
F4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
E2M3 = [
    0.0, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75, 0.875,
    1.0, 1.125, 1.25, 1.375, 1.5, 1.625, 1.75, 1.875,
    2.0, 2.25, 2.5, 2.75, 3.0, 3.25, 3.5, 3.75,
    4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 7.5,
]  # fmt: skip
E3M2 = [
    0.0, 0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375,
    0.5, 0.625, 0.75, 0.875, 1.0, 1.25, 1.5, 1.75,
    2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0,
    8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0, 28.0,
]  # fmt: skip
SUBBYTE = {
    "F4": (4, F4, (2, 1, 1)),
    "F6_E2M3": (6, E2M3, (2, 3, 1)),
    "F6_E3M2": (6, E3M2, (3, 2, 3)),
}


def packed(codes: list[int], bits: int) -> bytes:
    """Codes as one long little-endian number, the first in the lowest bits."""
    whole = sum(code << bits * place for place, code in enumerate(codes))
    block = {4: 1, 6: 3}[bits]
    needed = -(-len(codes) * bits // 8)
    return whole.to_bytes(-(-needed // block) * block, "little")


@pytest.mark.parametrize("dtype", SUBBYTE)
def test_all_codes_smaller_than_a_byte(dtype: str) -> None:
    bits, positive, (exponent, mantissa, bias) = SUBBYTE[dtype]
    codes = list(range(1 << bits))
    table = positive + [-number for number in positive]
    assert table == [value(code, exponent, mantissa, bias) for code in codes]
    found = decode(packed(codes, bits), dtype, len(codes), "f")
    same(found, table)
    assert found.dtype.itemsize == 1


def test_the_first_of_two_nibbles_is_the_low_one() -> None:
    assert as_float32(decode(b"\x21", "F4", 2, "f")).tolist() == [0.5, 1.0]


def test_the_first_of_four_sixes_is_the_low_one() -> None:
    raw = (1 | 2 << 6 | 3 << 12 | 4 << 18).to_bytes(3, "little")
    assert as_float32(decode(raw, "F6_E2M3", 4, "f")).tolist() == E2M3[1:5]


@given(st.data())
def test_runs_that_begin_and_end_within_blocks(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(sorted(SUBBYTE)))
    bits, positive, _ = SUBBYTE[dtype]
    table = positive + [-number for number in positive]
    codes = data.draw(st.lists(st.integers(0, (1 << bits) - 1), max_size=40))
    skip = data.draw(st.integers(0, len(codes)))
    found = decode_run(packed(codes, bits), dtype, skip, len(codes) - skip, "f")
    same(found, [table[code] for code in codes[skip:]])


@given(st.data())
def test_runs_of_plain_numbers(data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20))
    skip = data.draw(st.integers(0, len(numbers)))
    raw = struct.pack(f"<{len(numbers)}i", *numbers)
    found = decode_run(memoryview(raw), "I32", skip, len(numbers) - skip, "f")
    assert found.tolist() == numbers[skip:]


@pytest.mark.parametrize(
    ("dtype", "code", "numbers"),
    [
        ("U16", "H", [0, 1, 65535]),
        ("I16", "h", [-32768, 0, 32767]),
        ("U32", "I", [0, 2**32 - 1]),
        ("I32", "i", [-(2**31), 2**31 - 1]),
        ("U64", "Q", [0, 2**64 - 1]),
        ("I64", "q", [-(2**63), 2**63 - 1]),
        ("F32", "f", [0.5, -math.inf, 1e-45]),
        ("F64", "d", [0.1, 1e300, 5e-324]),
    ],
)
def test_plain_numbers(dtype: str, code: str, numbers: list[float]) -> None:
    raw = struct.pack(f"<{len(numbers)}{code}", *numbers)
    found = decode(raw, dtype, len(numbers), "f")
    assert found.tolist() == pytest.approx(numbers, rel=0 if code != "f" else 1e-6)
    assert found.dtype.isnative
    assert np.shares_memory(found, np.frombuffer(raw, np.uint8)), "viewed, not copied"


def test_complex_numbers_are_decoded_but_not_made_real() -> None:
    single = decode(struct.pack("<4f", 1, 2, 3, 4), "C64", 2, "f")
    double = decode(struct.pack("<2d", 0.1, -0.2), "C128", 1, "f")
    assert single.tolist() == [1 + 2j, 3 + 4j]
    assert double.tolist() == [0.1 - 0.2j]
    with pytest.raises(DtypeUnknown, match="complex64"):
        as_float32(single, "model.safetensors")


def test_any_byte_but_zero_is_true_and_counts_as_one() -> None:
    found = decode(b"\x00\x01\x02\xff", "BOOL", 4, "f")
    assert found.tolist() == [False, True, True, True]
    assert found.view(np.uint8).tolist() == [0, 1, 1, 1]


def test_single_precision_is_handed_on_and_double_is_rounded() -> None:
    single = decode(struct.pack("<2f", 1, 2), "F32", 2, "f")
    assert as_float32(single) is single
    double = decode(struct.pack("<3d", 0.1, 1e300, -1e-300), "F64", 3, "f")
    assert as_float32(double).tolist() == [np.float32(0.1), math.inf, 0.0]


@pytest.mark.parametrize("dtype", sorted(PLAIN))
def test_nothing_decodes_to_nothing(dtype: str) -> None:
    assert decode(b"", dtype, 0, "f").shape == (0,)


@pytest.mark.parametrize("dtype", sorted(PLAIN))
def test_a_wrong_length_is_noticed(dtype: str) -> None:
    size = PLAIN[dtype].nbytes(8)
    for length in (0, size - 1, size + 1, 2 * size):
        with pytest.raises(ValueError, match="8 numbers"):
            decode(bytes(length), dtype, 8, "f")


@pytest.mark.parametrize("dtype", sorted(set(PLAIN) - {"C64", "C128"}))
def test_shapes_survive_the_way_to_single_precision(dtype: str) -> None:
    matrix = decode(bytes(PLAIN[dtype].nbytes(24)), dtype, 24, "f").reshape(4, 6)
    assert as_float32(matrix[1:, ::2]).shape == (3, 3)


def test_an_unknown_type_is_named() -> None:
    with pytest.raises(DtypeUnknown) as caught:
        decode(b"", "F3", 0, "model.bin")
    assert caught.value.fields == {"dtype": "F3", "file": "model.bin"}


def test_quantised_blocks_are_cut_to_the_count() -> None:
    block = struct.pack("<e", 0.5) + bytes(range(32))
    found = decode_run(memoryview(block * 2), "Q8_0", 3, 40, "m.gguf")
    expected = [0.5 * number for number in range(32)] * 2
    assert found.dtype == np.float32
    assert found.tolist() == expected[3:43]


@pytest.mark.parametrize(("dtype", "code"), [("F16", 0x7C01), ("BF16", 0x7F81)])
def test_nans_that_signal_are_widened_without_a_warning(dtype: str, code: int) -> None:
    assert np.isnan(widen(decode(code.to_bytes(2, "little"), dtype, 1, "a file"))).all()


@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_single_precision_has_no_number_that_rounds_beyond_its_type(dtype: str) -> None:
    about = np.iinfo(dtype)
    had = (about.min, 0, 1 << 24, about.max // 2 + 1)
    assert [is_single(np.array([one], dtype)) for one in had] == [True] * 4
    not_had = (about.max, about.max - 1, (1 << 24) + 1)
    assert [is_single(np.array([one], dtype)) for one in not_had] == [False] * 3


def test_numbers_that_are_none_are_single() -> None:
    assert is_single(np.array([np.nan, np.inf, 0.5])) and not is_single(np.array([0.1]))
