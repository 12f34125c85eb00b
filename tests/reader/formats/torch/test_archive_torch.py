"""Files that PyTorch itself wrote, and the tests' own builder held against them."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinprint.errors import BadArchive, BadPickle
from kinprint.reader.formats.torch.archive import parse_torch
from kinprint.records import TensorSpec
from tests.reader.formats.gguf.builder import Recorder
from tests.reader.formats.torch import builder as build

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

DTYPES = {
    "F32": "float32",
    "F64": "float64",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "BOOL": "bool",
    "C64": "complex64",
    "C128": "complex128",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
}


def example() -> dict[str, Any]:
    torch.manual_seed(1)
    base = torch.randn(6, 7)
    state = {
        "base": base,
        "transposed": base.t(),
        "block": base[2:5, 1:4],
        "rows": base[2:4],
        "stepped": base[:, ::3],
        "expanded": base[0].expand(4, 7),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "parameter": torch.nn.Parameter(torch.randn(3)),
        "deep": torch.randn(2, 3, 4, 5).permute(3, 1, 0, 2),
    }
    for name, dtype in DTYPES.items():
        raw = torch.randint(0, 2, (3, 64), dtype=torch.uint8)
        kind = getattr(torch, dtype)
        state[f"dtype.{name}"] = raw.view(kind) if name != "BOOL" else raw.bool()
    state["attributes"] = torch.ones(2)
    state["attributes"].note = "kept by PyTorch"
    return state


def taken(data: bytes, spec: TensorSpec) -> bytes:
    """The tensor's elements in row-major order, as raw bytes."""
    raw = data[spec.offset : spec.offset + spec.nbytes]
    if spec.strides is None:
        return raw
    size = getattr(torch, DTYPES[spec.dtype]).itemsize
    cells = np.frombuffer(raw, f"V{size}")
    strides = tuple(stride * size for stride in spec.strides)
    return np.lib.stride_tricks.as_strided(cells, spec.shape, strides).tobytes()


def raw_bytes(tensor: Any) -> bytes:
    flat = tensor.detach().contiguous().reshape(-1)
    return bytes(flat.view(torch.uint8).numpy().tobytes()) if flat.numel() else b""


def compared(path: Path, state: dict[str, Any]) -> Recorder:
    data = path.read_bytes()
    recorder = Recorder(data, path.name)
    header = parse_torch(recorder.view)
    assert [spec.name for spec in header.tensors] == list(state)
    for spec in header.tensors:
        tensor = state[spec.name]
        assert spec.shape == tuple(tensor.shape), spec.name
        assert f"torch.{DTYPES[spec.dtype]}" == str(tensor.dtype), spec.name
        assert (spec.strides is None) == (tensor.is_contiguous() or not tensor.numel()), spec.name
        assert taken(data, spec) == raw_bytes(tensor), spec.name
    return recorder


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_every_kind_of_tensor(tmp_path: Path, zipped: bool, protocol: int) -> None:
    state = example()
    path = tmp_path / "state.pt"
    torch.save(state, path, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped)
    compared(path, state)


@pytest.mark.parametrize("zipped", [True, False])
def test_modules_and_checkpoints(tmp_path: Path, zipped: bool) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.BatchNorm1d(4))
    optimiser = torch.optim.AdamW(module.parameters())
    module(torch.randn(5, 8)).sum().backward()
    optimiser.step()
    path = tmp_path / "checkpoint.ckpt"
    checkpoint = {
        "epoch": 3,
        "optimizer": optimiser.state_dict(),
        "state_dict": module.state_dict(),
        "settings": {"dtype": torch.bfloat16, "size": torch.Size([1, 2]), "raw": b"\0\1"},
        "device": torch.device("cpu"),
        "seen": {"a", "b"},
        "rng_state": torch.get_rng_state(),
    }
    torch.save(checkpoint, path, _use_new_zipfile_serialization=zipped)
    compared(path, dict(module.state_dict()))
    torch.save(module.state_dict(), path, _use_new_zipfile_serialization=zipped)
    compared(path, dict(module.state_dict()))


def test_many_storages_cost_few_requests(tmp_path: Path) -> None:
    state = {f"layer.{index}": torch.full((5000,), float(index)) for index in range(400)}
    torch.save(state, tmp_path / "m.bin")
    recorder = compared(tmp_path / "m.bin", state)
    assert len(recorder.ranges) <= 4
    assert recorder.fetched < 300_000
    torch.save(state, tmp_path / "old.bin", _use_new_zipfile_serialization=False)
    assert len(compared(tmp_path / "old.bin", state).ranges) <= 3


def test_checksums_and_alignment_can_be_set_otherwise(tmp_path: Path) -> None:
    state = {"a": torch.arange(5.0), "b": torch.arange(3)}
    config = torch.utils.serialization.config.save
    torch.serialization.set_crc32_options(False)
    config.storage_alignment = 4096
    try:
        torch.save(state, tmp_path / "m.pt")
    finally:
        torch.serialization.set_crc32_options(True)
        config.storage_alignment = 64
    compared(tmp_path / "m.pt", state)


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.pt"
    torch.save({"w": torch.eye(3).to_sparse()}, path)
    with pytest.raises(BadPickle, match="sparse tensors"):
        parse_torch(Recorder(path.read_bytes()).view)
    torch.save(torch.nn.Linear(2, 2), path)
    with pytest.raises(BadPickle, match=r"torch\.nn\.modules\.linear\.Linear"):
        parse_torch(Recorder(path.read_bytes()).view)
    torch.save({"w": torch.zeros(2, device="meta")}, path)
    with pytest.raises(BadPickle, match="meta tensors"):
        parse_torch(Recorder(path.read_bytes()).view)
    torch.save({"w": torch.randn(2, dtype=torch.complex64).conj()}, path)
    with pytest.raises(BadPickle, match="conjugate"):
        parse_torch(Recorder(path.read_bytes()).view)


def test_the_builder_writes_as_pytorch_does(tmp_path: Path) -> None:
    path = tmp_path / "archive.pt"
    torch.save(example(), path)
    with zipfile.ZipFile(path) as archive:
        entries = [(name, archive.read(name)) for name in archive.namelist()]
    assert build.zip_archive(entries) == path.read_bytes()


def test_pytorch_reads_what_the_builder_writes(tmp_path: Path) -> None:
    raw = np.arange(6, dtype="<f4").tobytes()
    body = build.ordered({"w": build.tensor(build.storage("FloatStorage", "0", 6), [3, 2], [1, 3])})
    path = tmp_path / "m.pt"
    path.write_bytes(build.torch_zip(body, {"0": raw}))
    state = torch.load(path, weights_only=True)
    compared(path, dict(state))
    old = build.storage("FloatStorage", "0", 6, build.NONE)
    body = build.ordered({"w": build.tensor(old, [3, 2], [1, 3])})
    path.write_bytes(build.torch_legacy(body, {"0": (6, raw)}))
    compared(path, dict(torch.load(path, weights_only=True)))


def test_torchscript_is_refused(tmp_path: Path) -> None:
    """An archive with code in it, as `torch.jit.save` made them."""
    module = build.name("__torch__.torch.nn", "Linear") + b")\x81}b"
    data = build.torch_zip(module, {}, {"code/__torch__.py": b"", "constants.pkl": b"\x80\2)."})
    with pytest.raises(BadArchive, match="TorchScript"):
        parse_torch(Recorder(data).view)
