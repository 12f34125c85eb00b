"""The protocol that every place of models speaks.

A source lists files and hands out byte ranges, nothing more: no formats, no caching, no
concurrency. It is safe to call from many threads, and it returns exactly the bytes asked
for or raises one of `kinprint.errors`.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Protocol

from kinprint.records import ByteRange, Commit, Cost, FileEntry, ModelRef


class Source(Protocol):
    """A place that holds one model, pinned to one state."""

    @property
    def ref(self) -> ModelRef:
        """Which model this is, with the state that is being read."""

    @property
    def spent(self) -> Cost:
        """Bytes and requests that this source has cost so far."""

    def files(self) -> tuple[FileEntry, ...]:
        """All files of the model that can be listed, sorted by path."""

    def find(self, path: str) -> FileEntry | None:
        """One file of the model, None if it is not there.

        A plain web server cannot list: what is not in `files` may be found all the same.
        """

    def read(self, path: str, span: ByteRange) -> bytes:
        """Exactly the bytes of `span` from the file at `path`."""

    def history(self) -> tuple[Commit, ...]:
        """Commits up to the pinned state, the newest first; none where nobody keeps them."""

    def changes(self) -> Mapping[str, Commit]:
        """By path, the commit that last changed a file; none where nobody keeps them."""

    def overhead(self, path: str) -> int:
        """Requests that the next read of `path` needs beyond the read itself."""


class Meter:
    """Counts bytes and requests across threads."""

    __slots__ = ("_bytes", "_lock", "_requests")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._bytes = 0
        self._requests = 0

    def count(self, nbytes: int, requests: int = 1) -> None:
        """Add one exchange with a server."""
        with self._lock:
            self._bytes += nbytes
            self._requests += requests

    @property
    def cost(self) -> Cost:
        """The total so far."""
        return Cost(bytes=self._bytes, requests=self._requests)
