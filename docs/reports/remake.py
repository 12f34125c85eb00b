"""Compares models of the zoo anew: `python docs/reports/remake.py FOLDER_OF_THE_ZOO`.

The site draws its example reports from the data that this writes. Models are named from the
folder that holds the zoo, so that no path of a machine gets into them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import kinprint

HERE = Path(__file__).resolve().parent
PAIRS = {
    "derived": "a-cpt",
    "laundered": "a-rotated",
    "independent": "base-b",
    "norms-only": "a-normsonly",
    "same-init": "tie-a",
}

MANY = (
    "base-a", "a-sft", "a-cpt", "a-permuted", "a-rotated", "a-normsonly", "a-distilled", "tie-a",
    "base-b", "b-cpt", "qwen-i", "moe-k",
)  # fmt: skip


def remake(zoo: Path) -> None:
    """Write the data of every example."""
    os.chdir(zoo.resolve().parent)
    for name, other in PAIRS.items():
        found = kinprint.compare(f"{zoo.name}/base-a", f"{zoo.name}/{other}", cache=False)
        found.save(HERE / f"{name}.json")
    kinprint.matrix([f"{zoo.name}/{one}" for one in MANY], cache=False).save(HERE / "many.json")


if __name__ == "__main__":
    remake(Path(sys.argv[1]))
