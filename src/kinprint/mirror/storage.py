"""Where weights are served from: signed addresses that expire, on a port of their own.

The Hub sends large files to another host, and a token must never follow them there. This is
that other host: it knows no tokens, refuses whoever shows one, and trusts only signatures.
"""

from __future__ import annotations

import base64
import hmac
import math
import secrets
import time
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, quote

from kinprint.mirror.exchange import Exchange, FileBody, Headers, Reply, text_reply
from kinprint.mirror.folder import Entry
from kinprint.mirror.ranges import Unsatisfiable, parse_range
from kinprint.mirror.stats import Stats
from kinprint.records import ByteRange

DEFAULT_TTL = 3600.0


class Signer:
    """Signs storage addresses and checks them, with a key that dies with the server."""

    def __init__(self, ttl: float = DEFAULT_TTL) -> None:
        self.ttl = ttl
        self._key = secrets.token_bytes(32)

    def address(self, folder: str, entry: Entry, etag: str) -> str:
        """Return path and query of a file's storage address, valid for `ttl` seconds.

        The version in it pins the content: once the file changes, the address is void.
        """
        path = f"/{folder}/{entry.path}"
        version = f"{entry.size:x}-{entry.mtime_ns:x}-{etag}"
        expires = str(math.ceil(time.time() + self.ttl))
        signature = self._sign(path, version, expires)
        where = quote(path, safe="/@")
        return f"{where}?v={version}&Expires={expires}&Signature={signature}"

    def genuine(self, path: str, version: str, expires: str, signature: str) -> bool:
        """Whether this server signed the address; `path` is without percent signs.

        Clients may spell the same path differently, so it is the decoded one that counts.
        """
        given = signature.encode("utf-8", "surrogatepass")
        return hmac.compare_digest(self._sign(path, version, expires).encode(), given)

    def _sign(self, path: str, version: str, expires: str) -> str:
        message = f"{path}\n{version}\n{expires}".encode("utf-8", "surrogatepass")
        digest = hmac.digest(self._key, message, "sha256")
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class Storage:
    """Answers requests on the storage port."""

    def __init__(self, root: Path, signer: Signer, stats: Stats) -> None:
        self._root = str(root)
        self._signer = signer
        self._stats = stats

    def answer(self, exchange: Exchange) -> Reply:
        """Return the reply to a request: the bytes of the signed file, or an XML refusal."""
        if b"authorization" in exchange.headers:
            self._stats.tokens_seen_by_storage += 1
            return _refusal(400, "InvalidArgument", "Only one auth mechanism allowed")
        if exchange.method not in ("GET", "HEAD"):
            return _refusal(405, "MethodNotAllowed", "This method is not allowed here")
        query = parse_qs(exchange.scope["query_string"].decode("latin-1"))
        version = query.get("v", [""])[0]
        expires = query.get("Expires", [""])[0]
        signature = query.get("Signature", [""])[0]
        if not signature:
            return _refusal(403, "AccessDenied", "Access Denied")
        if not self._signer.genuine(exchange.path, version, expires, signature):
            return _refusal(
                403,
                "SignatureDoesNotMatch",
                "The request signature we calculated does not match the signature you provided.",
            )
        if time.time() > float(expires):
            return expired()
        size, mtime_ns, etag = version.split("-", 2)
        # The signature vouches for the path: only this server can have written it.
        return file_reply(
            exchange,
            Entry(exchange.path, int(size, 16), int(mtime_ns, 16), self._root + exchange.path),
            etag,
            [(b"content-type", b"binary/octet-stream")],
        )


def expired() -> Reply:
    """Make the refusal for an address whose time is over."""
    return _refusal(403, "AccessDenied", "Request has expired")


def vanished() -> Reply:
    """Make the refusal for a file that has changed or gone since its address was signed."""
    return _refusal(404, "NoSuchKey", "The specified key does not exist.")


def failed(code: int, headers: Headers) -> Reply:
    """Make the answer of a storage host in trouble."""
    return _refusal(code, "SlowDown" if code in (429, 503) else "InternalError", "", headers)


def file_reply(exchange: Exchange, entry: Entry, etag: str, headers: Headers) -> Reply:
    """Make the reply that carries a file or the range of it that was asked for.

    Conditions (If-None-Match, If-Range) are honoured, so that caches work as they do
    against the Hub.
    """
    quoted = f'"{etag}"'
    name = quote(entry.path.rpartition("/")[2])
    common: Headers = [
        (b"accept-ranges", b"bytes"),
        (b"etag", quoted.encode()),
        (b"last-modified", formatdate(entry.mtime_ns / 1e9, usegmt=True).encode()),
        (
            b"content-disposition",
            f"inline; filename*=UTF-8''{name}; filename=\"{name}\";".encode(),
        ),
        *headers,
    ]
    known = exchange.header(b"if-none-match")
    if known is not None and (quoted in known or known.strip() == "*"):
        return Reply(304, common)
    asked = exchange.header(b"range") if exchange.method == "GET" else None
    if asked is not None and exchange.header(b"if-range") not in (None, quoted):
        asked = None
    try:
        span = parse_range(asked, entry.size)
    except Unsatisfiable:
        outside = (b"content-range", b"bytes */%d" % entry.size)
        return _refusal(416, "InvalidRange", "The requested range is not satisfiable", [outside])
    whole = span or ByteRange(0, entry.size)
    body = FileBody(entry.file, entry.size, entry.mtime_ns, whole, partial=span is not None)
    return Reply(200, common, body)


def _refusal(status: int, code: str, message: str, headers: Headers | None = None) -> Reply:
    text = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{code}</Code><Message>{message}</Message></Error>"
    )
    return text_reply(text, status, headers, kind="application/xml")
