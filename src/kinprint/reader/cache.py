"""Bytes that were read once, kept on disk by content: sparse, checked, and hard to break.

    ASSETS/kinprint/ranges/v1/KEY/data      a sparse file: every range at its own offset
                                  journal   one line a range: start, stop, checksums
                                  about     where it came from, for people

A range is written to `data` first and appended to `journal` after, in one write of one
line that carries its own checksum. Whatever moment a process is killed, a line is either
whole or ignored, and bytes without a line do not exist. Lines begin with a newline, so a
torn one spoils nothing that follows. Two processes that write the same key write the same
bytes to the same place. On reading, the checksum of every range is verified; a range that
fails is read anew. Keys pin content, so nothing ever has to be invalidated.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, get_ident
from zlib import crc32

import msgspec

from kinprint.errors import CacheBroken, DiskFull
from kinprint.reader.extents import union
from kinprint.records import ByteRange, FileEntry
from kinprint.source.places import assets_folder

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}


@dataclass(frozen=True, slots=True)
class CacheItem:
    """One cached file: what it is and how much disk it takes."""

    key: str
    name: str
    path: str
    length: int
    disk_bytes: int


class Cache:
    """Ranges of files on disk. Safe to share between threads and processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._verified: dict[str, dict[ByteRange, int]] = {}
        self._lock = Lock()

    @classmethod
    def default(cls) -> Cache:
        """The cache in the Hugging Face assets folder (HF_HOME, HF_ASSETS_CACHE)."""
        return cls(assets_folder("ranges", "v1"))

    def known(self, entry: FileEntry, wanted: Sequence[ByteRange]) -> tuple[ByteRange, ...]:
        """Ranges of a file that are stored and whose checksum is right.

        Only ranges that touch `wanted` are looked at: the rest costs nothing.
        """
        if entry.key is None:
            return ()
        place = self.folder / entry.key
        good: list[ByteRange] = []
        seen = self._verified.setdefault(entry.key, {})
        for stored, checksum in _journal(place / "journal"):
            if stored.stop > entry.size:
                continue
            if not any(stored.start < want.stop and want.start < stored.stop for want in wanted):
                continue
            if seen.get(stored) != checksum:
                data = _read(place / "data", stored)
                if data is None or crc32(data) != checksum:
                    continue
                seen[stored] = checksum
            good.append(stored)
        return union(good)

    def read(self, entry: FileEntry, span: ByteRange) -> bytes | None:
        """Bytes of a range that `known` has confirmed; None if they are gone."""
        return _read(self.folder / (entry.key or "") / "data", span)

    def write(self, entry: FileEntry, start: int, data: bytes, name: str) -> None:
        """Store bytes at their offset, then note that they are there."""
        if entry.key is None:
            return
        place = self.folder / entry.key
        span = ByteRange(start, start + len(data))
        try:
            if not (place / "about").exists():
                self._describe(place, entry, name)
            _write_at(place / "data", start, data)
            _append(place / "journal", _line(span, crc32(data)))
        except OSError as error:
            if error.errno in _NO_SPACE:
                raise DiskFull(folder=str(self.folder), bytes=len(data)) from None
            cause = error.strerror or str(error)
            raise CacheBroken(folder=str(self.folder), cause=cause) from None
        with self._lock:
            self._verified.setdefault(entry.key, {})[span] = crc32(data)

    def items(self) -> Iterator[CacheItem]:
        """Everything stored, in no particular order."""
        if not self.folder.is_dir():
            return
        for place in self.folder.iterdir():
            used = 0
            with contextlib.suppress(OSError):
                for file in place.iterdir():
                    found = file.stat()
                    used += getattr(found, "st_blocks", -(-found.st_size // 512)) * 512
            try:
                name, path, length = msgspec.json.decode(
                    (place / "about").read_bytes(), type=tuple[str, str, int]
                )
            except (OSError, msgspec.MsgspecError):
                name, path, length = "(unknown)", "", 0
            yield CacheItem(place.name, name, path, length, used)

    def clear(self) -> int:
        """Remove everything; how many bytes of disk that gave back."""
        freed = sum(item.disk_bytes for item in self.items())
        try:
            if self.folder.exists():
                shutil.rmtree(self.folder)
        except OSError as error:
            cause = error.strerror or str(error)
            raise CacheBroken(folder=str(self.folder), cause=cause) from None
        self._verified.clear()
        return freed

    def _describe(self, place: Path, entry: FileEntry, name: str) -> None:
        """Make an entry's folder and say what it is, whole or not at all."""
        place.mkdir(parents=True, exist_ok=True)
        draft = place / f"about.{os.getpid()}.{get_ident()}"
        draft.write_bytes(msgspec.json.encode((name, entry.path, entry.size)))
        draft.replace(place / "about")


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


def _read(file: Path, span: ByteRange) -> bytes | None:
    try:
        with file.open("rb") as stream:
            stream.seek(span.start)
            data = stream.read(span.size)
    except OSError:
        return None
    return data if len(data) == span.size else None


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
