"""Arithmetic keeps to one core for a while, and has all of them back afterwards."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kinprint.algebra import THREADS, begin_calmly, calm_algebra


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


# What each part of a process of its own sees: at the start, in `busy_algebra`, there in
# `calm_algebra`, there in `busy_algebra` again, and at the end.
_LOOK = """
from kinprint import algebra
from kinprint.algebra import begin_calmly, busy_algebra, calm_algebra
algebra.cores = lambda: 2
begin_calmly()
import numpy
from threadpoolctl import threadpool_info
def look():
    print(*{one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"})
look()
with busy_algebra():
    look()
    with calm_algebra():
        look()
        with busy_algebra():
            look()
with calm_algebra():
    look()
look()
"""


def seen(**variables: str) -> list[int]:
    inherited = {name: value for name, value in os.environ.items() if name not in THREADS}
    done = subprocess.run(
        [sys.executable, "-c", _LOOK],
        env=inherited | variables, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return [int(line) for line in done.stdout.split()]


def test_a_command_begins_calmly_and_lets_large_products_use_all_cores() -> None:
    assert seen() == [1, 2, 1, 1, 1, 1]


def test_what_a_user_says_of_threads_stays() -> None:
    assert seen(OPENBLAS_NUM_THREADS="1") == [1, 1, 1, 1, 1, 1]


def test_nothing_is_set_once_arithmetic_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
    begin_calmly()
    assert not any(name in os.environ for name in THREADS)
