"""Compare every crafted pair and print what was said beside what is true.

Run with `python -m benchmarks.redteam [--only NAME] [--short] [--seeds N] [--csv FILE]`; it fails
when something said is false.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.redteam.cases import CASES, SHORT, Case
from benchmarks.redteam.running import READINGS, SHORT_READINGS, Row, readings_of, run_case
from benchmarks.redteam.table import as_csv, markdown, tally
from benchmarks.redteam.zoo import DEMO, Zoo


def main() -> int:
    options = _options()
    zoo = Zoo(DEMO if options.short else None)
    chosen = [case for case in CASES.values() if _wanted(case, zoo, options)]
    if not chosen:
        print("no such pair; names are:", *CASES, sep="\n  ", file=sys.stderr)
        return 2
    tasks = [(case.name, seed, options.short) for case in chosen for seed in range(options.seeds)]
    rows: list[Row] = []
    with ProcessPoolExecutor(options.jobs) as pool:
        for task, found in zip(tasks, pool.map(_run, tasks), strict=True):
            rows += found
            false = sum(not row.true for row in found)
            print(f"{task[0]} ({task[1]}): {len(found)} readings, {false} false", file=sys.stderr)
    print(markdown(rows, options.all))
    print("\n" + tally(rows))
    if options.csv:
        Path(options.csv).write_text(as_csv(rows))
    return 0 if all(row.true for row in rows) else 1


def _run(task: tuple[str, int, bool]) -> Sequence[Row]:
    name, seed, short = task
    case = CASES[name]
    readings = SHORT_READINGS if short else READINGS
    zoo = Zoo(DEMO if short else None)
    return run_case(case, zoo, seed, readings_of(case, readings, orders=not short))


def _wanted(case: Case, zoo: Zoo, options: argparse.Namespace) -> bool:
    if not case.needs <= zoo.names or (
        options.short and not options.only and case.name not in SHORT
    ):
        return False
    return not options.only or any(one in case.name for one in options.only)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.redteam", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="pairs with NAME in theirs")
    parser.add_argument("--short", action="store_true", help="the models of the package, one order")
    parser.add_argument("--seeds", type=int, default=1, help="how many draws of each pair")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--all", action="store_true", help="show what is true as well")
    parser.add_argument("--csv", metavar="FILE", help="write every reading to a file")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
