"""The header of a safetensors file: where each tensor lies, believed only after every check.

A header comes from strangers and decides which bytes are read and what they mean, so a
file is refused whole as soon as one rule of the format is broken. The official library
is the judge of what those rules are; this parser exists because that library needs the
whole file on a disk. It is stricter in a few points, none of which a writer of real files
makes use of:

- the header begins with "{", as the format says (the library lets white space pass);
- no key stands twice in the same object, at any depth (the library takes the last one
  where it is a tensor's name, a metadata key or a field it does not know);
- a tensor's entry is an object with a dtype that is a string (the library also takes
  the entry as a bare array, and the dtype as an object with one null member).

Fields that the format does not know are passed over, as the library does.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from itertools import repeat
from operator import itemgetter, sub
from typing import NoReturn

import msgspec
from msgspec import Struct

from kinprint.errors import BadHeader, DtypeUnknown, Malformed
from kinprint.reader.dtypes import PLAIN
from kinprint.reader.formats.view import FileView
from kinprint.reader.jsonfile import DuplicateKeyError, quoted, unique_keys
from kinprint.records import Header, TensorSpec
from kinprint.text import message

HEADER_LIMIT = 100_000_000
"""Longest header that the format allows, in bytes."""

_METADATA = "__metadata__"
_METADATA_FIRST = b'{"__metadata__":{'
_WORD_LIMIT = 2**64 - 1  # numbers in a header are unsigned and have 64 bits
_DEPTH_LIMIT = 126  # objects and arrays within each other in one entry, as in the library

# Types of PyTorch archives share the table of plain types; safetensors has no C128.
_DTYPES = {name: dtype for name, dtype in PLAIN.items() if name != "C128"}

# What stands at the start of files that are often saved under a wrong name.
_LOOKALIKES = (
    (b"version ", "cause.file.lfs-pointer"),
    (b"<!DOCTYP", "cause.file.web-page"),
    (b"<!doctyp", "cause.file.web-page"),
    (b"<html", "cause.file.web-page"),
    (b"PK\x03\x04", "cause.file.zip"),
    (b"GGUF", "cause.file.gguf"),
)

# A tensor's place within the data (first byte, and the one after its last), its name,
# dtype and shape.
_Entry = tuple[tuple[int, int], str, str, tuple[int, ...]]
_Parsed = tuple[tuple[TensorSpec, ...], dict[str, str]]


class _File(Struct, frozen=True):
    path: str
    size: int
    data_start: int

    def refuse(self, key: str, /, **fields: object) -> NoReturn:
        raise BadHeader(file=self.path, cause=message(key, **fields))


def parse_safetensors(view: FileView) -> Header:
    """Read and check the header of a safetensors file.

    Two reads, the length and then the header: nothing of the weights is touched, and
    nothing is read on the word of a length that cannot be true.
    """
    length = _header_length(view)
    raw = view.read(8, 8 + length)
    file = _File(view.path, view.size, data_start=8 + length)
    tensors, metadata = _parse_quickly(raw, file) or _parse_carefully(raw, file)
    return Header("safetensors", tensors, metadata, extent=file.data_start)


def guess_header_bytes(names: Iterable[str], size: int = 9_999_999_999) -> int:
    """How many bytes from the start of a shard hold its header, length field included.

    An index promises the names before the shard is touched, so one read can bring the
    whole header where asking for its length first would cost a round trip more. `size` is
    the length of the shard if it is known: offsets have no more digits than that. The
    guess is high on purpose, by three to six per cent for the usual models, and only
    headers with unusual spacing or long metadata go beyond it.
    """
    # `"…":{"dtype":"BF16","shape":[…],"data_offsets":[…,…]},` has 50 bytes without name,
    # shape and offsets; shapes take 4 to 14 more, under 8 on average where it matters.
    per_tensor = 60 + 2 * len(str(size))
    # The length field, braces, padding, and twice the usual metadata.
    around = 8 + 2 + 8 + 80
    listed = list(names)
    spelled = len("".join(listed).encode("utf-8", "replace"))
    return min(around + spelled + len(listed) * per_tensor, 8 + HEADER_LIMIT)


def _header_length(view: FileView) -> int:
    first = view.read(0, 8)
    length = int.from_bytes(first, "little")
    if len(first) < 8:
        cause = message("cause.safetensors.too-short", size=len(first))
    elif length > HEADER_LIMIT:
        cause = message("cause.safetensors.header-too-long", length=length, most=HEADER_LIMIT)
    elif 8 + length > view.size:
        cause = message("cause.safetensors.header-beyond-file", length=length, size=view.size)
    else:
        return length
    for start, likeness in _LOOKALIKES:
        if first.startswith(start):
            cause = message(likeness)
    raise BadHeader(file=view.path, cause=cause)


class _QuickEntry(msgspec.Struct, gc=False):
    # Defaults that no tensor can have: an entry that lacks a field fails the checks.
    dtype: str = ""
    shape: tuple[int, ...] = (-1,)
    data_offsets: tuple[int, int] = (1, 0)


class _QuickMetadata(msgspec.Struct, rename={"content": _METADATA}):
    content: dict[str, str] | None = None


_quick_tensors = msgspec.json.Decoder(dict[str, _QuickEntry])
_quick_metadata = msgspec.json.Decoder(_QuickMetadata)


class _Kinds(dict[tuple[str, tuple[int, ...]], tuple[str, tuple[int, ...], int]]):
    """Dtype, shape and bytes, worked out and kept once: a model has few shapes and many tensors."""

    def __missing__(self, key: tuple[str, tuple[int, ...]]) -> tuple[str, tuple[int, ...], int]:
        kind = self[key] = (*key, _bytes_needed(*key))
        return kind


def _parse_quickly(raw: bytes, file: _File) -> _Parsed | None:
    """Tensors and metadata of a sound header of the ordinary kind, else None.

    A model may have a hundred shards with hundreds of tensors each, and this takes a third
    of the time. It never refuses, it only knows that all is well: every key is followed by
    a colon, so a header with as many colons as expected keys (and as its strings contain:
    none is spelled as a number) has no key twice and none that is unknown; and without a
    minus sign beyond those in strings no number is negative.
    """
    if not raw.startswith(b"{") or b"\\u" in raw:
        return None
    try:
        raw.decode("utf-8")  # the decoder does not look at the encoding of what it skips
        found = _quick_tensors.decode(raw)
        metadata = _metadata_of(raw)
        keys = len(found) + len(metadata)
        found.pop(_METADATA, None)
        written = "".join((*found, *metadata, *metadata.values()))
        if raw.count(b":") != keys + 3 * len(found) + written.count(":") or not found:
            return None
        if raw.count(b"-") != written.count("-"):
            return None
        begins, ends = zip(*[one.data_offsets for one in found.values()], strict=True)
        if begins != (0, *ends[:-1]):
            found = dict(sorted(found.items(), key=lambda entry: entry[1].data_offsets))
            begins, ends = zip(*[one.data_offsets for one in found.values()], strict=True)
        nbytes = tuple(map(sub, ends, begins))
        # All columns at once: no range runs backwards, each has the size that its
        # shape needs, and each begins where the one before it ends.
        kinds = map(_Kinds().__getitem__, [(one.dtype, one.shape) for one in found.values()])
        dtypes, shapes, needed = zip(*kinds, strict=True)
    except (msgspec.MsgspecError, ValueError, KeyError, RecursionError):
        return None
    filled = (0, *ends[:-1]) == begins and file.data_start + ends[-1] == file.size
    if nbytes != needed or min(nbytes) < 0 or not filled:
        return None
    places = map(file.data_start.__add__, begins)
    return tuple(
        map(TensorSpec, found, dtypes, shapes, repeat(file.path), places, nbytes)
    ), metadata


def _metadata_of(raw: bytes) -> dict[str, str]:
    """The metadata of a header, which nearly always comes first: up to its brace, if that will do.

    A brace within a string would leave half of it, which is no JSON.
    """
    if raw.startswith(_METADATA_FIRST):
        with contextlib.suppress(msgspec.MsgspecError):
            return _quick_metadata.decode(raw[: raw.find(b"}") + 1] + b"}").content or {}
    return _quick_metadata.decode(raw).content or {}


def _parse_carefully(raw: bytes, file: _File) -> _Parsed:
    """Tensors and metadata of any sound header, and a clause for each fault of any other."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        file.refuse("cause.safetensors.not-utf8", byte=error.start)
    if not text.startswith("{"):
        file.refuse("cause.safetensors.no-brace", brace="{")
    try:
        msgspec.json.decode(raw)  # stricter than json on numbers and surrogates
        content = json.loads(
            text, object_pairs_hook=unique_keys, parse_int=_whole, parse_constant=_no_number
        )
    except DuplicateKeyError as error:
        file.refuse("cause.safetensors.key-twice", key=quoted(str(error)))
    except RecursionError:
        file.refuse("cause.safetensors.too-deep")
    except (msgspec.MsgspecError, ValueError) as error:
        file.refuse("cause.safetensors.not-json", detail=str(error)[:120])
    metadata = _checked_metadata(content.pop(_METADATA, None), file)
    entries = [_checked_entry(name, entry, file) for name, entry in content.items()]
    return _placed(entries, file), metadata


