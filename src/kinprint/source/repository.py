"""What a repository on the Hub holds, and what its refusals mean.

One request pins the commit and lists all files with their sizes and sha256; large
repositories are listed page by page at the pinned commit. A server may say anything, so
what becomes a path or a key is checked first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote, urljoin

import msgspec
from huggingface_hub import __version__ as hub_version
from huggingface_hub import constants, get_token
from huggingface_hub.errors import (
    DisabledRepoError,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

from kinprint import text
from kinprint.errors import (
    AccessRefused,
    FileMissing,
    KinprintError,
    NotAHub,
    RepositoryGated,
    RepositoryMissing,
    RepositoryPrivate,
    RevisionMissing,
)
from kinprint.records import Commit
from kinprint.source.bodies import read_document
from kinprint.source.http import Refused, RetryPolicy, Target, host_of, refusal, unreachable
from kinprint.source.listing import Listing
from kinprint.source.patience import Overdue, in_time
from kinprint.source.protocol import Meter
from kinprint.source.reference import Reference, same_origin
from kinprint.version import __version__

_FULL_LIST = 1000  # from so many files on, the short list may be cut off; the tree is not
_LARGEST_LISTING = 64 * 1024 * 1024
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_MOST_PAGES = 200
_NAME = re.compile(r"[A-Za-z0-9._-]{1,96}(/[A-Za-z0-9._-]{1,96})?")
_NEXT = re.compile(r'<([^>]+)>\s*;\s*rel="?next"?')
_SHA256 = re.compile(r"[0-9a-f]{64}")


def hub_headers() -> dict[str, str]:
    """Headers for requests to the Hub itself, the user's token among them.

    The hub client would ask the Hub which agents there are, to name one among the headers; and
    it may fetch a new token. It waits for both as long as the server likes.
    """
    headers = {"user-agent": f"kinprint/{__version__}; hf_hub/{hub_version}"}
    if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN:
        return headers
    try:
        token = in_time(get_token, RetryPolicy().patience().left)
    except Overdue as error:
        raise unreachable(error, constants.ENDPOINT) from None
    return headers if token is None else {**headers, "authorization": f"Bearer {token}"}


class _Lfs(msgspec.Struct):
    size: int | None = None
    sha256: str | None = None
    oid: str | None = None


class _Found(msgspec.Struct):
    id: str


class _Sibling(msgspec.Struct):
    rfilename: str
    size: int | None = None
    lfs: _Lfs | None = None


class _Commit(msgspec.Struct):
    id: str
    date: str = ""
    title: str = ""


class _TreeItem(msgspec.Struct):
    type: str
    path: str
    size: int | None = None
    lfs: _Lfs | None = None
    last_commit: _Commit | None = msgspec.field(default=None, name="lastCommit")


class _Info(msgspec.Struct):
    sha: str
    id: str | None = None
    siblings: list[_Sibling] = []


# Made here, once: msgspec describes a struct when it first decodes one, and two threads that do
# that at the same moment crash the interpreter. Repositories are listed in threads.
_read_info = msgspec.json.Decoder(_Info).decode
_read_tree = msgspec.json.Decoder(list[_TreeItem]).decode
_read_found = msgspec.json.Decoder(list[_Found]).decode
_read_commits = msgspec.json.Decoder(list[_Commit]).decode


def list_repository(reference: Reference, revision: str, meter: Meter) -> Listing:
    """Commit, files, sizes and hashes of a repository, in one request where that is enough."""
    endpoint, name = constants.ENDPOINT, reference.place
    address = f"{endpoint}/api/models/{name}/revision/{quote(revision, safe='')}?blobs=true"
    target = Target(address, name, 0, hub_headers())
    policy = RetryPolicy()
    try:
        raw, _ = read_document(target, _LARGEST_LISTING, meter, policy)
        info = _read_info(raw)
        if not _COMMIT.fullmatch(info.sha) or not _NAME.fullmatch(info.id or name):
            raise NotAHub(host=host_of(endpoint))
        name = info.id or name  # a renamed repository answers under its new name
        files = [_sibling(item) for item in info.siblings]
        if not files or len(files) >= _FULL_LIST or any(size is None for _, size, _ in files):
            files = _list_tree(name, info.sha, meter, policy)
    except Refused as refused:
        raise refused_by(refused.status, name, host_of(endpoint), "") from None
    except HfHubHTTPError as error:
        raise explain(error, reference, revision) from None
    except (msgspec.MsgspecError, ValueError, RecursionError):  # no text, or nested without end
        raise NotAHub(host=host_of(endpoint)) from None
    by_path = {path: (path, size, digest) for path, size, digest in files if size is not None}
    kept = [by_path[path] for path in sorted(by_path) if _inside(path)]
    return Listing(endpoint, name, revision, info.sha, kept)


def _sibling(item: _Sibling) -> tuple[str, int | None, str | None]:
    lfs = item.lfs or _Lfs()
    return item.rfilename, item.size if lfs.size is None else lfs.size, _digest(lfs.sha256)


def _list_tree(
    name: str, commit: str, meter: Meter, policy: RetryPolicy
) -> list[tuple[str, int | None, str | None]]:
    """The same from the paged tree, which is complete for large repositories too."""
    files: list[tuple[str, int | None, str | None]] = []
    for item in _tree(name, commit, "recursive=true", meter, policy):
        size = item.size if item.lfs is None or item.lfs.size is None else item.lfs.size
        files.append((item.path, size, _digest(item.lfs.oid if item.lfs else None)))
    return files


def _tree(
    name: str, commit: str, query: str, meter: Meter, policy: RetryPolicy
) -> Iterator[_TreeItem]:
    """All files of the paged tree."""
    address = f"{constants.ENDPOINT}/api/models/{name}/tree/{commit}?{query}"
    for raw in _pages(address, name, meter, policy):
        yield from (item for item in _read_tree(raw) if item.type == "file")


def find_models(query: str, most: int) -> list[str]:
    """Names of repositories that the Hub finds for some words, the most downloaded first."""
    asked = f"search={quote(query)}&sort=downloads&direction=-1&limit={min(most, _FULL_LIST)}"
    address = f"{constants.ENDPOINT}/api/models?{asked}"
    found: list[str] = []
    with _explained(Reference(query, "hub", query), query, ""):
        for raw in _pages(address, query, Meter(), RetryPolicy()):
            found += [item.id for item in _read_found(raw) if _NAME.fullmatch(item.id)]
            if len(found) >= most:
                break
    return found[:most]


def _pages(address: str, name: str, meter: Meter, policy: RetryPolicy) -> Iterator[bytes]:
    """All pages of a list."""
    for _ in range(_MOST_PAGES):
        target = Target(address, name, 0, hub_headers())
        raw, headers = read_document(target, _LARGEST_LISTING, meter, policy)
        yield raw
        following = _NEXT.search(headers.get("Link", ""))
        if following is None:
            return
        address = urljoin(address, following[1])
        if not same_origin(address, constants.ENDPOINT):  # the token stays at home
            break
    raise NotAHub(host=host_of(constants.ENDPOINT))


def list_commits(reference: Reference, name: str, commit: str, meter: Meter) -> tuple[Commit, ...]:
    """The last commits before a pinned one: the first page that the Hub gives."""
    address = f"{constants.ENDPOINT}/api/models/{name}/commits/{commit}"
    target = Target(address, name, 0, hub_headers())
    with _explained(reference, name, commit):
        raw, _ = read_document(target, _LARGEST_LISTING, meter, RetryPolicy())
        found = _read_commits(raw)
    return tuple(Commit(one.id, one.date, one.title) for one in found)


def list_changes(reference: Reference, name: str, commit: str, meter: Meter) -> dict[str, Commit]:
    """By path, the commit that last changed each file of a pinned state."""
    query = "recursive=true&expand=true"
    with _explained(reference, name, commit):
        items = list(_tree(name, commit, query, meter, RetryPolicy()))
    return {
        item.path: Commit(last.id, last.date, last.title)
        for item in items
        if (last := item.last_commit) is not None
    }


@contextmanager
def _explained(reference: Reference, name: str, commit: str) -> Iterator[None]:
    """What a Hub may answer instead of a list, as errors that say so."""
    try:
        yield
    except Refused as refused:
        raise refused_by(refused.status, name, host_of(constants.ENDPOINT), "") from None
    except HfHubHTTPError as error:
        raise explain(error, reference, commit) from None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        raise NotAHub(host=host_of(constants.ENDPOINT)) from None


def _digest(said: str | None) -> str | None:
    """A sha256 as it may be used: it becomes part of a path, and a server may say anything."""
    return said if said is not None and _SHA256.fullmatch(said) else None


def _inside(path: str) -> bool:
    parts = path.split("/")
    return bool(path) and not any(part in ("", ".", "..") for part in parts) and "\\" not in path


def explain(
    error: HfHubHTTPError, reference: Reference, revision: str, path: str = ""
) -> KinprintError:
    """Our error for a status that the Hub answered with, and what to do about it."""
    name, host = reference.place, host_of(constants.ENDPOINT)
    if isinstance(error, GatedRepoError):
        return RepositoryGated(name=name, url=f"{constants.ENDPOINT}/{name}")
    if isinstance(error, RevisionNotFoundError):
        return RevisionMissing(name=name, revision=revision)
    if isinstance(error, EntryNotFoundError):  # a Hub says so of files, never of itself
        return FileMissing(name=name, path=path) if path else NotAHub(host=host)
    if isinstance(error, DisabledRepoError):
        return AccessRefused(path=name, cause=text.message("cause.source.disabled"))
    status = error.response.status_code
    if isinstance(error, RepositoryNotFoundError) or status == 404:
        return RepositoryMissing(name=name, host=host)
    found = refusal(error, constants.ENDPOINT, path or name)
    return refused_by(found.status, name, host, path) if isinstance(found, Refused) else found


def refused_by(status: int, name: str, host: str, path: str) -> KinprintError:
    """What a refusing status of the Hub means where it says nothing more."""
    if status in (401, 403):
        return RepositoryPrivate(name=name, host=host, status=status)
    if status in (404, 410):
        return FileMissing(name=name, path=path) if path else NotAHub(host=host)
    cause = text.message("cause.source.host-status", host=host, status=status)
    return AccessRefused(path=f"{name}/{path}".rstrip("/"), cause=cause)
