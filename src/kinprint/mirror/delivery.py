"""Replies on the wire: paced where asked, spoilt where a fault says so, counted always.

Small ranges, the common case, are one read and two writes in the event loop. Long bodies are
read in threads chunk by chunk, and stop when the client leaves.
"""

from __future__ import annotations

import asyncio
import os
import time
import zlib
from collections.abc import AsyncIterator

from msgspec.structs import replace

from kinprint.mirror.exchange import Exchange, FileBody, Headers, Reply, Stale
from kinprint.mirror.faults import NEEDS_RANGE, Fault, FaultBook
from kinprint.mirror.stats import Stats
from kinprint.records import ByteRange

CHUNK = 256 << 10
_SHIFT = 16
_TICK_SECONDS = 0.05
_STALLED_SECONDS = 60.0
_GZIP_WINDOW = 31


class Delivery:
    """Sends replies: the one place that writes bodies, and so the one that counts them."""

    def __init__(self, stats: Stats, faults: FaultBook, bandwidth: float | None = None) -> None:
        self._stats = stats
        self._faults = faults
        self.bandwidth = bandwidth

    async def send(self, exchange: Exchange, reply: Reply) -> None:
        """Send a reply, spoilt if a fault is due. Raises `Stale` before the first byte.

        `Stale` means that the file has changed since it was listed; nothing was sent.
        """
        fault = self._fault(exchange, reply) if self._faults.armed else None
        body = reply.body
        if fault is not None and isinstance(body, FileBody) and fault.kind in NEEDS_RANGE:
            body = reshape(body, fault.kind)
            reply, fault = replace(reply, body=body), None
        if isinstance(body, bytes):
            await self._send(exchange, reply, fault, None)
            return
        descriptor = _open(body)
        try:
            await self._send(exchange, reply, fault, descriptor)
        finally:
            os.close(descriptor)

    async def plain(self, exchange: Exchange, reply: Reply) -> None:
        """Send a reply that no fault or pace applies to."""
        status, headers = _head(reply, compressed=False)
        await exchange.send({"type": "http.response.start", "status": status, "headers": headers})
        await exchange.send({"type": "http.response.body", "body": reply.body})

    def _fault(self, exchange: Exchange, reply: Reply) -> Fault | None:
        has_body = reply.status == 200 and reply.length > 0 and exchange.method == "GET"
        partial = isinstance(reply.body, FileBody) and reply.body.partial
        return self._faults.late(
            exchange.port, exchange.method, exchange.path, body=has_body, partial=partial
        )

    async def _send(
        self, exchange: Exchange, reply: Reply, fault: Fault | None, descriptor: int | None
    ) -> None:
        length = reply.length
        rate = self.bandwidth
        if fault is not None:
            if fault.kind == "reset" and (exchange.method == "HEAD" or reply.status != 200):
                await exchange.connection.reset()
                return
            rate = fault.rate if fault.kind == "slow" else rate
        status, headers = _head(reply, compressed=fault is not None and fault.kind == "gzip")
        if fault is not None and fault.kind in ("etag", "size"):
            headers = _belied(headers, fault.kind)
        self._stats.statuses[exchange.port, status] += 1
        if fault is None and rate is None and length <= CHUNK:
            data = b""
            if exchange.method != "HEAD":
                data = _piece(reply.body, descriptor, 0, length)
                self._stats.sending(exchange.port, length)
            await exchange.send(
                {"type": "http.response.start", "status": status, "headers": headers}
            )
            await exchange.send({"type": "http.response.body", "body": data})
            return
        await exchange.send({"type": "http.response.start", "status": status, "headers": headers})
        if exchange.method == "HEAD":
            await exchange.send({"type": "http.response.body", "body": b""})
            return
        stop = length
        if fault is not None and fault.kind in ("reset", "truncate"):
            stop = length // 2 if fault.at is None else min(fault.at, length)
        chunks = _chunks(reply.body, descriptor, stop, _chunk_size(rate))
        if fault is not None and fault.kind == "corrupt":
            chunks = _corrupted(chunks, length // 2 if fault.at is None else fault.at)
        elif fault is not None and fault.kind == "gzip":
            chunks = _compressed(chunks)
        try:
            await self._write(exchange, chunks, rate)
        except Stale:  # too late for another answer: the length was promised
            await exchange.connection.close()
            return
        if fault is not None and fault.kind == "reset":
            await exchange.connection.reset()
        elif fault is not None and fault.kind in ("truncate", "size"):
            await exchange.connection.close()
        elif exchange.connection.open:
            await exchange.send({"type": "http.response.body", "body": b""})

    async def _write(
        self, exchange: Exchange, chunks: AsyncIterator[bytes], rate: float | None
    ) -> None:
        connection = exchange.connection
        began = time.monotonic()
        written = 0
        async for chunk in chunks:
            if not connection.open:
                # The transport closes a moment before uvicorn hears of it.
                await connection.lost.wait()
                return
            if rate is not None:
                written += len(chunk)
                await connection.pause(began + written / rate - time.monotonic())
            self._stats.sending(exchange.port, len(chunk))
            part = {"type": "http.response.body", "body": chunk, "more_body": True}
            try:
                async with asyncio.timeout(_STALLED_SECONDS):
                    await exchange.send(part)
            except TimeoutError:  # nobody takes what is sent
                connection.transport.abort()


def reshape(body: FileBody, kind: str) -> FileBody:
    """Return the wrong bytes for a Range request, as servers and proxies have been seen to.

    "ignore_range" is the whole file; "wrong_range" is as many bytes from elsewhere where the
    file has room; "short" is the first half. Header and body agree with each other.
    """
    start, stop = body.span.start, body.span.stop
    if kind == "ignore_range":
        return replace(body, span=ByteRange(0, body.size), partial=False)
    if kind == "short":
        return replace(body, span=ByteRange(start, start + max(1, (stop - start) // 2)))
    shift = min(_SHIFT, body.size - stop) or -min(_SHIFT, start)
    if shift == 0:
        return replace(body, span=ByteRange(min(start + 1, stop - 1), stop))
    return replace(body, span=ByteRange(start + shift, stop + shift))


def _head(reply: Reply, *, compressed: bool) -> tuple[int, Headers]:
    headers = list(reply.headers)
    status = reply.status
    body = reply.body
    if not isinstance(body, bytes) and body.partial:
        status = 206
        span = body.span
        content_range = b"bytes %d-%d/%d" % (span.start, span.stop - 1, body.size)
        headers.append((b"content-range", content_range))
    if compressed:
        headers.append((b"content-encoding", b"gzip"))
    elif status not in (204, 304):
        headers.append((b"content-length", b"%d" % reply.length))
    return status, headers


def _belied(headers: Headers, kind: str) -> Headers:
    """The same headers, but for another ETag, or for a file that is a byte longer."""
    told = dict(headers)
    if kind == "etag" and b"etag" in told:
        told[b"etag"] = b'"another-' + told[b"etag"].lstrip(b'"')
    elif kind == "size" and b"content-range" in told:
        span, _, size = told[b"content-range"].rpartition(b"/")
        told[b"content-range"] = b"%s/%d" % (span, int(size) + 1)
    elif kind == "size":
        told[b"content-length"] = b"%d" % (int(told[b"content-length"]) + 1)
    return list(told.items())


def _open(body: FileBody) -> int:
    try:
        descriptor = os.open(body.file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise Stale(body.file) from error
    status = os.fstat(descriptor)
    if status.st_size != body.size or status.st_mtime_ns != body.mtime_ns:
        os.close(descriptor)
        raise Stale(body.file)
    return descriptor


def _read_at(descriptor: int, size: int, offset: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(descriptor, size, offset)
    os.lseek(descriptor, offset, os.SEEK_SET)
    return os.read(descriptor, size)


def _piece(body: bytes | FileBody, descriptor: int | None, start: int, stop: int) -> bytes:
    if isinstance(body, bytes):
        return body[start:stop]
    assert descriptor is not None
    offset = body.span.start
    data = _read_at(descriptor, stop - start, offset + start)
    while len(data) < stop - start:
        more = _read_at(descriptor, stop - start - len(data), offset + start + len(data))
        if not more:
            raise Stale(body.file)
        data += more
    return data


def _chunk_size(rate: float | None) -> int:
    return CHUNK if rate is None else max(1, min(CHUNK, int(rate * _TICK_SECONDS)))


async def _chunks(
    body: bytes | FileBody, descriptor: int | None, stop: int, size: int
) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    for start in range(0, stop, size):
        end = min(start + size, stop)
        if size < CHUNK or isinstance(body, bytes):
            yield _piece(body, descriptor, start, end)
        else:
            yield await loop.run_in_executor(None, _piece, body, descriptor, start, end)


async def _corrupted(chunks: AsyncIterator[bytes], position: int) -> AsyncIterator[bytes]:
    offset = 0
    async for chunk in chunks:
        if offset <= position < offset + len(chunk):
            spoilt = bytearray(chunk)
            spoilt[position - offset] ^= 0xFF
            chunk = bytes(spoilt)
        yield chunk
        offset += len(chunk)


async def _compressed(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    packer = zlib.compressobj(wbits=_GZIP_WINDOW)
    async for chunk in chunks:
        if packed := packer.compress(chunk):
            yield packed
    yield packer.flush()
