"""GGUF headers: which tensors a file holds, where they lie, and all its metadata.

Follows the format's specification (gguf.md in the ggml repository), versions 2 and 3, and
is stricter than the programs that load such files: nothing may overlap, be out of line
or reach beyond the file. Tensor data is never read here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec import Struct

from kinprint import text
from kinprint.errors import DtypeUnknown
from kinprint.reader.dtypes import dtype_named
from kinprint.reader.formats.gguf.values import UINT32, Cursor, Value
from kinprint.reader.formats.view import FileView
from kinprint.records import Header, TensorSpec

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT_KEY = "general.alignment"
DEFAULT_ALIGNMENT = 32
MOST_DIMENSIONS = 4  # GGML_MAX_DIMS
_SMALLEST_PAIR = 13  # a key's length, a type, a value of one byte
_SMALLEST_TENSOR = 24  # a name's length, a number of dimensions, a type, an offset

# Tensor types by number: `enum ggml_type` of ggml.
TYPES = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    6: "Q5_0",
    7: "Q5_1",
    8: "Q8_0",
    9: "Q8_1",
    10: "Q2_K",
    11: "Q3_K",
    12: "Q4_K",
    13: "Q5_K",
    14: "Q6_K",
    15: "Q8_K",
    16: "IQ2_XXS",
    17: "IQ2_XS",
    18: "IQ3_XXS",
    19: "IQ1_S",
    20: "IQ4_NL",
    21: "IQ3_S",
    22: "IQ2_S",
    23: "IQ4_XS",
    24: "I8",
    25: "I16",
    26: "I32",
    27: "I64",
    28: "F64",
    29: "IQ1_M",
    30: "BF16",
    34: "TQ1_0",
    35: "TQ2_0",
    39: "MXFP4",
    40: "NVFP4",
    41: "Q1_0",
}
# Withdrawn from ggml; named so that an old file's error says which one it uses.
_WITHDRAWN = {
    4: "Q4_2",
    5: "Q4_3",
    31: "Q4_0_4_4",
    32: "Q4_0_4_8",
    33: "Q4_0_8_8",
    36: "IQ4_NL_4_4",
    37: "IQ4_NL_4_8",
    38: "IQ4_NL_8_8",
}


class _Info(Struct, frozen=True):
    """A tensor as the header describes it, its offset counted from the data's start."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


def parse_gguf(view: FileView) -> Header:
    """Read the header of a GGUF file, whose metadata stays as the file types it.

    Numeric arrays become NumPy arrays, arrays of strings lists: a vocabulary of 250,000
    tokens is part of the header, and whoever compares vocabularies reads it from here.
    """
    cursor = Cursor(view)
    tensor_count, pair_count = _preamble(cursor)
    metadata, alignment = _metadata(cursor, pair_count)
    infos = [_tensor_info(cursor, index) for index in range(tensor_count)]
    data_start = _align(cursor.position, alignment)
    _check_names(cursor, infos)
    _check_places(cursor, infos, data_start, alignment)
    tensors = tuple(
        TensorSpec(
            name=info.name,
            dtype=info.dtype,
            shape=info.shape,
            file=view.path,
            offset=data_start + info.offset,
            nbytes=info.nbytes,
        )
        for info in infos
    )
    return Header("gguf", tensors, metadata, extent=cursor.fetched)


def _preamble(cursor: Cursor) -> tuple[int, int]:
    mark = cursor.take(4, partial(text.message, "cause.gguf.part.mark"))
    if mark == b"vers":
        raise cursor.bad("cause.file.lfs-pointer")
    if mark != MAGIC:
        raise cursor.bad("cause.gguf.no-mark")
    version = cursor.u32(partial(text.message, "cause.gguf.part.version"))
    if version and version & 0xFFFF == 0:
        raise cursor.bad("cause.file.big-endian")
    if version == 1:
        raise cursor.bad("cause.gguf.version-1")
    if version not in VERSIONS:
        raise cursor.bad("cause.gguf.unknown-version", version=version)
    tensor_count = cursor.u64(partial(text.message, "cause.gguf.part.tensor-count"))
    pair_count = cursor.u64(partial(text.message, "cause.gguf.part.key-count"))
    cursor.require(
        tensor_count * _SMALLEST_TENSOR + pair_count * _SMALLEST_PAIR,
        partial(text.message, "cause.gguf.part.claims", tensors=tensor_count, keys=pair_count),
    )
    return tensor_count, pair_count


def _metadata(cursor: Cursor, count: int) -> tuple[dict[str, Value], int]:
    metadata: dict[str, Value] = {}
    alignment = DEFAULT_ALIGNMENT
    for index in range(count):
        key = cursor.name(
            partial(text.message, "cause.gguf.part.key", number=index + 1, keys=count)
        )
        if key in metadata:
            raise cursor.bad("cause.gguf.key-twice", key=key)
        kind = cursor.u32(partial(text.message, "cause.gguf.part.value", key=key))
        value = metadata[key] = cursor.value(kind, key)
        if key == ALIGNMENT_KEY:
            if kind != UINT32 or not isinstance(value, int):
                raise cursor.bad("cause.gguf.no-number", key=key)
            if value == 0 or value & (value - 1):
                raise cursor.bad("cause.gguf.no-power", key=key, value=value)
            alignment = value
    return metadata, alignment


def _tensor_info(cursor: Cursor, index: int) -> _Info:
    name = cursor.name(partial(text.message, "cause.gguf.part.tensor-name", number=index + 1))
    what = partial(text.message, "cause.gguf.part.tensor", tensor=name)
    dimensions = cursor.u32(what)
    if dimensions > MOST_DIMENSIONS:
        raise cursor.bad("cause.gguf.dimensions", tensor=name, dimensions=dimensions)
    # ggml writes the fastest axis first; no dimensions at all is how a scalar is written.
    sizes = [cursor.u64(what) for _ in range(dimensions)]
    if 0 in sizes:
        raise cursor.bad("cause.gguf.empty-dimension", tensor=name)
    kind, offset = cursor.u32(what), cursor.u64(what)
    if kind not in TYPES:
        unknown = _WITHDRAWN.get(kind, f"ggml type {kind}")
        raise DtypeUnknown(file=cursor.view.path, dtype=unknown)
    dtype = dtype_named(TYPES[kind], cursor.view.path)
    row = sizes[0] if sizes else 1
    if row % dtype.block:
        raise cursor.bad(
            "cause.gguf.row-length", tensor=name, row=row, dtype=dtype.name, block=dtype.block
        )
    count = 1
    for size in sizes:
        count *= size
    return _Info(name, dtype.name, tuple(reversed(sizes)), offset, dtype.nbytes(count))


def _check_names(cursor: Cursor, infos: Sequence[_Info]) -> None:
    seen: set[str] = set()
    for info in infos:
        if info.name in seen:
            raise cursor.bad("cause.gguf.tensor-twice", tensor=info.name)
        seen.add(info.name)


def _check_places(cursor: Cursor, infos: Sequence[_Info], data_start: int, alignment: int) -> None:
    """Refuse tensors that are out of line, overlap or reach beyond the file."""
    room = cursor.view.size - data_start
    end, before = 0, ""
    for info in sorted(infos, key=lambda info: info.offset):
        if info.offset % alignment:
            raise cursor.bad("cause.gguf.alignment", tensor=info.name, alignment=alignment)
        if info.offset < end:
            raise cursor.bad("cause.gguf.overlap", first=before, second=info.name)
        end, before = info.offset + info.nbytes, info.name
        if end > room:
            raise cursor.bad("cause.gguf.beyond-file", tensor=info.name)


def _align(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment
