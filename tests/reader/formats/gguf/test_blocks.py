"""Quantised blocks: whole tensors and single rows decode to what the package says."""

from __future__ import annotations

import sys
from pathlib import Path

import gguf
import numpy as np
import pytest

from kinprint.errors import BadGguf, DtypeUnknown, MissingExtra
from kinprint.reader.dtypes import GGML
from kinprint.reader.formats.gguf import blocks
from kinprint.reader.formats.gguf.blocks import decode_blocks
from kinprint.reader.formats.gguf.header import parse_gguf
from tests.reader.formats.gguf.builder import Recorder


def decodable(name: str) -> bool:
    try:
        kind = gguf.GGMLQuantizationType[name]
        gguf.quants.dequantize(np.zeros((1, GGML[name].size), np.uint8), kind)
    except (KeyError, NotImplementedError):
        return False
    return True


def encodable(name: str) -> bool:
    try:
        gguf.quants.quantize(np.ones((1, 256), np.float32), gguf.GGMLQuantizationType[name])
    except NotImplementedError:
        return False
    return True


DECODABLE = [name for name in GGML if decodable(name)]
OTHERS = [name for name in GGML if name not in DECODABLE]
ROWS, BLOCKS = 6, 3


def test_only_intermediate_types_have_no_decoder() -> None:
    newer = {"MXFP4", "NVFP4"}  # missing from older releases of the package
    assert set(OTHERS) <= {"Q8_1", "Q8_K", "Q1_0"} | newer


@pytest.mark.parametrize("name", DECODABLE)
def test_rows_equal_the_whole_tensor(name: str, tmp_path: Path) -> None:
    """Random bytes are valid blocks: every bit pattern of a scale is a number, if not finite."""
    rng = np.random.default_rng(list(name.encode()))
    form = GGML[name]
    raw = rng.integers(0, 256, (ROWS, BLOCKS * form.size), dtype=np.uint8)
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    writer.add_tensor("w", raw, raw_dtype=gguf.GGMLQuantizationType[name])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    (theirs,) = gguf.GGUFReader(tmp_path / "m.gguf").tensors
    with np.errstate(all="ignore"):
        want = gguf.quants.dequantize(theirs.data, theirs.tensor_type)

    file = (tmp_path / "m.gguf").read_bytes()
    (spec,) = parse_gguf(Recorder(file).view).tensors
    assert spec.shape == want.shape == (ROWS, BLOCKS * form.block)
    got = decode_blocks(file[spec.offset : spec.offset + spec.nbytes], name, "m.gguf")
    assert got.dtype == np.float32 and got.ndim == 1
    np.testing.assert_array_equal(got.reshape(spec.shape), want)

    row_bytes = spec.nbytes // ROWS
    for row in (0, 2, ROWS - 1):
        start = spec.offset + row * row_bytes
        one = decode_blocks(file[start : start + row_bytes], name, "m.gguf")
        np.testing.assert_array_equal(one, want[row])


@pytest.mark.parametrize("name", [name for name in DECODABLE if encodable(name)])
def test_quantised_numbers_come_back_nearly(name: str) -> None:
    numbers = np.random.default_rng(3).standard_normal((4, 256)).astype(np.float32)
    if name.startswith("TQ"):
        numbers = np.sign(numbers)  # ternary types are for ternary weights
    raw = gguf.quants.quantize(numbers, gguf.GGMLQuantizationType[name])
    back = decode_blocks(raw.tobytes(), name, "m.gguf").reshape(numbers.shape)
    assert np.corrcoef(back.ravel(), numbers.ravel())[0, 1] > 0.98


def test_large_tensors_are_decoded_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = np.random.default_rng(1).integers(0, 256, 34 * 100, dtype=np.uint8).tobytes()
    whole = decode_blocks(raw, "Q8_0", "m.gguf")
    monkeypatch.setattr(blocks, "_AT_ONCE", 7 * 32)
    np.testing.assert_array_equal(decode_blocks(raw, "Q8_0", "m.gguf"), whole)
    assert decode_blocks(b"", "Q8_0", "m.gguf").size == 0


@pytest.mark.parametrize("name", [*OTHERS, "F32", "Q9_9"])
def test_types_without_decoder_are_named(name: str) -> None:
    size = GGML[name].size if name in GGML else 4
    with pytest.raises(DtypeUnknown, match=name):
        decode_blocks(b"\0" * size, name, "m.gguf")


def test_types_newer_than_the_package_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    older = type("GGMLQuantizationType", (), {"Q4_0": gguf.GGMLQuantizationType.Q4_0})
    monkeypatch.setattr(gguf.constants, "GGMLQuantizationType", older)
    with pytest.raises(DtypeUnknown, match="NVFP4"):
        decode_blocks(b"\0" * 36, "NVFP4", "m.gguf")


def test_broken_blocks_are_refused() -> None:
    with pytest.raises(BadGguf, match="no whole number of Q4_0 blocks"):
        decode_blocks(b"\0" * 19, "Q4_0", "m.gguf")


def test_a_missing_package_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(MissingExtra, match=r"\.\[gguf\]"):
        decode_blocks(b"\0" * 18, "Q4_0", "m.gguf")
