"""FOLDER as a hub sees it: repositories, branches, commits and files.

`FOLDER/name` and `FOLDER/org/name` are repositories; `name@branch` beside one is another of
its branches (a slash in a branch's name is written %2F). A commit id is a digest of names,
sizes and times, so it is stable while nothing changes and new when something does. A link
to a whole repository is followed; links inside one are only if they stay in it or FOLDER.
Names that begin with a dot are nobody's business: settings, keys and caches have such names.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha1
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote

from msgspec import Struct

from kinprint.errors import RepositoryMissing, RevisionMissing

MAIN = "main"
# What the Hub keeps in large-file storage by name; anything above the limit goes there too.
LARGE_SUFFIXES = (
    *(".safetensors", ".bin", ".gguf", ".pt", ".pth", ".ckpt"),
    *(".model", ".msgpack", ".h5", ".onnx"),
)
LARGE_SIZE = 10_000_000
# A folder with one of these is a model; other files may lie beside the models of an owner.
_MODEL_SUFFIXES = (*LARGE_SUFFIXES, "config.json", ".index.json")
_MODEL_FILES = ("model_index.json", "tokenizer.json", "params.json", "vocab.json")
_SERVED_ALL_THE_SAME = ".gitattributes"  # every repository on the Hub has it
_LONGEST_NAME = 255  # bytes; no file system takes more
_MOST_KEPT = 1_000
_T = TypeVar("_T")


class Entry(Struct, frozen=True):
    """One file of a snapshot, with what is needed to notice that it has changed since."""

    path: str
    size: int
    mtime_ns: int
    file: str

    @property
    def large(self) -> bool:
        """Whether the Hub would keep it in large-file storage."""
        return self.size > LARGE_SIZE or self.path.endswith(LARGE_SUFFIXES)


class Snapshot(Struct, frozen=True):
    """The files of one branch at one moment; `commit` names exactly this state."""

    repo_id: str
    commit: str
    address: str
    entries: Mapping[str, Entry]
    folders: Mapping[str, str]
    modified_ns: int


class Repository(Struct, frozen=True):
    """A repository and the folder that holds each of its branches."""

    repo_id: str
    folders: Mapping[str, Path]


class Library:
    """Looks at FOLDER on demand and remembers for a second what it saw.

    Listings are cheap but not free: a client that reads a thousand ranges must not make
    the mirror walk the tree a thousand times.
    """

    def __init__(self, folder: Path, refresh_seconds: float = 1.0) -> None:
        self.root = folder.resolve()
        self._refresh_seconds = refresh_seconds
        self._lock = threading.RLock()
        self._kept: dict[object, tuple[float, object]] = {}
        self._pointed: dict[tuple[str, str], list[str]] = {}

    def refresh(self) -> None:
        """Forget what was seen, so that the next request looks at the disk."""
        with self._lock:
            self._kept.clear()

    def repoint(self, repo_id: str, branch: str, folder_branch: str) -> None:
        """Let `branch` show the content of another branch's folder from now on.

        The commit it showed before stays readable by its id, as after a push to the Hub.
        """
        with self._lock:
            self.refresh()
            repository = self.find(repo_id)
            if repository is None:
                raise RepositoryMissing(name=repo_id, host=str(self.root))
            if folder_branch not in repository.folders:
                raise RevisionMissing(name=repo_id, revision=folder_branch)
            self._pointed.setdefault((repo_id, branch), [branch]).append(folder_branch)

    def ids(self) -> list[str]:
        """Return the names of all repositories, sorted."""
        return self._remember("ids", lambda: sorted(set(self._all_ids())))

    def find(self, repo_id: str) -> Repository | None:
        """Return the repository of that name, or None."""
        return self._remember(("find", repo_id), lambda: self._find(repo_id))

    def branches(self, repository: Repository) -> dict[str, Snapshot]:
        """Return every branch with the snapshot it points at, main first."""
        names = set(repository.folders)
        names |= {branch for name, branch in list(self._pointed) if name == repository.repo_id}
        found = {name: self._at_branch(repository, name) for name in names}
        return {
            name: snapshot
            for name, snapshot in sorted(found.items(), key=lambda item: (item[0] != MAIN, item))
            if snapshot is not None
        }

    def snapshot(self, repository: Repository, revision: str) -> Snapshot | None:
        """Return the snapshot that a branch name or a full commit id means, or None."""
        by_name = self._at_branch(repository, revision)
        if by_name is not None or len(revision) != 40:
            return by_name
        for branch in repository.folders:
            snapshot = self._scan_branch(repository, branch)
            if snapshot.commit == revision:
                return snapshot
        return None

    def history(self, repository: Repository, revision: str) -> list[Snapshot]:
        """Return the snapshots a revision has pointed at, newest first."""
        head = self.snapshot(repository, revision)
        if head is None:
            return []
        folders = self._pointed.get((repository.repo_id, revision), [])
        earlier = [
            self._scan_branch(repository, folder)
            for folder in reversed(folders[:-1])
            if folder in repository.folders
        ]
        return list({snapshot.commit: snapshot for snapshot in (head, *earlier)}.values())

    def _at_branch(self, repository: Repository, branch: str) -> Snapshot | None:
        folder = self._pointed.get((repository.repo_id, branch), [branch])[-1]
        if folder not in repository.folders:
            return None
        return self._scan_branch(repository, folder)

    def _scan_branch(self, repository: Repository, folder_branch: str) -> Snapshot:
        folder = repository.folders[folder_branch]
        return self._remember(
            ("scan", repository.repo_id, folder),
            lambda: _scan(repository.repo_id, folder, self.root),
        )

    def _remember(self, key: object, make: Callable[[], _T]) -> _T:
        now = time.monotonic()
        with self._lock:
            kept = self._kept.get(key)
            if kept is not None and now - kept[0] < self._refresh_seconds:
                return kept[1]  # type: ignore[return-value]
            value = make()
            if len(self._kept) >= _MOST_KEPT:  # clients may ask for names without end
                self._kept.clear()
            self._kept[key] = (time.monotonic(), value)
            return value

    def _all_ids(self) -> Iterator[str]:
        for child in _folders(self.root):
            if _holds_model_files(child):
                yield child.name.partition("@")[0]
                continue
            for grandchild in _folders(child):
                if _holds_model_files(grandchild):
                    yield f"{child.name}/{grandchild.name.partition('@')[0]}"

    def _find(self, repo_id: str) -> Repository | None:
        parts = repo_id.split("/")
        if len(parts) > 2 or not all(_plain(part) for part in parts):
            return None
        parent = self.root
        if len(parts) == 2:
            parent = parent / parts[0]
            # A repository's own subfolders are part of it, never repositories.
            if not parent.is_dir() or _holds_model_files(parent):
                return None
        name = parts[-1]
        folders = {}
        for candidate in _folders(parent):
            base, sign, branch = candidate.name.partition("@")
            if base == name and bool(sign) == bool(branch) and _holds_model_files(candidate):
                folders[unquote(branch) if branch else MAIN] = candidate
        return Repository(repo_id, folders) if folders else None


def _plain(part: str) -> bool:
    short = len(part.encode("utf-8", "surrogatepass")) <= _LONGEST_NAME
    return bool(part) and short and part[0] != "." and not any(c in part for c in "@/\\\0")


def _folders(parent: Path) -> list[Path]:
    try:
        with os.scandir(parent) as found:
            names = [item.name for item in found if item.name[0] != "." and item.is_dir()]
    except OSError:
        return []
    return [parent / name for name in sorted(names)]


def _holds_model_files(folder: Path) -> bool:
    try:
        with os.scandir(folder) as found:
            return any(_is_of_model(item.name) and item.is_file() for item in found)
    except OSError:
        return False


def _is_of_model(name: str) -> bool:
    return name in _MODEL_FILES or name.endswith(_MODEL_SUFFIXES)


def _scan(repo_id: str, folder: Path, root: Path) -> Snapshot:
    # A link to a repository is the owner's decision; links inside one may not leave it.
    allowed = (str(root), str(folder.resolve()))
    entries = {
        entry.path: entry for entry in sorted(_walk(folder, "", allowed), key=lambda e: e.path)
    }
    commit = sha1(repo_id.encode(), usedforsecurity=False)
    parts: dict[str, list[bytes]] = {}
    for entry in entries.values():
        line = f"\0{entry.path}\0{entry.size}\0{entry.mtime_ns}".encode()
        commit.update(line)
        parent = entry.path.rpartition("/")[0]
        while parent:
            parts.setdefault(parent, []).append(line)
            parent = parent.rpartition("/")[0]
    return Snapshot(
        repo_id=repo_id,
        commit=commit.hexdigest(),
        address=folder.relative_to(root).as_posix(),
        entries=entries,
        folders={
            path: sha1(b"".join(lines), usedforsecurity=False).hexdigest()
            for path, lines in sorted(parts.items())
        },
        modified_ns=max((entry.mtime_ns for entry in entries.values()), default=0),
    )


def _walk(folder: Path, prefix: str, allowed: tuple[str, ...]) -> Iterator[Entry]:
    try:
        with os.scandir(folder) as found:
            items = list(found)
    except OSError:
        return
    for item in items:
        path = prefix + item.name
        if item.name.startswith(".") and item.name != _SERVED_ALL_THE_SAME:
            continue
        if item.is_dir(follow_symlinks=False):
            yield from _walk(folder / item.name, path + "/", allowed)
            continue
        if item.is_symlink() and not _inside(os.path.realpath(item.path), allowed):
            continue
        try:
            if item.is_file():
                status = item.stat()
                yield Entry(path, status.st_size, status.st_mtime_ns, item.path)
        except OSError:
            continue


def _inside(file: str, allowed: tuple[str, ...]) -> bool:
    return any(file.startswith(folder + os.sep) for folder in allowed)
