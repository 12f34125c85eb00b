"""`make torture`: everything that a run must survive, as one table with the date.

python -m tests.torture            all of it, about three quarters of an hour
python -m tests.torture weather    one part; several may be named
python -m tests.torture --short    all of it in small, a few minutes
"""

from __future__ import annotations

import datetime
import faulthandler
import sys
import time
from collections.abc import Callable

from tests.torture import faults, hostile, processes
from tests.torture.scene import Row

Part = Callable[[], tuple[Row, list[str]]]


def parts(short: bool) -> dict[str, Part]:
    """What there is to do, by name."""
    every = 11 if short else 1
    return {
        "matrix": lambda: faults.matrix(faults.cases()[::every]),
        "weather": lambda: faults.weather(30 if short else 1_000, 0.05),
        "storm": lambda: faults.weather(20 if short else 300, 0.20),
        "clock": faults.clock_jump,
        "processes": lambda: processes.storm(5 if short else 200, 0.20),
        "kills": lambda: processes.kills(10 if short else 100),
        "crowd": lambda: processes.crowd(5 if short else 20),
        "memory": processes.little_memory,
        "inputs": lambda: hostile.inputs(500 if short else 20_000),
        "answers": lambda: hostile.answers(100 if short else 3_000),
        "mirror": lambda: hostile.requests(500 if short else 20_000),
        "soak": lambda: processes.soak(30 if short else 600),
    }


def main(arguments: list[str]) -> int:
    """Do what was asked for, and print the table; 1 if anything was lost."""
    faulthandler.enable()
    known = parts("--short" in arguments)
    chosen = [one for one in arguments if not one.startswith("--")] or list(known)
    rows: list[Row] = []
    for name in chosen:
        began = time.monotonic()
        row, lost = known[name]()
        print(f"{name}: {time.monotonic() - began:.0f} s", *lost[:20], sep="\n  ", file=sys.stderr)
        rows.append(row)
    print(f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}\n")
    print("| what | load held | what came of it | lost |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.what} | {row.load} | {row.survived} | {row.lost or 'none'} |")
    return 1 if any(row.lost for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
