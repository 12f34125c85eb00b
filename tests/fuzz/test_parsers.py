"""Damaged files of every kind: refused with a sentence, or read; nothing else happens."""

from __future__ import annotations

import os
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.fuzz.answers import SEEDS, echo
from tests.fuzz.guided import ANSWERS, kept, opened
from tests.fuzz.targets import Target, mutated, targets, tried, watched

TARGETS = targets()


@pytest.mark.parametrize("name", TARGETS)
def test_good_files_are_read(name: str) -> None:
    read = [TARGETS[name].parse(seed) for seed in TARGETS[name].seeds[-1:]]
    assert len(read) == 1


@pytest.mark.parametrize("examples", [50, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TARGETS)
def test_damaged_files_are_refused_or_read(name: str, examples: int) -> None:
    target = TARGETS[name]

    @settings(max_examples=examples)
    @given(draw=st.randoms(use_true_random=False), which=st.integers(0, 10))
    def check(draw: Random, which: int) -> None:
        assert tried(target, mutated(target.seeds[which % len(target.seeds)], draw)) is None

    check()


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=80)
@given(raw=st.binary(max_size=300))
@example(raw=b"")
@example(raw=b"[" * 100_000)
@example(raw=b'{"a":' * 50_000)
def test_any_bytes_are_refused_or_read(name: str, raw: bytes) -> None:
    assert tried(TARGETS[name], raw) is None


@pytest.mark.parametrize("name", [*TARGETS, ANSWERS])
def test_what_guided_fuzzing_kept_is_refused_or_read(name: str) -> None:
    inputs = kept(name)
    assert inputs
    with opened(name) as (_, tried):
        assert [found for raw in inputs if (found := tried(raw)) is not None] == []


def test_damaged_answers_of_a_server_are_refused_or_read() -> None:
    draw = Random(1)
    with echo() as server:
        assert server.tried(SEEDS[0]) is None
        assert server.tried(SEEDS[0].replace(b"ETag: x", b"ETag: \xe5\xff")) is None
        assert server.tried(SEEDS[0].replace(b"config.json", b"config.js\xe3\xff")) is None
        assert server.tried(SEEDS[3].replace(b"EntryNotFound", b"\xe5")) is None
        found = [server.tried(mutated(draw.choice(SEEDS), draw)) for _ in range(60)]
    assert set(found) == {None}


def test_the_watch_sees_what_a_parser_must_not_do() -> None:
    def runs(raw: bytes) -> None:
        os.system("true")

    def writes(raw: bytes) -> None:
        open(os.devnull, "w").close()  # noqa: PTH123

    def writes_below(raw: bytes) -> None:
        os.close(os.open(os.devnull, os.O_WRONLY))

    for parse in (runs, writes, writes_below):
        found = tried(Target(parse, ()), b"")
        assert found is not None and found.startswith("AssertionError")
    with watched():
        pass
    os.system("true")
