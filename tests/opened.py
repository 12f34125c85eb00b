"""Models opened for tests, from folders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kinprint.model.model import Model
from kinprint.model.opening import open_model
from kinprint.reader.checkpoint import open_checkpoint
from kinprint.reader.fetch import Fetcher


def open_models(folders: Iterable[str | Path], fetcher: Fetcher) -> list[Model]:
    """Open a model a folder."""
    return [open_model(open_checkpoint(str(folder), fetcher)) for folder in folders]
