"""Models in object stores (s3://, gs://, az://, …) through fsspec and its drivers.

Of the drivers of S3, Google and Azure it is known how to see what a server answered
(`drivers.py`), and that is held against what was asked for as with any other server. Of others
only the length of what they give is checked. Where an answer does not show the entity tag that
the list had, it is asked for after each read: one small request more, and no byte of a replaced
object is taken for the listed one. Drivers retry what they like and wait as long as they like;
here what may pass is tried again, and nobody waits for a driver longer than for other servers.
"""

from __future__ import annotations

import errno
import posixpath
import re
from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from kinprint import text
from kinprint.errors import (
    AccessRefused,
    BadReference,
    BodyBroken,
    FileChanged,
    FileMissing,
    MissingExtra,
)
from kinprint.records import ByteRange, Commit, Cost, FileEntry, ModelRef
from kinprint.source.bodies import Broken, check_answer
from kinprint.source.drivers import Answer, Ask, bare_tag, shown_by
from kinprint.source.http import RetryPolicy, Target, ask, no_connection
from kinprint.source.patience import Overdue, Patience, in_time
from kinprint.source.protocol import Meter
from kinprint.source.reference import Reference

_SLOWEST = 64 * 1024  # bytes a second; a driver does not tell how far a read has come
_READS = 2  # one wrong answer is forgiven
_FINAL = frozenset({errno.EINVAL, errno.ENOSYS})  # what was asked for is at fault
_IN_THE_EXTRA = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl"})


def open_store(reference: Reference) -> StoreSource:
    """The folder or object that `reference` names."""
    return StoreSource(reference.given, reference.place)


