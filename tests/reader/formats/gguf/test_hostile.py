"""Damaged and malicious GGUF files: refused with a reason, quickly and in little memory."""

from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import strategies as st

from kinprint.errors import BadGguf, DtypeUnknown, KinprintError
from kinprint.reader.formats.gguf.header import parse_gguf
from kinprint.records import Header
from tests.examples import few_and_many
from tests.reader.formats.gguf.builder import (
    ARRAY,
    BOOL,
    FLOAT32,
    INT32,
    Q4_0,
    Q8_0,
    STRING,
    UINT32,
    UINT64,
    Recorder,
    array,
    gguf,
    pair,
    tensor,
    text,
)
from tests.work import at_most

HUGE = 2**63


def parsed(data: bytes, size: int | None = None) -> Header:
    return parse_gguf(Recorder(data, size=size).view)


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def nested(depth: int) -> bytes:
    return array(ARRAY, 1, nested(depth - 1)) if depth else array(INT32, 0, b"")


DATA = b"\0" * 256
REFUSED = {
    "empty": (b"", "ends before"),
    "not gguf": (b"GGML" + gguf()[4:], "does not begin with 'GGUF'"),
    "pointer": (b"version https://git-lfs.github.com/spec/v1", "Git LFS"),
    "version 0": (gguf(version=0), "version 0"),
    "version 1": (gguf(version=1), "version 1"),
    "version 4": (gguf(version=4), "version 4"),
    "big-endian": (gguf(version=3 << 24), "big-endian"),
    "too many tensors": (gguf(counts=(HUGE, 0)), "tensors"),
    "too many keys": (gguf(counts=(0, HUGE)), "keys"),
    "key too long": (gguf([struct.pack("<Q", HUGE)], counts=(0, 1)), "ends before"),
    "key not text": (gguf([pair(b"\xff", UINT32, u32(1))]), "not UTF-8"),
    "key twice": (gguf([pair("k", UINT32, u32(1)), pair("k", UINT32, u32(1))]), "'k'"),
    "unknown value": (gguf([pair("k", 13, b"\0" * 9)]), "unknown type 13"),
    "unknown items": (gguf([pair("k", ARRAY, array(99, 0, b""))]), "unknown type 99"),
    "not a bool": (gguf([pair("k", BOOL, b"\2")]), "neither true nor false"),
    "not bools": (gguf([pair("k", ARRAY, array(BOOL, 2, b"\1\2"))]), "neither true nor false"),
    "string too long": (gguf([pair("k", STRING, struct.pack("<Q", HUGE))]), "value of 'k'"),
    "too many numbers": (gguf([pair("k", ARRAY, array(FLOAT32, HUGE, b""))]), "value of 'k'"),
    "too many strings": (gguf([pair("k", ARRAY, array(STRING, HUGE, b""))]), "value of 'k'"),
    "too many arrays": (gguf([pair("k", ARRAY, array(ARRAY, HUGE, b""))]), "value of 'k'"),
    "too deep": (gguf([pair("k", ARRAY, nested(5))]), "more than 4 deep"),
    "far too deep": (gguf([pair("k", ARRAY, nested(900))]), "more than 4 deep"),
    "alignment of text": (gguf([pair("general.alignment", STRING, text("32"))]), "32-bit"),
    "wide alignment": (
        gguf([pair("general.alignment", UINT64, struct.pack("<Q", 32))]),
        "32-bit",
    ),
    "alignment 0": (gguf([pair("general.alignment", UINT32, u32(0))]), "power of two"),
    "alignment 48": (gguf([pair("general.alignment", UINT32, u32(48))]), "power of two"),
    "name not text": (gguf([], [tensor(b"\xc3(", [8])], DATA), "not UTF-8"),
    "same tensor": (gguf([], [tensor("a", [8]), tensor("a", [8], offset=32)], DATA), "twice"),
    "five axes": (gguf([], [tensor("a", [1] * 5)], DATA), "5 dimensions"),
    "many axes": (gguf([], [text("a") + u32(2**32 - 1)], DATA), "dimensions"),
    "size zero": (gguf([], [tensor("a", [8, 0])], DATA), "size zero"),
    "half a block": (gguf([], [tensor("a", [48], Q4_0)], DATA), "multiple of 32"),
    "a scalar in blocks": (gguf([], [tensor("a", [], Q8_0)], DATA), "multiple of 32"),
    "overflow": (gguf([], [tensor("a", [2**62, 2**62, 2**62, 2])], DATA), "beyond"),
    "wraps to zero": (gguf([], [tensor("a", [2**32, 2**32])], DATA), "beyond"),
    "unaligned": (gguf([], [tensor("a", [2], offset=8)], DATA), "not aligned to 32"),
    "overlap": (gguf([], [tensor("a", [16]), tensor("b", [8], offset=32)], DATA), "overlap"),
    "same place": (gguf([], [tensor("a", [8]), tensor("b", [8])], DATA), "overlap"),
    "outside": (gguf([], [tensor("a", [8], offset=256)], DATA), "beyond the end"),
    "far outside": (gguf([], [tensor("a", [8], offset=2**64 - 32)], DATA), "beyond the end"),
    "cut data": (gguf([], [tensor("a", [65])], DATA), "beyond the end"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name: str) -> None:
    data, reason = REFUSED[name]
    with pytest.raises(BadGguf) as caught:
        parsed(data)
    assert reason in str(caught.value.fields["cause"])
    assert caught.value.fields["file"] == "model.gguf"


@pytest.mark.parametrize(
    ("kind", "name"), [(4, "Q4_2"), (31, "Q4_0_4_4"), (99, "ggml type 99"), (2**32 - 1, "ggml")]
)
def test_unknown_types_are_named(kind: int, name: str) -> None:
    with pytest.raises(DtypeUnknown, match=name):
        parsed(gguf([], [tensor("a", [32], kind)], DATA))


def test_a_lying_length_in_a_large_file_is_not_followed() -> None:
    """A file of a terabyte could hold what the length claims, and is not read for it."""
    for claim in (array(FLOAT32, 1 << 36, b""), array(STRING, 1 << 36, b"")):
        recorder = Recorder(gguf([pair("k", ARRAY, claim)]), size=1 << 40)
        with pytest.raises(BadGguf, match="longer than 128 MiB"):
            parse_gguf(recorder.view)
        assert recorder.fetched <= 2 << 20


VALID = gguf(
    [
        pair("general.alignment", UINT32, u32(32)),
        pair("general.name", STRING, text("n")),
        pair(
            "tokens",
            ARRAY,
            array(STRING, 3, text("a") + text(b"\xff") + text("")),
        ),
        pair("scores", ARRAY, array(FLOAT32, 2, b"\0" * 8)),
        pair("rows", ARRAY, array(ARRAY, 1, array(BOOL, 2, b"\0\1"))),
    ],
    [tensor("a", [8, 2]), tensor("b", [32], Q4_0, 64), tensor("c", [32, 2], Q8_0, 96)],
    b"\0" * 164,
)


def test_the_file_to_be_damaged_is_valid() -> None:
    assert len(parsed(VALID).tensors) == 3


def test_every_truncation_is_noticed() -> None:
    for length in range(len(VALID)):
        with pytest.raises(BadGguf):
            parsed(VALID[:length])


@few_and_many(
    100,
    400,
    st.lists(
        st.tuples(st.integers(0, len(VALID) - 1), st.binary(min_size=1, max_size=9)), max_size=6
    ),
    st.integers(0, len(VALID)),
)
def test_damage_never_surprises(changes: list[tuple[int, bytes]], cut: int) -> None:
    data = bytearray(VALID)
    for place, replacement in changes:
        data[place : place + len(replacement)] = replacement
    recorder = Recorder(bytes(data[: len(data) - cut]))
    tracemalloc.start()
    try:
        with at_most(100_000):
            header = parse_gguf(recorder.view)
    except KinprintError:
        pass
    else:
        for spec in header.tensors:
            assert 0 <= spec.offset <= spec.offset + spec.nbytes <= recorder.view.size
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 1 << 20
