"""PyTorch files without PyTorch: its zip layout byte for byte, its old one, and pickles by hand.

`zip_archive` writes what PyTorchStreamWriter does (caffe2/serialize/inline_container.cc with
miniz), which a test with PyTorch installed compares byte by byte.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence

MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19"  # LONG1 of 0x1950A86A20F9469CFC6C
NONE, TRUE, FALSE, REDUCE, BUILD = b"N", b"\x88", b"\x89", b"R", b"b"


def text(value: str) -> bytes:
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def whole(value: int) -> bytes:
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def tuple_of(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


def list_of(*items: bytes) -> bytes:
    return b"](" + b"".join(items) + b"e"


def dict_of(items: Mapping[str, bytes] | Iterable[tuple[bytes, bytes]]) -> bytes:
    pairs = items.items() if isinstance(items, Mapping) else items
    body = b"".join((text(k) if isinstance(k, str) else k) + v for k, v in pairs)
    return b"}(" + body + b"u"


def name(module: str, attribute: str) -> bytes:
    return f"c{module}\n{attribute}\n".encode()


def call(function: bytes, *arguments: bytes) -> bytes:
    return function + tuple_of(*arguments) + REDUCE


def ordered(items: Mapping[str, bytes]) -> bytes:
    """An OrderedDict as `state_dict()` returns it, with its `_metadata`."""
    body = b"".join(text(key) + value for key, value in items.items())
    state = dict_of({"_metadata": call(name("collections", "OrderedDict"))})
    return call(name("collections", "OrderedDict")) + b"(" + body + b"u" + state + BUILD


def storage(kind: str, key: str, numel: int, view: bytes | None = None) -> bytes:
    module = "torch.storage" if kind == "UntypedStorage" else "torch"
    parts = [text("storage"), name(module, kind), text(key), text("cpu"), whole(numel)]
    return tuple_of(*parts, *([] if view is None else [view])) + b"Q"


def numbers(values: Sequence[int]) -> bytes:
    return tuple_of(*(whole(value) for value in values))


def tensor(
    stored: bytes, size: Sequence[int], strides: Sequence[int], offset: int = 0, *more: bytes
) -> bytes:
    hooks = call(name("collections", "OrderedDict"))
    head = [stored, whole(offset), numbers(size), numbers(strides), FALSE, hooks, *more]
    return call(name("torch._utils", "_rebuild_tensor_v2"), *head)


def tensor_v3(stored: bytes, size: Sequence[int], strides: Sequence[int], dtype: str) -> bytes:
    hooks = call(name("collections", "OrderedDict"))
    head = [stored, whole(0), numbers(size), numbers(strides), FALSE, hooks, name("torch", dtype)]
    return call(name("torch._utils", "_rebuild_tensor_v3"), *head)


def vector(key: str, count: int) -> bytes:
    """A float32 vector that is all of its storage."""
    return tensor(storage("FloatStorage", key, count), [count], [1])


def old_vector(key: str, count: int) -> bytes:
    return tensor(storage("FloatStorage", key, count, NONE), [count], [1])


def pickle(body: bytes) -> bytes:
    return b"\x80\x02" + body + b"."


def zip_archive(entries: Sequence[tuple[str, bytes]], alignment: int = 64) -> bytes:
    """A zip file as PyTorch writes it: stored, aligned, with 64-bit end records."""
    out, directory = bytearray(), bytearray()
    for path, data in entries:
        raw, place = path.encode(), len(out)
        flags = 0x808 if data else 0x800  # a descriptor follows whatever has content
        start = place + 30 + len(raw) + 4
        filling = -start % alignment
        extra = b"FB" + struct.pack("<H", filling) + b"Z" * filling
        out += struct.pack("<4s5H3I2H", b"PK\3\4", 0, flags, 0, 0, 0, 0, 0, 0, len(raw), len(extra))
        out += raw + extra + data
        sizes = struct.pack("<3I", zlib.crc32(data), len(data), len(data))
        if data:
            out += b"PK\7\10" + sizes
        directory += struct.pack("<4s6H", b"PK\1\2", 0, 0, flags, 0, 0, 0) + sizes
        directory += struct.pack("<5H2I", len(raw), 0, 0, 0, 0, 0, place) + raw
    return bytes(out + directory + _ends(len(entries), len(directory), len(out)))


def _ends(count: int, size: int, start: int) -> bytes:
    wide = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 0x31E, 45, 0, 0, count, count, size, start)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, start + size, 1)
    end = struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, size, start, 0)
    return wide + locator + end


def entries_of(
    data_pkl: bytes, storages: Mapping[str, bytes], more: Mapping[str, bytes] | None = None
) -> list[tuple[str, bytes]]:
    small = {"byteorder": b"little"} | dict(more or {})
    return [
        ("archive/data.pkl", data_pkl),
        *((f"archive/{path}", data) for path, data in small.items()),
        *((f"archive/data/{key}", data) for key, data in storages.items()),
        ("archive/version", b"3\n"),
        ("archive/.data/serialization_id", b"0" * 40),
    ]


def torch_zip(
    body: bytes, storages: Mapping[str, bytes], more: Mapping[str, bytes] | None = None
) -> bytes:
    return zip_archive(entries_of(pickle(body), storages, more))


def torch_legacy(
    body: bytes,
    storages: Mapping[str, tuple[int, bytes]],
    *,
    magic: bytes = MAGIC,
    protocol: int = 1001,
    little: bytes = TRUE,
) -> bytes:
    """The format before 1.6; each storage is given with its count of elements."""
    system = dict_of({"protocol_version": whole(1001), "little_endian": little})
    keys = list_of(*(text(key) for key in storages))
    head = b"".join(map(pickle, (magic, whole(protocol), system, body, keys)))
    return head + b"".join(struct.pack("<q", count) + raw for count, raw in storages.values())
