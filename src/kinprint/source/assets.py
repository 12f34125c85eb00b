"""Where kinprint keeps things: a folder of its own among the Hugging Face assets."""

from __future__ import annotations

from pathlib import Path


def assets_folder(*parts: str) -> Path:
    """A folder below HF_ASSETS_CACHE (or HF_HOME); it need not exist yet."""
    from huggingface_hub import constants

    return Path(constants.HF_ASSETS_CACHE, "kinprint", *parts)
