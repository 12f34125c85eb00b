"""The body of an answer, held against what was asked for.

A Range request must be answered with status 206 and the exact range; a server that would
send the whole file is stopped, a broken answer is taken up where it stopped, and one that
drips is given up.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from kinprint import text
from kinprint.errors import (
    BodyBroken,
    FileChanged,
    KinprintError,
    LengthWrong,
    RangeIgnored,
    RangeRefused,
    TooSlow,
)
from kinprint.records import ByteRange
from kinprint.source.http import (
    Refused,
    RetryPolicy,
    Target,
    TransportError,
    answer_to,
    failure,
    raise_for_status,
)
from kinprint.source.patience import Limit, Patience
from kinprint.source.protocol import Meter
from kinprint.source.stopping import check, pause

_CONTENT_RANGE = re.compile(
    r"^\s*bytes\s+([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)\s*$", re.IGNORECASE
)
_RENEWALS = 2
_MOST_ODD = 2
_REAL_PROGRESS = 64 * 1024  # bytes; an attempt that brought this much starts the count anew
_LONGEST_DOCUMENT = 12  # times the timeout: for an answer whose length nobody knows


class Broken(Exception):
    """An answer that was no good: what arrived of it is kept and the rest asked for again.

    `odd` weighs what another try seldom mends: twice what has cost much time already.
    """

    def __init__(self, error: KinprintError, *, odd: int = 0) -> None:
        super().__init__(str(error))
        self.error = error
        self.odd = odd


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
    patience = policy.patience()
    failures = refusals = odd = 0
    while len(received) < span.size:
        before = len(received)
        rest = ByteRange(span.start + before, span.stop)
        try:
            _read_some(target, rest, received, meter, policy, patience)
        except Refused:
            refusals += 1
            if renew is None or refusals > _RENEWALS:
                raise
            target = renew(target)
        except Broken as broken:
            if len(received) - before > _REAL_PROGRESS:
                failures = refusals = odd = 0
            failures += 1
            odd += broken.odd
            wait = policy.pause_after(failures)
            if failures > policy.retries or odd > _MOST_ODD or wait >= patience.left:
                raise broken.error from None
            pause(wait)
    return bytes(received)


def _read_some(
    target: Target,
    span: ByteRange,
    received: bytearray,
    meter: Meter,
    policy: RetryPolicy,
    patience: Patience,
) -> None:
    whole = span == ByteRange(0, target.size)
    headers = dict(target.headers)
    if not whole:  # a whole file is asked for plainly: every server can do that
        headers["Range"] = f"bytes={span.start}-{span.stop - 1}"
    with answer_to("GET", target, headers, policy, patience=patience) as (response, limit):
        meter.count(0, 1 + len(response.history))
        check_answer(response.status_code, response.headers, target, span, whole)
        reading = _Reading(target, span.size, policy, patience, limit)
        reading.collect(response, received, meter)
    if reading.got < span.size:
        raise Broken(reading.broken_off())


class _Reading(Struct):
    """A body on its way: at most `most` bytes, each part in time, and not too slowly."""

    target: Target
    most: int
    policy: RetryPolicy
    patience: Patience
    limit: Limit
    longest: float = math.inf
    got: int = 0

    def collect(self, response: Any, received: bytearray, meter: Meter) -> None:
        """Add the body to `received` as it comes; too much of it, or too slowly, is an error."""
        started = time.monotonic()
        timeout = self.policy.timeout
        try:
            self.limit.body(min(timeout, self.patience.left))
            for chunk in response.iter_raw():
                check()
                meter.count(len(chunk), 0)
                self.got += len(chunk)
                if self.got > self.most:
                    cause = text.message("cause.source.too-many-bytes", limit=self.most)
                    raise LengthWrong(host=self.target.host, path=self.target.path, cause=cause)
                received += chunk
                elapsed = time.monotonic() - started
                enough = min(self.most, elapsed * self.policy.slowest_rate)
                if elapsed > self.longest or (elapsed > timeout and self.got < enough):
                    raise Broken(self._too_slow(elapsed), odd=2)
                if self.got > _REAL_PROGRESS:
                    self.patience.renew()
                self.limit.body(min(timeout, self.patience.left))
        except (TransportError, OSError, RuntimeError) as error:
            raise Broken(self.broken_off()) from error

    def broken_off(self) -> BodyBroken:
        return BodyBroken(host=self.target.host, path=self.target.path, got=self.got)

    def _too_slow(self, elapsed: float) -> TooSlow:
        place = {"host": self.target.host, "path": self.target.path}
        return TooSlow(**place, got=self.got, seconds=round(elapsed))


def read_document(
    target: Target, limit: int, meter: Meter, policy: RetryPolicy
) -> tuple[bytes, Mapping[str, str]]:
    """A whole answer of unknown length, such as a listing, of at most `limit` bytes.

    Its headers come with it. A status that is none of success is raised as the hub
    client's own error.
    """
    patience = policy.patience()
    longest = _LONGEST_DOCUMENT * policy.timeout
    for attempt in range(policy.retries + 1):
        body = bytearray()
        try:
            with answer_to("GET", target, target.headers, policy, patience=patience) as (
                response,
                listening,
            ):
                meter.count(0, 1 + len(response.history))
                raise_for_status(response)
                reading = _Reading(target, limit, policy, patience, listening, longest)
                reading.collect(response, body, meter)
            return bytes(body), response.headers
        except Broken as broken:
            wait = policy.pause_after(attempt + 1)
            if attempt == policy.retries or broken.odd or wait >= patience.left:
                raise broken.error from None
            pause(wait)
    raise AssertionError("unreachable")


def check_answer(
    status: int, headers: Mapping[str, str], target: Target, span: ByteRange, whole: bool
) -> None:
    """Raise unless the answer is the very range of the very file that was asked for."""

    def wrong(key: str, /, **fields: object) -> Broken:
        cause = text.message(key, **fields)
        error = LengthWrong(host=target.host, path=target.path, cause=cause)
        return Broken(error, odd=1)

    def changed(total: str) -> FileChanged:
        cause = text.message("cause.source.other-size", size=total, listed=target.size)
        return FileChanged(path=target.path, cause=cause)

    if status == 416:
        raise RangeRefused(host=target.host, path=target.path, start=span.start, stop=span.stop - 1)
    if status >= 400:
        raise failure(status, headers, target.address, target.path)
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
