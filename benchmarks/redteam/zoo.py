"""Where the trained models lie that pairs are made of."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import kinprint.demo
from benchmarks.redteam.checkpoint import Checkpoint, load

DEMO = kinprint.demo.FOLDER / "zoo"
"""Four trained models that come with the package."""
BESIDE = Path(__file__).resolve().parents[3] / "shared" / "zoo"
"""All 24 of them, where they lie beside the checkout."""
_ROOTS = ("base-a", "base-b", "base-d")  # trained apart, one tokenizer, one shape


class Zoo:
    """Trained models by name; a draw of `seed` says which of them play which part."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or (BESIDE if BESIDE.is_dir() else DEMO)
        self.names = frozenset(path.name for path in self.folder.iterdir() if path.is_dir())
        self.roots = [name for name in _ROOTS if name in self.names]

    def __getitem__(self, name: str) -> Checkpoint:
        return _loaded(self.folder / name)

    def root(self, seed: int) -> Checkpoint:
        """A model that was trained from weights of its own."""
        return self[self.roots[seed % len(self.roots)]]

    def stranger(self, seed: int) -> Checkpoint:
        """Another one, unrelated to `root(seed)`."""
        return self[self.roots[(seed + 1) % len(self.roots)]]


@cache
def _loaded(folder: Path) -> Checkpoint:
    return load(folder)
