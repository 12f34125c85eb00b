"""Models on this machine: a folder, a Hugging Face cache snapshot, or a single file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from io import BufferedReader, FileIO
from pathlib import Path

from kinprint import text
from kinprint.errors import (
    AccessRefused,
    BadReference,
    FileChanged,
    FileMissing,
    system_cause,
)
from kinprint.records import ByteRange, Commit, Cost, FileEntry, ModelRef
from kinprint.source.reference import Reference

_DEEPEST = 4
_MOST_FILES = 20_000


def read_local(path: str, span: ByteRange) -> bytes:
    """Exactly the bytes of `span` from a file on disk."""
    try:
        with BufferedReader(FileIO(path)) as file:
            file.seek(span.start)
            data = file.read(span.size)
    except FileNotFoundError:
        raise FileChanged(path=path, cause=text.message("cause.source.gone")) from None
    except OSError as error:
        raise AccessRefused(path=path, cause=system_cause(error)) from None
    if len(data) != span.size:
        cause = text.message("cause.source.ends-early", stop=span.stop)
        raise FileChanged(path=path, cause=cause)
    return data


def open_local(reference: Reference) -> LocalSource:
    """The folder or file that `reference` names."""
    return LocalSource(reference.given, reference.place)


class LocalSource:
    """A folder or a file; reading costs nothing that is worth counting."""

    def __init__(self, given: str, place: str, *, name: str = "", path: str = "") -> None:
        root = Path(place)
        if not root.exists():
            raise BadReference(given=given, cause=text.message("cause.reference.no-such-path"))
        single = root if root.is_file() else None
        self._root = root.parent if single else root
        self._entries = {entry.path: entry for entry in _list(self._root, single)}
        self.ref = ModelRef(
            given=given,
            kind="local",
            name=name or _named(root),
            commit="".join(_snapshot(root)[2:3]),
            path=single.name if single else path,
        )

    @property
    def spent(self) -> Cost:
        """Nothing: local reads are free."""
        return Cost()

    def files(self) -> tuple[FileEntry, ...]:
        """All files below the folder; for a single file, it and its siblings."""
        return tuple(self._entries.values())

    def find(self, path: str) -> FileEntry | None:
        """The file at `path`, if there is one."""
        return self._entries.get(path)

    def read(self, path: str, span: ByteRange) -> bytes:
        """Exactly the bytes of `span` from the file at `path`."""
        entry = self._entries.get(path)
        if entry is None or entry.local is None:
            raise FileMissing(name=self.ref.name, path=path)
        return read_local(entry.local, span)

    def history(self) -> tuple[Commit, ...]:
        """Nobody keeps one here."""
        return ()

    def changes(self) -> Mapping[str, Commit]:
        """Nobody keeps them here."""
        return {}

    def overhead(self, path: str) -> int:
        """No request is ever needed."""
        return 0


def _list(root: Path, single: Path | None) -> list[FileEntry]:
    """Files below `root`; beside a single file only its own folder is of interest."""
    found: list[FileEntry] = []
    unreadable: list[OSError] = []
    try:
        if single is not None:
            candidates = [path for path in root.iterdir() if path.is_file()]
        else:
            candidates = _walk(root, unreadable)
        if unreadable and not candidates:
            raise unreadable[0]
    except OSError as error:
        raise AccessRefused(path=str(root), cause=system_cause(error)) from None
    for path in candidates:
        try:
            size = path.stat().st_size
        except OSError:  # a dangling link, as interrupted downloads leave behind
            continue
        relative = path.relative_to(root).as_posix()
        found.append(FileEntry(relative, size, sha256=_blob_sha256(path), local=str(path)))
    return sorted(found, key=lambda entry: entry.path)


def _walk(root: Path, unreadable: list[OSError]) -> list[Path]:
    """Files below `root`, not too deep and not too many: a home folder is no model."""
    found: list[Path] = []
    for folder, folders, names in os.walk(root, onerror=unreadable.append):
        depth = len(Path(folder).relative_to(root).parts)
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and depth < _DEEPEST
        )
        found += [Path(folder) / name for name in names]
        if len(found) > _MOST_FILES:
            cause = text.message("cause.reference.too-many-files", most=_MOST_FILES)
            raise BadReference(given=str(root), cause=cause)
    return found


def _named(root: Path) -> str:
    """A path that ends in a name: of a dot, the folder that it stands for."""
    cached = _snapshot(root)
    if cached:
        return "/".join(cached)
    return str(root) if root.name not in ("", "..") else root.resolve().name or str(root)


def _blob_sha256(path: Path) -> str | None:
    """The sha256 that the Hugging Face cache names its large blobs by."""
    if not path.is_symlink():
        return None
    target = path.resolve()
    name = target.name
    is_hash = len(name) == 64 and all(c in "0123456789abcdef" for c in name)
    return name if is_hash and target.parent.name == "blobs" else None


def _snapshot(root: Path) -> tuple[str, ...]:
    """The end of …/models--org--name/snapshots/COMMIT and what is below it; empty elsewhere."""
    parts = root.absolute().parts
    if "snapshots" in parts:
        place = parts.index("snapshots")
        if place + 1 < len(parts) and parts[place - 1].startswith("models--"):
            return parts[place - 1 :]
    return ()
