"""PyTorch files in both formats: where tensors lie, and what finding out costs."""

from __future__ import annotations

import io
import struct
import zipfile

import numpy as np
import pytest

from kinprint.errors import BadArchive
from kinprint.reader.formats.torch.archive import parse_torch
from kinprint.reader.formats.torch.records import DTYPES, STORAGES
from kinprint.records import Header, TensorSpec
from tests.reader.formats.gguf.builder import Recorder
from tests.reader.formats.torch import builder as build

A = np.arange(20, dtype="<f4").tobytes()
B = np.arange(6, dtype="<f2").tobytes()


def parsed(data: bytes) -> Header:
    return parse_torch(Recorder(data, "m.pt").view)


def specs(data: bytes) -> dict[str, TensorSpec]:
    return {spec.name: spec for spec in parsed(data).tensors}


def body(view: bytes | None = None) -> bytes:
    """Tensors on two storages, in every relation to them."""
    a = build.storage("FloatStorage", "0", 20, view)
    b = build.storage("HalfStorage", "1", 6, view)
    empty = build.storage("LongStorage", "2", 0, view)
    return build.ordered(
        {
            "whole": build.tensor(a, [4, 5], [5, 1]),
            "transposed": build.tensor(a, [5, 4], [1, 5]),
            "rows": build.tensor(a, [2, 5], [5, 1], 5),
            "block": build.tensor(a, [2, 2], [5, 1], 6),
            "column": build.tensor(a, [4], [5], 4),
            "last": build.tensor(a, [], [], 19),
            "repeated": build.tensor(a, [3, 5], [0, 1]),
            "ones": build.tensor(a, [1, 5, 1], [99, 1, 7]),
            "half": build.tensor(b, [6], [1]),
            "empty": build.tensor(empty, [0, 3], [3, 1]),
            "empty part": build.tensor(a, [0], [1], 20),
        }
    )


def check(data: bytes, start_a: int, start_b: int) -> None:
    found = specs(data)
    assert data[start_a : start_a + len(A)] == A and data[start_b : start_b + len(B)] == B

    def at(name: str) -> tuple[int, int, tuple[int, ...] | None]:
        spec = found[name]
        return spec.offset - start_a, spec.nbytes, spec.strides

    assert at("whole") == (0, 80, None)
    assert at("transposed") == (0, 80, (1, 5))
    assert at("rows") == (20, 40, None)
    assert at("block") == (24, 28, (5, 1))
    assert at("column") == (16, 64, (5,))
    assert at("last") == (76, 4, None)
    assert at("repeated") == (0, 20, (0, 1))
    assert at("ones") == (0, 20, None)
    assert found["ones"].shape == (1, 5, 1)
    assert found["last"].shape == ()
    half = found["half"]
    assert (half.offset, half.nbytes, half.dtype, half.file) == (start_b, 12, "F16", "m.pt")
    assert (found["empty"].nbytes, found["empty"].shape, found["empty"].dtype) == (0, (0, 3), "I64")
    assert found["empty part"].nbytes == 0


def zipped() -> bytes:
    return build.torch_zip(body(), {"0": A, "1": B, "2": b""})


def test_zip_archive() -> None:
    data = zipped()
    check(data, data.index(A), data.index(B))
    header = parsed(data)
    assert header.format == "torch"
    assert header.extent == len(data)
    assert list(specs(data))[:3] == ["whole", "transposed", "rows"]


def test_legacy_file() -> None:
    storages = {"1": (6, B), "0": (20, A), "2": (0, b"")}
    data = build.torch_legacy(body(build.NONE), storages)
    check(data, data.index(A), data.index(B))


def test_legacy_view_of_a_storage() -> None:
    view = build.tuple_of(build.text("v"), build.whole(5), build.whole(10))
    part = build.storage("FloatStorage", "0", 20, view)
    data = build.torch_legacy(build.dict_of({"w": build.tensor(part, [9], [1], 1)}), {"0": (20, A)})
    (spec,) = parsed(data).tensors
    assert spec.offset == data.index(A) + 4 * 6
    beyond = build.dict_of({"w": build.tensor(part, [10], [1], 1)})
    with pytest.raises(BadArchive, match="reaches beyond its storage"):
        parsed(build.torch_legacy(beyond, {"0": (20, A)}))


@pytest.mark.parametrize("kind", STORAGES)
def test_every_storage_class(kind: str) -> None:
    stored = build.storage(kind.removeprefix("torch."), "0", 2)
    data = build.torch_zip(build.dict_of({"w": build.tensor(stored, [2], [1])}), {"0": b"\0" * 32})
    (spec,) = parsed(data).tensors
    assert spec.dtype == STORAGES[kind]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype_on_untyped_storages(dtype: str) -> None:
    stored = build.storage("UntypedStorage", "0", 32)
    made = build.tensor_v3(stored, [2], [1], dtype.removeprefix("torch."))
    (spec,) = parsed(build.torch_zip(build.dict_of({"w": made}), {"0": b"\0" * 32})).tensors
    assert spec.dtype == DTYPES[dtype]


