"""How many cores the products of matrices use.

A numerical library starts a thread for every core in every process; several of that kind
spend their time waiting for each other.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables by which users say how many threads a numerical library starts."""


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def begin_calmly() -> None:
    """Have one thread of arithmetic until `busy_algebra` asks for more.

    When NumPy is loaded its library starts one for each core, which wait at full speed for work
    that seldom comes, and hold a buffer each. What a user has set, or has loaded, stays.
    """
    if "numpy" not in sys.modules and not any(name in os.environ for name in THREADS):
        os.environ.update(dict.fromkeys(THREADS, "1"))
        _THREADS_NOW.began_calmly = True


@contextmanager
def busy_algebra() -> Iterator[None]:
    """Let products of large matrices use all cores for a while, where this process began calmly.

    Whoever is inside `calm_algebra` meanwhile keeps them on one.
    """
    with _THREADS_NOW.with_one_more("busy"):
        yield


@contextmanager
def calm_algebra() -> Iterator[None]:
    """Keep each product of matrices on one core for a while, in the whole process.

    Products are small here: more threads gain little on a quiet machine, and wait for each
    other on a busy one until a second has become twenty. Whoever leaves last gives back the
    threads that there were, so that comparisons side by side do not take them away for good.
    """
    with _THREADS_NOW.with_one_more("calm"):
        yield


class _ThreadsNow:
    """Who asks for one thread or for many, in whatever order they come and go."""

    def __init__(self) -> None:
        self.began_calmly = False
        self._lock = Lock()
        self._inside = {"busy": 0, "calm": 0}
        self._most: int | None = None  # None: as many as there were
        self._limits: Any = None

    @contextmanager
    def with_one_more(self, kind: str) -> Iterator[None]:
        """Count somebody who is busy or calm as long as the block lasts."""
        self._count(kind, 1)
        try:
            yield
        finally:
            self._count(kind, -1)

    def _count(self, kind: str, more: int) -> None:
        with self._lock:
            self._inside[kind] += more
            if self.began_calmly:
                many = self._inside["busy"] and not self._inside["calm"]
                self._allow(cores() if many else None)
            else:
                self._allow(1 if self._inside["calm"] else None)

    def _allow(self, most: int | None) -> None:
        if most == self._most:
            return
        if self._limits is not None:
            self._limits.restore_original_limits()
            self._limits = None
        if most is not None:
            from threadpoolctl import threadpool_limits

            self._limits = threadpool_limits(limits=most, user_api="blas")
        self._most = most


_THREADS_NOW = _ThreadsNow()
