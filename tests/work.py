"""Work counted in calls, not in seconds: the same number on any machine, under any load."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class TooMuchWork(AssertionError):
    """The code under test made more calls than its input accounts for."""


@contextmanager
def at_most(calls: int) -> Iterator[None]:
    """Fail as soon as the code inside has called more than `calls` functions.

    Functions of Python and of C count alike, those of other threads do not. Code without end
    is stopped by the count itself, so no clock is needed.
    """
    made = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal made
        if event in ("call", "c_call"):
            made += 1
            if made > calls:
                sys.setprofile(None)
                raise TooMuchWork(f"more than {calls} calls")

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)
