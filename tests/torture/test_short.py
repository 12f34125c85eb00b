"""The short form of `make torture`: each fault in one phase, and small storms."""

from __future__ import annotations

import pytest

import kinprint
from tests.torture import faults, hostile, processes


def seen(pair: tuple[str, str]) -> str:
    """What headers of two models say, read anew."""
    found = [kinprint.inspect(one, cache=False).document for one in pair]
    return repr([(one.parameters, one.bytes, one.dtypes, one.groups) for one in found])


@pytest.mark.parametrize(
    "sources",
    [
        ("hub", "web address"),
        ("s3",),
        *(pytest.param((store,), marks=pytest.mark.slow) for store in ("gs", "az")),
    ],
    ids=" ".join,
)
def test_each_fault_gives_the_same_or_a_sentence(sources: tuple[str, ...]) -> None:
    everything = [case for case in faults.cases() if case.source in sources]
    step = 2 * len(faults.FAULTS) + 2  # the next fault in the next phase
    chosen = [everything[at % len(everything)] for at in range(0, step * len(faults.FAULTS), step)]
    chosen += [everything[(at + 1) % len(everything)] for at in range(0, step * 12, step)]
    ended, lost = faults.run_cases(chosen, seen)
    assert {one.fault.kind for one in chosen} == {one.kind for one in faults.FAULTS}
    assert lost == []
    assert {"same", "sentence"} <= set(ended)


def test_a_lost_result_is_seen() -> None:
    def fails() -> str:
        raise ValueError

    assert faults.outcome(lambda: "other", "expected").startswith("lost")
    assert faults.outcome(fails, "expected").startswith("lost")


@pytest.mark.parametrize(
    "part",
    [
        lambda: faults.weather(6, 0.05),
        pytest.param(lambda: faults.weather(4, 0.20), marks=pytest.mark.slow),
        faults.clock_jump,
        processes.little_memory,
        lambda: processes.kills(3),
        lambda: processes.crowd(3),
        lambda: hostile.requests(200),
    ],
    ids=["weather", "storm", "clock", "memory", "kills", "crowd", "requests"],
)
def test_nothing_is_lost(part: object) -> None:
    row, lost = part()  # type: ignore[operator]
    assert lost == [] and row.lost == 0
