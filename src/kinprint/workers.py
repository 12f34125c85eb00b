"""Processes and threads that share the cores, each with one thread of arithmetic."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from kinprint.algebra import THREADS

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing.connection import Connection

_CAN_HOLD_BACK = hasattr(signal, "pthread_sigmask")

T = TypeVar("T")


class Once(Generic[T]):
    """A function without arguments that runs once; threads that come meanwhile wait for it.

    Models are opened side by side, and each looks into the same tables first.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._function, self._lock = function, Lock()
        self._kept: list[T] = []

    def __call__(self) -> T:
        """What the function gave, or gives now."""
        if not self._kept:
            with self._lock:
                if not self._kept:
                    self._kept.append(self._function())
        return self._kept[0]

    def clear(self) -> None:
        """Forget what the function gave."""
        self._kept.clear()


@contextmanager
def workers(
    count: int, prepare: Callable[..., object] | None = None, given: tuple[Any, ...] = ()
) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes that know nothing of this one's threads and sockets.

    They end with this process, and at once where what they work for fails.
    """
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    class Pool(ProcessPoolExecutor):
        """Begins processes with interrupts held back, until they know what to do about them."""

        def submit(self, *given: Any, **named: Any) -> Future[Any]:
            """Have something done."""
            if not _CAN_HOLD_BACK:
                return super().submit(*given, **named)
            before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            try:
                return super().submit(*given, **named)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)

    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    context = get_context("spawn")
    here, there = context.Pipe()
    try:
        with Pool(count, context, _begin, (there, prepare, given)) as pool:
            try:
                yield pool
            except BaseException:
                here.close()
                pool.shutdown(cancel_futures=True)
                raise
    finally:
        here.close()
        there.close()
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _begin(
    parent: Connection, prepare: Callable[..., object] | None, given: tuple[Any, ...]
) -> None:
    """Begin as a worker: end without a word where the terminal says so, and with the parent."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if _CAN_HOLD_BACK:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    Thread(target=_end_with, args=(parent,), daemon=True).start()
    if prepare is not None:
        prepare(*given)


def _end_with(parent: Connection) -> None:
    parent.poll(None)  # nothing is ever sent: until the other end is closed
    os._exit(1)


class Threads(ThreadPoolExecutor):
    """A pool that makes do with as many threads as the system gives, if it gives any.

    Under a limit of memory the last of many threads may find no room for its stack; what was
    handed in is done by the others. It is done as whoever hands it in would: with the device of
    that thread, for one.
    """

    def submit(self, function: Callable[..., T], /, *given: Any, **named: Any) -> Future[T]:
        """Have something done."""
        return super().submit(copy_context().run, function, *given, **named)

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except RuntimeError:
            if not self._threads:
                raise
