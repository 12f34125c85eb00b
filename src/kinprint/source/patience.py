"""How long a server may take, and how much it may send before its answer has begun.

The hub client's HTTP library bounds the wait for the next byte, not the wait for an answer: a
server that sends a header line a second, or `100 Continue` without end, is waited for without
end. Here every connection that is opened for us asks, before each read, until when and for how
many bytes this thread still listens. The library tells of new connections through its `trace`
extension, so no part of it is replaced for others in the same process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from typing import Any, TypeVar

_OPENED = (".connect_tcp.complete", ".connect_unix_socket.complete", ".start_tls.complete")
_HEAD_BYTES = 1024 * 1024  # status lines, headers and what comes before them
_T = TypeVar("_T")
_thread = threading.local()


class Overdue(TimeoutError):
    """The time for an answer, or for its next part, is over."""


class Flooded(OSError):
    """Far more was sent than an answer's head can need."""


class Patience:
    """Until when one exchange may go on, its tries and the pauses between them included."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Begin anew: the server has shown that it is there."""
        self._until = time.monotonic() + self._seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self._until - time.monotonic()


class Limit:
    """What this thread listens for at the moment: a time, and a number of bytes."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._bytes: int | None = _HEAD_BYTES

    def body(self, seconds: float) -> None:
        """The next part of a body may take so long; whoever reads it counts its bytes."""
        self._until = time.monotonic() + seconds
        self._bytes = None

    def timeout(self, given: float | None) -> float:
        """Seconds for the next read; an error if none are left."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise Overdue("timed out")
        return left if given is None else min(given, left)

    def count(self, received: int) -> None:
        """Note what came; an error if it is too much for a head."""
        if self._bytes is not None:
            self._bytes -= received
            if self._bytes < 0:
                raise Flooded("no answer within its first megabyte")


@contextmanager
def listening(seconds: float) -> Iterator[Limit]:
    """Within this block, in this thread, an answer's head has so many seconds to come."""
    _thread.limit = limit = Limit(seconds)
    try:
        yield limit
    finally:
        _thread.limit = None


def trace(event: str, info: dict[str, Any]) -> None:
    """Have a connection that was just opened keep to the limit of whoever reads from it."""
    if event.endswith(_OPENED):
        _bound(info["return_value"])


def _bound(stream: Any) -> None:
    unbounded = stream.read

    def read(max_bytes: int, timeout: float | None = None) -> Any:
        limit: Limit | None = getattr(_thread, "limit", None)
        if limit is None:
            return unbounded(max_bytes, timeout)
        try:
            data = unbounded(max_bytes, limit.timeout(timeout))
        except Exception:
            limit.timeout(timeout)
            raise
        limit.count(len(data))
        return data

    stream.read = read


def in_time(action: Callable[[], _T], seconds: float) -> _T:
    """What an action gives, or Overdue: for libraries that wait as long as they like.

    One that hangs is left to itself, in a thread that ends with the process.
    """
    done: Future[_T] = Future()

    def run() -> None:
        try:
            done.set_result(action())
        except BaseException as error:
            done.set_exception(error)

    try:
        threading.Thread(target=run, name="kinprint-wait", daemon=True).start()
    except RuntimeError:  # no room for another thread: better without a limit than not at all
        run()
    if not wait([done], seconds).done:
        raise Overdue("timed out")
    return done.result()
