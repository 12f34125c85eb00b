"""Models behind a plain web address: one weight file, or an index with its shards.

No token is ever sent: the address is not the Hub's. What pins the bytes is the strong
entity tag that the server gives; without one the file is not cached.
"""

from __future__ import annotations

import posixpath
import threading
from hashlib import sha256
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from huggingface_hub import constants
from huggingface_hub.errors import OfflineModeIsEnabled
from huggingface_hub.utils import http_stream_backoff

from kinprint.errors import (
    AccessRefused,
    BadReference,
    FileMissing,
    LengthWrong,
    OfflineMiss,
    RangeIgnored,
)
from kinprint.records import ByteRange, Cost, FileEntry, ModelRef
from kinprint.source.http import Refused, RetryPolicy, host_of, read_range, translate
from kinprint.source.protocol import Meter

_INDEX_LIMIT = 64 * 1024 * 1024


class AddressSource:
    """A file on any web server that answers Range requests."""

    def __init__(self, given: str, address: str) -> None:
        parts = urlsplit(address)
        folder, name = posixpath.split(unquote(parts.path))
        if not parts.hostname or not name:
            raise BadReference(given=given, cause="it is not the address of a file")
        self._parts = parts
        self._folder = folder
        self._meter = Meter()
        self._policy = RetryPolicy()
        self._lock = threading.Lock()
        self._entries: dict[str, FileEntry] = {}
        plain = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
        main = self._probe(name)
        self._entries[name] = main
        self.ref = ModelRef(given=given, kind="url", name=plain, commit=_pin(main), path=name)
        if name.endswith(".index.json"):
            self._add_shards(name, main)
        self._add_if_there("config.json")

    @property
    def spent(self) -> Cost:
        """Bytes and requests so far."""
        return self._meter.cost

    def files(self) -> tuple[FileEntry, ...]:
        """The file, the shards its index names, and a config.json beside it."""
        return tuple(sorted(self._entries.values(), key=lambda entry: entry.path))

    def overhead(self, path: str) -> int:
        """Addresses are known from the start."""
        return 0

    def read(self, path: str, span: ByteRange) -> bytes:
        """Exactly the bytes of `span` from the file at `path`."""
        entry = self._entries.get(path)
        if entry is None:
            raise FileMissing(name=self.ref.name, path=path)
        try:
            return read_range(
                self._address(path), {}, path, span, entry.size, self._meter, self._policy
            )
        except Refused as refusal:
            raise AccessRefused(path=self._shown(path), cause=f"status {refusal.status}") from None

    def _address(self, path: str) -> str:
        """Where a sibling lies; a query, often a signature, stays with the file it came with."""
        place = posixpath.normpath(posixpath.join(self._folder, path))
        own = place == unquote(self._parts.path)
        query = self._parts.query if own else ""
        return urlunsplit((self._parts.scheme, self._parts.netloc, quote(place), query, ""))

    def _shown(self, path: str) -> str:
        return f"{self._parts.scheme}://{self._parts.hostname}/…/{path}"

    def _probe(self, path: str) -> FileEntry:
        """Learn a file's length and tag from the answer to a request for its first byte."""
        address = self._address(path)
        host = host_of(address)
        if constants.is_offline_mode():
            raise OfflineMiss(what=f"'{address}', and only models of the Hub can be opened offline")
        try:
            with http_stream_backoff(
                "GET",
                address,
                headers={"Range": "bytes=0-0", "Accept-Encoding": "identity"},
                timeout=self._policy.timeout,
                max_retries=self._policy.retries,
                base_wait_time=self._policy.first_wait,
            ) as answer:
                self._meter.count(1)
                status, headers = answer.status_code, answer.headers
                answer.close()
        except OfflineModeIsEnabled:
            raise OfflineMiss(what=f"'{address}'") from None
        except Exception as error:
            raise translate(error, address, path) from None
        if status in (404, 410):
            raise FileMissing(name=f"{self._parts.scheme}://{host}", path=path)
        if status in (401, 403):
            raise AccessRefused(path=address, cause=f"status {status}")
        if status == 200:
            raise RangeIgnored(host=host, path=path, size=headers.get("Content-Length", "unknown"))
        total = headers.get("Content-Range", "").rpartition("/")[2]
        if status != 206 or not total.isdigit():
            raise LengthWrong(host=host, path=path, cause=f"status {status} to a Range request")
        return FileEntry(path, int(total), key=_key(address, int(total), headers.get("ETag")))

    def _add_if_there(self, path: str) -> None:
        try:
            self._entries.setdefault(path, self._probe(path))
        except (FileMissing, AccessRefused, RangeIgnored, LengthWrong):
            return

    def _add_shards(self, name: str, entry: FileEntry) -> None:
        """List what the index names; the shards' own checks come when they are read."""
        import msgspec

        if entry.size > _INDEX_LIMIT:
            return
        raw = self.read(name, ByteRange(0, entry.size))
        try:
            names = set(msgspec.json.decode(raw)["weight_map"].values())
        except (msgspec.MsgspecError, KeyError, TypeError, AttributeError):
            return  # the reader says what is wrong with this index
        for shard in sorted(shard for shard in names if isinstance(shard, str)):
            if shard and not posixpath.normpath(shard).startswith(("..", "/")):
                self._entries[shard] = self._probe(shard)


def _key(address: str, size: int, tag: str | None) -> str | None:
    if not tag or tag.startswith("W/"):
        return None
    plain = urlsplit(address)._replace(query="", fragment="").geturl()
    return "tag-" + sha256(f"{plain}\n{size}\n{tag}".encode()).hexdigest()


def _pin(entry: FileEntry) -> str:
    return entry.key or ""