W = build.vector("0", 20)
WRAPPED = {
    "bare": (build.dict_of({"a.w": W}), {"a.w"}),
    "wrapped": (build.dict_of({"state_dict": build.ordered({"a.w": W}), "epoch": b"K\3"}), {"a.w"}),
    "wrapped twice": (
        build.dict_of({"model": build.dict_of({"module": build.ordered({"w": W})})}),
        {"w"},
    ),
    "beside an optimiser": (
        build.dict_of(
            {
                "optimizer": build.dict_of(
                    {"state": build.dict_of([(b"K\0", build.dict_of({"m": W}))])}
                ),
                "rng_state": W,
                "model": build.ordered({"w": W}),
            }
        ),
        {"w"},
    ),
    "nested": (
        build.dict_of({"model": build.dict_of({"lm": build.dict_of({"e.w": W}), "head": W})}),
        {"lm.e.w", "head"},
    ),
    "two networks": (
        build.dict_of({"gen": build.ordered({"w": W}), "dis": build.ordered({"w": W})}),
        {"gen.w", "dis.w"},
    ),
    "a wrapper without tensors": (
        build.dict_of({"model": build.dict_of({"layers": b"K\2"}), "w": W}),
        {"w"},
    ),
    "a wrapper's name for a tensor": (build.dict_of({"model": W, "w": W}), {"model", "w"}),
    "other entries": (
        build.dict_of({"w": W, "n": b"N", "l": build.list_of(W), "s": build.text("x")}),
        {"w"},
    ),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_which_tensors_are_the_model_s(name: str) -> None:
    made, names = WRAPPED[name]
    assert set(specs(build.torch_zip(made, {"0": A}))) == names


def many(count: int, size: int) -> tuple[bytes, int]:
    names = {f"layer.{index}.weight": build.vector(str(index), size // 4) for index in range(count)}
    content = {str(index): bytes([index % 251]) * size for index in range(count)}
    return build.torch_zip(build.ordered(names), content), size


def test_requests_do_not_grow_with_the_number_of_storages() -> None:
    for count, largest in ((3, 3), (300, 4)):
        data, size = many(count, 40_000)
        recorder = Recorder(data, "m.pt")
        header = parse_torch(recorder.view)
        assert len(recorder.ranges) <= largest
        assert recorder.fetched == header.extent < 400_000
        for index, spec in enumerate(header.tensors):
            assert data[spec.offset : spec.offset + spec.nbytes] == bytes([index % 251]) * size


def test_requests_of_a_legacy_file() -> None:
    names = {f"layer.{i}.weight": build.old_vector(str(i), 5000) for i in range(2000)}
    content = {str(i): (5000, b"\0" * 20_000) for i in range(2000)}
    data = build.torch_legacy(build.ordered(names), content)
    recorder = Recorder(data, "m.pt")
    assert len(parse_torch(recorder.view).tensors) == 2000
    assert len(recorder.ranges) <= 5
    assert recorder.fetched < 2 << 20


def test_other_alignments_are_believed_if_the_archive_says_so() -> None:
    entries = build.entries_of(build.pickle(body()), {"0": A, "1": B, "2": b""})
    entries.insert(1, ("archive/.storage_alignment", b"4096"))
    data = build.zip_archive(entries, alignment=4096)
    check(data, data.index(A), data.index(B))


def test_archives_without_byteorder_or_checksums() -> None:
    entries = [
        (path, raw)
        for path, raw in build.entries_of(build.pickle(body()), {"0": A, "1": B, "2": b""})
        if "byteorder" not in path
    ]
    data = build.zip_archive(entries)
    check(data, data.index(A), data.index(B))
    blank = bytearray(zipped())
    place = blank.index(b"PK\1\2")
    while blank[place : place + 4] == b"PK\1\2":
        blank[place + 16 : place + 20] = b"\0" * 4
        place += 46 + struct.unpack_from("<H", blank, place + 28)[0]
    check(bytes(blank), blank.index(A), blank.index(B))


@pytest.mark.parametrize("extra", [b"", b"\xfe\xca\0\0", b"\xfe\xca\x0c\0" + b"F" * 12])
def test_archives_zipped_again_by_another_program(extra: bytes) -> None:
    """No alignment to go by: each storage's own header is looked at."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path, raw in build.entries_of(build.pickle(body()), {"0": A, "1": B, "2": b""}):
            info = zipfile.ZipInfo(path)
            info.extra = extra
            archive.writestr(info, raw)
    data = buffer.getvalue()
    check(data, data.index(A), data.index(B))


def test_streamed_archives_with_64_bit_descriptors() -> None:
    class Stream(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    buffer = Stream()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path, raw in build.entries_of(build.pickle(body()), {"0": A, "1": B, "2": b""}):
            with archive.open(path, "w", force_zip64=True) as entry:
                entry.write(raw)
    data = buffer.getvalue()
    check(data, data.index(A), data.index(B))
