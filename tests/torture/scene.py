"""Where the torture takes place: a mirror of the demo models, and runs whose results are equal.

Everything happens on this machine. A result is what a comparison says (verdict, parts, evidence),
without what it cost and when it was made.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from huggingface_hub import constants
from huggingface_hub.utils import close_session
from msgspec import Struct

import kinprint
import kinprint.demo
import kinprint.source.http
from kinprint.mirror import MirrorServer

MODELS = ("zoo/base-a", "zoo/base-b", "zoo/a-cpt", "zoo/a-rotated")
PAIRS = tuple((a, b) for at, a in enumerate(MODELS) for b in MODELS[at + 1 :])
_SAID = ("verdict", "evidence")


class Row(Struct, frozen=True):
    """One line of the table: what was done, how often, and what was lost of it."""

    what: str
    load: str
    survived: str
    lost: int


@contextmanager
def demo_mirror(**settings: Any) -> Iterator[MirrorServer]:
    """A mirror of the demo models that the hub client of this process talks to."""
    names = ("ENDPOINT", "HUGGINGFACE_CO_URL_TEMPLATE", "HF_ASSETS_CACHE", "HF_HUB_CACHE",
             "HF_TOKEN_PATH", "HF_HUB_DOWNLOAD_TIMEOUT")  # fmt: skip
    before = {name: getattr(constants, name) for name in names}
    first_wait = kinprint.source.http.FIRST_WAIT
    with (
        MirrorServer(kinprint.demo.FOLDER, **settings) as server,
        tempfile.TemporaryDirectory() as home,
    ):
        constants.ENDPOINT = server.endpoint
        template = server.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        constants.HUGGINGFACE_CO_URL_TEMPLATE = template
        for name in ("HF_ASSETS_CACHE", "HF_HUB_CACHE", "HF_TOKEN_PATH"):
            setattr(constants, name, str(Path(home, name)))
        kinprint.source.http.FIRST_WAIT = 0.01
        try:
            yield server
        finally:
            close_session()
            vars(constants).update(before)
            kinprint.source.http.FIRST_WAIT = first_wait


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """The hub client's timeout, for a while."""
    before = constants.HF_HUB_DOWNLOAD_TIMEOUT
    constants.HF_HUB_DOWNLOAD_TIMEOUT = seconds  # type: ignore[assignment]
    try:
        yield
    finally:
        constants.HF_HUB_DOWNLOAD_TIMEOUT = before


def said(found: kinprint.Comparison) -> str:
    """What a comparison says, as text that can be held against another."""
    document = json.loads(found.to_json())
    return json.dumps({name: document[name] for name in _SAID}, sort_keys=True)


def compared(pair: Sequence[str]) -> str:
    """What comparing two models says, read anew."""
    return said(kinprint.compare(*pair, level="quick", cache=False))


def open_files() -> int:
    """How many files and connections this process holds open."""
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208


@contextmanager
def nothing_left(lost: list[str]) -> Iterator[None]:
    """Add to `lost` what a block leaves behind: files and connections, or threads.

    A few may stay, as in a pool of connections; what ends by itself is given time for it.
    """

    def held() -> dict[str, int]:
        return {"open files": open_files(), "threads": threading.active_count()}

    def grown() -> list[str]:
        now = held()
        return [f"{what}: {before[what]} before, {now[what]} after" for what in before
                if now[what] > before[what] + 20]  # fmt: skip

    before = held()
    yield
    until = time.monotonic() + 30
    while grown() and time.monotonic() < until:
        time.sleep(0.1)
    lost += grown()


def memory() -> int:
    """Bytes of memory that this process takes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0
