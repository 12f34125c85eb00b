"""`python -m benchmarks.tuning`: how the read policy's numbers were chosen.

Each setting is run cold three times on the scene of `make bench`; the table shows the
median time with the requests and megabytes it took.
"""

from __future__ import annotations

import statistics
import tempfile

from benchmarks.scene import mirror_of_replicas, run_child

SETTINGS = {
    "gap": (0, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20),
    "first_slack": (0, 1 << 10, 9 << 10, 17 << 10, 65 << 10),
    "connections": (4, 8, 16, 32),
}


def main() -> None:
    with mirror_of_replicas() as endpoint:
        for name, values in SETTINGS.items():
            print(f"\n{name:>12}  requests      MB  seconds")
            for value in values:
                runs = []
                for _ in range(3):
                    with tempfile.TemporaryDirectory() as home:
                        runs.append(run_child(endpoint, home, f"{name}={value}"))
                seconds = statistics.median(run["seconds"] for run in runs)
                used = runs[0]
                cost = f"{used['requests']:>8}  {used['bytes'] / 1e6:>6.2f}"
                print(f"{value:>12}  {cost}  {seconds:.2f}")


if __name__ == "__main__":
    main()
