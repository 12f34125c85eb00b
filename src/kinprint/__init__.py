"""Was this model derived from that one? Answers from a few megabytes of weights, read in place.

The verbs that compose the rooms; the command line calls the same ones.

    >>> import kinprint
    >>> model = kinprint.open("org/name")
    >>> model.tensors()["model.norm.weight"].shape
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinprint.version import __version__

if TYPE_CHECKING:
    from kinprint.reader.checkpoint import Checkpoint
    from kinprint.records import Slice

__all__ = ["Slice", "__version__", "open"]


def __getattr__(name: str) -> object:
    if name == "Slice":  # loaded when asked for: `kinprint --help` needs no records
        from kinprint.records import Slice

        return Slice
    raise AttributeError(f"module 'kinprint' has no attribute {name!r}")


def open(model: str, *, budget: int | None = None, cache: bool = True) -> Checkpoint:
    """Open a model by name, path or address; only its list of files and index are read.

    `budget` limits the bytes that reading it may cost; `cache` keeps what was read.
    """
    from kinprint.reader.cache import Cache
    from kinprint.reader.checkpoint import open_checkpoint
    from kinprint.reader.fetch import Fetcher

    return open_checkpoint(model, Fetcher(cache=Cache.default() if cache else None, budget=budget))
