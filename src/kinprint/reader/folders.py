"""Which folders on this machine hold a model."""

from __future__ import annotations

from pathlib import Path

from kinprint.reader.formats.registry import formats
from kinprint.reader.weights import PIPELINE


def holds_weights(folder: Path) -> bool:
    """Whether files with weights lie in a folder itself, or what says where they are."""
    endings = {ending for one in formats().own.values() for ending in one.suffixes}
    files = [one for one in folder.iterdir() if not one.is_dir()]
    return any(one.suffix.lower() in endings or one.name == PIPELINE for one in files)
