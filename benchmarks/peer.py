"""The same bytes the plain way: the hub's own file system, one range after the other.

A few of the ranges that a command read are read through `HfFileSystem`, which finds the file anew
for each of them, as a script that reads weights in place would do it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time

from benchmarks.network import Traffic, environment

SAMPLE = 8


def peer_seconds(endpoint: str, traffic: Traffic) -> float:
    """Seconds that all ranges of a run would take, from those of a few spread over it."""
    ranges = traffic.ranges
    sample = ranges[:: max(1, len(ranges) // SAMPLE)][:SAMPLE]
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.peer"],
            env=environment(endpoint, home),
            input=json.dumps(sample),
            capture_output=True,
            text=True,
            check=True,
        )
    return float(done.stdout) / len(sample) * len(ranges)


def main() -> None:
    from huggingface_hub import HfFileSystem

    files = HfFileSystem()
    sample = json.load(sys.stdin)
    started = time.monotonic()
    for path, start, stop in sample:
        with files.open(path, "rb", cache_type="none") as file:
            file.seek(start)
            assert len(file.read(stop - start)) == stop - start
    print(time.monotonic() - started)


if __name__ == "__main__":
    main()
