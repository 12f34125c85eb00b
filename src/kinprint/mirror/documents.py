"""The JSON of the Hub's interface: models, trees, references and commits.

The field names are the Hub's own; `huggingface_hub` reads them by name. What the mirror
cannot know (likes, downloads) is zero, what nobody scanned is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from kinprint.mirror.access import Rules, entry_missing
from kinprint.mirror.digests import Digests
from kinprint.mirror.folder import MAIN, Entry, Library, Repository, Snapshot
from kinprint.mirror.summary import count_parameters, read_card, read_config

Document = dict[str, Any]

# All that the Hub accepts; of those the mirror cannot know, the answer says nothing.
_EXPANDABLE = """
author baseModels cardData childrenModelCount config createdAt disabled downloads
downloadsAllTime evalResults gated gguf inference inferenceProviderMapping lastModified
library_name likes mask_token model-index pipeline_tag private resourceGroup safetensors sha
siblings spaces tags transformersInfo trendingScore usedStorage widgetData xetEnabled
"""
EXPANDABLE = frozenset(_EXPANDABLE.split())
_LISTED = ("id", "modelId", "likes", "private", "downloads", "tags", "createdAt")
_LISTED_IF_KNOWN = ("pipeline_tag", "library_name")
_FULL = ("author", "sha", "lastModified", "gated", "disabled", "siblings")
_TITLE = "Mirrored folder"


class Documents:
    """Writes the documents about the repositories of one library."""

    def __init__(self, library: Library, digests: Digests, rules: Rules) -> None:
        self._library = library
        self._digests = digests
        self._rules = rules
        self._summaries: dict[str, Document] = {}

    async def model(
        self, snapshot: Snapshot, *, blobs: bool = False, expand: Collection[str] = ()
    ) -> Document:
        """Describe a model at one commit, with its files' digests where `blobs` is set.

        With `expand` the Hub sends the named fields and nothing else, and so do we.
        """
        summary = await self._summary(snapshot)
        card = summary["cardData"] or {}
        repo_id = snapshot.repo_id
        moment = _moment(snapshot.modified_ns)
        document: Document = {
            "_id": snapshot.commit[:24],
            "id": repo_id,
            "modelId": repo_id,
            "author": repo_id.partition("/")[0] if "/" in repo_id else None,
            "sha": snapshot.commit,
            "lastModified": moment,
            "createdAt": moment,
            "private": self._rules.is_private(repo_id),
            "gated": "manual" if self._rules.is_gated(repo_id) else False,
            "disabled": False,
            "downloads": 0,
            "downloadsAllTime": 0,
            "likes": 0,
            "tags": _tags(card, summary),
            "spaces": [],
            "usedStorage": sum(entry.size for entry in snapshot.entries.values()),
        }
        document.update({key: value for key, value in summary.items() if value is not None})
        for name in ("pipeline_tag", "library_name"):
            if isinstance(card.get(name), str):
                document[name] = card[name]
        base = card.get("base_model")
        if isinstance(base, str | list):
            document["baseModels"] = [base] if isinstance(base, str) else base
        document["siblings"] = [
            await self._sibling(entry, blobs) for entry in snapshot.entries.values()
        ]
        if expand:
            kept = {"_id", "id", "modelId", *expand}
            return {key: value for key, value in document.items() if key in kept}
        return document

    async def listed(self, repository: Repository, *, full: bool, extra: set[str]) -> Document:
        """Describe a model in a search result: briefly unless `full` is set."""
        branches = self._library.branches(repository)
        document = await self.model(branches.get(MAIN) or next(iter(branches.values())))
        kept = {"_id", *_LISTED, *_LISTED_IF_KNOWN, *extra, *(_FULL if full else ())}
        return {key: value for key, value in document.items() if key in kept}

    async def tree(
        self, snapshot: Snapshot, paths: Collection[str], *, expand: bool
    ) -> list[Document]:
        """Describe files and folders of a snapshot, in the order given."""
        return [await self._node(snapshot, path, expand) for path in paths]

    def refs(self, repository: Repository) -> Document:
        """Describe a repository's branches and pull requests."""
        found: Document = {"branches": [], "converts": [], "tags": [], "pullRequests": []}
        for name, snapshot in self._library.branches(repository).items():
            place, ref = "branches", f"refs/heads/{name}"
            for prefix, other in (("refs/pr/", "pullRequests"), ("refs/convert/", "converts")):
                if name.startswith(prefix):
                    place, ref = other, name
            found[place].append({"name": name, "ref": ref, "targetCommit": snapshot.commit})
        return found

    def commits(self, repository: Repository, revision: str) -> list[Document]:
        """Describe the commits a revision has pointed at, newest first."""
        return [
            {
                "id": snapshot.commit,
                "title": _TITLE,
                "message": "",
                "authors": [{"user": "mirror"}],
                "date": _moment(snapshot.modified_ns),
            }
            for snapshot in self._library.history(repository, revision)
        ]

    async def _summary(self, snapshot: Snapshot) -> Document:
        known = self._summaries.get(snapshot.commit)
        if known is None:
            known = await asyncio.to_thread(_summarise, snapshot)
            self._summaries[snapshot.commit] = known
        return known

    async def _sibling(self, entry: Entry, blobs: bool) -> Document:
        if not blobs:
            return {"rfilename": entry.path}
        digest = await self._digests.of(entry)
        document: Document = {"rfilename": entry.path, "blobId": digest.oid, "size": entry.size}
        if digest.sha256 is not None:
            document["lfs"] = {
                "sha256": digest.sha256,
                "size": entry.size,
                "pointerSize": digest.pointer_size,
            }
        return document

    async def _node(self, snapshot: Snapshot, path: str, expand: bool) -> Document:
        entry = snapshot.entries.get(path)
        if entry is None:
            document: Document = {
                "type": "directory",
                "oid": snapshot.folders[path],
                "size": 0,
                "path": path,
            }
        else:
            digest = await self._digests.of(entry)
            document = {"type": "file", "oid": digest.oid, "size": entry.size, "path": path}
            if digest.sha256 is not None:
                document["lfs"] = {
                    "oid": digest.sha256,
                    "size": entry.size,
                    "pointerSize": digest.pointer_size,
                }
        if expand:
            document["lastCommit"] = {
                "id": snapshot.commit,
                "title": _TITLE,
                "date": _moment(entry.mtime_ns if entry else snapshot.modified_ns),
            }
        return document