def _whole(digits: str) -> int | float:
    # The library reads "-0" as a floating-point number, and so refuses it as a size.
    return -0.0 if digits == "-0" else int(digits)


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _checked_metadata(found: object, file: _File) -> dict[str, str]:
    if found is None:
        return {}
    if not isinstance(found, dict):
        file.refuse("cause.safetensors.odd-metadata", metadata=_METADATA)
    for key, value in found.items():
        if not isinstance(value, str):
            file.refuse("cause.safetensors.odd-value", metadata=_METADATA, key=quoted(key))
    return found


def _checked_entry(name: str, entry: object, file: _File) -> _Entry:
    if not isinstance(entry, dict):
        file.refuse("cause.safetensors.no-object", tensor=quoted(name))
    for key in ("dtype", "shape", "data_offsets"):
        if key not in entry:
            file.refuse("cause.safetensors.field-missing", tensor=quoted(name), field=key)
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str):
        file.refuse("cause.safetensors.odd-dtype", tensor=quoted(name))
    if not isinstance(shape, list) or not all(map(_is_word, shape)):
        file.refuse("cause.safetensors.odd-shape", tensor=quoted(name))
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_word, offsets)):
        file.refuse("cause.safetensors.odd-offsets", tensor=quoted(name))
    if len(entry) > 3 and not _is_tame(entry, _DEPTH_LIMIT):
        file.refuse("cause.safetensors.wild-field", tensor=quoted(name))
    return (offsets[0], offsets[1]), name, dtype, tuple(shape)


