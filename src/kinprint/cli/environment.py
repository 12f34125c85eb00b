"""Variables that libraries read when they are loaded, looked at before that."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from kinprint.errors import BadOption


def check_environment() -> None:
    """Refuse variables that the hub client cannot use, with a sentence."""
    endpoint = os.environ.get("HF_ENDPOINT")
    if endpoint and not _is_address(endpoint):
        _refuse("HF_ENDPOINT", endpoint, "write an address such as https://huggingface.co")
    for name in ("HF_HUB_DOWNLOAD_TIMEOUT", "HF_HUB_ETAG_TIMEOUT"):
        value = os.environ.get(name)
        if value and not (value.isascii() and value.isdigit()):
            _refuse(name, value, "write a whole number of seconds")
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        if not os.environ.get(name, "").isascii():
            _refuse(name, "…", "tokens are made of ASCII characters alone")


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _refuse(name: str, value: str, cause: str) -> None:
    raise BadOption(option=name, value=value, cause=cause)
