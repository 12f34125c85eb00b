"""Models behind a plain web address: one weight file, or an index with its shards.

No token is ever sent: the address is not the Hub's. What pins the bytes is the strong
entity tag that the server gives: an answer with another one is refused, and without one
nothing is cached. A web server lists nothing, so other files are found by asking for them.
"""

from __future__ import annotations

import contextlib
import posixpath
import re
import threading
from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from huggingface_hub import constants

from kinprint import text
from kinprint.errors import (
    AccessRefused,
    BadReference,
    FileMissing,
    LengthWrong,
    RangeIgnored,
)
from kinprint.records import ByteRange, Commit, Cost, FileEntry, ModelRef
from kinprint.source.bodies import read_range
from kinprint.source.http import (
    Refused,
    RetryPolicy,
    Target,
    TransportError,
    answer_to,
    failure,
    host_of,
)
from kinprint.source.protocol import Meter
from kinprint.source.reference import Reference

_Pin = tuple[str, str]
_DIGITS = re.compile(r"[0-9]{1,18}")
# Parts of a query that sign a request and say nothing about which file it is.
_SIGNATURE = re.compile(
    r"^(x-amz-|x-goog-|expires$|signature$|key-pair-id$|policy$|token$|sig$|s[etprv]$|skoid$)",
    re.IGNORECASE,
)


def open_address(reference: Reference) -> AddressSource:
    """The file at the web address that `reference` names."""
    return AddressSource(reference.given, reference.place)


class AddressSource:
    """A file on any web server that answers Range requests."""

    def __init__(self, given: str, address: str) -> None:
        parts = urlsplit(address)
        folder, name = posixpath.split(unquote(parts.path))
        if not parts.hostname or not name:
            raise BadReference(given=given, cause=text.message("cause.reference.no-file-address"))
        if constants.is_offline_mode():
            cause = text.message("cause.source.offline-address")
            raise AccessRefused(path=_plain(address), cause=cause)
        self._given = address
        self._parts = parts
        self._folder = folder
        self._name = name
        self._meter = Meter()
        self._lock = threading.Lock()
        self._known: dict[str, tuple[FileEntry, _Pin | None] | None] = {}
        self.ref = ModelRef(
            given=_without_secrets(given), kind="url", name=_plain(address), path=name
        )
        if self.find(name) is None:
            raise FileMissing(name=_plain(address), path=name)

    @property
    def spent(self) -> Cost:
        """Bytes and requests so far."""
        return self._meter.cost

    def files(self) -> tuple[FileEntry, ...]:
        """The files that were asked for and found so far."""
        found = [known[0] for known in list(self._known.values()) if known is not None]
        return tuple(sorted(found, key=lambda entry: entry.path))

    def history(self) -> tuple[Commit, ...]:
        """Nobody keeps one here."""
        return ()

    def changes(self) -> Mapping[str, Commit]:
        """Nobody keeps them here."""
        return {}

    def overhead(self, path: str) -> int:
        """Addresses need no resolving."""
        return 0

    def find(self, path: str) -> FileEntry | None:
        """The file beside the given one, if the server has it; asked for once."""
        if path not in self._known:
            found = self._probe(path)
            with self._lock:
                self._known.setdefault(path, found)
        known = self._known[path]
        return known[0] if known is not None else None

    def read(self, path: str, span: ByteRange) -> bytes:
        """Exactly the bytes of `span` from the file at `path`."""
        if self.find(path) is None:
            raise FileMissing(name=self.ref.name, path=path)
        entry, pin = self._known[path] or (FileEntry(path, 0), None)
        target = Target(self._address(path), path, entry.size, pin=pin)
        try:
            return read_range(target, span, self._meter, RetryPolicy())
        except Refused as refused:
            raise _refused(_plain(target.address), refused) from None

    def _address(self, path: str) -> str:
        """The given address for its own file, as it was given; siblings without its query."""
        if path == self._name:
            return self._given
        place = posixpath.join(self._folder, path)
        return urlunsplit((self._parts.scheme, self._parts.netloc, quote(place), "", ""))

    def _probe(self, path: str) -> tuple[FileEntry, _Pin | None] | None:
        """Learn a file's length and tag from the answer to a request for its first byte."""
        address = self._address(path)
        host, shown = host_of(address), _plain(address)
        target = Target(address, path, 0)
        with answer_to("GET", target, {"Range": "bytes=0-0"}, RetryPolicy()) as (answer, _):
            self._meter.count(1, 1 + len(answer.history))
            status, headers = answer.status_code, answer.headers
            if status == 206 and headers.get("Content-Length") == "1":
                # One byte that nobody needs, and the connection can be used again.
                with contextlib.suppress(TransportError, OSError, RuntimeError):
                    answer.read()
        if status in (404, 410):
            return None
        if status >= 400:
            failed = failure(status, headers, address, path)
            raise _refused(shown, failed) if isinstance(failed, Refused) else failed
        if status == 200:
            size = headers.get("Content-Length") or text.message("cause.source.unknown-size")
            raise RangeIgnored(host=host, path=path, size=size)
        total = headers.get("Content-Range", "").rpartition("/")[2].strip()
        if status != 206 or not _DIGITS.fullmatch(total):
            cause = text.message("cause.source.status-to-range", status=status)
            raise LengthWrong(host=host, path=path, cause=cause)
        tag = headers.get("ETag")
        if tag is not None and not tag.startswith("W/"):
            entry = FileEntry(path, int(total), key=_key(address, int(total), tag))
            return entry, ("ETag", tag)
        date = headers.get("Last-Modified")  # good enough to notice a change, not to keep bytes
        return FileEntry(path, int(total)), ("Last-Modified", date) if date else None


def _refused(shown: str, refused: Refused) -> AccessRefused:
    cause = text.message("cause.source.status", status=refused.status)
    return AccessRefused(path=shown, cause=cause)


def _key(address: str, size: int, tag: str) -> str:
    parts = urlsplit(address)
    query = [(name, value) for name, value in parse_qsl(parts.query) if not _SIGNATURE.match(name)]
    which = f"{_plain(address)}?{urlencode(query)}"
    return "tag-" + sha256(f"{which}\n{size}\n{tag}".encode()).hexdigest()


def _plain(address: str) -> str:
    """An address without credentials and query, to be shown and remembered."""
    parts = urlsplit(address)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _without_secrets(given: str) -> str:
    """An address as it may be repeated: without credentials and signatures."""
    head, mark, query = re.sub(r"(?<=://)[^/@]*@", "", given).partition("?")
    kept = [part for part in query.split("&") if not _SIGNATURE.match(part.partition("=")[0])]
    return head + mark * bool(kept) + "&".join(kept)
