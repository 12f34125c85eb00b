"""One byte range from one address, checked, through the hub client's session and backoff.

The hub client owns connections, proxies, certificates, retries and rate limits; this
module adds what it does not do: it insists on status 206 and on the exact range, stops a
server that would send the whole file, goes on where a broken answer stopped, and gives
up on one that drips.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from huggingface_hub import constants
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from huggingface_hub.utils import http_stream_backoff

from kinprint.errors import (
    BodyBroken,
    FileChanged,
    KinprintError,
    LengthWrong,
    OfflineMiss,
    RangeIgnored,
    RangeRefused,
    RateLimited,
    ServerFailed,
    TooSlow,
    Unreachable,
)
from kinprint.records import ByteRange
from kinprint.source.protocol import Meter

# The base class of everything the hub client's HTTP library raises. Taken from the hub's
# own error, so that the library behind it (it changed before) is never imported here.
TransportError: type[Exception] = HfHubHTTPError.__bases__[0]

_CONTENT_RANGE = re.compile(r"^\s*bytes\s+(\d+)-(\d+)/(\d+|\*)\s*$", re.IGNORECASE)
_REAL_PROGRESS = 64 * 1024  # bytes; an attempt that brought this much starts the count anew


FIRST_WAIT = 1.0  # seconds before the first retry; doubled for each further one


def _timeout() -> float:
    return float(constants.HF_HUB_DOWNLOAD_TIMEOUT)


def _first_wait() -> float:
    return FIRST_WAIT


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and how long to try; the defaults are the hub client's own."""

    retries: int = 5
    first_wait: float = field(default_factory=_first_wait)
    timeout: float = field(default_factory=_timeout)
    slowest_rate: int = 4096  # bytes a second, once `timeout` seconds have passed


