"""Files that appear at once or not at all, under names that lead nowhere else.

Each file is written beside its place and moved there, so that an interrupted run leaves the old
file or the new one and nothing in between.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from kinprint.text.catalogue import FIRST

DATA = "result.json"
"""The file in a folder that holds the result as a whole."""


def write_file(file: Path, raw: bytes) -> Path:
    """Write a file at once or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        beside.write_bytes(raw)
        beside.replace(file)
    except OSError as error:  # a full disk does not say which file it was full for
        raise OSError(error.errno, error.strerror, str(file)) from error
    finally:
        beside.unlink(missing_ok=True)
    return file


def in_language(stem: str, language: str) -> str:
    """The name of a file that there is in several languages; the English one has none."""
    return stem if language == FIRST else f"{stem}.{language}"


def readme(language: str) -> str:
    """The name of a folder's README in a language."""
    return f"{in_language('README', language)}.md"


def stems(names: Iterable[str]) -> dict[str, str]:
    """File names for names: no way out of the folder, and no two alike."""
    found: dict[str, str] = {}
    for name in names:
        parts = [re.sub(r"[^\w.\-]+", "-", part).strip(".-") for part in name.split("/")]
        stem = "/".join(part[:80] for part in parts if part) or "unnamed"
        taken = {each.casefold() for each in found.values()}
        number, tried = 2, stem
        while tried.casefold() in taken:
            tried, number = f"{stem}-{number}", number + 1
        found[name] = tried
    return found
