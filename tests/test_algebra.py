"""Arithmetic keeps to one core for a while, and has all of them back afterwards."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from kinprint.algebra import THREADS, begin_calmly, calm_algebra
from tests.fewer_layers import short_zoo


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


# What a process of its own sees at each step of some code.
_LOOK = """
import sys
from contextlib import ExitStack
from kinprint import algebra
from kinprint.algebra import begin_calmly, busy_algebra, calm_algebra
from kinprint.cli.environment import save_address_space
algebra.cores = lambda: 2
def look():
    from threadpoolctl import threadpool_info
    print(*{one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"})
"""


def seen(code: str, **variables: str) -> list[int]:
    inherited = {name: value for name, value in os.environ.items() if name not in THREADS}
    done = subprocess.run(
        [sys.executable, "-c", _LOOK + code],
        env=inherited | variables,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=120,
    )
    return [int(line) for line in done.stdout.split()]


_NESTED = """
begin_calmly()
import numpy
look()
with busy_algebra():
    look()
    with calm_algebra():
        look()
        with busy_algebra():
            look()
    look()
with calm_algebra():
    look()
look()
"""


def test_a_command_begins_calmly_and_lets_large_products_use_all_cores() -> None:
    assert seen(_NESTED) == [1, 2, 1, 1, 2, 1, 1]


def test_what_a_user_says_of_threads_stays() -> None:
    assert seen(_NESTED, OPENBLAS_NUM_THREADS="1") == [1] * 7


def test_whoever_comes_and_goes_in_any_order_leaves_it_calm() -> None:
    code = """
begin_calmly()
import numpy
busy, calm = busy_algebra(), calm_algebra()
busy.__enter__(); calm.__enter__(); look()
busy.__exit__(None, None, None); look()
calm.__exit__(None, None, None); look()
with busy_algebra():
    look()
with calm_algebra():
    look()
"""
    assert seen(code) == [1, 1, 1, 2, 1]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_where_there_is_little_room_no_product_has_many_threads() -> None:
    code = """
import resource
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
save_address_space()
begin_calmly()
import numpy
with busy_algebra():
    look()
"""
    assert seen(code) == [1]


@pytest.mark.parametrize("level", ["quick", "deep"])
def test_commands_begin_so_and_end_so(level: str) -> None:
    pair = [str(short_zoo() / name) for name in ("base-a", "a-cpt")]
    code = f"""
import io
from contextlib import redirect_stdout
from kinprint.cli.root import run
with redirect_stdout(io.StringIO()):
    assert run(["compare", *{pair!r}, "--level", {level!r}]) == 0
look()
"""
    assert seen(code) == [1]


def test_nothing_is_set_once_arithmetic_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in THREADS:
        monkeypatch.delenv(name, raising=False)
    begin_calmly()
    assert not any(name in os.environ for name in THREADS)
