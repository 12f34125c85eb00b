"""Arithmetic keeps to one core for a while, and has all of them back afterwards."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kinprint.workers import Once, Threads, calm_algebra


def threads() -> list[int]:
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def test_linear_algebra_is_calm_for_a_while() -> None:
    assert np.ones((2, 2)).sum() == 4  # the library that multiplies is loaded
    with threadpool_limits(limits=2, user_api="blas"):
        before = threads()
        assert before and set(before) == {2}
        with calm_algebra():
            assert set(threads()) == {1}
        assert threads() == before


def test_whoever_leaves_last_gives_the_threads_back() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        first, second = calm_algebra(), calm_algebra()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert set(threads()) == {1}
        second.__exit__(None, None, None)
        assert set(threads()) == {2}


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
