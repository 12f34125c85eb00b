"""What the header of a safetensors file says, and each fault for which it is refused."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from kinprint.errors import BadHeader, DtypeUnknown
from kinprint.reader.formats import safetensors
from kinprint.reader.formats.safetensors import parse_safetensors
from kinprint.reader.formats.view import FileView
from kinprint.records import FileEntry, Header, TensorSpec
from tests.work import at_most

ENTRY = '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
MEBI = 1024 * 1024


def view_of(raw: bytes, size: int | None = None) -> FileView:
    return FileView(FileEntry("model.safetensors", size or len(raw)), lambda a, b: raw[a:b])


def parsed(header: str | bytes, data: int = 0) -> Header:
    raw = header.encode() if isinstance(header, str) else header
    return parse_safetensors(view_of(struct.pack("<Q", len(raw)) + raw + bytes(data)))


def refusal(header: str | bytes, data: int = 0) -> str:
    with pytest.raises(BadHeader) as caught:
        parsed(header, data)
    return str(caught.value.fields["cause"])


def entry(dtype: str, shape: str, begin: int, end: int) -> str:
    return f'{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}'


def test_a_file_of_the_official_writer(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    arrays: dict[str, NDArray[Any]] = {
        "b": np.arange(6, dtype=np.float32).reshape(2, 3),
        "a": np.arange(3, dtype=np.int8),
        "empty": np.zeros((0, 4), np.float64),
        "scalar": np.array(7, np.int64),
    }
    save_file(arrays, path, metadata={"format": "np"})
    raw = path.read_bytes()
    header = parse_safetensors(view_of(raw))
    assert header.format == "safetensors"
    assert header.metadata == {"format": "np"}
    assert header.extent == 8 + struct.unpack("<Q", raw[:8])[0]
    assert {tensor.name for tensor in header.tensors} == set(arrays)
    for tensor in header.tensors:
        array = arrays[tensor.name]
        assert tensor.shape == array.shape
        assert raw[tensor.offset : tensor.offset + tensor.nbytes] == array.tobytes()
        assert tensor.file == "model.safetensors"


def test_tensors_come_in_the_order_of_the_file() -> None:
    header = parsed(f'{{"z":{entry("U8", "[2]", 4, 6)},"a":{entry("F32", "[1]", 0, 4)}}}', 6)
    start = header.extent
    assert header.tensors == (
        TensorSpec("a", "F32", (1,), "model.safetensors", start, 4),
        TensorSpec("z", "U8", (2,), "model.safetensors", start + 4, 2),
    )


def test_only_the_header_is_read() -> None:
    reads: list[tuple[int, int]] = []
    raw = f'{{"a":{entry("U8", f"[{MEBI}]", 0, MEBI)}}}'.encode()
    whole = struct.pack("<Q", len(raw)) + raw

    def fetch(start: int, stop: int) -> bytes:
        reads.append((start, stop))
        return whole[start:stop]

    parse_safetensors(FileView(FileEntry("m", len(whole) + MEBI), fetch))
    assert reads == [(0, 8), (8, len(whole))]


@pytest.mark.parametrize(
    "header",
    [
        "{}",
        '{"__metadata__":{}}',
        '{"__metadata__":null}',
        '{"__metadata__":{"made:by":"me, at 10:00"}}',
        "{}      ",
    ],
)
def test_a_file_without_tensors_is_valid(header: str) -> None:
    assert parsed(header).tensors == ()


@pytest.mark.parametrize("name", ["", "a:b", "-", 'quo"te', "줄", "\\", "\x00", "__Metadata__"])
@pytest.mark.parametrize("spaced", [False, True])
def test_names_of_all_kinds(name: str, spaced: bool) -> None:
    content = {name: {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    raw = json.dumps(content, indent=1 if spaced else None, ensure_ascii=spaced)
    assert [tensor.name for tensor in parsed(raw, 4).tensors] == [name]


@pytest.mark.parametrize(
    ("dtype", "shape", "nbytes"),
    [("F4", [6], 3), ("F6_E2M3", [2, 4], 6), ("F6_E3M2", [8], 6), ("C64", [2], 16), ("F4", [0], 0)],
)
def test_types_smaller_and_larger_than_usual(dtype: str, shape: list[int], nbytes: int) -> None:
    (tensor,) = parsed(f'{{"a":{entry(dtype, str(shape), 0, nbytes)}}}', nbytes).tensors
    assert (tensor.dtype, tensor.nbytes) == (dtype, nbytes)


def test_unknown_fields_are_passed_over() -> None:
    raw = '{"a":{"dtype":"F32","note":{"x":[1.5,null]},"shape":[1],"data_offsets":[0,4]}}'
    assert parsed(raw, 4).tensors[0].nbytes == 4


@pytest.mark.parametrize(
    ("first", "size", "clause"),
    [
        (b"", 0, "only 0 bytes"),
        (b"1234567", 7, "only 7 bytes"),
        (struct.pack("<Q", 100_000_001), 10**12, "100,000,001 bytes, and the format allows"),
        (b"\xff" * 8, 10**12, "18,446,744,073,709,551,615"),
        (struct.pack("<Q", 93), 100, "93 bytes, and the file has only 100"),
        (b"version https://git-lfs", 134, "Git LFS pointer"),
        (b"<!DOCTYPE html>", 2000, "web page"),
        (b"PK\x03\x04\x00\x00\x08\x08", 2000, "zip archive"),
        (b"GGUF\x03\x00\x00\x00", 2000, "GGUF"),
    ],
)
def test_a_length_that_cannot_be_true(first: bytes, size: int, clause: str) -> None:
    def fetch(start: int, stop: int) -> bytes:
        assert (start, stop) == (0, min(8, size)), "the header is not read on its word"
        return first[start:stop]

    with pytest.raises(BadHeader, match=clause):
        parse_safetensors(FileView(FileEntry("m", size), fetch))


@pytest.mark.parametrize(
    ("header", "data", "clause"),
    [
        (b'{"\xff":1}', 0, "not UTF-8 (byte 2)"),
        ("", 0, "does not begin with '{'"),
        (f' {{"a":{ENTRY}}}', 4, "does not begin with '{'"),
        ("[]", 0, "does not begin with '{'"),
        ("{", 0, "not JSON"),
        (f'{{"a":{ENTRY}}}\0', 4, "not JSON"),
        (f'{{"\\ud800":{ENTRY}}}', 4, "not JSON"),
        ('{"a":' + "[" * 200_000, 0, "nested too deeply"),
        (f'{{"a":{ENTRY},"a":{ENTRY}}}', 4, "key 'a' twice"),
        (
            '{"a":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}}',
            4,
            "'dtype' twice",
        ),
        ('{"a":{"dtype":"F32","dtype":"F32","data_offsets":[0,4]}}', 4, "'dtype' twice"),
        ('{"__metadata__":{"k":"1","k":"2"}}', 0, "key 'k' twice"),
        ('{"__metadata__":[]}', 0, "__metadata__ is not an object"),
        ('{"__metadata__":{"k":1}}', 0, "not a string, under 'k'"),
        ('{"a":null}', 0, "'a' is not described by an object"),
        ('{"a":["F32",[1],[0,4]]}', 4, "'a' is not described by an object"),
        ('{"a":{"dtype":"F32","x":[1],"data_offsets":[0,4]}}', 4, "'a' has no shape"),
        ('{"a":{"dtype":"F32","x":1,"data_offsets":[0,4]}}', 4, "'a' has no shape"),
        ('{"a":{"dtype":1,"shape":[1],"data_offsets":[0,4]}}', 4, "dtype that is not a string"),
        (f'{{"a":{entry("F32", "[1.0]", 0, 4)}}}', 4, "not a list of sizes"),
        (f'{{"a":{entry("F32", "[true]", 0, 4)}}}', 4, "not a list of sizes"),
        (f'{{"a":{entry("F32", "[-1,-1]", 0, 4)}}}', 4, "not a list of sizes"),
        (f'{{"a":{entry("F32", "[18446744073709551616]", 0, 4)}}}', 4, "not a list of sizes"),
        (f'{{"a":{entry("F32", "7", 0, 4)}}}', 4, "not a list of sizes"),
        ('{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,4]}}', 4, "not two positions"),
        ('{"a":{"dtype":"F32","shape":[1],"data_offsets":[-0,4]}}', 4, "not two positions"),
        (f'{{"a":{entry("F32", "[2]", 0, 4)}}}', 4, "takes 4 bytes, and F32 of shape (2,) takes 8"),
        (f'{{"a":{entry("F32", "[4294967296,4294967296]", 0, 4)}}}', 4, "too large"),
        (f'{{"a":{entry("F32", "[4294967296,4294967296,0]", 0, 0)}}}', 0, "too large"),
        (f'{{"a":{entry("F64", "[2305843009213693952]", 0, 0)}}}', 0, "too large"),
        (f'{{"a":{entry("F4", "[3]", 0, 2)}}}', 2, "3 elements of 4 bits"),
        (f'{{"a":{entry("F6_E2M3", "[2]", 0, 2)}}}', 2, "2 elements of 6 bits"),
        (f'{{"a":{entry("F32", "[1]", 4, 0)}}}', 4, "ends at byte 0, before it begins at 4"),
        (f'{{"a":{entry("F32", "[1]", 4, 8)}}}', 8, "begins at byte 4 of the data, not at 0"),
        (f'{{"a":{ENTRY},"b":{entry("U8", "[4]", 2, 6)}}}', 6, "'b' overlaps tensor 'a'"),
        (f'{{"a":{ENTRY},"b":{entry("U8", "[4]", 6, 10)}}}', 10, "bytes 4 to 6 belong to no"),
        (f'{{"a":{ENTRY}}}', 3, "cut short"),
        (f'{{"a":{ENTRY}}}', 6, "2 bytes follow its last tensor"),
        ("{}", 1, "1 byte follows its last tensor"),
        (f'{{"{"n" * 5000}":1}}', 0, "nn…' is not"),
    ],
)
def test_each_fault_has_its_clause(header: str | bytes, data: int, clause: str) -> None:
    assert clause in refusal(header, data)
    assert len(refusal(header, data)) < 400


def test_a_range_backwards_cannot_be_hidden_between_others() -> None:
    """Ranges 0-4, 4-0, 0-4 join end to start; a missing shape must not make them add up."""
    backwards = '{"dtype":"F32","x":[1],"data_offsets":[4,0]}'
    assert refusal(f'{{"a":{ENTRY},"b":{backwards},"c":{ENTRY}}}', 4)
    assert refusal(f'{{"a":{ENTRY},"b":{entry("F32", "[1]", 4, 0)},"c":{ENTRY}}}', 4)


@pytest.mark.parametrize("dtype", ["F31", "C128", "Q4_0", "", "f32"])
def test_an_unknown_type_is_named(dtype: str) -> None:
    with pytest.raises(DtypeUnknown) as caught:
        parsed(f'{{"a":{entry(dtype, "[1]", 0, 16)}}}', 16)
    assert caught.value.fields == {"dtype": dtype, "file": "model.safetensors"}


METADATA = ({"format": "pt"}, {"note": 'a "b": c-d\n\\', "e-f": ":"}, {"a}": "{}", "b": '"}'})


def large_header(
    shard: int, metadata: dict[str, str] = METADATA[0], tensors: int = 400
) -> tuple[bytes, int]:
    content: dict[str, object] = {"__metadata__": metadata}
    place = 0
    for number in range(tensors):
        shape = [4096, 14336] if number % 3 else [4096]
        end = place + 2 * int(np.prod(shape))
        name = f"model.layers.{shard}.mlp.experts.{number}.gate_proj.weight"
        content[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [place, end]}
        place = end
    raw = json.dumps(content, separators=(",", ":")).encode()
    return struct.pack("<Q", len(raw)) + raw, place


@pytest.mark.parametrize("metadata", METADATA)
def test_the_quick_way_and_the_careful_way_agree(
    metadata: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    raw, data = large_header(7, metadata)
    quick = parse_safetensors(view_of(raw, len(raw) + data))
    nothing: Callable[..., None] = lambda raw, file: None  # noqa: E731
    monkeypatch.setattr(safetensors, "_parse_quickly", nothing)
    assert parse_safetensors(view_of(raw, len(raw) + data)) == quick


@pytest.mark.parametrize("metadata", METADATA)
def test_metadata_and_tensors_may_stand_in_any_order(metadata: dict[str, str]) -> None:
    raw, data = large_header(7, metadata)
    content = list(json.loads(raw[8:]).items())
    turned = json.dumps(dict(reversed(content)), separators=(",", ":")).encode()
    assert len(turned) == len(raw) - 8
    found = parse_safetensors(view_of(raw[:8] + turned, len(raw) + data))
    assert found == parse_safetensors(view_of(raw, len(raw) + data))
    assert found.metadata == metadata


@pytest.mark.parametrize("metadata", METADATA)
def test_headers_of_a_large_model_are_little_work(metadata: dict[str, str]) -> None:
    """Fewer calls than tensors: eighty-nine shards take a fraction of a second."""
    raw, data = large_header(3, metadata)
    view = view_of(raw, len(raw) + data)
    tensors = len(parse_safetensors(view).tensors)
    with at_most(tensors):
        parse_safetensors(view)
