"""One byte range from one address, checked, through the hub client's session and backoff.

The hub client owns connections, proxies, certificates, retries and rate limits; this
module adds what it does not do: it insists on status 206 and on the exact range, stops a
server that would send the whole file, goes on where a broken answer stopped, and gives
up on one that drips.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
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
_QUERY = re.compile(r"(?<=[^\s?])\?\S+")
_RENEWALS = 4
_T = TypeVar("_T")
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


@dataclass(frozen=True, slots=True)
class Target:
    """A file on a server as it was listed: what every answer is held against."""

    address: str
    path: str
    size: int
    headers: Mapping[str, str] = field(default_factory=dict)
    tag: str | None = None  # strong entity tag; another one means another file

    @property
    def host(self) -> str:
        """The server, for people."""
        return host_of(self.address)


def host_of(address: str) -> str:
    """Host and port of an address, for people; never the credentials before them."""
    return urlsplit(address).netloc.rpartition("@")[2] or address


def read_range(target: Target, span: ByteRange, meter: Meter, policy: RetryPolicy) -> bytes:
    """Exactly the bytes of `span` from a file; a broken answer is taken up where it stopped."""
    received = bytearray()
    failures = 0
    while len(received) < span.size:
        before = len(received)
        rest = ByteRange(span.start + before, span.stop)
        try:
            _read_some(target, rest, received, meter, policy)
        except _Broken as broken:
            failures = 1 if len(received) - before > _REAL_PROGRESS else failures + 1
            if failures > (1 if broken.slow else policy.retries):
                raise broken.error from None
            time.sleep(min(8.0, policy.first_wait * 2 ** (failures - 1)))
    return bytes(received)


def _read_some(
    target: Target, span: ByteRange, received: bytearray, meter: Meter, policy: RetryPolicy
) -> None:
    whole = span == ByteRange(0, target.size)
    headers = dict(target.headers)
    if not whole:  # a whole file is asked for plainly: every server can do that
        headers["Range"] = f"bytes={span.start}-{span.stop - 1}"
    with answer_to(target.address, target.path, headers, policy) as response:
        meter.count(0, 1 + len(response.history))
        _check_status(response, target, span, whole)
        started = time.monotonic()
        wanted, got = span.size, 0
        try:
            for chunk in response.iter_raw():
                meter.count(len(chunk), 0)
                got += len(chunk)
                if got > wanted:
                    raise LengthWrong(
                        host=target.host, path=target.path, cause=f"more than {wanted} bytes"
                    )
                received += chunk
                elapsed = time.monotonic() - started
                if elapsed > policy.timeout and got < min(wanted, elapsed * policy.slowest_rate):
                    raise _Broken(_too_slow(target, got, wanted, elapsed), slow=True)
        except (TransportError, OSError, RuntimeError) as error:
            raise _Broken(_broken_off(target, got, wanted)) from error
        if got < wanted:
            raise _Broken(_broken_off(target, got, wanted))


def _broken_off(target: Target, got: int, wanted: int) -> BodyBroken:
    return BodyBroken(host=target.host, path=target.path, got=got, wanted=wanted)


def _too_slow(target: Target, got: int, wanted: int, elapsed: float) -> TooSlow:
    return TooSlow(
        host=target.host, path=target.path, got=got, wanted=wanted, seconds=round(elapsed)
    )


@contextmanager
def answer_to(
    address: str, path: str, headers: Mapping[str, str], policy: RetryPolicy
) -> Iterator[Any]:
    """The streamed answer to a GET, with failures to get one as our own errors."""
    asked = dict(headers) | {"Accept-Encoding": "identity"}

    def open_stream() -> tuple[Any, Any]:
        context = http_stream_backoff(
            "GET",
            address,
            headers=asked,
            follow_redirects=True,
            timeout=policy.timeout,
            max_retries=policy.retries,
            base_wait_time=policy.first_wait,
        )
        return context, context.__enter__()

    try:
        context, response = ask(open_stream, address, path)
    except HfHubHTTPError as error:
        raise refusal(error, address, path) from None
    # The body is read outside the backoff's reach: it would take an error raised there
    # for a failed attempt of its own. Leaving it closes the connection.
    try:
        yield response
    finally:
        response.close()
        context.__exit__(None, None, None)


def ask(action: Callable[[], _T], address: str, path: str) -> _T:
    """Do something through the hub client; what it raises becomes one of our errors.

    When a connection dies, the hub client renews the session that all threads share, and
    the others find theirs closed: they simply try again.
    """
    for attempt in range(_RENEWALS):
        try:
            return action()
        except (KinprintError, HfHubHTTPError):
            raise
        except RuntimeError as error:
            if "closed" not in str(error) or attempt == _RENEWALS - 1:
                raise unreachable(error, address) from error
        except OfflineModeIsEnabled:
            raise OfflineMiss(what=f"all of '{path}'") from None
        except (TypeError, AttributeError, AssertionError):
            raise  # a mistake of ours, not of the network
        except Exception as error:
            raise unreachable(error, address) from error
    raise AssertionError("unreachable")


def unreachable(error: Exception, address: str) -> Unreachable:
    """No connection, with the first line of what the library said about it."""
    lines = str(error).strip().splitlines()
    cause = lines[0][:120] if lines and lines[0] else type(error).__name__
    return Unreachable(host=host_of(address), cause=cause)


def refusal(error: HfHubHTTPError, address: str, path: str) -> KinprintError | Refused:
    """What a status that ended all retries means."""
    status = error.response.status_code
    if status == 429:
        return RateLimited(host=host_of(address), wait=waiting_time(error.response.headers))
    if status < 500 and status != 408:
        return Refused(status)
    return ServerFailed(host=host_of(address), path=path, status=status)


def waiting_time(headers: Mapping[str, str]) -> str:
    """What a 429 says about when to come back, in words."""
    after = headers.get("Retry-After") or headers.get("retry-after")
    return f"retry after {after} seconds" if after and after.isdigit() else "no time given"


def _check_status(response: Any, target: Target, span: ByteRange, whole: bool) -> None:
    """Raise unless the answer is the very range of the very file that was asked for."""
    status, headers = response.status_code, response.headers

    def wrong(cause: str) -> LengthWrong:
        return LengthWrong(host=target.host, path=target.path, cause=cause)

    def changed(total: str) -> FileChanged:
        cause = f"it has {total} bytes and was listed with {target.size}"
        return FileChanged(path=target.path, cause=cause)

    if status == 416:
        raise RangeRefused(host=target.host, path=target.path, start=span.start, stop=span.stop - 1)
    if status == 429:
        raise RateLimited(host=target.host, wait=waiting_time(headers))
    if status >= 500:
        raise ServerFailed(host=target.host, path=target.path, status=status)
    if status >= 400:
        raise Refused(status)
    encoding = headers.get("Content-Encoding", "identity").lower()
    if encoding != "identity":
        raise wrong(f"they are packed with {encoding}")
    if target.tag is not None and headers.get("ETag") != target.tag:
        raise FileChanged(path=target.path, cause="its entity tag is another one now")
    length = headers.get("Content-Length")
    if whole:
        if status != 200:
            raise wrong(f"status {status} instead of 200")
        if length is not None and length.isdigit() and int(length) != target.size:
            raise changed(length)
        return
    if status == 200:
        raise RangeIgnored(host=target.host, path=target.path, size=length or "unknown")
    if status != 206:
        raise wrong(f"status {status} instead of 206")
    sent = _CONTENT_RANGE.match(headers.get("Content-Range", ""))
    if sent is None:
        raise wrong("no valid Content-Range")
    start, last, total = sent.groups()
    if (int(start), int(last) + 1) != (span.start, span.stop):
        raise wrong(f"bytes {start}-{last} for {span.start}-{span.stop - 1}")
    if total != "*" and int(total) != target.size:
        raise changed(total)


class _WithoutQueries(logging.Filter):
    """The hub client logs whole addresses when it retries; signatures are nobody's business."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg = _QUERY.sub("", record.getMessage())
        record.args = ()
        return True


logging.getLogger("huggingface_hub.utils._http").addFilter(_WithoutQueries())
