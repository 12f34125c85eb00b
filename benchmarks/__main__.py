"""`make bench`: the norms of two 100B models, read from sparse replicas over a slow network.

The replicas have the length of Solar-Open-100B and GLM-4.5-Air and their layout as far as it
is known; their numbers are reconstructions and no finding about those models. What is
measured is reading.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.peer import seconds_a_vector
from benchmarks.scene import (
    floor_seconds,
    mirror_of_replicas,
    replica_bytes,
    requests_seen,
    run_child,
)

RUNS = 5


def main() -> int:
    rows: list[tuple[str, str, str, bool]] = []

    def row(what: str, value: float, unit: str, limit: float) -> None:
        good = value <= limit
        rows.append((what, f"{value:,.3g} {unit}".strip(), f"≤ {limit:,g} {unit}".strip(), good))

    with mirror_of_replicas() as endpoint:
        length = replica_bytes(endpoint)
        requests_seen(endpoint)
        cold, warm, seen = [], [], []
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as home:
                cold.append(run_child(endpoint, home))
                seen.append(requests_seen(endpoint))
                warm.append(run_child(endpoint, home))
                requests_seen(endpoint)
        peer = seconds_a_vector(endpoint)
    first = cold[0]
    assert first["vectors"] == 184, first
    floor = floor_seconds(max(seen), first["bytes"])
    seconds = statistics.median(run["seconds"] for run in cold)
    row("requests (counted by the server)", max(seen), "", 350)
    row("megabytes", first["bytes"] / 1e6, "MB", 10)
    row("time over the floor", seconds / floor, "×", 1.5)
    row("peak memory", max(run["peak_mb"] for run in cold), "MB", 250)
    row("warm repeat, the whole process", statistics.median(r["wall"] for r in warm), "s", 1)
    row("warm repeat, bytes of weights", warm[0]["bytes"] - _listing(warm[0]), "B", 0)
    row("kinprint --help", 1000 * _help_seconds(), "ms", 300)
    width = max(len(what) for what, *_ in rows)
    print("184 norm vectors of two 100B models, 50 ms a request, 200 Mbit/s a connection\n")
    for what, value, limit, good in rows:
        print(f"  {what:<{width}}  {value:>10}  {limit:>10}  {'ok' if good else 'MISSED'}")
    whole = statistics.median(run["wall"] for run in cold)
    print(f"\n  from replicas of {length / 1e9:.0f} GB in length")
    print(f"  reading {seconds:.2f} s, floor {floor:.2f} s, with interpreter start {whole:.2f} s")
    print(
        f"  one request at a time through HfFileSystem: {peer:.2f} s a vector (measured on 8), "
        f"{peer * 184 / seconds:.0f} times as long for 184"
    )
    return 0 if all(good for *_, good in rows) else 1


def _listing(run: dict[str, float]) -> float:
    """A warm run asks each repository for its present commit and reads nothing else."""
    return run["bytes"] if run["requests"] == 2 else 0


def _help_seconds() -> float:
    def once() -> float:
        started = time.monotonic()
        subprocess.run(
            [sys.executable, "-m", "kinprint", "--help"], check=True, capture_output=True
        )
        return time.monotonic() - started

    return statistics.median(once() for _ in range(5))


if __name__ == "__main__":
    sys.exit(main())
