"""The short form of `make torture`: each fault in one phase, and small storms."""

from __future__ import annotations

import pytest

import kinprint
from tests.torture import faults, hostile, processes
from tests.torture.scene import demo_mirror


def seen(pair: tuple[str, str]) -> str:
    """What headers of a model say, read anew."""
    found = kinprint.inspect(pair[0], cache=False).document
    return repr((found.parameters, found.bytes, found.dtypes, found.groups))


def test_each_fault_gives_the_same_or_a_sentence() -> None:
    everything = faults.cases()
    step = 2 * len(faults.FAULTS) + 2  # the next fault in the next phase
    chosen = [everything[at % len(everything)] for at in range(0, step * len(faults.FAULTS), step)]
    chosen += [everything[(at + 1) % len(everything)] for at in range(0, step * 12, step)]
    with demo_mirror() as server:
        expected = {}
        for source in faults.PHASES:
            with faults.models(source, server) as pair:
                expected[source] = seen(pair)
        ended = {
            case.title: faults.run_case(case, server, seen, expected[case.source])
            for case in chosen
        }
    assert {one.fault.kind for one in chosen} == {one.kind for one in faults.FAULTS}
    assert {one: how for one, how in ended.items() if how.startswith("lost")} == {}
    assert {"same", "sentence"} <= set(ended.values())


def test_a_lost_result_is_seen() -> None:
    def fails() -> str:
        raise ValueError

    assert faults.outcome(lambda: "other", "expected").startswith("lost")
    assert faults.outcome(fails, "expected").startswith("lost")


@pytest.mark.parametrize(
    "part",
    [
        lambda: faults.weather(6, 0.05),
        lambda: faults.weather(4, 0.20),
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
