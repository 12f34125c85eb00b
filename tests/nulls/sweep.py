"""`python -m tests.nulls.sweep`: every null in every world, many draws, as a table.

Too long for the default tests. Prints the share of p-values at or below each level, fails
when one is reached too often, and takes the number of draws and of fresh worlds.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np

from tests.nulls import worlds
from tests.nulls.simulations import BY_WORLD, Simulation, independent_fisher


def main() -> int:
    """Run the sweep; the exit code counts nulls that broke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10_000, help="null draws a world")
    parser.add_argument("--worlds", type=int, default=1, help="fresh contents of each kind")
    parser.add_argument("--only", default="", help="tests whose name contains this")
    chosen = parser.parse_args()
    cases: list[tuple[str, str, Simulation]] = [
        (name, kind, run) for kind in worlds.KINDS for name, run in BY_WORLD.items()
    ]
    cases.append(("independent_fisher", "", independent_fisher))
    broken = 0
    levels = (0.05, 0.01, 1e-3, 1e-4)
    print(f"{'test':20}{'world':12}" + "".join(f"{level:>10g}" for level in levels) + "  seconds")
    for name, kind, run in cases:
        if chosen.only not in name:
            continue
        begun = time.perf_counter()
        drawn = [run(kind, chosen.draws, np.random.default_rng(s)) for s in range(chosen.worlds)]
        found = np.concatenate(drawn)
        try:
            worlds.assert_valid(found, levels)
            note = ""
        except AssertionError as failure:
            broken += 1
            note = f"  BROKEN: {failure}"
        shares = "".join(f"{(found <= np.log10(x) + 1e-12).mean():10.5f}" for x in levels)
        took = time.perf_counter() - begun
        print(f"{name:20}{kind:12}{shares}{took:9.1f}{note}", flush=True)
    return broken


if __name__ == "__main__":
    sys.exit(main())
