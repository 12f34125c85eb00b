"""Was this model derived from that one? Answers from a few megabytes of weights, read in place.

The verbs that compose the rooms; the command line calls the same ones.

    >>> import kinprint
    >>> model = kinprint.open("org/name")
    >>> model.tensors()["model.norm.weight"].shape
    >>> kinprint.compare("org/child", "org/parent").verdict.relation
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kinprint.version import __version__

if TYPE_CHECKING:
    from kinprint.comparison import Comparison, Matrix
    from kinprint.reader.checkpoint import Checkpoint
    from kinprint.records import Slice

__all__ = ["Slice", "__version__", "compare", "matrix", "open"]


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


def compare(
    a: str,
    b: str,
    *,
    controls: Sequence[str] = (),
    level: str = "standard",
    alpha: float = 1e-6,
    budget: int | None = None,
    seed: int = 0,
    base: str | None = None,
    cache: bool = True,
) -> Comparison:
    """Say how two models are related, with a p-value, from a few megabytes of each.

    `level` is quick, standard or deep; `budget` limits the bytes of both together; `controls`
    are models known to be unrelated; `base` is what an adapter stands on.
    """
    from kinprint.comparison import Settings, compare_models
    from kinprint.reader.cache import Cache
    from kinprint.reader.fetch import Fetcher

    settings = Settings(level, alpha, budget, seed, base)
    with Fetcher(cache=Cache.default() if cache else None, budget=budget) as fetcher:
        return compare_models(a, b, fetcher, settings, controls)


def matrix(
    models: Sequence[str],
    *,
    level: str = "standard",
    alpha: float = 1e-6,
    budget: int | None = None,
    seed: int = 0,
    base: str | None = None,
    cache: bool = True,
    jobs: int = 1,
) -> Matrix:
    """Say how all pairs of models are related; each model is read once.

    With more than one of `jobs` pairs are compared in processes of their own, so a script
    that asks for them needs the usual guard around its main part.
    """
    from kinprint.comparison import Settings, compare_all
    from kinprint.reader.cache import Cache
    from kinprint.reader.fetch import Fetcher

    settings = Settings(level, alpha, budget, seed, base)
    with Fetcher(cache=Cache.default() if cache else None, budget=budget) as fetcher:
        return compare_all(models, fetcher, settings, jobs)
