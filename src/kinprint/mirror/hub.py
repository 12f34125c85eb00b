"""Which address on the hub's port means what.

Addresses are split before they are decoded: a client writes a branch `refs/pr/1`, or a folder
in a tree, as one part with %2F in it, and the Hub keeps the parts apart in the same way.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qs, quote, unquote, urlencode

from msgspec import Struct

from kinprint.mirror.access import (
    Caller,
    Refused,
    Rules,
    entry_missing,
    find_repository,
    find_snapshot,
)
from kinprint.mirror.digests import Digests
from kinprint.mirror.documents import EXPANDABLE, Documents, paths_under
from kinprint.mirror.exchange import Exchange, Headers, Reply, json_reply, text_reply
from kinprint.mirror.folder import MAIN, Library, Repository
from kinprint.mirror.stats import Stats
from kinprint.mirror.storage import Signer, file_reply

DEFAULT_PAGE = 1000
_EXPANDED_PAGE = 50
_MAX_BODY = 10 << 20
_BODY_SECONDS = 20.0
_NOT_A_PAGE = "Sorry, we can't find the page you are looking for."


class _Ask(Struct, frozen=True):
    exchange: Exchange
    caller: Caller
    repository: Repository
    rest: list[str]
    query: dict[str, list[str]]

    def flag(self, name: str) -> bool:
        return _flag(self.query, name)


class Hub:
    """Answers requests on the hub's port."""

    def __init__(
        self,
        library: Library,
        digests: Digests,
        rules: Rules,
        signer: Signer,
        stats: Stats,
        *,
        storage_port: int = 0,
        page_size: int = DEFAULT_PAGE,
    ) -> None:
        self._library = library
        self._digests = digests
        self._rules = rules
        self._signer = signer
        self._stats = stats
        self._documents = Documents(library, digests, rules)
        self.storage_port = storage_port
        self._page_size = page_size
        self._verbs: dict[str, Callable[[_Ask], Awaitable[Reply]]] = {
            "": self._model,
            "revision": self._model,
            "tree": self._tree,
            "paths-info": self._paths_info,
            "refs": self._refs,
            "commits": self._commits,
            "auth-check": self._auth_check,
        }

    async def answer(self, exchange: Exchange) -> Reply:
        """Return the reply to a request; a refusal is a reply, too."""
        raw = exchange.scope["raw_path"].decode("latin-1").strip("/")
        parts = [unquote(part) for part in raw.split("/")]
        try:
            if parts[0] == "-":
                return self._own(exchange, parts[1:])
            caller = self._rules.caller(exchange.header(b"authorization"))
            if parts[0] == "api":
                return await self._api(exchange, caller, parts[1:])
            return await self._resolve(exchange, caller, parts)
        except Refused as refused:
            return refused.reply(as_json=parts[0] == "api")

    def _own(self, exchange: Exchange, parts: list[str]) -> Reply:
        asked = (parts, exchange.method)
        reading = asked == (["stats"], "GET")
        if not reading and asked not in ((["stats"], "DELETE"), (["reset"], "POST")):
            raise Refused(404, None, _NOT_A_PAGE)
        caller = self._rules.caller(exchange.header(b"authorization"))
        self._rules.check_counters(caller, exchange.scope["client"])
        if reading:
            return json_reply(self._stats.document())
        self._stats.reset()
        return json_reply({})

    async def _api(self, exchange: Exchange, caller: Caller, parts: list[str]) -> Reply:
        query = parse_qs(exchange.scope["query_string"].decode("latin-1"))
        if parts == ["whoami-v2"]:
            return self._whoami(caller)
        if parts == ["models"]:
            return await self._models(exchange, caller, query)
        if len(parts) < 2 or parts[0] not in ("models", "datasets", "spaces"):
            raise Refused(404, None, _NOT_A_PAGE)
        single = len(parts) == 2 or parts[2] in self._verbs
        repo_id, rest = ("/".join(parts[1:3]), parts[3:]) if not single else (parts[1], parts[2:])
        if parts[0] != "models":
            repo_id = f"{parts[0]}/{repo_id}"  # there are none: refuse as for any missing one
        repository = find_repository(self._library, self._rules, caller, repo_id)
        verb = self._verbs.get(rest[0] if rest else "")
        if verb is None:
            raise Refused(404, None, _NOT_A_PAGE)
        expected = "POST" if rest[:1] == ["paths-info"] else "GET"
        if exchange.method not in (expected, "HEAD"):
            raise Refused(405, None, f"Use {expected} here")
        return await verb(_Ask(exchange, caller, repository, rest[1:], query))

    def _whoami(self, caller: Caller) -> Reply:
        if caller is Caller.ANONYMOUS:
            raise Refused(401, None, "Invalid username or password.")
        role = {"displayName": "mirror", "role": "read"}
        return json_reply(
            {
                "type": "user",
                "id": "0" * 24,
                "name": caller.value,
                "fullname": caller.value.capitalize(),
                "isPro": False,
                "orgs": [],
                "auth": {"type": "access_token", "accessToken": role},
            }
        )

    async def _models(
        self, exchange: Exchange, caller: Caller, query: dict[str, list[str]]
    ) -> Reply:
        search = query.get("search", [""])[0].lower()
        author = query.get("author", [""])[0]
        found = []
        for repo_id in self._library.ids():
            owner, sign, _ = repo_id.partition("/")
            gated = self._rules.is_gated(repo_id)
            if (
                self._rules.sees(caller, repo_id)
                and search in repo_id.lower()
                and (not author or (sign and owner.lower() == author.lower()))
                and ("gated" not in query or _flag(query, "gated") == gated)
            ):
                found.append(repo_id)
        # What the Hub would sort by is unknown here, so only the name can order the list.
        extra = set(_expand(query))
        extra |= {key for key in ("cardData", "config") if _flag(query, key)}
        page, headers = self._page(exchange, query, found, self._page_size)
        full = _flag(query, "full")
        documents = []
        for repo_id in page:
            repository = self._library.find(repo_id)
            if repository is not None:
                documents.append(await self._documents.listed(repository, full=full, extra=extra))
        wanted = set(query.get("filter", ()))
        documents = [one for one in documents if wanted <= set(one["tags"])]
        return json_reply(documents, headers=headers)

    async def _model(self, ask: _Ask) -> Reply:
        snapshot = find_snapshot(self._library, ask.repository, _revision(ask.rest)[0])
        return json_reply(
            await self._documents.model(
                snapshot, blobs=ask.flag("blobs"), expand=_expand(ask.query)
            )
        )

    async def _tree(self, ask: _Ask) -> Reply:
        revision, rest = _revision(ask.rest)
        snapshot = find_snapshot(self._library, ask.repository, revision)
        paths = paths_under(snapshot, "/".join(rest), recursive=ask.flag("recursive"))
        expand = ask.flag("expand")
        limit = min(self._page_size, _EXPANDED_PAGE) if expand else self._page_size
        page, headers = self._page(ask.exchange, ask.query, paths, limit)
        headers.append((b"x-repo-commit", snapshot.commit.encode()))
        return json_reply(
            await self._documents.tree(snapshot, page, expand=expand), headers=headers
        )

    async def _paths_info(self, ask: _Ask) -> Reply:
        snapshot = find_snapshot(self._library, ask.repository, _revision(ask.rest)[0])
        form = await _read_form(ask.exchange)
        wanted = [path.strip("/") for path in form.get("paths", [])]
        paths = [path for path in wanted if path in snapshot.entries or path in snapshot.folders]
        return json_reply(await self._documents.tree(snapshot, paths, expand=_flag(form, "expand")))

    async def _refs(self, ask: _Ask) -> Reply:
        return json_reply(self._documents.refs(ask.repository))

    async def _commits(self, ask: _Ask) -> Reply:
        revision = _revision(ask.rest)[0]
        find_snapshot(self._library, ask.repository, revision)
        commits = self._documents.commits(ask.repository, revision)
        total = (b"x-total-count", str(len(commits)).encode())
        return json_reply(commits, headers=[total])

    async def _auth_check(self, ask: _Ask) -> Reply:
        self._rules.check_files(ask.caller, ask.repository.repo_id, _endpoint(ask.exchange))
        return json_reply({})

    async def _resolve(self, exchange: Exchange, caller: Caller, parts: list[str]) -> Reply:
        place = next((at for at in (1, 2, 3) if parts[at : at + 1] == ["resolve"]), None)
        if place is None or len(parts) < place + 3:
            raise Refused(404, None, _NOT_A_PAGE)
        if exchange.method not in ("GET", "HEAD"):
            raise Refused(405, None, "Use GET or HEAD here")
        repo_id = "/".join(parts[:place])
        repository = find_repository(self._library, self._rules, caller, repo_id)
        self._rules.check_files(caller, repo_id, _endpoint(exchange))
        revision, rest = _revision(parts[place + 1 :])
        snapshot = find_snapshot(self._library, repository, revision)
        entry = snapshot.entries.get("/".join(rest))
        if entry is None:
            raise entry_missing(commit=snapshot.commit)
        digest = await self._digests.of(entry)
        commit = (b"x-repo-commit", snapshot.commit.encode())
        if not entry.large:
            plain = (b"content-type", b"text/plain; charset=utf-8")
            return file_reply(exchange, entry, digest.etag, [commit, plain])
        host = _endpoint(exchange).rpartition(":")[0]
        signed = self._signer.address(snapshot.address, entry, digest.etag)
        location = f"{host}:{self.storage_port}{signed}"
        headers: Headers = [
            commit,
            (b"location", location.encode()),
            (b"x-linked-size", str(entry.size).encode()),
            (b"x-linked-etag", f'"{digest.etag}"'.encode()),
            (b"accept-ranges", b"bytes"),
        ]
        return text_reply(f"Found. Redirecting to {location}", 302, headers)

    def _page(
        self, exchange: Exchange, query: dict[str, list[str]], items: list[str], limit: int
    ) -> tuple[list[str], Headers]:
        try:
            limit = max(1, min(int(query.get("limit", [str(limit)])[0]), limit))
            cursor = query.get("cursor", [""])[0]
            start = int(base64.urlsafe_b64decode(cursor)) if cursor else 0
        except ValueError:
            raise Refused(400, None, "Invalid cursor or limit") from None
        page = items[start : start + limit]
        if start + limit >= len(items):
            return page, []
        following = base64.urlsafe_b64encode(str(start + limit).encode()).decode()
        others = {name: values for name, values in query.items() if name != "cursor"}
        more = urlencode({**others, "cursor": [following]}, doseq=True)
        path = quote(exchange.scope["raw_path"].decode("latin-1"), safe="/%")
        link = f'<{_endpoint(exchange)}{path}?{more}>; rel="next"'
        return page, [(b"link", link.encode())]


