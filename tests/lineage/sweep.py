"""`python -m tests.lineage.sweep`: the whole battery on many null pairs, as tables.

Too long for the default tests. For each test, for the p-value that all of them make together, and
for the tests of single parts, alone and paid for together, it prints the share of draws at or below
each level, over all kinds of pairs and for the kind where it is largest, and fails when a level is
reached too often.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict

import numpy as np

from kinprint.lineage.battery import run_tests
from kinprint.lineage.charge import Charge
from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.scores import part_scores
from kinprint.lineage.tests.menu import menu
from kinprint.lineage.verdict import decide
from kinprint.workers import workers
from tests.lineage.null_pairs import PAIRS
from tests.nulls.worlds import LEVELS, assert_valid

TOGETHER, PARTS = "together", "parts"
Drawn = dict[tuple[str, str], list[float]]
_SHARE = 25  # draws that a process takes at a time


def draw(kind: str, count: int, seed: int) -> Drawn:
    """P-values of `count` pairs of a kind, by kind and test; both orders of the models."""
    rng = np.random.default_rng([seed, *kind.encode()])
    found: Drawn = defaultdict(list)
    for _ in range(count):
        pair = PAIRS[kind](rng)
        compared = Pair(*(pair if rng.integers(2) else pair[::-1]))
        evidence = run_tests(compared)
        for one in evidence:
            if one.tier == "exact" and one.status == "ok":
                found[kind, one.test].append(one.log10_p)
        found[kind, TOGETHER].append(decide(evidence, Charge.for_menu(menu())).log10_p)
        scores = part_scores(compared, evidence)
        for score in scores:
            component = score.parts[0].component
            found[kind, f"{PARTS} {score.test} {component}"].append(score.log10_p)
        if scores:
            least = min(score.log10_p for score in scores) + np.log10(len(scores))
            found[kind, PARTS].append(least)
    return dict(found)


def main() -> int:
    """Run the sweep; the exit code counts tests that broke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10_000, help="null pairs in all")
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    kinds = [kind for kind in PAIRS if chosen.only in kind]
    each = -(-chosen.draws // len(kinds))
    tasks = [
        (kind, min(_SHARE, each - start), 1_000_000 * chosen.seed + start)
        for start in range(0, each, _SHARE)
        for kind in kinds
    ]
    begun = time.perf_counter()
    found: Drawn = defaultdict(list)
    with workers(chosen.jobs) as pool:
        for part in pool.map(draw, *zip(*tasks, strict=True)):
            for key, values in part.items():
                found[key] += values
    took = time.perf_counter() - begun
    pairs = sum(len(values) for (_, test), values in found.items() if test == TOGETHER)
    print(f"{pairs} null pairs of {len(kinds)} kinds in {took:.0f} s\n")
    return _table(found)


def _table(found: Drawn) -> int:
    broken = 0
    heads = "".join(f"{level:>10g}" for level in LEVELS)
    print(f"{'test':32}{'draws':>8}{heads}   largest share at {LEVELS[1]:g}")
    for test in sorted({test for _, test in found}, key=lambda name: (name == TOGETHER, name)):
        kinds = {kind: np.array(values) for (kind, name), values in found.items() if name == test}
        everything = np.concatenate(list(kinds.values()))
        worst = max(kinds, key=lambda kind: _share(kinds[kind], LEVELS[1]))
        note = f"{_share(kinds[worst], LEVELS[1]):.4f} in {worst}"
        for values in (everything, *kinds.values()):
            try:
                assert_valid(values)
            except AssertionError as failure:
                broken += 1
                note += f"  BROKEN: {failure}"
        shares = "".join(f"{_share(everything, level):10.5f}" for level in LEVELS)
        print(f"{test:32}{len(everything):8}{shares}   {note}")
    return broken


def _share(values: np.ndarray, level: float) -> float:
    return float((values <= np.log10(level) + 1e-12).mean())


if __name__ == "__main__":
    sys.exit(main())