class StoreSource:
    """A folder or a single object; credentials are the driver's own."""

    def __init__(self, given: str, address: str) -> None:
        self._address = _without_password(address).rstrip("/")
        self._scheme = address.partition("://")[0]
        self._host = f"{self._scheme}://"
        self._files, place = self._connect(given, address)
        self._meter = Meter()
        single = self._is_object(place)
        self._root = posixpath.dirname(place) if single else place.rstrip("/")
        depth = 1 if single else None
        find = partial(self._method("find"), maxdepth=depth, detail=True, withdirs=False)
        listed = self._ask(find, self._root)
        self._tags: dict[str, str] = {}
        # Azure's driver gives a bare name where it takes the folder for an object.
        infos = listed.values() if isinstance(listed, Mapping) else ()
        found = [self._entry(info) for info in infos if not _is_folder(info)]
        self._entries = {entry.path: entry for entry in sorted(found, key=lambda one: one.path)}
        if not self._entries:
            raise BadReference(given=given, cause=text.message("cause.source.empty-store"))
        self.ref = ModelRef(
            given=_without_password(given),
            kind="store",
            name=self._address,
            path=posixpath.basename(place) if single else "",
        )

    @property
    def spent(self) -> Cost:
        """Bytes and requests so far, as far as the driver shows them."""
        return self._meter.cost

    def files(self) -> tuple[FileEntry, ...]:
        """All objects below the folder; for a single object, its siblings too."""
        return tuple(self._entries.values())

    def history(self) -> tuple[Commit, ...]:
        """Nobody keeps one here."""
        return ()

    def changes(self) -> Mapping[str, Commit]:
        """Nobody keeps them here."""
        return {}

    def overhead(self, path: str) -> int:
        """Objects are read by name; the check of the tag belongs to each read."""
        return 0

    def read(self, path: str, span: ByteRange) -> bytes:
        """Exactly the bytes of `span` from the object at `path`."""
        if path not in self._entries:
            raise FileMissing(name=self.ref.name, path=path)
        place = posixpath.join(self._root, path)
        ask = shown_by(self._files)
        read = self._read_unseen if ask is None else partial(self._read_answer, ask)
        for _ in range(_READS):
            try:
                return read(path, place, span)
            except Broken as broken:
                error = broken.error
        raise error

    def find(self, path: str) -> FileEntry | None:
        """The object at `path`, if there is one."""
        return self._entries.get(path)

    def _read_answer(self, ask: Ask, path: str, place: str, span: ByteRange) -> bytes:
        """Bytes whose server says that they are those of the object that was listed."""
        entry, tag = self._entries[path], self._tags.get(path)
        whole = span == ByteRange(0, entry.size)
        method = partial(ask, self._files, span=span, whole=whole)
        answer: Answer = self._ask(method, place, nbytes=span.size)
        self._meter.count(len(answer.body))
        pin = ("ETag", bare_tag(tag)) if tag and answer.tagged else None
        target = Target(self._host, path, entry.size, pin=pin)
        check_answer(answer.status, answer.headers, target, span, answer.whole)
        if not answer.tagged:
            self._check_tag(path, place)
        return self._of_length(answer.body, path, span)

    def _read_unseen(self, path: str, place: str, span: ByteRange) -> bytes:
        """Bytes that only the driver vouches for, of an object that was not replaced since."""
        cat_file = partial(self._method("cat_file"), start=span.start, end=span.stop)
        data = self._ask(cat_file, place, nbytes=span.size)
        self._meter.count(len(data))
        self._check_tag(path, place)
        return self._of_length(data, path, span)

    def _check_tag(self, path: str, place: str) -> None:
        """Raise if the object has another tag than the list had."""
        if path in self._tags:
            now = self._info(place)
            self._meter.count(0)
            if _tag(now) != self._tags[path]:
                raise FileChanged(path=path, cause=text.message("cause.source.other-tag"))

    def _of_length(self, data: bytes, path: str, span: ByteRange) -> bytes:
        if len(data) != span.size:
            raise Broken(BodyBroken(host=self._host, path=path, got=len(data)))
        return bytes(data)

    def _connect(self, given: str, address: str) -> tuple[Any, str]:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            feature = text.message("cause.extra.object-stores")
            raise MissingExtra(feature=feature, extra="storage") from None
        try:
            files, place = url_to_fs(address)
        except ImportError:
            if self._scheme in _IN_THE_EXTRA:
                feature = text.message("cause.extra.scheme", scheme=self._scheme)
                raise MissingExtra(feature=feature, extra="storage") from None
            cause = text.message("cause.source.no-driver", scheme=self._scheme)
            raise BadReference(given=_without_password(given), cause=cause) from None
        except Exception as error:  # drivers raise what they like about odd addresses
            said = str(error).strip().rstrip(".") or type(error).__name__
            cause = text.message("cause.reference.unreadable", detail=said)
            raise BadReference(given=_without_password(given), cause=cause) from None
        return files, str(place)

    def _entry(self, info: dict[str, Any]) -> FileEntry:
        path = posixpath.relpath(str(info["name"]), self._root)
        size = int(info.get("size") or 0)
        tag = _tag(info)
        if tag is None:
            return FileEntry(path, size)
        self._tags[path] = tag
        pinned = f"{self._scheme}\n{info['name']}\n{size}\n{tag}"
        return FileEntry(path, size, key="tag-" + sha256(pinned.encode()).hexdigest())

    def _is_object(self, place: str) -> bool:
        """Whether there is an object of this very name; drivers' `isfile` hides failures."""
        try:
            return self._info(place).get("type") == "file"
        except FileMissing:
            return False

    def _info(self, place: str) -> dict[str, Any]:
        """What the store says of an object now: a driver lives on, with what it has listed."""
        self._files.invalidate_cache()
        found: dict[str, Any] = self._ask(self._method("info"), place)
        return found

    def _method(self, name: str) -> Callable[..., Any]:
        """A function of the driver; one with a loop of its own has a coroutine beneath it."""
        found: Callable[..., Any] = getattr(
            self._files, f"_{name}" if self._files.async_impl else name
        )
        return found

    def _ask(self, method: Callable[..., Any], place: str, *, nbytes: int = 0) -> Any:
        """Have the driver do something, in time, and turn its failures into sentences."""
        policy = RetryPolicy()
        patience = Patience(policy.patience().left + nbytes / _SLOWEST)

        def attempt() -> Any:
            try:
                return self._call(method, place, max(0.01, patience.left))
            except Overdue:
                late = text.message("cause.source.driver-late")
                raise no_connection(self._host, late) from None
            except FileNotFoundError:
                raise FileMissing(name=self._address, path=place) from None
            except PermissionError as error:
                cause = str(error) or text.message("cause.source.permission")
                raise AccessRefused(path=place, cause=cause) from None
            except Exception as error:  # drivers raise what their client library raises
                passing = isinstance(error, OSError) and error.errno not in _FINAL
                root = (isinstance(error, OSError) and error.__cause__) or error
                said = f"{type(root).__name__}: {root}"
                if "credential" in said.lower():
                    raise AccessRefused(path=place, cause=str(root)) from error
                if passing:
                    raise OSError(said) from error
                raise no_connection(self._host, said) from error

        return ask(attempt, self._host, place, policy, patience)

    def _call(self, method: Callable[..., Any], place: str, seconds: float) -> Any:
        """Call the driver once; where it has a loop, what is not done in time is cancelled."""
        if not self._files.async_impl:
            return in_time(partial(method, place), seconds)
        from fsspec.asyn import FSTimeoutError, sync

        try:
            return sync(self._files.loop, method, place, timeout=seconds)
        except FSTimeoutError:
            raise Overdue from None


def _without_password(address: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "", address)


def _tag(info: dict[str, Any]) -> str | None:
    found = info.get("ETag") or info.get("etag") or info.get("md5Hash") or info.get("content_md5")
    return str(found) if found else None


def _is_folder(info: dict[str, Any]) -> bool:
    """Consoles of object stores make empty objects to show folders."""
    return str(info["name"]).endswith("/") or info.get("type") == "directory"
