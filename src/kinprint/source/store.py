"""Models in object stores (s3://, gs://, az://, …) through fsspec and its drivers."""

from __future__ import annotations

import posixpath
from hashlib import sha256
from typing import Any

from kinprint.errors import (
    AccessRefused,
    BadReference,
    BodyBroken,
    FileMissing,
    MissingExtra,
    Unreachable,
)
from kinprint.records import ByteRange, Cost, FileEntry, ModelRef
from kinprint.source.protocol import Meter


class StoreSource:
    """A folder or a single object; retries and credentials are the driver's own."""

    def __init__(self, given: str, address: str) -> None:
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
        self._entries = {
            entry.path: entry
            for entry in sorted(map(self._entry, listed.values()), key=lambda entry: entry.path)
        }
        if not self._entries:
            raise BadReference(given=given, cause="nothing is stored there")
        self.ref = ModelRef(
            given=given,
            kind="store",
            name=address.rstrip("/"),
            path=posixpath.basename(place) if single else "",
        )

    @property
    def spent(self) -> Cost:
        """Bytes and requests so far, as far as the driver shows them."""
        return self._meter.cost

    def files(self) -> tuple[FileEntry, ...]:
        """All objects below the folder; for a single object, its siblings too."""
        return tuple(self._entries.values())

    def overhead(self, path: str) -> int:
        """Objects are read by name."""
        return 0

    def read(self, path: str, span: ByteRange) -> bytes:
        """Exactly the bytes of `span` from the object at `path`."""
        if path not in self._entries:
            raise FileMissing(name=self.ref.name, path=path)
        place = posixpath.join(self._root, path)
        data = self._guard(
            place, lambda: self._files.cat_file(place, start=span.start, end=span.stop)
        )
        self._meter.count(len(data))
        if len(data) != span.size:
            raise BodyBroken(host=self._scheme, path=path, got=len(data), wanted=span.size)
        return bytes(data)

    def _connect(self, given: str, address: str) -> tuple[Any, str]:
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise MissingExtra(feature="Reading object stores", extra="storage") from None
        try:
            files, place = url_to_fs(address)
        except ImportError:
            raise MissingExtra(feature=f"Reading {self._scheme}://", extra="storage") from None
        except ValueError as error:
            raise BadReference(given=given, cause=str(error).rstrip(".")) from None
        return files, str(place)

    def _entry(self, info: dict[str, Any]) -> FileEntry:
        path = posixpath.relpath(str(info["name"]), self._root)
        size = int(info.get("size") or 0)
        tag = info.get("ETag") or info.get("etag") or info.get("md5Hash") or info.get("content_md5")
        key = f"{self._scheme}\n{info['name']}\n{size}\n{tag}"
        return FileEntry(path, size, key="tag-" + sha256(key.encode()).hexdigest() if tag else None)

    def _guard(self, place: str, action: Any) -> Any:
        """Do something with the driver and turn its failures into sentences."""
        try:
            return action()
        except FileNotFoundError:
            raise FileMissing(name=f"{self._scheme}://", path=place) from None
        except PermissionError as error:
            raise AccessRefused(path=place, cause=str(error) or "permission denied") from None
        except Exception as error:  # drivers raise what their client library raises
            raise Unreachable(
                host=f"{self._scheme}://", cause=f"{type(error).__name__}: {error}"
            ) from error
