"""`python -m benchmarks.matrix`: all pairs of many strangers, in time and memory.

The models are made from small trained ones: every matrix is turned by a random rotation of its
columns, and its rows are turned or put into another order, so that each has the spectra of trained
weights and no relative. They are synthetic; what is measured is what the command costs. Memory is
that of all its processes together, pages that several have mapped counted for each of them.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from msgspec import Struct

from benchmarks.commands import Together, run_together
from benchmarks.redteam.zoo import DEMO, Zoo

MODELS, JOBS = 200, 2
GOAL_SECONDS, GOAL_BYTES = 300.0, 1e9  # of 200 models, on two cores
_SQUARE = 512  # rows up to which they are turned as columns are


class MatrixRun(Struct, frozen=True):
    """One matrix of strangers, measured."""

    models: int
    cost: Together

    @property
    def pairs(self) -> int:
        """How many pairs there are."""
        return self.models * (self.models - 1) // 2


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--jobs", type=int, default=JOBS)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = measure(Path(folder), given.models, given.jobs)
    cost, share = found.cost, found.pairs / (MODELS * (MODELS - 1) / 2)
    busy = cost.cpu_seconds / given.jobs
    rows = (
        ("seconds", cost.seconds, None),
        (f"processor seconds, over {given.jobs} processes", busy, GOAL_SECONDS * share),
        ("processor seconds a pair", cost.cpu_seconds / found.pairs, None),
        ("MB, all processes together", cost.peak_bytes / 1e6, GOAL_BYTES / 1e6),
    )
    print(f"matrix of {found.models} synthetic strangers, {found.pairs:,} pairs, standard level")
    for title, value, goal in rows:
        told = "" if goal is None else f"   goal {goal:.0f}   measured / goal {value / goal:.2f}"
        print(f"  {title:<42} {value:10.3f}{told}")
    return 0 if all(goal is None or value <= goal for _, value, goal in rows) else 1


def measure(folder: Path, models: int, jobs: int, level: str = "standard") -> MatrixRun:
    """Make strangers in a folder and compare all pairs of them by the command."""
    names = [str(folder / f"stranger-{number:04}") for number in range(models)]
    for number, name in enumerate(names):
        write_stranger(Path(name), number)
    command = ("matrix", *names, "--level", level, "--jobs", str(jobs), "--format", "json")
    return MatrixRun(models, run_together(str(folder), *command))


def write_stranger(folder: Path, seed: int) -> None:
    """A model with the spectra of a trained one, related to nothing."""
    zoo = Zoo(DEMO)
    model, rng = zoo[zoo.roots[seed % len(zoo.roots)]], np.random.default_rng(seed)
    tensors = {}
    for name, stored in model.tensors.items():
        if stored.ndim == 1:
            tensors[name] = rng.permutation(stored)
            continue
        rows = stored @ _rotation(stored.shape[1], rng)
        small = len(rows) <= _SQUARE
        tensors[name] = _rotation(len(rows), rng) @ rows if small else rng.permutation(rows)
    model.changed(tensors).write(folder)


def _rotation(width: int, rng: np.random.Generator) -> np.ndarray:
    found: np.ndarray = np.linalg.qr(rng.normal(size=(width, width)))[0].astype(np.float32)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
