"""Files that the `gguf` package wrote, read the way its own reader reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest

from kinprint.reader.dtypes import GGML, dtype_named
from kinprint.reader.formats.gguf.header import TYPES, parse_gguf
from kinprint.reader.formats.gguf.values import FIRST_READ, LARGEST_STEP
from kinprint.records import Header
from tests.reader.formats.gguf.builder import (
    ARRAY,
    BOOL,
    INT32,
    STRING,
    UINT32,
    Recorder,
    array,
    pair,
    tensor,
    text,
)
from tests.reader.formats.gguf.builder import gguf as build


def finished(writer: Any) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def written(path: Path) -> bytes:
    """A file with every kind of value and a tensor of every type."""
    rng = np.random.default_rng(7)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint8("v.u8", 200)
    writer.add_int8("v.i8", -3)
    writer.add_uint16("v.u16", 65535)
    writer.add_int16("v.i16", -300)
    writer.add_uint32("v.u32", 2**32 - 1)
    writer.add_int32("v.i32", -(2**31))
    writer.add_uint64("v.u64", 2**64 - 1)
    writer.add_int64("v.i64", -(2**63))
    writer.add_float32("v.f32", 0.5)
    writer.add_float64("v.f64", 0.1)
    writer.add_bool("v.yes", True)
    writer.add_string("v.text", "글자 ≠ bytes")
    writer.add_array("v.flags", [True, False, True])
    writer.add_token_list([b"a", "뿌리".encode(), b"\xff\xfe", b""])
    writer.add_token_scores([0.0, -1.5, 2.25, 1e-8])
    writer.add_token_types([1, 2, 3, 6])
    for kind, (block, size) in gguf.GGML_QUANT_SIZES.items():
        raw = rng.integers(0, 256, (3, 5, 2 * size), dtype=np.uint8)
        name = f"blk.{kind.name}.weight"
        if block > 1:
            writer.add_tensor(name, raw, raw_dtype=kind)
        else:
            writer.add_tensor(name, raw, raw_shape=raw.shape, raw_dtype=kind)
    finished(writer)
    return path.read_bytes()


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "all.gguf"
    written(path)
    return path


def parsed(data: bytes) -> Header:
    return parse_gguf(Recorder(data).view)


def test_types_are_those_of_the_package() -> None:
    # Older releases of the package know fewer; a newer one that knows more is news.
    assert {int(kind): kind.name for kind in gguf.GGML_QUANT_SIZES}.items() <= TYPES.items()
    for kind, (block, size) in gguf.GGML_QUANT_SIZES.items():
        dtype = dtype_named(kind.name, "x")
        assert (dtype.block, dtype.size) == (block, size)
    assert set(GGML) < set(TYPES.values())


def test_tensors_are_where_the_package_finds_them(example: Path) -> None:
    data = example.read_bytes()
    header = parsed(data)
    reader = gguf.GGUFReader(example)
    assert header.format == "gguf"
    assert [spec.name for spec in header.tensors] == [theirs.name for theirs in reader.tensors]
    assert len(header.tensors) == len(gguf.GGML_QUANT_SIZES)
    for spec, theirs in zip(header.tensors, reader.tensors, strict=True):
        assert spec.dtype == theirs.tensor_type.name
        assert spec.shape == tuple(reversed(theirs.shape.tolist()))
        assert (spec.offset, spec.nbytes) == (theirs.data_offset, theirs.n_bytes)
        assert spec.count == theirs.n_elements
        assert data[spec.offset : spec.offset + spec.nbytes] == theirs.data.tobytes()
        assert (spec.file, spec.strides) == ("model.gguf", None)


def test_metadata_is_what_the_package_finds(example: Path) -> None:
    metadata = dict(parsed(example.read_bytes()).metadata)
    reader = gguf.GGUFReader(example)
    theirs = {key for key in reader.fields if not key.startswith("GGUF.")}
    assert set(metadata) == theirs
    assert metadata.pop("tokenizer.ggml.tokens") == ["a", "뿌리", "\udcff\udcfe", ""]
    for key, value in metadata.items():
        want = reader.fields[key].contents()
        got = value.tolist() if isinstance(value, np.ndarray) else value
        assert got == want, key
        assert isinstance(got, bool) == isinstance(want, bool)
    scores, types = metadata["tokenizer.ggml.scores"], metadata["tokenizer.ggml.token_type"]
    assert isinstance(scores, np.ndarray) and scores.dtype == np.float32
    assert isinstance(types, np.ndarray) and types.dtype == np.int32


def test_alignment_of_the_file_is_honoured(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "a.gguf", "llama")
    writer.add_custom_alignment(256)
    writer.add_tensor("a", np.arange(3, dtype=np.float32))
    writer.add_tensor("b", np.arange(5, dtype=np.float16))
    finished(writer)
    header = parsed((tmp_path / "a.gguf").read_bytes())
    assert [spec.offset % 256 for spec in header.tensors] == [0, 0]
    reader = gguf.GGUFReader(tmp_path / "a.gguf")
    assert [spec.offset for spec in header.tensors] == [t.data_offset for t in reader.tensors]


def test_version_2_and_nested_arrays() -> None:
    inner = array(INT32, 2, b"\1\0\0\0\2\0\0\0")
    words = array(STRING, 2, text("x") + text("y"))
    pairs = [
        pair("rows", ARRAY, array(ARRAY, 2, inner + inner)),
        pair("words", ARRAY, array(ARRAY, 1, words)),
        pair("none", ARRAY, array(ARRAY, 0, b"")),
        pair("flags", ARRAY, array(BOOL, 2, b"\0\1")),
    ]
    header = parsed(build(pairs, version=2))
    rows = header.metadata["rows"]
    assert isinstance(rows, list) and [row.tolist() for row in rows] == [[1, 2], [1, 2]]
    assert header.metadata["words"] == [["x", "y"]]
    assert header.metadata["none"] == []
    flags = header.metadata["flags"]
    assert isinstance(flags, np.ndarray) and flags.dtype == bool
    assert header.tensors == ()


def test_a_scalar_has_no_dimensions() -> None:
    (spec,) = parsed(build([], [tensor("scale", [])], b"\0" * 4)).tensors
    assert (spec.shape, spec.nbytes) == ((), 4)


def test_gaps_between_tensors_are_allowed() -> None:
    infos = [tensor("b", [2], offset=64), tensor("a", [2], offset=0)]
    first, second = parsed(build([], infos, b"\0" * 72)).tensors
    assert (first.name, first.offset - second.offset) == ("b", 64)


def test_a_large_vocabulary_costs_little_more_than_its_header() -> None:
    tokens = b"".join(text(f"token{index}") for index in range(250_000))
    pairs = [
        pair("tokens", ARRAY, array(STRING, 250_000, tokens)),
        pair("scores", ARRAY, array(UINT32, 250_000, b"\0" * 1_000_000)),
    ]
    file = build(pairs, [tensor("w", [1 << 20], offset=0)], b"\0" * (4 << 20))
    recorder = Recorder(file, size=len(file))
    header = parse_gguf(recorder.view)
    words = header.metadata["tokens"]
    assert isinstance(words, list) and words[-1] == "token249999" and len(words) == 250_000
    needed = header.tensors[0].offset
    assert 4 << 20 < needed < 6 << 20
    assert recorder.fetched <= needed + LARGEST_STEP
    assert recorder.fetched == header.extent
    assert len(recorder.ranges) <= 4
    # Nothing is fetched twice.
    assert all(a[1] == b[0] for a, b in zip(recorder.ranges, recorder.ranges[1:], strict=False))


def test_a_small_header_costs_one_read() -> None:
    file = build([], [tensor("w", [1 << 20])])
    size = len(file) + (8 << 20)
    recorder = Recorder(file, size=size)
    parse_gguf(recorder.view)
    assert recorder.ranges == [(0, FIRST_READ)]