def _endpoint(exchange: Exchange) -> str:
    # What the client calls this server, so that addresses also work from another machine.
    host, port = exchange.scope["server"][:2]
    given = exchange.header(b"host") or f"{host}:{port}"
    if ":" not in given.rpartition("]")[2]:
        given = f"{given}:{port}"
    return f"http://{given}"


def _revision(parts: list[str]) -> tuple[str, list[str]]:
    if not parts:
        return MAIN, []
    if parts[0] == "refs" and len(parts) >= 3:
        return "/".join(parts[:3]), parts[3:]
    return parts[0], parts[1:]


def _flag(query: dict[str, list[str]], name: str) -> bool:
    return query.get(name, ["false"])[0].lower() in ("true", "1")


def _expand(query: dict[str, list[str]]) -> list[str]:
    names = [*query.get("expand", ()), *query.get("expand[]", ())]
    unknown = [name for name in names if name not in EXPANDABLE]
    if unknown:
        raise Refused(400, None, f"Invalid expand value: {', '.join(unknown)}")
    return names


async def _read_body(exchange: Exchange) -> bytes:
    body: bytes = b""
    while True:
        message = await exchange.receive()
        body += message.get("body", b"")
        if len(body) > _MAX_BODY:
            raise Refused(413, None, "Request body too large")
        if not message.get("more_body", False):
            return body


async def _read_form(exchange: Exchange) -> dict[str, list[str]]:
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            body = await _read_body(exchange)
    except TimeoutError:
        raise Refused(408, None, "The request's body did not come in time") from None
    if "json" not in (exchange.header(b"content-type") or ""):
        return parse_qs(body.decode("utf-8", "replace"))
    try:
        given = json.loads(body)
        paths = given.get("paths", [])
        paths = [paths] if isinstance(paths, str) else [str(path) for path in paths]
        return {"paths": paths, "expand": [str(given.get("expand", False))]}
    except (ValueError, AttributeError, TypeError):
        raise Refused(400, None, "Invalid JSON") from None
