"""Numbers in temporary files, mapped when they are looked at instead of held in memory.

What was read of many models, or much of two, is longer than what a test looks at. A mapped array
is an ordinary one that can only be read: its pages come when they are touched, and `let_go` takes
them off this process again. Files have no name, or lose it with the process that made them.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import pickle
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import IO, Any, TypeVar
from weakref import WeakSet, WeakValueDictionary

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

_ALIGNED = 64  # bytes at which arrays begin
_LEAST = 500_000  # bytes of an array that is worth a place on disk
_SEGMENT = 64 * 1024 * 1024  # bytes of a file that are mapped at once
_TOUCHED = 32 * 1024 * 1024  # bytes that are put on disk, or mapped, before pages are let go

A = TypeVar("A", bound=NDArray[Any])
# Of glibc: from which length on memory is the system's again as soon as it is free. By itself it
# grows with what is freed, up to the usual one here, and each thread keeps twice as much.
_MALLOPT = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
_THRESHOLD, _SMALL, _USUAL = -3, 1024 * 1024, 32 * 1024 * 1024
_TRIM, _LARGE = -1, 16 * 1024 * 1024  # how much of what is free may stay at the end of the heap
_LOCK = Lock()
_maps: WeakSet[mmap.mmap] = WeakSet()
_files: WeakValueDictionary[str, mmap.mmap] = WeakValueDictionary()


def let_go() -> None:
    """Take pages of all mapped files off this process; they come back when they are touched.

    Which takes a while: where little is mapped, it stays.
    """
    if not hasattr(mmap, "MADV_DONTNEED"):
        return
    with _LOCK:
        maps = list(_maps)
    if sum(map(len, maps)) <= _TOUCHED:
        return
    for one in maps:
        one.madvise(mmap.MADV_DONTNEED)


def _remember(mapped: mmap.mmap) -> None:
    with _LOCK:
        _maps.add(mapped)


class Shared(Struct, frozen=True):
    """A value in a file, whose arrays processes map instead of copying them.

    A process is handed no more than this: one that dies before it has read a long message leaves
    whoever writes it waiting for ever.
    """

    path: str
    start: int
    length: int
    nbytes: int  # with its arrays

    def load(self) -> Any:
        """The value; its arrays can only be read."""
        view = memoryview(_mapped(self.path, self.start + self.length))
        value, spans = pickle.loads(view[self.start : self.start + self.length])
        return pickle.loads(value, buffers=[view[start:end] for start, end in spans])


def _mapped(path: str, length: int) -> mmap.mmap:
    """The mapping of a file; one for all values in it, however often they are loaded."""
    found = _files.get(path)
    if found is None or len(found) < length:
        with Path(path).open("rb") as file:
            found = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        _files[path] = found
        _remember(found)
    return found


class Shelf:
    """A file of values that this process puts there, for itself and others."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def put(self, value: object) -> Shared:
        """Write a value, arrays as they lie in memory."""
        buffers: list[pickle.PickleBuffer] = []
        told = pickle.dumps(value, protocol=5, buffer_callback=buffers.append)
        spans, began = [], self._file.tell()
        for buffer in buffers:
            self._file.write(bytes(-self._file.tell() % _ALIGNED))
            start = self._file.tell()
            with buffer.raw() as raw:
                self._file.write(raw)
            spans.append((start, self._file.tell()))
        start = self._file.tell()
        self._file.write(pickle.dumps((told, spans)))
        self._file.flush()
        stop = self._file.tell()
        return Shared(self._file.name, start, stop - start, stop - began)


@contextmanager
def shelf() -> Iterator[Shelf]:
    """A place for values, as long as somebody is at work with them."""
    with tempfile.NamedTemporaryFile(prefix="kinprint-") as file:
        yield Shelf(file)


class _Store:
    """Arrays of this process in files without a name, a segment of which is mapped at once."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._segment: mmap.mmap | None = None
        self._file: IO[bytes] | None = None
        self._used = 0
        self._touched = 0

    def keep(self, array: A) -> A:
        """The same numbers, mapped."""
        with self._lock:
            if self._segment is None or self._used + array.nbytes > len(self._segment):
                self._begin(max(array.nbytes, _SEGMENT))
            assert self._segment is not None and self._file is not None
            flat = np.ascontiguousarray(array)
            self._write(flat.reshape(-1).view(np.uint8).data)
            found = np.frombuffer(self._segment, array.dtype, array.size, self._used)
            self._used += -(-array.nbytes // _ALIGNED) * _ALIGNED
            self._touched += array.nbytes
            if self._touched >= _TOUCHED:
                self._touched = 0
                let_go()
        return found.reshape(array.shape)  # type: ignore[return-value]

    def _begin(self, length: int) -> None:
        self.close()
        self._file = tempfile.TemporaryFile(prefix="kinprint-", buffering=0)  # noqa: SIM115
        self._file.truncate(length)
        self._segment = mmap.mmap(self._file.fileno(), length, access=mmap.ACCESS_READ)
        _remember(self._segment)

    def close(self) -> None:
        """Write no more; what is mapped stays."""
        self._segment, self._used = None, 0
        if self._file is not None:
            self._file.close()

    def _write(self, data: memoryview) -> None:
        assert self._file is not None
        at = self._used
        while data:
            written = os.pwrite(self._file.fileno(), data, at)
            data, at = data[written:], at + written


class _Guests:
    """Who is inside `arrays_on_disk`, and where their arrays are put."""

    def __init__(self) -> None:
        self.lock, self.count = Lock(), 0
        self.store: _Store | None = None
        self.frugal = False


_GUESTS = _Guests()


@contextmanager
def arrays_on_disk(*, frugal: bool = False) -> Iterator[None]:
    """For a while, arrays that are kept are put on disk, in the whole process.

    With `frugal`, what is freed meanwhile is not kept for later either, which takes some time.
    """
    with _GUESTS.lock:
        _GUESTS.count += 1
        if _GUESTS.store is None:
            _GUESTS.store = _Store()
            _give_back_from(_LARGE, _LARGE)
        if frugal and not _GUESTS.frugal:
            _GUESTS.frugal = True
            _give_back_from(_SMALL, _SMALL)
    try:
        yield
    finally:
        with _GUESTS.lock:
            _GUESTS.count -= 1
            if not _GUESTS.count and _GUESTS.store is not None:
                _GUESTS.store.close()
                _GUESTS.store = None
                _GUESTS.frugal = False
                _give_back_from(_USUAL, 2 * _USUAL)  # as the library itself comes to have it


def _give_back_from(length: int, kept: int) -> None:
    if _MALLOPT is not None:
        _MALLOPT(_THRESHOLD, length)
        _MALLOPT(_TRIM, kept)


def keep(array: A) -> A:
    """An array that is looked at now and then: mapped where that is asked for and possible."""
    store = _GUESTS.store
    if store is None or array.nbytes < _LEAST or not hasattr(mmap, "MADV_DONTNEED"):
        return array
    try:
        return store.keep(array)
    except OSError:  # no room on disk, or no more files: memory has to do
        return array