class Refused(Exception):
    """The address was refused (401, 403 and the like): it may have expired."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class _Broken(Exception):
    """The body ended early or too slowly; what arrived is kept and the rest asked for."""

    def __init__(self, error: KinprintError, *, slow: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.slow = slow


def host_of(address: str) -> str:
    """Host and port of an address, for people."""
    return urlsplit(address).netloc or address


def read_range(
    address: str,
    headers: Mapping[str, str],
    path: str,
    span: ByteRange,
    size: int,
    meter: Meter,
    policy: RetryPolicy,
) -> bytes:
    """Exactly the bytes of `span` from a file of `size` bytes at `address`."""
    received = bytearray()
    failures = 0
    while len(received) < span.size:
        before = len(received)
        rest = ByteRange(span.start + before, span.stop)
        try:
            _read_some(address, headers, path, rest, size, received, meter, policy)
        except _Broken as broken:
            failures = 1 if len(received) - before > _REAL_PROGRESS else failures + 1
            if failures > (1 if broken.slow else policy.retries):
                raise broken.error from None
            time.sleep(min(8.0, policy.first_wait * 2 ** (failures - 1)))
    return bytes(received)


def _read_some(
    address: str,
    headers: Mapping[str, str],
    path: str,
    span: ByteRange,
    size: int,
    received: bytearray,
    meter: Meter,
    policy: RetryPolicy,
) -> None:
    whole = span == ByteRange(0, size)
    asked = dict(headers) | {"Accept-Encoding": "identity"}
    if not whole:  # a whole file is asked for plainly: every server can do that
        asked["Range"] = f"bytes={span.start}-{span.stop - 1}"
    with _answer(address, asked, path, policy) as response:
        meter.count(0)
        _check_status(response, address, path, span, size, whole)
        started = time.monotonic()
        wanted, got = span.size, 0
        try:
            for chunk in response.iter_raw():
                meter.count(len(chunk), 0)
                got += len(chunk)
                if got > wanted:
                    raise LengthWrong(
                        host=host_of(address), path=path, cause=f"more than {wanted} bytes"
                    )
                received += chunk
                elapsed = time.monotonic() - started
                if (
                    elapsed > policy.timeout
                    and got / elapsed < policy.slowest_rate
                    and got < wanted
                ):
                    raise _Broken(
                        TooSlow(
                            host=host_of(address),
                            path=path,
                            got=got,
                            wanted=wanted,
                            seconds=round(elapsed),
                        ),
                        slow=True,
                    )
        except (TransportError, OSError, RuntimeError) as error:
            raise _Broken(_broken(address, path, got, wanted)) from error
        if got < wanted:
            raise _Broken(_broken(address, path, got, wanted))


def _broken(address: str, path: str, got: int, wanted: int) -> BodyBroken:
    return BodyBroken(host=host_of(address), path=path, got=got, wanted=wanted)


@contextmanager
def _answer(
    address: str, headers: Mapping[str, str], path: str, policy: RetryPolicy
) -> Iterator[Any]:
    """The streamed answer to a GET, with failures to get one as our own errors."""
    context = http_stream_backoff(
        "GET",
        address,
        headers=dict(headers),
        timeout=policy.timeout,
        max_retries=policy.retries,
        base_wait_time=policy.first_wait,
    )
    try:
        response = context.__enter__()
    except Exception as error:
        raise translate(error, address, path) from error
    # The body is read outside the backoff's reach: it would take an error raised there
    # for a failed attempt of its own. Leaving it closes the connection.
    try:
        yield response
    finally:
        response.close()
        context.__exit__(None, None, None)


def translate(error: Exception, address: str, path: str) -> Exception:
    """Our error for what the hub client raised while asking for `address`."""
    host = host_of(address)
    if isinstance(error, KinprintError | _Broken):
        return error
    if isinstance(error, OfflineModeIsEnabled):
        return OfflineMiss(what=f"all of '{path}'")
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        if status == 429:
            return RateLimited(host=host, wait=waiting_time(error.response.headers))
        if status < 500 and status != 408:
            return Refused(status)
        return ServerFailed(host=host, path=path, status=status)
    if isinstance(error, RuntimeError) and "closed" in str(error):
        # Another thread met a dead connection and the hub client renewed its session.
        return _Broken(_broken(address, path, 0, 0))
    if isinstance(error, TransportError | OSError):
        return Unreachable(host=host, cause=_short(error))
    return error


def waiting_time(headers: Mapping[str, str]) -> str:
    """What a 429 says about when to come back, in words."""
    after = headers.get("Retry-After") or headers.get("retry-after")
    return f"retry after {after} seconds" if after and after.isdigit() else "no time given"


def _short(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0][:120] if text and text[0] else type(error).__name__


def _check_status(
    response: Any, address: str, path: str, span: ByteRange, size: int, whole: bool
) -> None:
    """Raise unless the answer is the very range that was asked for."""
    host, status, headers = host_of(address), response.status_code, response.headers
    if status == 416:
        raise RangeRefused(host=host, path=path, start=span.start, stop=span.stop - 1)
    if status == 429:
        raise RateLimited(host=host, wait=waiting_time(headers))
    if status >= 500:
        raise ServerFailed(host=host, path=path, status=status)
    if status >= 400:
        raise Refused(status)
    encoding = headers.get("Content-Encoding", "identity").lower()
    if encoding != "identity":
        raise LengthWrong(host=host, path=path, cause=f"they are packed with {encoding}")
    length = headers.get("Content-Length")
    if whole:
        if status != 200:
            raise LengthWrong(host=host, path=path, cause=f"status {status} instead of 200")
        if length is not None and length.isdigit() and int(length) != size:
            raise FileChanged(path=path, cause=f"it has {length} bytes and was listed with {size}")
        return
    if status == 200:
        raise RangeIgnored(host=host, path=path, size=length or "unknown")
    if status != 206:
        raise LengthWrong(host=host, path=path, cause=f"status {status} instead of 206")
    sent = _CONTENT_RANGE.match(headers.get("Content-Range", ""))
    if sent is None:
        raise LengthWrong(host=host, path=path, cause="no valid Content-Range")
    start, last, total = sent.groups()
    if (int(start), int(last) + 1) != (span.start, span.stop):
        raise LengthWrong(
            host=host, path=path, cause=f"bytes {start}-{last} for {span.start}-{span.stop - 1}"
        )
    if total != "*" and int(total) != size:
        raise FileChanged(path=path, cause=f"it has {total} bytes and was listed with {size}")