def paths_under(snapshot: Snapshot, folder: str, *, recursive: bool) -> list[str]:
    """Return the paths in a folder, folders first on each level as the Hub lists them.

    Asking for a file lists the file itself. Raises `Refused` for a path that is not there.
    """
    folder = folder.strip("/")
    if folder in snapshot.entries:
        return [folder]
    if folder and folder not in snapshot.folders:
        raise entry_missing(f"{folder} does not exist", snapshot.commit)
    prefix = f"{folder}/" if folder else ""
    found = [
        path
        for path in (*snapshot.folders, *snapshot.entries)
        if path.startswith(prefix) and (recursive or "/" not in path[len(prefix) :])
    ]
    return found if not recursive else sorted(found, key=lambda path: _depth_first(snapshot, path))


def _depth_first(snapshot: Snapshot, path: str) -> list[tuple[bool, str]]:
    # Each part of the path sorts folders before files among its neighbours.
    parts = path.split("/")
    is_file = path in snapshot.entries
    return [(is_file and place == len(parts) - 1, part) for place, part in enumerate(parts)]


def _summarise(snapshot: Snapshot) -> Document:
    return {
        "cardData": read_card(snapshot),
        "config": read_config(snapshot),
        "safetensors": count_parameters(snapshot),
    }


def _tags(card: Document, summary: Document) -> list[str]:
    config = summary["config"] or {}
    own = card.get("tags")
    given = (
        "safetensors" if summary["safetensors"] is not None else None,
        card.get("library_name"),
        card.get("pipeline_tag"),
        config.get("model_type"),
        *(own if isinstance(own, list) else ()),
    )
    tags = [tag for tag in given if isinstance(tag, str)]
    base = card.get("base_model")
    bases = [base] if isinstance(base, str) else base if isinstance(base, list) else []
    tags += [f"base_model:{name}" for name in bases]
    if isinstance(card.get("license"), str):
        tags.append(f"license:{card['license']}")
    return list(dict.fromkeys(tags))


def _moment(nanoseconds: int) -> str:
    moment = datetime.fromtimestamp(nanoseconds / 1e9, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"
