"""The same bytes through PyTorch: every type that it has, bit by bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kinprint.reader.decode import as_float32, decode
from kinprint.reader.formats.safetensors import parse_safetensors
from kinprint.reader.formats.view import FileView
from kinprint.records import FileEntry

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")

TYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    "C64": "complex64",
    "C128": "complex128",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}
FLOATING = [name for name, kind in TYPES.items() if "float" in kind]


def torch_type(dtype: str) -> Any:
    kind = getattr(torch, TYPES[dtype], None)
    if kind is None:
        pytest.skip(f"this torch has no {TYPES[dtype]}")
    return kind


def codes(dtype: str) -> bytes:
    """All codes of types up to two bytes, random ones and the corners of wider types."""
    size = 16 if dtype == "C128" else {"C64": 8}.get(dtype, 0) or torch_type(dtype).itemsize
    if size == 1:
        return bytes(range(256))
    if size == 2:
        return np.arange(65536, dtype="<u2").tobytes()
    rng = np.random.default_rng(size)
    corners = [bytes(size), b"\xff" * size, bytes(size - 1) + b"\x80", b"\x01" + bytes(size - 1)]
    return b"".join(corners) + rng.bytes(size * 4096)


def bits(array: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(array).view(np.uint8)


def same(found: NDArray[np.float32], expected: NDArray[np.float32]) -> None:
    nan = np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), nan)
    np.testing.assert_array_equal(bits(found[~nan]), bits(expected[~nan]))


def as_torch(raw: bytes, dtype: str) -> Any:
    return torch.frombuffer(bytearray(raw), dtype=torch.uint8).view(torch_type(dtype))


@pytest.mark.parametrize("dtype", [name for name in TYPES if name not in FLOATING])
def test_numbers_that_are_not_floating(dtype: str) -> None:
    raw = codes(dtype)
    theirs = as_torch(raw, dtype)
    ours = decode(raw, dtype, theirs.numel(), "f")
    if dtype == "BOOL":
        assert ours.tolist() == [bool(one) for one in theirs]
        return
    expected = theirs.numpy()
    assert ours.dtype == expected.dtype
    np.testing.assert_array_equal(bits(ours), bits(expected))


@pytest.mark.parametrize("dtype", FLOATING)
def test_floating_numbers(dtype: str) -> None:
    raw = codes(dtype)
    theirs = as_torch(raw, dtype)
    ours = decode(raw, dtype, theirs.numel(), "f")
    assert bits(ours).tobytes() == raw
    same(as_float32(ours), theirs.to(torch.float32).numpy())


def test_fp4_is_counted_number_by_number() -> None:
    """PyTorch's shape counts bytes with two numbers each; in the file it counts numbers.

    Their order within the byte cannot be asked here, since PyTorch converts no fp4.
    """
    kind = getattr(torch, "float4_e2m1fn_x2", None)
    if kind is None:
        pytest.skip("this torch has no float4_e2m1fn_x2")
    safetensors_torch = pytest.importorskip("safetensors.torch")
    packed = torch.arange(256, dtype=torch.uint8).reshape(4, 64).view(kind)
    raw = safetensors_torch.save({"w": packed})
    header = parse_safetensors(FileView(FileEntry("m", len(raw)), lambda a, b: raw[a:b]))
    (tensor,) = header.tensors
    assert (tensor.dtype, tensor.shape, tensor.nbytes) == ("F4", (4, 128), 256)


SAVED = [name for name in TYPES if name != "C128"]


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}])
def test_a_file_that_torch_saved(tmp_path: Path, metadata: dict[str, str] | None) -> None:
    safetensors_torch = pytest.importorskip("safetensors.torch")
    torch.manual_seed(0)
    tensors = {}
    for dtype in SAVED:
        raw = codes(dtype)
        if dtype == "BOOL":
            raw = bytes(code & 1 for code in raw)
        flat = as_torch(raw, dtype)
        tensors[f"layer.{dtype}"] = flat.reshape(4, -1) if flat.numel() % 4 == 0 else flat
    tensors["empty"] = torch.zeros(0, 3)
    tensors["scalar"] = torch.tensor(2.5)
    path = tmp_path / "model.safetensors"
    safetensors_torch.save_file(tensors, path, metadata=metadata)

    raw = path.read_bytes()
    header = parse_safetensors(FileView(FileEntry("m", len(raw)), lambda a, b: raw[a:b]))
    assert header.metadata == (metadata or {})
    assert {tensor.name for tensor in header.tensors} == set(tensors)
    for spec in header.tensors:
        theirs = tensors[spec.name]
        assert spec.shape == tuple(theirs.shape)
        part = memoryview(raw)[spec.offset : spec.offset + spec.nbytes]
        ours = decode(part, spec.dtype, spec.count, spec.file)
        stored = bytes(theirs.contiguous().untyped_storage())
        assert bits(ours.reshape(-1)).tobytes() == stored
