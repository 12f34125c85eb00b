"""What was read before and kept: how much disk it takes, and how to be rid of it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from kinprint.reader.cache import Cache
from kinprint.source.assets import assets_folder
from kinprint.source.listing import forget_all
from kinprint.verbs.answers import Answers


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
        Where all of it lies.
    models : tuple of CachedModel
        What there is of each model, the largest first.
    answers : int
        How many answers of `compare` are kept.
    answers_bytes : int
        The disk that they take.

    Examples
    --------
    >>> import kinprint
    >>> contents = kinprint.cached()
    >>> read = sum(model.disk_bytes for model in contents.models)
    >>> contents.disk_bytes == read + contents.answers_bytes
    True
    """

    folder: Path
    models: tuple[CachedModel, ...]
    answers: int = 0
    answers_bytes: int = 0

    @property
    def disk_bytes(self) -> int:
        """The disk that all of it takes."""
        return sum(model.disk_bytes for model in self.models) + self.answers_bytes


def cached() -> CacheContents:
    """Say what was read and found before, and kept.

    Returns
    -------
    CacheContents
        The folder, what it holds of each model, and how many answers there are.

    Raises
    ------
    CacheBroken
        The folder cannot be read.

    Examples
    --------
    >>> import kinprint
    >>> kinprint.cached().folder.name
    'kinprint'
    """
    cache = Cache.default()
    found: dict[str, tuple[int, int]] = {}
    for item in cache.items():
        files, used = found.get(item.name, (0, 0))
        found[item.name] = (files + 1, used + item.disk_bytes)
    models = [CachedModel(name, files, used) for name, (files, used) in found.items()]
    models.sort(key=lambda model: (-model.disk_bytes, model.name))
    answers = Answers.default().sizes()
    return CacheContents(assets_folder(), tuple(models), len(answers), sum(answers))


def clear_cache() -> int:
    """Remove all that was read or found and kept. Models are not touched; reading costs anew.

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
    freed = Cache.default().clear()
    return freed + Answers.default().clear()
