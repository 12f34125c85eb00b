"""Bytes that were read once, kept on disk by content: sparse, checked, and hard to break.

    ASSETS/kinprint/ranges/v1/KEY/data      a sparse file: every range at its own offset
                                  journal   one line a range: start, stop, checksums
                                  about     where it came from, and a number drawn at birth

A range is written to `data` first and appended to `journal` after, in one write of one
line that carries its own checksum. Whatever moment a process is killed, a line is either
whole or ignored, and bytes without a line do not exist. Lines begin with a newline, so a
torn one spoils nothing that follows. Two processes that write the same key write the same
bytes to the same place. On reading, the checksum of every range is verified; a range that
fails is read anew. Keys pin content, so nothing ever has to be invalidated.

The cache may be cleared while others use it: the folder is renamed away before it is
deleted, and whoever reads or writes compares the number in `about` before and after. Only
ranges that this process has verified in the folder as it is now are ever handed out.
"""

from __future__ import annotations

import contextlib
import errno
import os
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import IO
from zlib import crc32

import msgspec
from msgspec import Struct, field

from kinprint.errors import CacheBroken, DiskFull, system_cause
from kinprint.reader.extents import ExtentSet, union
from kinprint.records import ByteRange, FileEntry
from kinprint.source.assets import assets_folder, remove_folder

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}
_TRIES = 4


class CacheItem(Struct, frozen=True):
    """One cached file: what it is and how much disk it takes."""

    key: str
    name: str
    path: str
    length: int
    disk_bytes: int


class _Verified(Struct):
    """What this process knows to be right in an entry, as long as its birth number stays."""

    birth: str
    ranges: dict[ByteRange, int] = field(default_factory=dict)
    cover: ExtentSet = field(default_factory=ExtentSet)

    def add(self, span: ByteRange, checksum: int) -> None:
        self.ranges[span] = checksum
        self.cover.add(span)


