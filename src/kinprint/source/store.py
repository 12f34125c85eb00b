"""Models in object stores (s3://, gs://, az://, …) through fsspec and its drivers.

Drivers do not show the entity tag of what they read, so it is asked for after each read:
one small request more, and no byte of a replaced object is taken for the listed one. They wait
for a silent server as they like; here nobody waits for a driver longer than for other servers.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping
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
    Unreachable,
)
from kinprint.records import ByteRange, Commit, Cost, FileEntry, ModelRef
from kinprint.source.http import RetryPolicy
from kinprint.source.patience import Overdue, in_time
from kinprint.source.protocol import Meter
from kinprint.source.reference import Reference

_SLOWEST = 64 * 1024  # bytes a second; a driver does not tell how far a read has come
_IN_THE_EXTRA = frozenset({"s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl"})


def open_store(reference: Reference) -> StoreSource:
    """The folder or object that `reference` names."""
    return StoreSource(reference.given, reference.place)


class StoreSource:
    """A folder or a single object; retries and credentials are the driver's own."""

    def __init__(self, given: str, address: str) -> None:
        self._address = _without_password(address).rstrip("/")
        self._scheme = address.partition("://")[0]
        self._files, place = self._connect(given, address)
        self._meter = Meter()
        single = self._guard(place, lambda: bool(self._files.isfile(place)))
        self._root = posixpath.dirname(place) if single else place.rstrip("/")
        listed = self._guard(
            place,
            lambda: self._files.find(
                self._root, maxdepth=1 if single else None, detail=True, withdirs=False
            ),
        )
        self._tags: dict[str, str] = {}
        found = [self._entry(info) for info in listed.values() if not _is_folder(info)]
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
        data = self._guard(
            place, lambda: self._files.cat_file(place, start=span.start, end=span.stop), span.size
        )
        self._meter.count(len(data))
        self._check_unchanged(path, place)
        if len(data) != span.size:
            raise BodyBroken(host=self._scheme, path=path, got=len(data))
        return bytes(data)

    def find(self, path: str) -> FileEntry | None:
        """The object at `path`, if there is one."""
        return self._entries.get(path)

    def _check_unchanged(self, path: str, place: str) -> None:
        """Refuse bytes of an object that was replaced since it was listed."""
        listed = self._tags.get(path)
        if listed is None:
            return
        now = self._guard(place, lambda: _fresh_info(self._files, place))
        self._meter.count(0)
        if _tag(now) != listed:
            raise FileChanged(path=path, cause=text.message("cause.source.other-tag"))

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

    def _guard(self, place: str, action: Callable[[], Any], nbytes: int = 0) -> Any:
        """Do something with the driver, in time, and turn its failures into sentences."""
        seconds = RetryPolicy().patience().left + nbytes / _SLOWEST
        try:
            return in_time(action, seconds)
        except Overdue:
            late = text.message("cause.source.no-answer")
            raise Unreachable(host=f"{self._scheme}://", cause=late) from None
        except FileNotFoundError:
            raise FileMissing(name=self._address, path=place) from None
        except PermissionError as error:
            cause = str(error) or text.message("cause.source.permission")
            raise AccessRefused(path=place, cause=cause) from None
        except Exception as error:  # drivers raise what their client library raises
            if "credential" in f"{type(error).__name__} {error}".lower():
                raise AccessRefused(path=place, cause=str(error)) from error
            said = f"{type(error).__name__}: {error}"
            raise Unreachable(host=f"{self._scheme}://", cause=said) from error


def _without_password(address: str) -> str:
    return re.sub(r"(?<=://)[^/@]*@", "", address)


def _tag(info: dict[str, Any]) -> str | None:
    found = info.get("ETag") or info.get("etag") or info.get("md5Hash") or info.get("content_md5")
    return str(found) if found else None


def _is_folder(info: dict[str, Any]) -> bool:
    """Consoles of object stores make empty objects to show folders."""
    return str(info["name"]).endswith("/") or info.get("type") == "directory"


def _fresh_info(files: Any, place: str) -> Any:
    try:
        return files.info(place, refresh=True)
    except TypeError:  # drivers without a listing cache take no such wish
        return files.info(place)
