"""`make bench`: the commands people type, start-up included, against a slow network.

Models of 100B parameters are sparse replicas with the length of Solar-Open-100B and GLM-4.5-Air
and their layout as far as it is known; their numbers are reconstructions and no finding about
those models. What is measured is time, bytes, requests and memory. Each command is a process of
its own; its time is compared with the floor that `bare` measures in the same run, and with the
plain way to read the same bytes, `peer`.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.bare import floor_seconds
from benchmarks.commands import Run, run
from benchmarks.network import BANDWIDTH, LATENCY, mirror_of_replicas, weight_bytes
from benchmarks.peer import peer_seconds
from kinprint.demo import FOLDER

RUNS = 3
MODELS = ("upstage/Solar-Open-100B", "zai-org/GLM-4.5-Air")
SMALL = (str(FOLDER / "zoo/base-a"), str(FOLDER / "zoo/a-cpt"))
NORMS = ("--roles", "norm_in,norm_post_attn")  # of 46 layers that both models have: 184 vectors


@dataclass(frozen=True, slots=True)
class Case:
    """A command, and the most that it may take: times the floor, or seconds from the cache."""

    title: str
    arguments: tuple[str, ...]
    most_floors: float | None = None
    most_cached: float | None = None
    most_seconds: float | None = None


REMOTE = (
    Case("study run layers, 184 norms of two 100B models",
         ("study", "run", "layers", *MODELS, *NORMS), most_floors=7, most_cached=5),
    Case("compare, two 100B models",
         ("compare", *MODELS), most_floors=6, most_cached=4),
    Case("inspect, 47 shards of a 100B model",
         ("inspect", MODELS[1]), most_floors=8, most_cached=3),
)  # fmt: skip
LOCAL = (
    Case("compare, two small models in folders", ("compare", *SMALL), most_seconds=2.5),
    Case("--help", ("--help",), most_seconds=0.3),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table; what a command has not is left out."""

    title: str
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    limit: float
    value: float
    unit: str
    requests: int = 0
    bytes: int = 0
    floor: float | None = None
    peer: float | None = None

    @property
    def good(self) -> bool:
        """Whether the command keeps its limit."""
        return self.value <= self.limit


def main() -> int:
    with mirror_of_replicas(MODELS) as endpoint:
        length = weight_bytes(endpoint, MODELS)
        rows = [row for case in REMOTE for row in measure_remote(endpoint, case)]
    rows += [measure_local(case) for case in LOCAL]
    show(rows, length)
    return 0 if all(row.good for row in rows) else 1


def measure_remote(endpoint: str, case: Case) -> Iterator[Row]:
    """A command that reads over the network, then the same from its cache."""
    cold: list[Run] = []
    cached: list[Run] = []
    floors: list[float] = []
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as home:
            cold.append(run(endpoint, home, *case.arguments, "--format", "json"))
            floors.append(floor_seconds(endpoint, cold[-1].traffic))
            cached.append(run(endpoint, home, *case.arguments, "--format", "json"))
    assert not any(one.traffic.ranges for one in cached), "weights were read twice"
    assert case.most_floors is not None and case.most_cached is not None
    seconds, floor = middle(cold), statistics.median(floors)
    traffic = cold[0].traffic
    yield Row(
        case.title, seconds, cpu(cold), peak(cold), case.most_floors, seconds / floor, "×",
        len(traffic.requests), traffic.bytes, floor, peer_seconds(endpoint, traffic),
    )  # fmt: skip
    again = cached[0].traffic
    yield Row(
        "  again, from the cache", middle(cached), cpu(cached), peak(cached), case.most_cached,
        middle(cached), "s", len(again.requests), again.bytes,
    )  # fmt: skip


def measure_local(case: Case) -> Row:
    """A command that reads nothing over the network."""
    with tempfile.TemporaryDirectory() as home:
        runs = [run("", home, *case.arguments) for _ in range(RUNS)]
    assert case.most_seconds is not None
    seconds = middle(runs)
    return Row(case.title, seconds, cpu(runs), peak(runs), case.most_seconds, seconds, "s")


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
    heads = ("requests", "MB", "memory", "cpu", "seconds", "floor", "× floor", "× plain", "limit")
    print(f"{'':<{width}}" + "".join(f"{head:>9}" for head in heads))
    for row in rows:
        plain = "" if row.peer is None else f"{row.peer / row.seconds:.0f}"
        floors = "" if row.floor is None else f"{row.seconds / row.floor:.1f}"
        cells = (
            f"{row.requests}" if row.requests else "",
            f"{row.bytes / 1e6:.2f}" if row.requests else "",
            f"{row.peak_bytes / 1e6:.0f} MB",
            f"{row.cpu_seconds:.2f}",
            f"{row.seconds:.2f}",
            "" if row.floor is None else f"{row.floor:.2f}",
            floors,
            plain,
            f"{row.limit:g} {row.unit}",
        )
        verdict = "ok" if row.good else "MISSED"
        print(f"{row.title:<{width}}" + "".join(f"{cell:>9}" for cell in cells) + f"  {verdict}")
    print(
        f"""
Whole processes, interpreter start included; the median of {RUNS}. Replicas of {length / 1e9:.0f} GB in length,
{LATENCY * 1000:.0f} ms a request, {BANDWIDTH * 8 / 1e6:.0f} Mbit/s a connection; requests and bytes as the server counted them.
floor: the same requests by a bare client with sixteen connections that knows them beforehand.
plain: how many times as long the same ranges take one by one through HfFileSystem (from 8 of them)."""  # noqa: E501
    )


if __name__ == "__main__":
    sys.exit(main())
