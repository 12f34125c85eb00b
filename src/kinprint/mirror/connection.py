"""The socket beneath a request: how the mirror notices a client that left, or breaks off.

ASGI hides the transport on purpose. A subclass of uvicorn's protocol keeps it in a register
under the two addresses that every request's scope carries.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from importlib import import_module
from typing import Any

_FLUSH_SECONDS = 5.0
_MOST_WAITING = 1 << 20
_LONGEST_HEAD = 1 << 18  # bytes; the hub client's heads have a few hundred
# struct linger is two ints, but two shorts on Windows.
_NO_LINGER = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)

Register = dict[object, "Connection"]


class Connection:
    """One TCP connection; `lost` is set once it is gone."""

    __slots__ = ("_received", "_timer", "busy", "lost", "transport")

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.lost = asyncio.Event()
        self.busy = False
        self._received = 0
        self._timer: asyncio.TimerHandle | None = None

    def await_request(self, seconds: float) -> None:
        """Give up a client that has not sent the head of a request by then."""
        if self._timer is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(seconds, self.transport.abort)

    def receive(self, size: int, seconds: float) -> None:
        """Note bytes of a head that is not whole yet; too many of them end the connection."""
        if not self.busy:
            self.await_request(seconds)
            self._received += size
            if self._received > _LONGEST_HEAD:
                self.transport.abort()

    def begin(self) -> None:
        """A request has come and is being answered."""
        self.busy = True
        self.end_waiting()

    def end_waiting(self) -> None:
        """Nothing is waited for any more."""
        self._received = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def open(self) -> bool:
        """Whether writing can still reach the client."""
        return not self.transport.is_closing()

    async def pause(self, seconds: float) -> None:
        """Wait, but no longer than the connection lives, so that shutting down is quick."""
        if seconds <= 0:
            return
        try:
            async with asyncio.timeout(seconds):
                await self.lost.wait()
        except TimeoutError:
            pass

    async def write_without_end(self, first: bytes, part: bytes, seconds: float) -> None:
        """Write past the protocol, a part every so many seconds, until the client leaves."""
        self.transport.write(first)
        while self.open:
            if part and self.transport.get_write_buffer_size() < _MOST_WAITING:
                self.transport.write(part)
            await self.pause(seconds)
        await self.lost.wait()

    async def close(self) -> None:
        """Send what was written, close in order, and return when the connection is gone."""
        self.transport.close()
        await self.pause(_FLUSH_SECONDS)
        if not self.lost.is_set():
            self.transport.abort()
            await self.lost.wait()

    async def reset(self) -> None:
        """Break the connection with a TCP reset, after what was written has left.

        With a linger time of zero the kernel sends RST instead of FIN.
        """
        for _ in range(100):
            if not self.open or self.transport.get_write_buffer_size() == 0:
                break
            await self.pause(0.01)
        await self.pause(0.02)  # the kernel drops unsent bytes on reset: let them go first
        sock = self.transport.get_extra_info("socket")
        if sock is not None and self.open:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.transport.abort()
        await self.lost.wait()


def connection_of(register: Register, scope: Any) -> Connection | None:
    """Return the connection that a request came in on, or None where it is gone."""
    return register.get((scope["client"], scope["server"]))


def registering_protocol(
    register: Register, request_seconds: float, most_connections: int
) -> type[asyncio.Protocol]:
    """Make a uvicorn protocol class that enters its connections in `register`.

    A head that is not whole after `request_seconds` ends its connection. Where there are too
    many connections, one that waits for a request makes room, the oldest first.
    It builds on httptools where that is installed, which takes half the time of h11.
    """
    base: Any
    try:
        base = import_module("uvicorn.protocols.http.httptools_impl").HttpToolsProtocol
    except ImportError:
        base = import_module("uvicorn.protocols.http.h11_impl").H11Protocol

    class RegisteringProtocol(base):  # type: ignore[misc]
        def connection_made(self, transport: asyncio.Transport) -> None:
            super().connection_made(transport)
            self.tracked = Connection(transport)
            if len(register) >= most_connections:
                waiting = (one for one in register.values() if not one.busy and one.open)
                next(waiting, self.tracked).transport.abort()
            register[self.client, self.server] = self.tracked
            self.tracked.await_request(request_seconds)

        def data_received(self, data: bytes) -> None:
            self.tracked.receive(len(data), request_seconds)
            super().data_received(data)

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            register.pop((self.client, self.server), None)
            self.tracked.end_waiting()
            self.tracked.lost.set()

    return RegisteringProtocol
