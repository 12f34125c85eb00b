"""`python -m benchmarks.tuning`: how the read policy's numbers were chosen.

Each setting is run cold three times on the scene of `make bench`: the norm vectors, and
for `gap` every fourth or sixteenth row of eight matrices (24 or 120 kB apart). The table
shows the median time with the requests and megabytes it took. Joining is quicker wherever
the line is wide, but bytes are what people pay for: `gap` stops where a request costs as
much as the bytes in between on a line of 200 Mbit/s in all (50 ms / 16 × 25 MB/s = 78 kB).
"""

from __future__ import annotations

import statistics
import tempfile

from benchmarks.scene import mirror_of_replicas, run_child

SETTINGS: tuple[tuple[str, tuple[int, ...], tuple[str, ...]], ...] = (
    ("first_slack", (0, 1 << 10, 9 << 10, 17 << 10, 65 << 10), ()),
    ("connections", (4, 8, 16, 32), ()),
    ("gap", (0, 16 << 10, 64 << 10, 256 << 10), ("rows=4",)),
    ("gap", (0, 16 << 10, 64 << 10, 256 << 10), ("rows=16",)),
)


def main() -> None:
    with mirror_of_replicas() as endpoint:
        for name, values, scene in SETTINGS:
            print(f"\n{' '.join(scene) or 'norms'}\n{name:>12}  requests      MB  seconds")
            for value in values:
                runs = []
                for _ in range(3):
                    with tempfile.TemporaryDirectory() as home:
                        runs.append(run_child(endpoint, home, f"{name}={value}", *scene))
                seconds = statistics.median(run["seconds"] for run in runs)
                used = runs[0]
                cost = f"{used['requests']:>8}  {used['bytes'] / 1e6:>6.2f}"
                print(f"{value:>12}  {cost}  {seconds:.2f}")


if __name__ == "__main__":
    main()
