"""Make the starter atlas again: fingerprints of the two unrelated models of the demo.

    python -m tools.starter_atlas [PLACE]

The models are served on this machine under the names that they have in the demo and with one date,
so that the same bytes are read in the same state wherever this is run. Keys are sums of floats,
which processors take in different orders: on another machine one may differ in a last bit, and
with it the name of a file.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import kinprint
import kinprint.demo
from kinprint.mirror.loopback import loopback_hub

PLACE = Path(__file__).resolve().parents[1] / "tests" / "data" / "atlas"
MODELS = ("zoo/base-a", "zoo/base-b")
_DATE = 1_767_225_600  # 2026-01-01, in seconds


def make(place: Path, models: tuple[str, ...] = MODELS) -> list[kinprint.Added]:
    """Build an atlas of models of the demo at a place."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name in models:
            shutil.copytree(kinprint.demo.FOLDER / name, folder / name)
        for one in folder.rglob("*"):
            os.utime(one, (_DATE, _DATE))
        with loopback_hub(folder):
            return kinprint.Atlas(place).build(models)


if __name__ == "__main__":
    for added in make(Path(sys.argv[1]) if len(sys.argv) > 1 else PLACE):
        print(added.given, added.id, added.error or "")
