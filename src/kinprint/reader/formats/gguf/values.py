"""The values of a GGUF header, taken one by one from a window that grows as they are read.

A header has no length field, so how much of the file to fetch is learnt while parsing.
Every count and length is untrusted: it is held against what the file can contain before
anything is allocated or fetched for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from kinprint import text
from kinprint.errors import BadGguf
from kinprint.reader.formats.view import FileView

What = Callable[[], text.Message]
"""What is being read, in words; called only when something is wrong with it."""

Value = bool | int | float | str | list[str] | list[object] | npt.NDArray[np.generic]

FIRST_READ = 1 << 20
LARGEST_STEP = 4 << 20
# The largest vocabularies published so far (262,144 tokens with merges) need about 16 MB.
LARGEST_HEADER = 128 << 20
# llama.cpp knows no arrays of arrays; the specification allows them without a limit.
DEEPEST_ARRAY = 4

UINT32, BOOL, STRING, ARRAY, UINT64 = 4, 7, 8, 9, 10

# Value types by number (gguf.md of ggml, `gguf_metadata_value_type`), all little-endian;
# struct and NumPy agree on these letters. Strings and arrays are built of them.
_LETTERS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    UINT32: "<I",
    5: "<i",
    6: "<f",
    BOOL: "<B",
    UINT64: "<Q",
    11: "<q",
    12: "<d",
}
_DTYPES = {kind: np.dtype(letter) for kind, letter in _LETTERS.items()}
_STRUCTS = {kind: struct.Struct(letter) for kind, letter in _LETTERS.items()}
_U32 = _STRUCTS[UINT32]
_U64 = _STRUCTS[UINT64]
_SMALLEST_STRING = 8  # its length
_SMALLEST_ARRAY = 12  # its type and its length


class Cursor:
    """A place in a header, and the bytes known so far.

    The known part grows by its own size, but by no less than `FIRST_READ` and no more
    than `LARGEST_STEP` at a time: few requests, and little of the tensors fetched along.
    """

    def __init__(self, view: FileView) -> None:
        self.view = view
        self.position = 0
        self._known = bytearray()
        self._limit = min(view.size, LARGEST_HEADER)

    @property
    def fetched(self) -> int:
        """How many bytes from the start are known."""
        return len(self._known)

    def bad(self, key: str, /, **fields: object) -> BadGguf:
        """The error that says what is wrong with this file."""
        return BadGguf(file=self.view.path, cause=text.message(key, **fields))

    def require(self, size: int, what: What) -> None:
        """Refuse a claim of `size` more bytes that the file cannot hold."""
        if self.position + size <= self._limit:
            return
        if self.position + size > self.view.size:
            raise self.bad("cause.gguf.ends-early", part=what())
        raise self.bad("cause.gguf.header-too-long", most=LARGEST_HEADER >> 20, part=what())

    def take(self, size: int, what: What) -> bytes:
        """The next `size` bytes."""
        start = self._advance(size, what)
        return bytes(memoryview(self._known)[start : start + size])

    def u32(self, what: What) -> int:
        """The next unsigned 32-bit number."""
        return int(_U32.unpack_from(self._known, self._advance(4, what))[0])

    def u64(self, what: What) -> int:
        """The next unsigned 64-bit number."""
        return int(_U64.unpack_from(self._known, self._advance(8, what))[0])

    def name(self, what: What) -> str:
        """The next string, which names something and so must be text."""
        raw = self.take(self.u64(what), what)
        try:
            return raw.decode()
        except UnicodeDecodeError:
            raise self.bad("cause.gguf.not-utf8", part=what()) from None

    def value(self, kind: int, key: str) -> Value:
        """The next value, of type number `kind`.

        Strings may be parts of characters (byte-level vocabularies): bytes that are not
        UTF-8 are kept as lone surrogates, so that nothing is lost.
        """
        return self._value(kind, partial(text.message, "cause.gguf.part.value", key=key), 0)

    def _value(self, kind: int, what: What, depth: int) -> Value:
        if kind == STRING:
            return self.take(self.u64(what), what).decode("utf-8", "surrogateescape")
        if kind == ARRAY:
            return self._array(what, depth)
        if kind == BOOL:
            byte = self.take(1, what)[0]
            if byte > 1:
                raise self.bad("cause.gguf.no-boolean", part=what())
            return bool(byte)
        form = _STRUCTS.get(kind)
        if form is None:
            raise self.bad("cause.gguf.unknown-type", part=what(), type=kind)
        number: int | float = form.unpack_from(self._known, self._advance(form.size, what))[0]
        return number

    def _array(self, what: What, depth: int) -> Value:
        kind, count = self.u32(what), self.u64(what)
        if kind == STRING:
            self.require(count * _SMALLEST_STRING, what)
            return self._strings(count, what)
        if kind == ARRAY:
            if depth + 1 >= DEEPEST_ARRAY:
                raise self.bad("cause.gguf.too-deep", part=what(), most=DEEPEST_ARRAY)
            self.require(count * _SMALLEST_ARRAY, what)
            rows: list[object] = [self._array(what, depth + 1) for _ in range(count)]
            return rows
        dtype = _DTYPES.get(kind)
        if dtype is None:
            raise self.bad("cause.gguf.unknown-array", part=what(), type=kind)
        numbers = np.frombuffer(self.take(count * dtype.itemsize, what), dtype)
        if kind != BOOL:
            return numbers
        if numbers.size and int(np.max(numbers)) > 1:
            raise self.bad("cause.gguf.no-boolean", part=what())
        return numbers.astype(np.bool_)

    def _strings(self, count: int, what: What) -> list[str]:
        # The one loop that runs a quarter of a million times: no calls but the needed ones.
        unpack, known, texts = _U64.unpack_from, self._known, []
        start = self.position
        for _ in range(count):
            if start + 8 > len(known):
                self.position = start
                self._reach(8, what)
            stop = start + 8 + unpack(known, start)[0]
            if stop > len(known):
                self.position = start + 8
                self._reach(stop - start - 8, what)
            texts.append(known[start + 8 : stop].decode("utf-8", "surrogateescape"))
            start = stop
        self.position = start
        return texts

    def _advance(self, size: int, what: What) -> int:
        start = self.position
        if start + size > len(self._known):
            self._reach(size, what)
        self.position = start + size
        return start

    def _reach(self, size: int, what: What) -> None:
        """Fetch so much that `size` bytes from the position on are known."""
        self.require(size, what)
        known = len(self._known)
        step = min(max(known, FIRST_READ), LARGEST_STEP)
        stop = min(max(self.position + size, known + step), self._limit)
        self._known += self.view.read(known, stop)
