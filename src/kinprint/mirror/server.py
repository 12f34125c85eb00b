"""The mirror as a running server: two listening sockets, one event loop, one process.

In tests it is a context manager with the loop in a thread; on the command line it holds the
terminal. Either way clients see the Hub on one port and its storage on the other.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from kinprint import text
from kinprint.errors import BadOption, system_cause
from kinprint.mirror.access import Refused, Rules
from kinprint.mirror.connection import Connection, Register, connection_of, registering_protocol
from kinprint.mirror.delivery import Delivery
from kinprint.mirror.digests import DEFAULT_HASH_LIMIT, Digests
from kinprint.mirror.exchange import (
    Exchange,
    Headers,
    Receive,
    Reply,
    Scope,
    Send,
    Stale,
    json_reply,
    text_reply,
)
from kinprint.mirror.faults import UNENDING, Fault, FaultBook
from kinprint.mirror.folder import Library
from kinprint.mirror.hub import DEFAULT_PAGE, Hub
from kinprint.mirror.stats import Stats
from kinprint.mirror.storage import DEFAULT_TTL, Signer, Storage, expired, failed, vanished

if TYPE_CHECKING:
    from uvicorn import Server

_KEEP_ALIVE_SECONDS = 60
_REQUEST_SECONDS = 20.0
_MOST_CONNECTIONS = 400  # each may hold a file open too, and 1,024 is a common limit of both
_START_SECONDS = 30.0
_TRIES = 3


class MirrorServer:
    """Serves a folder of models; `endpoint` is what HF_ENDPOINT should be.

    `latency` is in seconds a request, `bandwidth` in bytes a second and connection. Both,
    and the faults, can be changed while it runs: a test sets the scene, then the weather.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        storage_port: int = 0,
        token: str | None = None,
        guest_token: str | None = None,
        gated: Iterable[str] = (),
        private: Iterable[str] = (),
        latency: float = 0.0,
        bandwidth: float | None = None,
        faults: Iterable[Fault] = (),
        address_ttl: float = DEFAULT_TTL,
        hash_limit: int = DEFAULT_HASH_LIMIT,
        page_size: int = DEFAULT_PAGE,
        refresh_seconds: float = 1.0,
        request_seconds: float = _REQUEST_SECONDS,
        most_connections: int = _MOST_CONNECTIONS,
    ) -> None:
        root = Path(folder)
        if not root.is_dir():
            raise BadOption(
                option="folder", value=folder, cause=text.message("cause.option.no-folder")
            )
        if bandwidth is not None and bandwidth <= 0:
            cause = text.message("cause.option.above-zero")
            raise BadOption(option="bandwidth", value=bandwidth, cause=cause)
        if latency < 0:
            cause = text.message("cause.option.not-negative")
            raise BadOption(option="latency", value=latency, cause=cause)
        self.library = Library(root, refresh_seconds)
        self.stats = Stats()
        self.faults = FaultBook(faults)
        self.latency = latency
        self._host = host
        self._ports = (port, storage_port)
        self._bounds = (request_seconds, most_connections)
        self._signer = Signer(address_ttl)
        self._digests = Digests(hash_limit)
        self._delivery = Delivery(self.stats, self.faults, bandwidth)
        rules = Rules(token, guest_token, tuple(gated), tuple(private))
        self._hub = Hub(
            self.library, self._digests, rules, self._signer, self.stats, page_size=page_size
        )
        self._storage = Storage(self.library.root, self._signer, self.stats)
        self._register: Register = {}
        self._sockets: list[socket.socket] = []
        self._server: Server | None = None
        self._thread: threading.Thread | None = None
        self.port = self.storage_port = 0

    @property
    def endpoint(self) -> str:
        """The address to set as HF_ENDPOINT."""
        return f"http://{_reachable(self._host)}:{self.port}"

    @property
    def storage_endpoint(self) -> str:
        """The address that large files are redirected to."""
        return f"http://{_reachable(self._host)}:{self.storage_port}"

    @property
    def exposed(self) -> bool:
        """Whether other machines can reach it; known once it is bound."""
        return not all(ip_address(one.getsockname()[0]).is_loopback for one in self._sockets)

    @property
    def bandwidth(self) -> float | None:
        """Bytes a second on each connection, or None for no limit."""
        return self._delivery.bandwidth

    @bandwidth.setter
    def bandwidth(self, value: float | None) -> None:
        self._delivery.bandwidth = value

    @property
    def address_ttl(self) -> float:
        """Seconds for which a storage address is valid, rounded up to a whole second."""
        return self._signer.ttl

    @address_ttl.setter
    def address_ttl(self, value: float) -> None:
        self._signer.ttl = value

    def repoint(self, repo_id: str, branch: str, folder_branch: str) -> None:
        """Move a branch to the content of another one, as a push would.

        The old commit stays readable by its id. Raises `RepositoryMissing` or
        `RevisionMissing`.
        """
        self.library.repoint(repo_id, branch, folder_branch)

    def refresh(self) -> None:
        """Look at the disk again at the next request instead of within a second."""
        self.library.refresh()

    def __enter__(self) -> MirrorServer:
        server = self._prepare()
        started = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(server, started), name="kinprint-mirror", daemon=True
        )
        self._thread.start()
        if not started.wait(_START_SECONDS) or not server.started:
            self.close()
            raise RuntimeError("the mirror did not start")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving, break what is under way, and wait until all of it has ended."""
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self._digests.close()
        for sock in self._sockets:
            sock.close()
        self._sockets = []

    def run(self) -> None:
        """Serve in this thread until interrupted."""
        server = self._server or self._prepare()
        try:
            server.run(self._sockets)
        finally:
            self.close()

    def bind(self) -> None:
        """Open both sockets, so that the addresses are known before serving begins."""
        if self._server is None:
            self._prepare()

    def _run(self, server: Server, started: threading.Event) -> None:
        async def serve() -> None:
            async def announce() -> None:
                while not server.started:
                    await asyncio.sleep(0.002)
                started.set()

            announcing = asyncio.create_task(announce())
            try:
                await server.serve(self._sockets)
            finally:
                announcing.cancel()

        try:
            asyncio.run(serve())
        finally:
            started.set()

    def _prepare(self) -> Server:
        import uvicorn

        register = self._register
        digests = self._digests

        class Stopping(uvicorn.Server):
            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                # Nobody waits for a body that drips or a hash of many gigabytes.
                for connection in list(register.values()):
                    connection.transport.abort()
                digests.stop()
                await super().shutdown(sockets)

        self._sockets = _bind(self._host, self._ports)
        self.port, self.storage_port = (sock.getsockname()[1] for sock in self._sockets)
        self._hub.storage_port = self.storage_port
        config = uvicorn.Config(
            self._app,
            http=registering_protocol(register, *self._bounds),
            loop="asyncio",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )
        self._server = Stopping(config)
        return self._server

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        connection = connection_of(self._register, scope)
        if connection is None:
            return
        connection.begin()
        try:
            await self._answer(scope, receive, send, connection)
        finally:
            connection.busy = False

    async def _answer(
        self, scope: Scope, receive: Receive, send: Send, connection: Connection
    ) -> None:
        port = "storage" if scope["server"][1] == self.storage_port else "hub"
        method, path = scope["method"], scope["path"]
        exchange = Exchange(
            port, scope, receive, send, connection, method, path, dict(scope["headers"])
        )
        if port == "hub" and path.startswith("/-/"):
            await self._delivery.plain(exchange, await self._hub.answer(exchange))
            return
        self.stats.arrived(port, method, path, exchange.header(b"range"))
        if self.latency:
            await connection.pause(self.latency)
        if self.faults.armed and (fault := self.faults.early(port, method, path)):
            if fault.kind == "reset":
                await connection.reset()
            elif fault.kind in UNENDING:
                await connection.write_without_end(*_unending(fault))
            else:
                reply = _failure(fault, exchange)
                self.stats.statuses[port, reply.status] += 1
                await self._delivery.plain(exchange, reply)
            return
        if port == "storage":
            try:
                await self._delivery.send(exchange, self._storage.answer(exchange))
            except Stale:
                await self._delivery.send(exchange, vanished())
            return
        for _ in range(_TRIES):
            try:
                await self._delivery.send(exchange, await self._hub.answer(exchange))
                return
            except Stale:
                self.library.refresh()
        busy = Refused(503, None, "The files keep changing; try again later")
        await self._delivery.send(exchange, busy.reply(as_json=True))


def _unending(fault: Fault) -> tuple[bytes, bytes, float]:
    """What comes first, what comes again and again, and how many seconds apart."""
    if fault.kind == "drip":
        return b"HTTP/1.1 200 OK\r\n", b"x-more: to come\r\n", 1 / fault.rate
    if fault.kind == "continue":
        return b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100, 0.001
    if fault.kind == "endless":
        return b"HTTP/1.1 %d Endless\r\n\r\n" % fault.code, b" " * 65536, 0.001
    return b"", b"", 3600.0


def _failure(fault: Fault, exchange: Exchange) -> Reply:
    port = exchange.port
    if fault.kind == "expire":
        return expired()
    headers: Headers = []
    if fault.kind == "redirect":
        query = exchange.scope["query_string"]
        place = exchange.scope["raw_path"] + (b"?" + query if query else b"")
        return text_reply("Found. Redirecting", 302, [(b"location", place)])
    if fault.retry_after is not None:
        headers.append((b"retry-after", str(fault.retry_after).encode()))
    if port == "storage":
        return failed(fault.code, headers)
    return json_reply({"error": "Something went wrong on purpose"}, fault.code, headers)


def _bind(host: str, ports: tuple[int, int]) -> list[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sockets: list[socket.socket] = []
    for option, port in zip(("port", "storage_port"), ports, strict=True):
        # asyncio turns Nagle's algorithm off only where the protocol is spelt out, and with it
        # on, every short answer would wait forty milliseconds for an acknowledgement.
        sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        sockets.append(sock)
        try:
            if os.name == "posix":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((host, port))
            sock.listen(1024)
        except OSError as error:
            for opened in sockets:
                opened.close()
            said = system_cause(error)
            cause = text.message("cause.mirror.no-listening", host=host, cause=said)
            raise BadOption(option=option, value=port, cause=cause) from error
    return sockets


def _reachable(host: str) -> str:
    if host in ("0.0.0.0", ""):
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host
