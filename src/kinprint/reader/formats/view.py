"""A window on one file: what format parsers see instead of a network or a disk."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from kinprint.records import FileEntry


class FileView(Struct, frozen=True):
    """A file that is read by range.

    `fetch(start, stop)` returns exactly those bytes or raises; whoever makes the view
    decides whether they come from memory, the cache, a disk or a server.
    """

    entry: FileEntry
    fetch: Callable[[int, int], bytes]

    @property
    def path(self) -> str:
        """Path of the file within its model."""
        return self.entry.path

    @property
    def size(self) -> int:
        """Length of the file in bytes."""
        return self.entry.size

    def read(self, start: int, stop: int) -> bytes:
        """Bytes from `start` to `stop`, cut at the end of the file."""
        stop = min(stop, self.size)
        return self.fetch(start, stop) if stop > start else b""
