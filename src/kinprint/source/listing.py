"""Remembers what a repository held at a commit, so that offline mode can open it again."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from hashlib import sha256
from itertools import product
from pathlib import Path

import msgspec

from kinprint.records import FileEntry
from kinprint.source.assets import assets_folder


class Listing(msgspec.Struct, frozen=True):
    """The files of one repository at one commit."""

    endpoint: str
    repository: str
    revision: str
    commit: str
    files: list[tuple[str, int, str | None]]  # path, size, sha256

    def entries(self) -> tuple[FileEntry, ...]:
        """The files as records, each with the key that pins its content."""
        return tuple(
            FileEntry(path, size, digest, key=self._key(path, digest))
            for path, size, digest in self.files
        )

    def _key(self, path: str, digest: str | None) -> str:
        """A cache key for content that this endpoint vouches for, and no other."""
        pinned = (digest,) if digest else (self.repository, self.commit, path)
        return "hub-" + sha256("\n".join((self.endpoint, *pinned)).encode()).hexdigest()


_read_listing = msgspec.json.Decoder(Listing).decode  # made once: see `repository.py`


def _place(endpoint: str, repository: str, revision: str) -> Path:
    name = sha256("\n".join((endpoint, repository, revision)).encode()).hexdigest()
    return assets_folder("listings", "v1") / f"{name}.json"


def remember(listing: Listing, asked_for: str) -> None:
    """Store a listing under its names, revision and commit; failing to is no failure."""
    data = msgspec.json.encode(listing)
    names = {listing.repository, asked_for}  # a renamed repository has two
    for name, revision in product(names, {listing.revision, listing.commit}):
        with contextlib.suppress(OSError):
            place = _place(listing.endpoint, name, revision)
            if place.is_file() and place.read_bytes() == data:
                continue
            place.parent.mkdir(parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=place.parent)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                Path(draft).replace(place)
            except OSError:
                Path(draft).unlink(missing_ok=True)
                raise


def recall(endpoint: str, repository: str, revision: str) -> Listing | None:
    """The listing stored last for a revision, or None."""
    try:
        return _read_listing(_place(endpoint, repository, revision).read_bytes())
    except (OSError, msgspec.MsgspecError, ValueError):
        return None


def forget_all() -> None:
    """Remove all stored listings; offline mode then knows no repository."""
    shutil.rmtree(assets_folder("listings"), ignore_errors=True)
