"""GGUF files written byte by byte, right or wrong as a test needs them."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from kinprint.reader.formats.view import FileView
from kinprint.records import FileEntry

UINT8, INT32, UINT32, FLOAT32, BOOL, STRING, ARRAY, UINT64 = 0, 5, 4, 6, 7, 8, 9, 10
F32, Q4_0, Q8_0 = 0, 2, 8


class Recorder:
    """A view on bytes in memory that keeps the ranges asked for."""

    def __init__(self, data: bytes, path: str = "model.gguf", size: int | None = None) -> None:
        self.data = data
        self.ranges: list[tuple[int, int]] = []
        length = len(data) if size is None else size
        self.view = FileView(FileEntry(path, length), self.fetch)

    def fetch(self, start: int, stop: int) -> bytes:
        assert 0 <= start < stop <= self.view.size
        self.ranges.append((start, stop))
        return self.data[start:stop].ljust(stop - start, b"\0")

    @property
    def fetched(self) -> int:
        return sum(stop - start for start, stop in self.ranges)


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def pair(key: str | bytes, kind: int, payload: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + payload


def array(kind: int, count: int, payload: bytes) -> bytes:
    return struct.pack("<IQ", kind, count) + payload


def tensor(name: str | bytes, sizes: Sequence[int], kind: int = F32, offset: int = 0) -> bytes:
    """A tensor's description; `sizes` in ggml's order, the fastest axis first."""
    dims = struct.pack(f"<I{len(sizes)}Q", len(sizes), *sizes)
    return text(name) + dims + struct.pack("<IQ", kind, offset)


def gguf(
    pairs: Sequence[bytes] = (),
    tensors: Sequence[bytes] = (),
    data: bytes = b"",
    *,
    version: int = 3,
    counts: tuple[int, int] | None = None,
    alignment: int = 32,
) -> bytes:
    tensor_count, pair_count = counts or (len(tensors), len(pairs))
    head = b"GGUF" + struct.pack("<IQQ", version, tensor_count, pair_count)
    head += b"".join(pairs) + b"".join(tensors)
    if data:
        head = head.ljust(-(-len(head) // alignment) * alignment, b"\0")
    return head + data
