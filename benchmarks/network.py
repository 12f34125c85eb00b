"""The network that benchmarks share: a mirror in a process of its own, far away and narrow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

LATENCY = 0.050  # seconds a request
BANDWIDTH = 25_000_000  # bytes a second and connection: 200 Mbit/s
CONNECTIONS = 16


class Request(Struct, frozen=True):
    """One request as the mirror saw it; `port` is "hub" or "storage"."""

    method: str
    path: str
    range: str | None
    port: str


class Traffic(Struct, frozen=True):
    """What the mirror was asked for and sent: the witness."""

    requests: tuple[Request, ...] = ()
    bytes: int = 0

    @property
    def ranges(self) -> list[tuple[str, int, int]]:
        """Parts of files that were read: path on the hub, start and stop."""
        found = []
        for one in self.requests:
            if one.port == "storage" and one.range is not None:
                first, _, last = one.range.removeprefix("bytes=").partition("-")
                found.append((one.path.removeprefix("/"), int(first), int(last) + 1))
        return found


@contextmanager
def mirror_of_replicas(models: Sequence[str]) -> Iterator[str]:
    """The address of a mirror with sparse replicas of models.

    They are built in a process of their own: what this one holds in memory when it starts a
    command would count as the command's.
    """
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [sys.executable, "-m", "kinprint.replica", folder, *models],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with mirror_of(Path(folder)) as endpoint:
            yield endpoint


@contextmanager
def mirror_of(folder: Path) -> Iterator[str]:
    """The address of a mirror of a folder, slowed as above, in a process of its own."""
    command = [sys.executable, "-m", "kinprint", "mirror", str(folder), "--port", "0"]
    command += ["--latency-ms", str(LATENCY * 1000), "--mbit", str(BANDWIDTH * 8 / 1e6)]
    command += ["--hash-limit-gib", "0.01"]  # hashing 400 GB of holes proves nothing
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("export HF_ENDPOINT="):
                yield line.strip().partition("=")[2]
                break
    finally:
        process.terminate()
        process.communicate(timeout=10)


def environment(endpoint: str, home: str) -> dict[str, str]:
    """Variables for a process that reads from the mirror and keeps its cache in `home`."""
    quiet = {"HF_HUB_DISABLE_TELEMETRY": "1", "NO_PROXY": "127.0.0.1", "HF_HUB_OFFLINE": "0"}
    inherited = dict(os.environ)
    inherited.pop("PYTHONDONTWRITEBYTECODE", None)  # installed packages are compiled, checkouts not
    return inherited | {"HF_ENDPOINT": endpoint, "HF_HOME": home} | quiet


def traffic_since(endpoint: str) -> Traffic:
    """What the mirror has seen since it was last asked."""
    with urllib.request.urlopen(f"{endpoint}/-/stats") as answer:
        seen = json.load(answer)
    with urllib.request.urlopen(
        urllib.request.Request(f"{endpoint}/-/reset", method="POST")
    ) as answer:
        answer.read()
    return Traffic(tuple(Request(**one) for one in seen["last"]), seen["body_bytes"])


def weight_bytes(endpoint: str, models: Sequence[str]) -> int:
    """Length of all weight files of models, as the mirror lists them."""
    total = 0
    for model in models:
        with urllib.request.urlopen(f"{endpoint}/api/models/{model}?blobs=true") as answer:
            siblings = json.load(answer)["siblings"]
        total += sum(item["size"] for item in siblings if item["rfilename"].endswith("tensors"))
    return total