class Cache:
    """Ranges of files on disk. Safe to share between threads and processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._entries: dict[str, _Verified] = {}
        self._lock = Lock()

    @classmethod
    def default(cls) -> Cache:
        """The cache in the Hugging Face assets folder (HF_HOME, HF_ASSETS_CACHE)."""
        return cls(assets_folder("ranges", "v1"))

    def known(self, entry: FileEntry, wanted: Sequence[ByteRange]) -> tuple[ByteRange, ...]:
        """Ranges of a file that are stored and whose checksum is right.

        Only ranges that touch `wanted` (sorted, disjoint) are looked at: the rest costs
        nothing.
        """
        if entry.key is None:
            return ()
        place = self.folder / entry.key
        verified = self._verified(entry.key, _birth(place))
        starts = [want.start for want in wanted]
        good: list[ByteRange] = []
        unsure: dict[tuple[ByteRange, int], None] = {}  # once each: two processes may note the same
        for stored, checksum in _journal(place / "journal"):
            nearest = bisect_left(starts, stored.stop) - 1
            if stored.stop > entry.size or nearest < 0 or wanted[nearest].stop <= stored.start:
                continue
            if verified.ranges.get(stored) == checksum:
                good.append(stored)
            else:
                unsure[stored, checksum] = None
        read = _read(place / "data", [stored for stored, _ in unsure])
        for (stored, checksum), data in zip(unsure, read, strict=True):
            if data is not None and crc32(data) == checksum:
                with self._lock:
                    verified.add(stored, checksum)
                good.append(stored)
        return union(good)

    def read(self, entry: FileEntry, span: ByteRange) -> bytes | None:
        """Bytes that this process has verified or written; None if they are not there now."""
        if entry.key is None:
            return None
        place = self.folder / entry.key
        [data] = _read(place / "data", [span])
        # Asked after reading: if the entry is still the one that was verified, it was then.
        verified = self._verified(entry.key, _birth(place))
        with self._lock:
            return data if verified.cover.covers(span) else None

    def write(self, entry: FileEntry, start: int, data: bytes, name: str) -> None:
        """Store bytes at their offset, then note that they are there."""
        if entry.key is None:
            return
        place = self.folder / entry.key
        span, checksum = ByteRange(start, start + len(data)), crc32(data)
        remembered = self._entries.get(entry.key)
        birth = remembered.birth if remembered is not None else ""
        for _ in range(_TRIES):
            try:
                birth = birth or _birth(place) or _describe(place, entry, name)
                _write_at(place / "data", start, data)
                _append(place / "journal", _line(span, checksum))
            except FileNotFoundError:  # cleared by somebody in between
                birth = ""
                continue
            except OSError as error:
                if error.errno in _NO_SPACE:
                    raise DiskFull(folder=str(self.folder), bytes=len(data)) from None
                raise self._broken(error) from None
            if _birth(place) == birth:
                with self._lock:
                    self._verified(entry.key, birth).add(span, checksum)
                return
            birth = ""

    def _verified(self, key: str, birth: str) -> _Verified:
        known = self._entries.get(key)
        if known is None or known.birth != birth:
            known = self._entries[key] = _Verified(birth)
        return known

    def _broken(self, error: OSError) -> CacheBroken:
        return CacheBroken(folder=str(self.folder), cause=system_cause(error))

    def items(self) -> Iterator[CacheItem]:
        """Everything stored, in no particular order."""
        try:
            places = list(self.folder.iterdir()) if self.folder.exists() else []
        except OSError as error:
            raise self._broken(error) from None
        for place in places:
            used = 0
            with contextlib.suppress(OSError):
                for file in place.iterdir():
                    found = file.stat()
                    used += getattr(found, "st_blocks", -(-found.st_size // 512)) * 512
            about = _about(place)
            yield CacheItem(place.name, about.name, about.path, about.length, used)

    def clear(self) -> int:
        """Remove everything; how many bytes of disk that gave back."""
        freed = sum(item.disk_bytes for item in self.items())
        try:
            remove_folder(self.folder)
        except OSError as error:
            raise self._broken(error) from None
        return freed


class _About(msgspec.Struct, array_like=True):
    name: str = "(unknown)"
    path: str = ""
    length: int = 0
    birth: str = ""


_read_about = msgspec.json.Decoder(_About).decode  # made once: see `source/repository.py`


def _about(place: Path) -> _About:
    try:
        return _read_about((place / "about").read_bytes())
    except (OSError, msgspec.MsgspecError, ValueError):
        return _About()


def _birth(place: Path) -> str:
    return _about(place).birth


def _describe(place: Path, entry: FileEntry, name: str) -> str:
    """Make an entry's folder and say what it is, whole or not at all; its birth number.

    Of two that do this at once the first wins: a link cannot be made twice.
    """
    place.mkdir(parents=True, exist_ok=True)
    draft = place / f"about.{os.urandom(8).hex()}"
    about = _About(name, entry.path, entry.size, os.urandom(16).hex())
    try:
        draft.write_bytes(msgspec.json.encode(about))
        try:
            os.link(draft, place / "about")
        except FileExistsError:
            if not _birth(place):  # there, but unreadable: mended
                draft.replace(place / "about")
        except OSError:  # a file system without links: the last one wins, and writers notice
            draft.replace(place / "about")
    finally:
        draft.unlink(missing_ok=True)
    return _birth(place)


def _line(span: ByteRange, checksum: int) -> bytes:
    body = f"{span.start:x} {span.stop:x} {checksum:08x}"
    return f"\n{body} {crc32(body.encode()):08x}\n".encode()


def _journal(file: Path) -> Iterator[tuple[ByteRange, int]]:
    """Ranges noted in a journal; lines that are torn or damaged are passed over."""
    try:
        raw = file.read_bytes()
    except OSError:
        return
    for line in raw.split(b"\n"):
        body, _, own = line.rpartition(b" ")
        try:
            if int(own, 16) != crc32(body):
                continue
            start, stop, checksum = (int(word, 16) for word in body.split())
        except ValueError:
            continue
        if 0 <= start < stop:
            yield ByteRange(start, stop), checksum


def _read(file: Path, spans: Sequence[ByteRange]) -> Iterator[bytes | None]:
    """Ranges of a file one after another, which is opened once; None for each that is not there."""
    with contextlib.ExitStack() as stack:
        stream: IO[bytes] | None = None
        for span in spans:
            data = b""
            with contextlib.suppress(OSError):
                stream = stream or stack.enter_context(file.open("rb"))
                stream.seek(span.start)
                data = stream.read(span.size)
            yield data if len(data) == span.size else None


def _write_at(file: Path, start: int, data: bytes) -> None:
    handle = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
    with os.fdopen(handle, "r+b") as stream:
        stream.seek(start)
        stream.write(data)


def _append(file: Path, line: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
    handle = os.open(file, flags, 0o644)
    try:
        if os.write(handle, line) != len(line):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)
