"""Models on the Hugging Face Hub or on a server that speaks its protocol.

The commit is pinned when the repository is listed. A file is resolved once; its signed
address is used until the storage host refuses it, then renewed. The token goes to the
Hub's own origin and nowhere else.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urljoin

from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError

from kinprint import text
from kinprint.errors import (
    AccessRefused,
    FileChanged,
    FileMissing,
    KinprintError,
    OfflineMiss,
    Unreachable,
)
from kinprint.records import ByteRange, Commit, Cost, FileEntry, ModelRef
from kinprint.source.bodies import read_range
from kinprint.source.http import (
    Refused,
    RetryPolicy,
    Target,
    answer_to,
    host_of,
    no_connection,
    raise_for_status,
)
from kinprint.source.listing import Listing, recall, remember
from kinprint.source.local import LocalSource, read_local
from kinprint.source.protocol import Meter, Source
from kinprint.source.reference import Reference, same_origin
from kinprint.source.repository import (
    explain,
    hub_headers,
    list_changes,
    list_commits,
    list_repository,
    refused_by,
)

_MOST_REDIRECTS = 8
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
    try:
        listing = list_repository(reference, revision, meter)
    except Unreachable as error:
        raise _perhaps_misspelt(reference, error) from error.__cause__
    remember(listing, reference.place)
    return HubSource(reference, listing, meter)


def _perhaps_misspelt(reference: Reference, error: Unreachable) -> Unreachable:
    """The error with the name that was typed: a folder of another name may have been meant."""
    if "://" in reference.given:
        return error
    check = text.message("cause.check.hub-or-name", name=reference.given)
    return Unreachable(**{**error.fields, "check": check})


def _open_snapshot(reference: Reference, revision: str) -> Source:
    """Offline and never listed: perhaps the model was downloaded with the Hub's tools."""
    from huggingface_hub import snapshot_download

    try:
        folder = snapshot_download(reference.place, revision=revision, local_files_only=True)
    except (OSError, ValueError):
        # A folder of another name may have been meant, unless the Hub was named.
        key = "missing-list" if "://" in reference.given else "missing-list-or-folder"
        missing = text.message(f"cause.source.{key}", name=reference.given)
        raise OfflineMiss(what=missing) from None
    return LocalSource(reference.given, folder, name=reference.place, path=reference.path)


