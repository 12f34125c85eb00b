"""`make bench`: the commands people type, start-up included, as ratios to what they cannot avoid.

Models of 100B parameters are sparse replicas with the length of Solar-Open-100B and GLM-4.5-Air
and their layout as far as it is known; their numbers are reconstructions and no finding about
those models. What is measured is time, bytes, requests and memory. Each command is a process of
its own. Over a slow network its time is divided by the floor that `bare` measures in the same run,
and the plain way to read the same bytes, `peer`, stands beside it. From the cache or a folder its
processor seconds are divided by those of a plain script that loads and asks the least, `start`.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from benchmarks.bare import floor_seconds
from benchmarks.commands import Run, run
from benchmarks.many_tensors import write_model
from benchmarks.network import BANDWIDTH, LATENCY, mirror_of_replicas, weight_bytes
from benchmarks.peer import peer_seconds
from kinprint.demo import FOLDER

RUNS = 3
START = "benchmarks.start"
MODELS = ("upstage/Solar-Open-100B", "zai-org/GLM-4.5-Air")
SMALL = (str(FOLDER / "zoo/base-a"), str(FOLDER / "zoo/a-cpt"))
NORMS = ("--roles", "norm_in,norm_post_attn")  # of 46 layers that both models have: 184 vectors


class Case(Struct, frozen=True):
    """A command on some models, and its goal: times the floor, and from the cache times the start.

    Without a goal for the cache nothing is read over the network. Of a command whose `answers` are
    kept, those are what comes again, and it is measured beside that what it takes to find one from
    cached bytes, for which there is no goal.
    """

    title: str
    arguments: tuple[str, ...]
    models: tuple[str, ...]
    goal: float
    cached_goal: float | None = None
    answers: bool = False


REMOTE = (
    Case("study run layers, 184 norms of two 100B models",
         ("study", "run", "layers", *MODELS, *NORMS), MODELS, 2.5, 2.5),
    Case("compare, two 100B models",
         ("compare", *MODELS), MODELS, 3.7, 2.5, answers=True),
    Case("compare --level deep, two 100B models",
         ("compare", *MODELS, "--level", "deep"), MODELS, 26.0, 2.5, answers=True),
    Case("inspect, 47 shards of a 100B model",
         ("inspect", MODELS[1]), MODELS[1:], 3.8, 2.5),
)  # fmt: skip
LOCAL = (
    Case("compare, two small models in folders", ("compare", *SMALL), SMALL, 4.5),
    Case("--help", ("--help",), (), 1.5),
)


class Row(Struct, frozen=True):
    """One line of the table; what a command has not is left out.

    `floor` is in seconds where requests were made, in processor seconds of the start elsewhere.
    """

    title: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    floor: float
    ratio: float
    goal: float | None
    requests: int = 0
    bytes: int = 0
    peer: float | None = None

    @property
    def good(self) -> bool:
        """Whether the goal is reached, if there is one."""
        return self.goal is None or self.ratio <= self.goal


def main() -> int:
    with mirror_of_replicas(MODELS) as endpoint:
        length = weight_bytes(endpoint, MODELS)
        rows = [row for case in REMOTE for row in measure_remote(endpoint, case)]
    with tempfile.TemporaryDirectory() as folder:
        count = write_model(Path(folder))
        many = Case(f"inspect, {count:,} tensors in a folder", ("inspect", folder), (folder,), 4.3)
        rows += [measure_local(case) for case in (*LOCAL, many)]
    show(rows, length)
    return 0 if all(row.good for row in rows) else 1


def measure_remote(endpoint: str, case: Case) -> Iterator[Row]:
    """A command that reads over the network, then the same from its cache."""
    cold: list[Run] = []
    cached: list[Run] = []
    anew: list[Run] = []
    starts: list[Run] = []
    floors: list[float] = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as home:
            cold.append(run(endpoint, home, *case.arguments, "--format", "json"))
            floors.append(floor_seconds(endpoint, cold[-1].traffic))
            cached.append(run(endpoint, home, *case.arguments, "--format", "json"))
            if case.answers:
                shutil.rmtree(Path(home, "assets", "kinprint", "answers"))
                anew.append(run(endpoint, home, *case.arguments, "--format", "json"))
            starts.append(run(endpoint, home, *case.models, module=START))
    assert not any(one.traffic.ranges for one in (*cached, *anew)), "weights were read twice"
    assert case.cached_goal is not None
    floor, traffic = statistics.median(floors), cold[0].traffic
    yield Row(
        case.title, middle(cold), cpu(cold), peak(cold), floor, middle(cold) / floor, case.goal,
        len(traffic.requests), traffic.bytes, peer_seconds(endpoint, traffic),
    )  # fmt: skip
    start = cpu(starts)
    title = "  again, the answer that was kept" if case.answers else "  again, from the cache"
    for name, runs, goal in (
        (title, cached, case.cached_goal),
        ("  again, worked out from the cache", anew, None),
    ):
        if runs:
            again = runs[0].traffic
            yield Row(
                name, middle(runs), cpu(runs), peak(runs), start, cpu(runs) / start, goal,
                len(again.requests), again.bytes,
            )  # fmt: skip


def measure_local(case: Case) -> Row:
    """A command that reads nothing over the network."""
    runs: list[Run] = []
    starts: list[Run] = []
    with tempfile.TemporaryDirectory() as home:
        for _ in range(RUNS):
            runs.append(run("", home, *case.arguments))
            starts.append(run("", home, *case.models, module=START))
    start = cpu(starts)
    return Row(case.title, middle(runs), cpu(runs), peak(runs), start, cpu(runs) / start, case.goal)


def middle(runs: Sequence[Run]) -> float:
    """The median time."""
    return statistics.median(one.seconds for one in runs)


def cpu(runs: Sequence[Run]) -> float:
    """The median of processor time, which other programs on the machine hardly change."""
    return statistics.median(one.cpu_seconds for one in runs)


def peak(runs: Sequence[Run]) -> int:
    """The most memory that any of the runs held."""
    return max(one.peak_bytes for one in runs)


def show(rows: Sequence[Row], length: int) -> None:
    """Print the table and what its columns mean."""
    width = max(len(row.title) for row in rows)
    heads = ("requests", "MB", "memory", "cpu", "seconds", "floor", "× floor", "goal", "× plain")
    print(f"{'':<{width}}" + "".join(f"{head:>9}" for head in heads))
    for row in rows:
        plain = "" if row.peer is None else f"{row.peer / row.seconds:.0f}"
        cells = (
            f"{row.requests}" if row.requests else "",
            f"{row.bytes / 1e6:.2f}" if row.requests else "",
            f"{row.peak_bytes / 1e6:.0f} MB",
            f"{row.cpu_seconds:.2f}",
            f"{row.seconds:.2f}",
            f"{row.floor:.2f}",
            f"{row.ratio:.1f}",
            "" if row.goal is None else f"{row.goal:.1f}",
            plain,
        )
        verdict = "" if row.goal is None else "ok" if row.good else "MISSED"
        print(f"{row.title:<{width}}" + "".join(f"{cell:>9}" for cell in cells) + f"  {verdict}")
    print(
        f"""
Whole processes, interpreter start included; the median of {RUNS}. Replicas of {length / 1e9:.0f} GB in length,
{LATENCY * 1000:.0f} ms a request, {BANDWIDTH * 8 / 1e6:.0f} Mbit/s a connection; requests and bytes as the server counted them.
floor: the same requests by a bare client with sixteen connections that knows them beforehand; from
the cache and in folders, cpu of a script that loads NumPy, asks the hub's client for the state and
reads headers with json, and × floor is cpu over that.
plain: how many times as long the same ranges take one by one through HfFileSystem (from 8 of them)."""  # noqa: E501
    )


if __name__ == "__main__":
    sys.exit(main())
