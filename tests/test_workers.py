"""Pools make do with what the system gives, and what runs once runs once."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from kinprint.workers import Once, Threads


def test_a_pool_makes_do_with_the_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def starting(self: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(self)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", starting)
    with Threads(8) as pool:
        assert list(pool.map(lambda number: number**2, range(50))) == [n**2 for n in range(50)]
    assert len(started) == 2


def test_what_runs_once_runs_once_in_threads_too() -> None:
    calls: list[int] = []
    begun, again, may_end = threading.Event(), threading.Event(), threading.Event()

    def slow() -> list[int]:
        (again if calls else begun).set()
        calls.append(1)
        assert may_end.wait(10)
        return [1]

    once = Once(slow)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(once)
        assert begun.wait(10)
        second = pool.submit(once)
        again.wait(0.2)  # the time that a second call would have
        may_end.set()
        assert first.result() is second.result() is once()
    assert len(calls) == 1
