"""Who asks, what they may see, and how the Hub says no.

The client tells a missing repository from a gated one by headers, and the Hub hides private
repositories from strangers by calling them missing; a mirror that got this wrong would make
every test about access worthless.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from enum import Enum
from fnmatch import fnmatchcase
from ipaddress import ip_address

from msgspec import Struct

from kinprint.mirror.exchange import Headers, Reply, json_reply, text_reply
from kinprint.mirror.folder import Library, Repository, Snapshot


class Caller(Enum):
    """Who asks: nobody known, somebody without special rights, or the token's owner."""

    ANONYMOUS = "anonymous"
    GUEST = "guest"
    OWNER = "owner"


class Refused(Exception):
    """A request that the Hub answers with an error status, its code and its message."""

    def __init__(self, status: int, code: str | None, message: str, commit: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.commit = commit

    def reply(self, *, as_json: bool) -> Reply:
        """Say no as the Hub does: in headers for the client, in the body for people."""
        said = "".join(sign if sign.isprintable() else "?" for sign in self.message)
        headers: Headers = [(b"x-error-message", said.encode("latin-1", "replace"))]
        if self.code is not None:
            headers.append((b"x-error-code", self.code.encode()))
        if self.commit:
            headers.append((b"x-repo-commit", self.commit.encode()))
        if self.status == 401:
            headers.append((b"www-authenticate", b'Bearer realm="Authentication required"'))
        if as_json:
            return json_reply({"error": self.message}, self.status, headers)
        return text_reply(self.message, self.status, headers)


def entry_missing(message: str = "Entry not found", commit: str = "") -> Refused:
    """Make the refusal for a path that a repository does not have."""
    return Refused(404, "EntryNotFound", message, commit)


class Rules(Struct, frozen=True):
    """Which tokens open what. `gated` and `private` are repository names or globs.

    `token` opens everything. `guest_token` is valid but on nobody's list. Where no token is
    set, any is taken for a guest's, so that a token in the environment does no harm.
    """

    token: str | None = None
    guest_token: str | None = None
    gated: tuple[str, ...] = ()
    private: tuple[str, ...] = ()

    def caller(self, authorization: str | None) -> Caller:
        """Tell who asks by the Authorization header. Raises `Refused` for a wrong token."""
        if authorization is None:
            return Caller.ANONYMOUS
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() == "bearer" and token:
            if self.token is not None and _same(token, self.token):
                return Caller.OWNER
            if self.token is None or (self.guest_token and _same(token, self.guest_token)):
                return Caller.GUEST
        raise Refused(401, None, "Invalid credentials in Authorization header")

    def is_gated(self, repo_id: str) -> bool:
        """Whether reading this repository's files asks for consent."""
        return _listed(repo_id, self.gated)

    def is_private(self, repo_id: str) -> bool:
        """Whether this repository is hidden from all but the owner."""
        return _listed(repo_id, self.private)

    def sees(self, caller: Caller, repo_id: str) -> bool:
        """Whether this caller may know that the repository exists."""
        return caller is Caller.OWNER or not self.is_private(repo_id)

    def check_counters(self, caller: Caller, client: tuple[str, int] | None) -> None:
        """Raise `Refused` unless the token's owner asks; without one, somebody on this machine."""
        if self.token is None:
            allowed = client is not None and ip_address(client[0]).is_loopback
        else:
            allowed = caller is Caller.OWNER
        if not allowed:
            raise Refused(401, None, "Counters are for the owner of the token")

    def check_files(self, caller: Caller, repo_id: str, endpoint: str) -> None:
        """Raise `Refused` where a gated repository's files are not for this caller."""
        if caller is Caller.OWNER or not self.is_gated(repo_id):
            return
        if caller is Caller.ANONYMOUS:
            raise Refused(
                401,
                "GatedRepo",
                f"Access to model {repo_id} is restricted. You must have access to it and be "
                "authenticated to access it. Please log in.",
            )
        raise Refused(
            403,
            "GatedRepo",
            f"Access to model {repo_id} is restricted and you are not in the authorized list. "
            f"Visit {endpoint}/{repo_id} to ask for access.",
        )


def find_repository(library: Library, rules: Rules, caller: Caller, repo_id: str) -> Repository:
    """Return a repository that the caller may see. Raises `Refused` as the Hub does.

    A stranger is told to log in, whether the repository is private or not there at all.
    """
    repository = library.find(repo_id)
    if repository is not None and rules.sees(caller, repo_id):
        return repository
    if caller is Caller.ANONYMOUS:
        raise Refused(401, "RepoNotFound", "Invalid username or password.")
    raise Refused(404, "RepoNotFound", "Repository not found")


def find_snapshot(library: Library, repository: Repository, revision: str) -> Snapshot:
    """Return what a branch name or commit id means. Raises `Refused` where nothing."""
    snapshot = library.snapshot(repository, revision)
    if snapshot is None:
        raise Refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
    return snapshot


def _listed(repo_id: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(repo_id, pattern) for pattern in patterns)


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode(), wanted.encode())