class HubSource:
    """One repository at one commit."""

    def __init__(
        self,
        reference: Reference,
        listing: Listing,
        meter: Meter,
    ) -> None:
        self.ref = ModelRef(
            given=reference.given,
            kind="hub",
            name=listing.repository,
            commit=listing.commit,
            path=reference.path,
        )
        self._reference = reference
        self._entries = _in_hub_cache(listing)
        self._meter = meter
        self._addresses: dict[str, str] = {}
        self._locks = {path: threading.Lock() for path in self._entries}

    @property
    def spent(self) -> Cost:
        """Bytes and requests so far, the listing and resolving included."""
        return self._meter.cost

    def files(self) -> tuple[FileEntry, ...]:
        """All files of the repository at the pinned commit."""
        return tuple(self._entries.values())

    def history(self) -> tuple[Commit, ...]:
        """The repository's commits as the Hub lists them; none offline."""
        if constants.is_offline_mode():
            return ()
        return list_commits(self._reference, self.ref.name, self.ref.commit, self._meter)

    def changes(self) -> Mapping[str, Commit]:
        """The last commit of each file as the Hub lists them; none offline."""
        if constants.is_offline_mode():
            return {}
        return list_changes(self._reference, self.ref.name, self.ref.commit, self._meter)

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
            missing = text.message("cause.source.missing-file-of", path=path, name=self.ref.name)
            raise OfflineMiss(what=missing)
        target = self._target(entry, stale=None)
        try:
            return read_range(
                target,
                span,
                self._meter,
                RetryPolicy(),
                renew=lambda refused: self._target(entry, stale=refused.address),
            )
        except Refused as refused:
            raise self._still_refused(entry, refused.status) from None

    def _target(self, entry: FileEntry, stale: str | None) -> Target:
        """Where to read a file, with the token if that is the Hub itself."""
        address = self._address(entry, stale)
        headers = hub_headers() if same_origin(address, constants.ENDPOINT) else {}
        return Target(address, entry.path, entry.size, headers)

    def _still_refused(self, entry: FileEntry, status: int) -> KinprintError:
        address = self._addresses.get(entry.path, constants.ENDPOINT)
        host = host_of(address)
        if same_origin(address, constants.ENDPOINT):
            return refused_by(status, self.ref.name, host, entry.path)
        cause = text.message("cause.source.fresh-address-refused", host=host, status=status)
        return AccessRefused(path=entry.path, cause=cause)

    def find(self, path: str) -> FileEntry | None:
        """The file at `path`, if the repository has one."""
        return self._entries.get(path)

    def _address(self, entry: FileEntry, stale: str | None) -> str:
        """Where the file can be read; asked anew if the known address is `stale`."""
        with self._locks[entry.path]:
            known = self._addresses.get(entry.path)
            if known is None and _served_by_the_hub(entry):
                known = self._web_address(entry)
            if known is None or known == stale:
                known = self._resolve(entry)
            self._addresses[entry.path] = known
            return known

    def _resolve(self, entry: FileEntry) -> str:
        """Ask the Hub where a file is stored, or be told why it may not be read."""
        address = self._web_address(entry)
        for _ in range(_MOST_REDIRECTS):
            target = Target(address, entry.path, entry.size)
            with answer_to("HEAD", target, hub_headers(), RetryPolicy(), follow=False) as (
                answer,
                _,
            ):
                self._meter.count(0)
                try:
                    raise_for_status(answer)
                except HfHubHTTPError as error:
                    raise explain(error, self._reference, self.ref.commit, entry.path) from None
                self._check_resolved(entry, answer.headers)
                location: str | None = answer.headers.get("Location")
            if location is None:
                return address
            address = urljoin(address, location)
            if not same_origin(address, constants.ENDPOINT):
                return address  # a signed address on a storage host
        raise no_connection(address, text.message("cause.source.redirects"))

    def _check_resolved(self, entry: FileEntry, headers: Mapping[str, str]) -> None:
        """Hold what the Hub says of a file against what was listed."""
        commit = headers.get(constants.HUGGINGFACE_HEADER_X_REPO_COMMIT)
        if commit not in (None, self.ref.commit):
            cause = text.message("cause.source.other-commit", commit=commit)
            raise FileChanged(path=entry.path, cause=cause)
        size = headers.get(constants.HUGGINGFACE_HEADER_X_LINKED_SIZE)
        if size not in (None, str(entry.size)):
            cause = text.message("cause.source.other-size", size=size, listed=entry.size)
            raise FileChanged(path=entry.path, cause=cause)

    def _web_address(self, entry: FileEntry) -> str:
        """The Hub's own address of a file, which it answers or redirects from."""
        return constants.HUGGINGFACE_CO_URL_TEMPLATE.format(
            repo_id=self.ref.name, revision=self.ref.commit, filename=quote(entry.path)
        )


def _in_hub_cache(listing: Listing) -> dict[str, FileEntry]:
    """All entries, pointing at the Hub's own cache where that holds the whole file."""
    entries = {entry.path: entry for entry in listing.entries()}
    folder = "models--" + listing.repository.replace("/", "--")
    if not Path(constants.HF_HUB_CACHE, folder).is_dir():
        return entries
    from huggingface_hub import try_to_load_from_cache

    for path, entry in entries.items():
        found = try_to_load_from_cache(listing.repository, path, revision=listing.commit)
        if isinstance(found, str) and Path(found).stat().st_size == entry.size:
            entries[path] = FileEntry(path, entry.size, entry.sha256, entry.key, local=found)
    return entries


def _served_by_the_hub(entry: FileEntry) -> bool:
    """Small files lie in the repository itself: asking where they are would be a detour."""
    return entry.sha256 is None and entry.size <= _LARGEST_SMALL_FILE
