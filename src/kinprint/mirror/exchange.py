"""One request and one reply, as plain values: what the apps read and what they return."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from msgspec import Struct, field

from kinprint.mirror.connection import Connection
from kinprint.records import ByteRange

# The three values that an ASGI application is called with.
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

Headers = list[tuple[bytes, bytes]]


class Stale(Exception):
    """The file on disk is no longer the one that was listed."""


class Exchange(Struct):
    """A request on its way through the mirror, with the socket it came from."""

    port: str
    scope: Scope
    receive: Receive
    send: Send
    connection: Connection
    method: str
    path: str
    headers: dict[bytes, bytes]

    def header(self, name: bytes) -> str | None:
        """Return a request header's text, or None."""
        value = self.headers.get(name)
        return None if value is None else value.decode("latin-1")


class FileBody(Struct, frozen=True):
    """Bytes of a file on disk, which must still have `size` and `mtime_ns` when opened.

    `partial` says that they answer a Range request.
    """

    file: str
    size: int
    mtime_ns: int
    span: ByteRange
    partial: bool = False


class Reply(Struct, frozen=True):
    """A status, headers, and a body in memory or on disk.

    Content-Length, and Content-Range with status 206, follow from the body when it is sent.
    """

    status: int
    headers: Headers = field(default_factory=list)
    body: bytes | FileBody = b""

    @property
    def length(self) -> int:
        """Number of bytes in the body."""
        return len(self.body) if isinstance(self.body, bytes) else self.body.span.size


def json_reply(document: object, status: int = 200, headers: Headers | None = None) -> Reply:
    """Make a reply of a JSON document."""
    body = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    kind = (b"content-type", b"application/json; charset=utf-8")
    return Reply(status, [kind, *(headers or ())], body)


def text_reply(
    text: str, status: int = 200, headers: Headers | None = None, kind: str = "text/plain"
) -> Reply:
    """Make a reply of some text."""
    content_type = (b"content-type", f"{kind}; charset=utf-8".encode())
    return Reply(status, [content_type, *(headers or ())], text.encode())
