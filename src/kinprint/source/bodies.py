"""The body of an answer, held against what was asked for.

A Range request must be answered with status 206 and the exact range; a server that would
send the whole file is stopped, a broken answer is taken up where it stopped, and one that
drips is given up.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from huggingface_hub.utils import hf_raise_for_status

from kinprint import text
from kinprint.errors import (
    BodyBroken,
    FileChanged,
    KinprintError,
    LengthWrong,
    RangeIgnored,
    RangeRefused,
    RateLimited,
    ServerFailed,
    TooSlow,
)
from kinprint.records import ByteRange
from kinprint.source.http import (
    Refused,
    RetryPolicy,
    Target,
    TransportError,
    answer_to,
    waiting_time,
)
from kinprint.source.protocol import Meter
from kinprint.source.stopping import check, pause

_CONTENT_RANGE = re.compile(
    r"^\s*bytes\s+([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)\s*$", re.IGNORECASE
)
_RENEWALS = 2
_REAL_PROGRESS = 64 * 1024  # bytes; an attempt that brought this much starts the count anew


class _Broken(Exception):
    """An answer that was no good: what arrived of it is kept and the rest asked for again.

    `once` marks what a second try seldom mends.
    """

    def __init__(self, error: KinprintError, *, once: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.once = once


def read_range(
    target: Target,
    span: ByteRange,
    meter: Meter,
    policy: RetryPolicy,
    renew: Callable[[Target], Target] | None = None,
) -> bytes:
    """Exactly the bytes of `span` from a file; a broken answer is taken up where it stopped.

    A refused address is renewed, if `renew` knows how, and reading goes on from there.
    """
    received = bytearray()
    failures = refusals = 0
    while len(received) < span.size:
        before = len(received)
        rest = ByteRange(span.start + before, span.stop)
        try:
            _read_some(target, rest, received, meter, policy)
        except Refused:
            refusals += 1
            if renew is None or refusals > _RENEWALS:
                raise
            target = renew(target)
        except _Broken as broken:
            if len(received) - before > _REAL_PROGRESS:
                failures = refusals = 0
            failures += 1
            if failures > (1 if broken.once else policy.retries):
                raise broken.error from None
            pause(min(8.0, policy.first_wait * 2 ** (failures - 1)))
    return bytes(received)


def _read_some(
    target: Target, span: ByteRange, received: bytearray, meter: Meter, policy: RetryPolicy
) -> None:
    whole = span == ByteRange(0, target.size)
    headers = dict(target.headers)
    if not whole:  # a whole file is asked for plainly: every server can do that
        headers["Range"] = f"bytes={span.start}-{span.stop - 1}"
    with answer_to("GET", target, headers, policy) as response:
        meter.count(0, 1 + len(response.history))
        _check_status(response, target, span, whole)
        before = len(received)
        _collect(response, target, span.size, received, meter, policy)
        got = len(received) - before
    if got < span.size:
        raise _Broken(_broken_off(target, got, span.size))


def _collect(
    response: Any,
    target: Target,
    limit: int,
    received: bytearray,
    meter: Meter,
    policy: RetryPolicy,
) -> None:
    """Add the body to `received` as it comes; too much of it, or too slowly, is an error."""
    started = time.monotonic()
    got = 0
    try:
        for chunk in response.iter_raw():
            check()
            meter.count(len(chunk), 0)
            got += len(chunk)
            if got > limit:
                cause = text.message("cause.source.too-many-bytes", limit=limit)
                raise LengthWrong(host=target.host, path=target.path, cause=cause)
            received += chunk
            elapsed = time.monotonic() - started
            if elapsed > policy.timeout and got < min(limit, elapsed * policy.slowest_rate):
                raise _Broken(_too_slow(target, got, limit, elapsed), once=True)
    except (TransportError, OSError, RuntimeError) as error:
        raise _Broken(_broken_off(target, got, limit)) from error


def read_document(
    target: Target, limit: int, meter: Meter, policy: RetryPolicy
) -> tuple[bytes, Mapping[str, str]]:
    """A whole answer of unknown length, such as a listing, of at most `limit` bytes.

    Its headers come with it. A status that is none of success is raised as the hub
    client's own error.
    """
    for attempt in range(policy.retries + 1):
        body = bytearray()
        try:
            with answer_to("GET", target, target.headers, policy) as response:
                meter.count(0, 1 + len(response.history))
                hf_raise_for_status(response)
                _collect(response, target, limit, body, meter, policy)
            return bytes(body), response.headers
        except _Broken as broken:
            if attempt == policy.retries or broken.once:
                raise broken.error from None
            pause(min(8.0, policy.first_wait * 2**attempt))
    raise AssertionError("unreachable")


def _broken_off(target: Target, got: int, wanted: int) -> BodyBroken:
    return BodyBroken(host=target.host, path=target.path, got=got, wanted=wanted)


def _too_slow(target: Target, got: int, wanted: int, elapsed: float) -> TooSlow:
    return TooSlow(
        host=target.host, path=target.path, got=got, wanted=wanted, seconds=round(elapsed)
    )


def _check_status(response: Any, target: Target, span: ByteRange, whole: bool) -> None:
    """Raise unless the answer is the very range of the very file that was asked for."""
    status, headers = response.status_code, response.headers

    def wrong(key: str, /, **fields: object) -> _Broken:
        cause = text.message(key, **fields)
        error = LengthWrong(host=target.host, path=target.path, cause=cause)
        return _Broken(error, once=True)

    def changed(total: str) -> FileChanged:
        cause = text.message("cause.source.other-size", size=total, listed=target.size)
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
        raise wrong("cause.source.packed", encoding=encoding)
    if target.pin is not None and headers.get(target.pin[0]) != target.pin[1]:
        cause = text.message("cause.source.other-pin", header=target.pin[0])
        raise FileChanged(path=target.path, cause=cause)
    length = headers.get("Content-Length")
    if whole:
        if status != 200:
            raise wrong("cause.source.status-instead", status=status, expected=200)
        if length is not None and length.strip() != str(target.size):
            raise changed(length)
        return
    if status == 200:
        size = length or text.message("cause.source.unknown-size")
        raise RangeIgnored(host=target.host, path=target.path, size=size)
    if status != 206:
        raise wrong("cause.source.status-instead", status=status, expected=206)
    sent = _CONTENT_RANGE.match(headers.get("Content-Range", ""))
    if sent is None:
        raise wrong("cause.source.no-content-range")
    start, last, total = sent.groups()
    if (int(start), int(last) + 1) != (span.start, span.stop):
        asked = f"{span.start}-{span.stop - 1}"
        raise wrong("cause.source.other-range", sent=f"{start}-{last}", asked=asked)
    if total != "*" and int(total) != target.size:
        raise changed(total)
