"""What was read before and kept: how much disk it takes, and how to be rid of it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from kinprint.reader.cache import Cache
from kinprint.source.listing import forget_all


class CachedModel(Struct, frozen=True):
    """What the cache holds of one model.

    Attributes
    ----------
    name : str
        The model.
    files : int
        How many of its files have parts in the cache.
    disk_bytes : int
        The disk that they take.

    Examples
    --------
    >>> import kinprint
    >>> all(model.files > 0 for model in kinprint.cached().models)
    True
    """

    name: str
    files: int
    disk_bytes: int


class CacheContents(Struct, frozen=True):
    """What was read before and kept.

    Attributes
    ----------
    folder : pathlib.Path
        Where it lies.
    models : tuple of CachedModel
        What there is of each model, the largest first.

    Examples
    --------
    >>> import kinprint
    >>> contents = kinprint.cached()
    >>> contents.disk_bytes == sum(model.disk_bytes for model in contents.models)
    True
    """

    folder: Path
    models: tuple[CachedModel, ...]

    @property
    def disk_bytes(self) -> int:
        """The disk that all of it takes."""
        return sum(model.disk_bytes for model in self.models)


def cached() -> CacheContents:
    """Say what was read before and kept.

    Returns
    -------
    CacheContents
        The folder, and what it holds of each model.

    Raises
    ------
    CacheBroken
        The folder cannot be read.

    Examples
    --------
    >>> import kinprint
    >>> kinprint.cached().folder.name
    'v1'
    """
    cache = Cache.default()
    found: dict[str, tuple[int, int]] = {}
    for item in cache.items():
        files, used = found.get(item.name, (0, 0))
        found[item.name] = (files + 1, used + item.disk_bytes)
    models = [CachedModel(name, files, used) for name, (files, used) in found.items()]
    models.sort(key=lambda model: (-model.disk_bytes, model.name))
    return CacheContents(cache.folder, tuple(models))


def clear_cache() -> int:
    """Remove everything that was read and kept. Models are not touched; reading costs anew.

    Returns
    -------
    int
        Bytes of disk that were freed.

    Raises
    ------
    CacheBroken
        The folder cannot be removed.

    Examples
    --------
    >>> import kinprint
    >>> freed = kinprint.clear_cache()
    >>> kinprint.cached().disk_bytes
    0
    """
    forget_all()
    return Cache.default().clear()
