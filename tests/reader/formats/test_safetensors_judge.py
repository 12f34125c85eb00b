"""The official library as judge: headers, sound and mutated, get the verdict it gives them.

Where the verdicts differ, ours is the stricter one and for a reason that the module under
test declares: white space first, a key twice, an entry or dtype in an unusual notation.
"""

from __future__ import annotations

import json
import math
import struct
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from kinprint.errors import FormatError
from kinprint.reader.formats.safetensors import parse_safetensors
from kinprint.reader.formats.view import FileView
from kinprint.records import FileEntry
from tests.examples import few_and_many

BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "U16": 16, "I16": 16, "U32": 32, "I32": 32, "U64": 64,
    "I64": 64, "F16": 16, "BF16": 16, "F32": 32, "F64": 64, "C64": 64, "F8_E4M3": 8,
    "F8_E5M2": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6,
    "F6_E3M2": 6,
}  # fmt: skip


def our_view(raw: bytes, size: int) -> FileView:
    return FileView(FileEntry("m", size), lambda start, stop: raw[start:stop].ljust(stop - start))


def we_accept(raw: bytes, size: int) -> bool:
    try:
        parse_safetensors(our_view(raw, size))
    except FormatError:
        return False
    return True


def library_accepts(raw: bytes, size: int) -> bool:
    """The library's verdict on a file that begins with `raw` and is zero up to `size`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        with path.open("wb") as file:
            file.write(raw[:size])
            file.truncate(size)
        try:
            with safe_open(path, "np"):
                return True
        except Exception:
            return False


def declared_stricter(header: bytes) -> bool:
    """Whether a header has one of the peculiarities that only we refuse."""
    twice = False

    def notice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal twice
        twice = twice or len(dict(pairs)) != len(pairs)
        return dict(pairs)

    content = json.loads(header, object_pairs_hook=notice)
    unusual = any(
        not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str)
        for name, entry in content.items()
        if name != "__metadata__"
    )
    return twice or unusual or not header.startswith(b"{")


def check(header: bytes, data: int, length: int | None = None) -> None:
    raw = struct.pack("<Q", len(header) if length is None else length) + header
    size = max(0, len(raw) + data)
    ours, theirs = we_accept(raw, size), library_accepts(raw, size)
    assert theirs or not ours, "we accept what the library refuses"
    assert ours or not theirs or declared_stricter(header), "we refuse without a declared reason"


@st.composite
def contents(draw: st.DrawFn) -> tuple[dict[str, Any], int]:
    """A sound header as an object, and the length of its data."""
    content: dict[str, Any] = {}
    if draw(st.booleans()):
        content["__metadata__"] = draw(st.dictionaries(st.text(max_size=3), st.text(max_size=3)))
    place = 0
    tensors = []
    for name in draw(st.lists(st.text(max_size=4), unique=True, max_size=4)):
        dtype = draw(st.sampled_from(sorted(BITS)))
        shape = draw(st.lists(st.integers(0, 5), max_size=3))
        bits = math.prod(shape) * BITS[dtype]
        if bits % 8:
            shape, bits = [*shape, 4], bits * 4
        end = place + bits // 8
        tensors.append((name, {"dtype": dtype, "shape": shape, "data_offsets": [place, end]}))
        place = end
    content |= dict(draw(st.permutations(tensors)))
    return content, place


def compact(content: object) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


WORDS = st.sampled_from(
    [
        0, 1, 2, 4, -1, 2**32, 2**61, 2**63, 2**64 - 1, 2**64, 10**400, 1.0, 0.5, True, None,
        "", "F32", "F4", "F6_E2M3", "C128", "F33", "__metadata__", "dtype", "a",
    ]
)  # fmt: skip
VALUES = st.recursive(
    WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)


def mutate(draw: st.DrawFn, value: Any) -> Any:
    """`value` with one change somewhere within."""
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(sorted(value)))
        way = draw(st.integers(0, 5))
        if way == 0:
            return {one: inner for one, inner in value.items() if one != key}
        if way == 1:
            return value | {draw(st.sampled_from(["x", "dtype", "__metadata__"])): draw(VALUES)}
        return value | {key: mutate(draw, value[key])}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], mutate(draw, value[place]), *value[place + 1 :]]
    if type(value) is int and draw(st.booleans()):
        return value + draw(st.sampled_from([-8, -4, -1, 1, 2, 4, 8]))
    return draw(VALUES)


@st.composite
def mutated_contents(draw: st.DrawFn) -> tuple[Any, int]:
    content, data = draw(contents())
    changed: Any = content
    for _ in range(draw(st.integers(1, 2))):
        changed = mutate(draw, changed)
    return changed, max(0, data + draw(st.sampled_from([0, 0, 0, 0, -1, 1, 4])))


TOKENS = [
    b"", b" ", b"\n", b"\0", b"\xff", b"\xc3", b"\\", b'"', b"{", b"}", b"[", b"]", b",", b":",
    b"-", b"-0", b"0", b"1", b"00", b".0", b"e0", b"E1", b"1e999", b"null", b"true", b"NaN",
    b"\\u0041", b"\\ud800", b"\\ud83d\\ude00", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"\t",
    b'"dtype":"F32",', b'"x":1,', b'"x":{"x":1,"x":2},', b"\xef\xbb\xbf", b"/**/", b'"a":1,',
]  # fmt: skip


@st.composite
def mutated_bytes(draw: st.DrawFn) -> tuple[bytes, int, int]:
    content, data = draw(contents())
    raw = compact(content)
    if draw(st.booleans()):
        raw = json.dumps(content, indent=draw(st.integers(0, 1))).encode()
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(raw)))
        stop = min(len(raw), start + draw(st.integers(0, 2)))
        piece = draw(st.sampled_from(TOKENS) | st.binary(max_size=2))
        raw = raw[:start] + piece + raw[stop:]
    return raw, data, len(raw) + draw(st.sampled_from([0, 0, 0, 0, -1, 1, 2**62]))


@settings(max_examples=300, deadline=None)
@given(contents(), st.booleans(), st.sampled_from([0, 1, -1]))
def test_sound_headers(made: tuple[dict[str, Any], int], spaced: bool, extra: int) -> None:
    content, data = made
    header = json.dumps(content, indent=1).encode() if spaced else compact(content)
    raw = struct.pack("<Q", len(header)) + header
    assert we_accept(raw, len(raw) + data)
    check(header, data)
    check(header, max(0, data + extra))


@few_and_many(250, 1000, mutated_contents())
def test_headers_changed_as_json(made: tuple[Any, int]) -> None:
    content, data = made
    check(compact(content), data)


@few_and_many(250, 1000, mutated_bytes())
def test_headers_changed_as_bytes(made: tuple[bytes, int, int]) -> None:
    header, data, length = made
    check(header, data, max(0, length))


@settings(max_examples=200, deadline=None)
@given(contents(), st.integers(0, 40))
@example(made=({}, 0), kept=0)
def test_files_cut_anywhere(made: tuple[dict[str, Any], int], kept: int) -> None:
    content, _ = made
    raw = (struct.pack("<Q", len(compact(content))) + compact(content))[:kept]
    assert we_accept(raw, len(raw)) == library_accepts(raw, len(raw))


def unknown(value: str) -> str:
    return f'{{"a":{{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":{value}}}}}'


@pytest.mark.parametrize(
    "header",
    [
        unknown("[" * 125 + "]" * 125),
        unknown("[" * 126 + "]" * 126),
        unknown("9" * 300),
        unknown("9" * 400),
        unknown("1e999"),
        unknown("-0"),
        unknown("NaN"),
        unknown('"\\ud800"'),
        unknown('{"b":{}}'),
        '{"a":{"dtype":"U8","shape":[0,18446744073709551615],"data_offsets":[0,0]}}',
        '{"a":{"dtype":"U8","shape":[0,18446744073709551616],"data_offsets":[0,0]}}',
        '{"a":{"dtype":"U8","shape":[2305843009213693952,0],"data_offsets":[0,0]}}',
        '{"a":{"dtype":"U8","shape":[8589934592,8589934592,0],"data_offsets":[0,0]}}',
        '{"a":{"dtype":"U8","shape":[0,8589934592,8589934592],"data_offsets":[0,0]}}',
        '{"a":["U8",[1],[0,1]]}',
        '{"a":{"dtype":{"U8":null},"shape":[1],"data_offsets":[0,1]}}',
        ' {"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        '{"__metadata__":null,"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
        '{"\\u005f_metadata__":{"q":"r"},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
    ],
)
@pytest.mark.parametrize("data", [0, 1])
def test_corners(header: str, data: int) -> None:
    check(header.encode(), data)


def test_a_sparse_file_of_the_size_of_a_shard() -> None:
    size = 5 * 10**9
    header = compact({"a": {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}})
    check(header, size)
    check(header, size - 1)
    check(header, size + 1)
