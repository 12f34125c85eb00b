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
    """Have no threads of arithmetic until `busy_algebra` asks for them.

    OpenBLAS starts one for each core when NumPy is loaded, which wait at full speed for work that
    seldom comes, and hold a buffer each. What a user has set, or has loaded, stays.
    """
    if "numpy" not in sys.modules and not any(name in os.environ for name in THREADS):
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        _CALM.from_the_start = True


@contextmanager
def busy_algebra() -> Iterator[None]:
    """Let products of large matrices use all cores for a while.

    Nothing changes where this process did not begin calmly, or somebody is inside `calm_algebra`.
    """
    with _CALM.lock:
        waking = _CALM.from_the_start and not _CALM.guests
        _CALM.from_the_start &= not waking
    if not waking:
        yield
        return
    from threadpoolctl import threadpool_limits

    try:
        with threadpool_limits(limits=cores(), user_api="blas"):
            yield
    finally:
        _CALM.from_the_start = True


@contextmanager
def calm_algebra() -> Iterator[None]:
    """Keep each product of matrices on one core for a while, in the whole process.

    Products are small here: more threads gain little on a quiet machine, and wait for each
    other on a busy one until a second has become twenty. Whoever leaves last gives back the
    threads that there were, so that comparisons side by side do not take them away for good.
    """
    with _CALM.lock:
        if not _CALM.guests and not _CALM.from_the_start:
            from threadpoolctl import threadpool_limits

            _CALM.limits = threadpool_limits(limits=1, user_api="blas")
        _CALM.guests += 1
    try:
        yield
    finally:
        with _CALM.lock:
            _CALM.guests -= 1
            if not _CALM.guests and _CALM.limits is not None:
                _CALM.limits.restore_original_limits()
                _CALM.limits = None


class _Calm:
    """Who is inside `calm_algebra`, what to give back, and whether this process began calmly."""

    def __init__(self) -> None:
        self.lock, self.guests, self.from_the_start = Lock(), 0, False
        self.limits: Any = None


_CALM = _Calm()
