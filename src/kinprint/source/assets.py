"""Where kinprint keeps things: a folder of its own among the Hugging Face assets."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def assets_folder(*parts: str) -> Path:
    """A folder below HF_ASSETS_CACHE (or HF_HOME); it need not exist yet."""
    from huggingface_hub import constants

    return Path(constants.HF_ASSETS_CACHE, "kinprint", *parts)


def remove_folder(folder: Path) -> None:
    """Remove a folder that others may be writing to: it is renamed away before it is deleted."""
    import shutil

    grave = folder.with_name(f"{folder.name}.cleared-{os.urandom(8).hex()}")
    with suppress(FileNotFoundError):  # there is none, or somebody else was quicker
        folder.rename(grave)
    for leftover in folder.parent.glob(f"{folder.name}.cleared-*"):
        shutil.rmtree(leftover, ignore_errors=True)