def _is_word(value: object) -> bool:
    return type(value) is int and 0 <= value <= _WORD_LIMIT


def _is_tame(value: object, depth: int) -> bool:
    """Whether the library would pass over `value`: not too deep, no number out of range."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_tame(one, depth - 1) for one in inner)
    return not isinstance(value, int) or abs(value) < 2**1023


def _placed(entries: list[_Entry], file: _File) -> tuple[TensorSpec, ...]:
    """Tensors in the order of the file, once they are known to fill it without gap or overlap."""
    entries.sort(key=itemgetter(0))
    tensors: list[TensorSpec] = []
    reached = 0
    for (begin, end), name, dtype, shape in entries:
        shown = quoted(name)
        if end < begin:
            file.refuse("cause.safetensors.backwards", tensor=shown, end=end, begin=begin)
        if begin < reached:
            before = quoted(tensors[-1].name)
            file.refuse("cause.safetensors.overlap", tensor=shown, other=before)
        if begin > reached and not tensors:
            file.refuse("cause.safetensors.late-start", begin=begin)
        if begin > reached:
            file.refuse("cause.safetensors.gap", start=reached, stop=begin)
        try:
            nbytes = _bytes_needed(dtype, shape)
        except KeyError:
            raise DtypeUnknown(dtype=dtype[:120], file=file.path) from None
        except Malformed as error:
            file.refuse(error.cause.key, tensor=shown, **error.cause.fields)
        if end - begin != nbytes:
            file.refuse(
                "cause.safetensors.other-size",
                tensor=shown,
                size=end - begin,
                dtype=dtype,
                shape=str(shape)[:120],
                needed=nbytes,
            )
        tensors.append(TensorSpec(name, dtype, shape, file.path, file.data_start + begin, nbytes))
        reached = end
    needed = file.data_start + reached
    if needed > file.size:
        file.refuse("cause.safetensors.cut-short", needed=needed, size=file.size)
    if needed < file.size:
        file.refuse("cause.safetensors.bytes-left", left=file.size - needed)
    return tuple(tensors)


def _bytes_needed(dtype: str, shape: tuple[int, ...]) -> int:
    """Bytes of a tensor; a KeyError for an unknown dtype, a Malformed for a shape."""
    kind = _DTYPES[dtype]
    bits = 8 * kind.size // kind.block
    count = 1
    for size in shape:
        count *= size
        # At every step and for every size: (2**40, 2**40, 0) is no shape either.
        if max(count, size) > _WORD_LIMIT:
            raise Malformed("cause.safetensors.shape-too-large")
    if count * bits > _WORD_LIMIT:
        raise Malformed("cause.safetensors.shape-too-large")
    if count * bits % 8:
        raise Malformed("cause.safetensors.part-bytes", count=count, bits=bits)
    return count * bits // 8
