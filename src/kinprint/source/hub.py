"""Models on the Hugging Face Hub or on a server that speaks its protocol.

The commit is pinned by the first request, which also lists all files with their sizes
and sha256. A file is resolved once; its signed address is used until the storage host
refuses it, then renewed. The token goes to the Hub's own origin and nowhere else.
"""

from __future__ import annotations

import re
import threading
from urllib.parse import quote, urlsplit

import msgspec
from huggingface_hub import HfApi, constants, try_to_load_from_cache
from huggingface_hub.errors import (
    DisabledRepoError,
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.file_download import HfFileMetadata, get_hf_file_metadata, hf_hub_url
from huggingface_hub.hf_api import RepoFile
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, http_backoff

from kinprint import __version__
from kinprint.errors import (
    AccessRefused,
    FileChanged,
    FileMissing,
    KinprintError,
    LengthWrong,
    OfflineMiss,
    RepositoryGated,
    RepositoryMissing,
    RepositoryPrivate,
    RevisionMissing,
)
from kinprint.records import ByteRange, Cost, FileEntry, ModelRef
from kinprint.source.http import (
    Refused,
    RetryPolicy,
    Target,
    ask,
    host_of,
    read_range,
    refusal,
)
from kinprint.source.listing import Listing, recall, remember
from kinprint.source.local import LocalSource, read_local
from kinprint.source.protocol import Meter, Source
from kinprint.source.reference import Reference

_FULL_LIST = 1000  # from so many files on, the short list may be cut off; the tree is not
_SHA256 = re.compile(r"[0-9a-f]{64}")
_LARGEST_SMALL_FILE = 10 * 1024 * 1024  # the Hub keeps larger ones on its storage hosts


def open_hub(reference: Reference) -> Source:
    """The repository that `reference` names, at the commit its revision has now."""
    revision = reference.revision or constants.DEFAULT_REVISION
    if constants.is_offline_mode():
        listing = recall(constants.ENDPOINT, reference.place, revision)
        if listing is None:
            return _open_snapshot(reference, revision)
        return HubSource(reference, listing, Meter())
    meter = Meter()
    listing = _list_files(reference, revision, meter)
    remember(listing)
    return HubSource(reference, listing, meter)


def _headers() -> dict[str, str]:
    return build_hf_headers(library_name="kinprint", library_version=__version__)


class _Lfs(msgspec.Struct):
    size: int | None = None
    sha256: str | None = None


class _Sibling(msgspec.Struct):
    rfilename: str
    size: int | None = None
    lfs: _Lfs | None = None


class _Info(msgspec.Struct):
    sha: str
    id: str | None = None
    siblings: list[_Sibling] = []


def _list_files(reference: Reference, revision: str, meter: Meter) -> Listing:
    """Commit, files, sizes and hashes of a repository, in one request where that is enough."""
    endpoint, name = constants.ENDPOINT, reference.place
    address = f"{endpoint}/api/models/{name}/revision/{quote(revision, safe='')}"
    policy = RetryPolicy()

    def get() -> bytes:
        answer = http_backoff(
            "GET",
            address,
            params={"blobs": "true"},
            headers=_headers(),
            timeout=policy.timeout,
            max_retries=policy.retries,
            base_wait_time=policy.first_wait,
        )
        meter.count(len(answer.content))
        hf_raise_for_status(answer)
        return bytes(answer.content)

    try:
        info = msgspec.json.decode(ask(get, address, name), type=_Info)
        name = info.id or name  # a renamed repository answers under its new name
        files = [_sibling(item) for item in info.siblings]
        if not files or len(files) >= _FULL_LIST or any(size is None for _, size, _ in files):
            files = ask(lambda: _list_tree(name, info.sha, meter), address, name)
    except HfHubHTTPError as error:
        raise _explain(error, reference, revision) from None
    except (msgspec.MsgspecError, HFValidationError):
        cause = "the answer is not that of a Hugging Face Hub"
        raise LengthWrong(host=host_of(endpoint), path=name, cause=cause) from None
    kept = [(path, size, digest) for path, size, digest in files if size is not None]
    return Listing(endpoint, name, revision, info.sha, [item for item in kept if _inside(item[0])])


def _sibling(item: _Sibling) -> tuple[str, int | None, str | None]:
    lfs = item.lfs or _Lfs()
    return item.rfilename, item.size if lfs.size is None else lfs.size, _digest(lfs.sha256)


def _list_tree(name: str, commit: str, meter: Meter) -> list[tuple[str, int | None, str | None]]:
    """The same from the paged tree, which is complete for large repositories too."""
    api = HfApi(library_name="kinprint", library_version=__version__)
    found = api.list_repo_tree(name, revision=commit, recursive=True)
    files: list[tuple[str, int | None, str | None]] = [
        (item.path, item.size, _digest(item.lfs.sha256 if item.lfs else None))
        for item in found
        if isinstance(item, RepoFile)
    ]
    meter.count(0, 1 + len(files) // _FULL_LIST)
    return files


def _digest(text: str | None) -> str | None:
    """A sha256 as it may be used: it becomes part of a path, and a server may say anything."""
    return text if text is not None and _SHA256.fullmatch(text) else None


def _inside(path: str) -> bool:
    parts = path.split("/")
    return bool(path) and not any(part in ("", ".", "..") for part in parts) and "\\" not in path


def _explain(
    error: HfHubHTTPError, reference: Reference, revision: str, path: str = ""
) -> KinprintError:
    """Our error for a status that the Hub answered with, and what to do about it."""
    name, host = reference.place, host_of(constants.ENDPOINT)
    if isinstance(error, GatedRepoError):
        return RepositoryGated(name=name, url=f"{constants.ENDPOINT}/{name}")
    if isinstance(error, RevisionNotFoundError):
        return RevisionMissing(name=name, revision=revision)
    if isinstance(error, EntryNotFoundError):
        return FileMissing(name=name, path=path or "(unknown)")
    if isinstance(error, DisabledRepoError):
        return AccessRefused(path=name, cause="its owner or the Hub has disabled it")
    status = error.response.status_code
    if isinstance(error, RepositoryNotFoundError) or status == 404:
        return RepositoryMissing(name=name, host=host)
    found = refusal(error, constants.ENDPOINT, path or name)
    return _refused(found.status, name, host, path) if isinstance(found, Refused) else found


def _refused(status: int, name: str, host: str, path: str) -> KinprintError:
    if status in (401, 403):
        return RepositoryPrivate(name=name, host=host, status=status)
    if status in (404, 410):
        return FileMissing(name=name, path=path or "(unknown)")
    return AccessRefused(path=f"{name}/{path}".rstrip("/"), cause=f"{host} answers {status}")


def _open_snapshot(reference: Reference, revision: str) -> Source:
    """Offline and never listed: perhaps the model was downloaded with the Hub's tools."""
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(reference.place, revision=revision, local_files_only=True)
    except (OSError, ValueError):
        raise OfflineMiss(what=f"the file list of '{reference.given}'") from None
    return LocalSource(reference.given, folder, name=reference.place, path=reference.path)


class HubSource:
    """One repository at one commit."""

    def __init__(
        self,
        reference: Reference,
        listing: Listing,
        meter: Meter,
        policy: RetryPolicy | None = None,
    ) -> None:
        self.ref = ModelRef(
            given=reference.given,
            kind="hub",
            name=listing.repository,
            commit=listing.commit,
            path=reference.path,
        )
        self._reference = reference
        self._entries = {entry.path: self._in_hub_cache(entry) for entry in listing.entries()}
        self._meter = meter
        self._policy = policy or RetryPolicy()
        self._addresses: dict[str, str] = {}
        self._locks = {path: threading.Lock() for path in self._entries}

    @property
    def spent(self) -> Cost:
        """Bytes and requests so far, the listing and resolving included."""
        return self._meter.cost

    def files(self) -> tuple[FileEntry, ...]:
        """All files of the repository at the pinned commit."""
        return tuple(self._entries.values())

    def overhead(self, path: str) -> int:
        """One request where the file's storage address is not known yet."""
        entry = self._entries.get(path)
        known = entry is None or _served_by_the_hub(entry) or path in self._addresses
        return 0 if known else 1

    def read(self, path: str, span: ByteRange) -> bytes:
        """Exactly the bytes of `span`, from the storage host or the Hub itself."""
        entry = self._entries.get(path)
        if entry is None:
            raise FileMissing(name=self.ref.name, path=path)
        if entry.local is not None:
            return read_local(entry.local, span)
        if constants.is_offline_mode():
            raise OfflineMiss(what=f"all of '{path}' of '{self.ref.name}'")
        address = self._address(entry, stale=None)
        for attempt in range(3):
            headers = _headers() if _same_origin(address, constants.ENDPOINT) else {}
            target = Target(address, path, entry.size, headers)
            try:
                return read_range(target, span, self._meter, self._policy)
            except Refused as refused:  # a signed address runs out; a fresh one does not
                if attempt == 2:
                    raise _refused(refused.status, self.ref.name, target.host, path) from None
                address = self._address(entry, stale=address)
        raise AssertionError("unreachable")

    def find(self, path: str) -> FileEntry | None:
        """The file at `path`, if the repository has one."""
        return self._entries.get(path)

    def _address(self, entry: FileEntry, stale: str | None) -> str:
        """Where the file can be read; asked anew if the known address is `stale`."""
        with self._locks[entry.path]:
            known = self._addresses.get(entry.path)
            if known is None and _served_by_the_hub(entry):
                known = hf_hub_url(self.ref.name, entry.path, revision=self.ref.commit)
            if known is None or known == stale:
                known = self._resolve(entry)
            self._addresses[entry.path] = known
            return known

    def _resolve(self, entry: FileEntry) -> str:
        """Ask the Hub where a file is stored, or be told why it may not be read."""
        url = hf_hub_url(self.ref.name, entry.path, revision=self.ref.commit)
        self._meter.count(0)

        def head() -> HfFileMetadata:
            return get_hf_file_metadata(
                url,
                timeout=self._policy.timeout,
                library_name="kinprint",
                library_version=__version__,
                retry_on_errors=True,
            )

        try:
            found = ask(head, url, entry.path)
        except HfHubHTTPError as error:
            raise _explain(error, self._reference, self.ref.commit, entry.path) from None
        if found.commit_hash not in (None, self.ref.commit):
            raise FileChanged(path=entry.path, cause=f"it is served at commit {found.commit_hash}")
        if found.size not in (None, entry.size):
            raise FileChanged(
                path=entry.path, cause=f"it has {found.size} bytes and was listed with {entry.size}"
            )
        return str(found.location)

    def _in_hub_cache(self, entry: FileEntry) -> FileEntry:
        """The entry, pointing at the Hub's own cache where that holds the whole file."""
        found = try_to_load_from_cache(self.ref.name, entry.path, revision=self.ref.commit)
        if not isinstance(found, str):
            return entry
        return FileEntry(entry.path, entry.size, entry.sha256, entry.key, local=found)


def _served_by_the_hub(entry: FileEntry) -> bool:
    """Small files lie in the repository itself: asking where they are would be a detour."""
    return entry.sha256 is None and entry.size <= _LARGEST_SMALL_FILE


def _same_origin(one: str, other: str) -> bool:
    return urlsplit(one)[:2] == urlsplit(other)[:2]
