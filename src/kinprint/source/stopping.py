"""How work in threads is told to stop: an event that waiting and reading look at.

A source is called by whoever reads, in any thread, and knows nothing of pools. Whoever runs
the thread says which event ends it; every wait and every chunk of an answer asks for it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_thread = threading.local()


class Stopped(Exception):
    """Nobody waits for this any more."""


@contextmanager
def until(event: threading.Event) -> Iterator[None]:
    """Within this block, in this thread, `event` ends waiting and reading."""
    _thread.event = event
    try:
        yield
    finally:
        _thread.event = None


def check() -> None:
    """Raise Stopped if this thread's work is not wanted any more."""
    event: threading.Event | None = getattr(_thread, "event", None)
    if event is not None and event.is_set():
        raise Stopped


def pause(seconds: float) -> None:
    """Wait, but not longer than anybody cares."""
    event: threading.Event | None = getattr(_thread, "event", None)
    if event is None:
        time.sleep(seconds)
    elif event.wait(seconds):
        raise Stopped
