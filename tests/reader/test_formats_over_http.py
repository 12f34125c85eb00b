"""GGUF and PyTorch files through the whole path: mirror, hub client, planner, cache, decoder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import gguf
import numpy as np
import pytest

from kinprint.errors import BadPickle, PartsMissing
from kinprint.mirror import MirrorServer
from kinprint.model.inspection import inspect_checkpoint
from kinprint.reader.cache import Cache
from kinprint.reader.checkpoint import open_checkpoint
from kinprint.reader.fetch import Fetcher
from kinprint.records import Slice
from tests.reader.formats.torch import builder as torch_file

MakeMirror = Callable[..., MirrorServer]
ROWS, COLUMNS = 256, 512


@pytest.fixture
def fetcher(tmp_path: Path) -> Iterator[Fetcher]:
    with Fetcher(cache=Cache(tmp_path / "cache")) as made:
        yield made


@pytest.fixture
def matrix() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(ROWS, COLUMNS)).astype(np.float32)


def write_gguf(path: Path, matrix: np.ndarray, *, part: tuple[int, int] | None = None) -> None:
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(7)
    if part is not None:
        writer.add_uint16("split.no", part[0])
        writer.add_uint16("split.count", part[1])
        writer.add_int32("split.tensors.count", 2 * part[1])
    number = part[0] if part else 0
    kind = gguf.GGMLQuantizationType.Q8_0
    packed = gguf.quants.quantize(matrix, kind)
    writer.add_tensor(f"blk.{number}.ffn_up.weight", packed, raw_dtype=kind)
    writer.add_tensor(f"blk.{number}.attn_norm.weight", matrix[0])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_rows_of_a_quantised_gguf(
    tmp_path: Path, matrix: np.ndarray, make_mirror: MakeMirror, fetcher: Fetcher
) -> None:
    folder = tmp_path / "models/zoo/m"
    folder.mkdir(parents=True)
    write_gguf(folder / "m.gguf", matrix)
    server = make_mirror(tmp_path / "models")
    checkpoint = open_checkpoint("zoo/m", fetcher)
    found = inspect_checkpoint(checkpoint)
    assert (found.format, found.geometry.family, found.geometry.layers) == ("gguf", "llama", 7)
    spec = checkpoint.tensors()["blk.0.ffn_up.weight"]
    assert (spec.dtype, spec.shape) == ("Q8_0", (ROWS, COLUMNS))
    server.stats.reset()
    (rows,) = checkpoint.read([Slice(spec, rows=(200, 3, 77))])
    kind = gguf.GGMLQuantizationType.Q8_0
    whole = gguf.quants.dequantize(gguf.quants.quantize(matrix, kind), kind)
    np.testing.assert_array_equal(rows, whole[[200, 3, 77]])


def test_sixteen_rows_never_cost_the_tensor(
    tmp_path: Path, make_mirror: MakeMirror, fetcher: Fetcher
) -> None:
    folder = tmp_path / "models/zoo/m"
    folder.mkdir(parents=True)
    large = np.random.default_rng(4).normal(size=(8192, COLUMNS)).astype(np.float32)
    write_gguf(folder / "m.gguf", large)
    server = make_mirror(tmp_path / "models")
    checkpoint = open_checkpoint("zoo/m", fetcher)
    spec = checkpoint.tensors()["blk.0.ffn_up.weight"]
    before = server.stats.storage_body_bytes
    checkpoint.read([Slice(spec, rows=tuple(range(0, 8192, 512)))])
    read = server.stats.storage_body_bytes - before
    assert 0 < read <= 16 * (COLUMNS // 32) * 34


def test_split_gguf_and_a_missing_part(
    tmp_path: Path, matrix: np.ndarray, make_mirror: MakeMirror, fetcher: Fetcher
) -> None:
    folder = tmp_path / "models/zoo/m"
    folder.mkdir(parents=True)
    for number in range(3):
        write_gguf(folder / f"m-{number + 1:05}-of-00003.gguf", matrix, part=(number, 3))
    server = make_mirror(tmp_path / "models")
    first = "zoo/m/m-00001-of-00003.gguf"
    for name in ("zoo/m", first):
        assert len(open_checkpoint(name, fetcher).tensors()) == 6
    (folder / "m-00002-of-00003.gguf").unlink()
    server.refresh()
    for name in ("zoo/m", first):
        with pytest.raises(PartsMissing, match="number 2 of 3"):
            open_checkpoint(name, fetcher)


def archive(matrix: np.ndarray, prefix: str = "") -> bytes:
    stored = torch_file.storage("FloatStorage", "0", matrix.size)
    tensors = {
        f"{prefix}up.weight": torch_file.tensor(stored, matrix.shape, (COLUMNS, 1)),
        f"{prefix}turned.weight": torch_file.tensor(stored, (COLUMNS, ROWS), (1, COLUMNS)),
    }
    body = torch_file.pickle(torch_file.ordered(tensors))
    entries = [
        ("archive/data.pkl", body),
        ("archive/byteorder", b"little"),
        ("archive/data/0", matrix.tobytes()),
        ("archive/version", b"3\n"),
    ]
    return torch_file.zip_archive(entries)


def test_pytorch_archives_by_range(
    tmp_path: Path, matrix: np.ndarray, make_mirror: MakeMirror, fetcher: Fetcher
) -> None:
    folder = tmp_path / "models/zoo/m"
    folder.mkdir(parents=True)
    (folder / "pytorch_model.bin").write_bytes(archive(matrix))
    server = make_mirror(tmp_path / "models")
    checkpoint = open_checkpoint("zoo/m", fetcher)
    specs = checkpoint.tensors()
    assert server.stats.storage_body_bytes < 200_000  # of half a megabyte
    up, turned = checkpoint.read(
        [
            Slice(specs["up.weight"], rows=(250, 1), columns=range(5, 9)),
            Slice(specs["turned.weight"], rows=(4, 500)),
        ]
    )
    np.testing.assert_array_equal(up, matrix[[250, 1], 5:9])
    np.testing.assert_array_equal(turned, matrix.T[[4, 500]])


def test_sharded_pytorch_archives(
    tmp_path: Path, matrix: np.ndarray, make_mirror: MakeMirror, fetcher: Fetcher
) -> None:
    folder = tmp_path / "models/zoo/m"
    folder.mkdir(parents=True)
    names = [f"pytorch_model-{n:05}-of-00002.bin" for n in (1, 2)]
    weight_map = {}
    for number, name in enumerate(names):
        (folder / name).write_bytes(archive(matrix + number, f"layers.{number}."))
        for tensor in ("up", "turned"):
            weight_map[f"layers.{number}.{tensor}.weight"] = name
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    make_mirror(tmp_path / "models")
    checkpoint = open_checkpoint("zoo/m", fetcher)
    assert checkpoint.format == "torch"
    spec = checkpoint.tensors(["layers.1.up.weight"])["layers.1.up.weight"]
    (values,) = checkpoint.read([Slice(spec)])
    np.testing.assert_array_equal(values, matrix + 1)


def test_a_forbidden_global_is_refused_over_http(
    tmp_path: Path, make_mirror: MakeMirror, fetcher: Fetcher
) -> None:
    folder = tmp_path / "models/zoo/m"
    folder.mkdir(parents=True)
    evil = torch_file.call(torch_file.name("os", "system"), torch_file.text("touch hacked"))
    entries = [("archive/data.pkl", torch_file.pickle(evil)), ("archive/version", b"3\n")]
    (folder / "pytorch_model.bin").write_bytes(torch_file.zip_archive(entries))
    make_mirror(tmp_path / "models")
    with pytest.raises(BadPickle, match=r"os\.system"):
        open_checkpoint("zoo/m", fetcher).tensors()
