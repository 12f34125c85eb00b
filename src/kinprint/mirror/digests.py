"""Content hashes of files, as git and the Hub define them, computed once and late.

A sha256 proves that two files are equal without reading a weight, so it is never invented:
a file above the limit has none, and carries a tag made from its path, size and time.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from msgspec import Struct

from kinprint.mirror.exchange import Stale
from kinprint.mirror.folder import Entry

DEFAULT_HASH_LIMIT = 4 << 30
_CHUNK = 1 << 20


class Digest(Struct, frozen=True):
    """What identifies a file's content: `oid` for git, `sha256` for large files, `etag`.

    `pointer_size` is the length of the text that stands for a large file in git.
    """

    oid: str
    etag: str
    sha256: str | None = None
    pointer_size: int = 0


class Digests:
    """Computes digests in threads and keeps them by path, size and time.

    Requests for the same file wait for one computation; closing stops those under way.
    """

    def __init__(self, hash_limit: int = DEFAULT_HASH_LIMIT) -> None:
        self._hash_limit = hash_limit
        self._known: dict[Entry, Digest] = {}
        self._pending: dict[Entry, asyncio.Future[Digest]] = {}
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="kinprint-mirror-hash")
        self._closed = threading.Event()

    def stop(self) -> None:
        """Give up what is being hashed, at its next chunk."""
        self._closed.set()

    def close(self) -> None:
        """Stop hashing and wait for the threads to end."""
        self.stop()
        self._pool.shutdown(wait=True, cancel_futures=True)

    async def of(self, entry: Entry) -> Digest:
        """Return the digest of a file, waiting for it where it is not known yet.

        Raises `Stale` where the file is no longer the one that was listed.
        """
        known = self._known.get(entry)
        if known is not None:
            return known
        if entry.large and entry.size > self._hash_limit:
            return self._keep(entry, _stand_in(entry))
        pending = self._pending.get(entry)
        if pending is None:
            loop = asyncio.get_running_loop()
            pending = loop.run_in_executor(self._pool, self._compute, entry)
            self._pending[entry] = pending
            pending.add_done_callback(lambda _: self._pending.pop(entry, None))
        try:
            return self._keep(entry, await asyncio.shield(pending))
        except OSError as error:
            raise Stale(entry.file) from error

    def _keep(self, entry: Entry, digest: Digest) -> Digest:
        self._known[entry] = digest
        return digest

    def _compute(self, entry: Entry) -> Digest:
        if entry.large:
            content = self._hash(entry, hashlib.sha256())
            pointer = (
                "version https://git-lfs.github.com/spec/v1\n"
                f"oid sha256:{content}\nsize {entry.size}\n"
            ).encode()
            return Digest(_git_oid(pointer), content, content, len(pointer))
        blob = hashlib.sha1(b"blob %d\0" % entry.size, usedforsecurity=False)
        oid = self._hash(entry, blob)
        return Digest(oid, oid)

    def _hash(self, entry: Entry, state: hashlib._Hash) -> str:
        with Path(entry.file).open("rb") as file:
            while chunk := file.read(_CHUNK):
                if self._closed.is_set():
                    raise OSError("the mirror is shutting down")
                state.update(chunk)
            status = os.fstat(file.fileno())
        if (status.st_size, status.st_mtime_ns) != (entry.size, entry.mtime_ns):
            raise OSError("the file has changed")
        return state.hexdigest()


def _git_oid(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _stand_in(entry: Entry) -> Digest:
    seed = f"{entry.path}\0{entry.size}\0{entry.mtime_ns}".encode()
    oid = hashlib.sha1(seed, usedforsecurity=False).hexdigest()
    # The suffix keeps the tag from being taken for a git or a sha256 digest.
    return Digest(oid, f"{oid[:32]}-{entry.size:x}")
