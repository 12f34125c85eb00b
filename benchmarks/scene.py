"""The scene that benchmarks share: sparse replicas, and a mirror in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.child import MODELS
from kinprint.replica import build_replicas

LATENCY = 0.050  # seconds a request
BANDWIDTH = 25_000_000  # bytes a second and connection: 200 Mbit/s
CONNECTIONS = 16


@contextmanager
def mirror_of_replicas() -> Iterator[str]:
    """The address of a mirror with the replicas of both 100B models, slowed as above."""
    with tempfile.TemporaryDirectory() as folder:
        build_replicas(Path(folder), MODELS)
        with mirror_of(Path(folder)) as endpoint:
            yield endpoint


@contextmanager
def mirror_of(folder: Path) -> Iterator[str]:
    """The address of a mirror of a folder, slowed as above, in a process of its own."""
    command = [sys.executable, "-m", "kinprint.mirror", str(folder), "--port", "0"]
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
    return dict(os.environ) | {"HF_ENDPOINT": endpoint, "HF_HOME": home} | quiet


def run_child(endpoint: str, home: str, *settings: str) -> dict[str, Any]:
    """Run `child` once; its own figures, and `wall` for the whole process."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.child", *settings],
        env=environment(endpoint, home),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"wall": time.monotonic() - started}


def requests_seen(endpoint: str) -> int:
    """Requests that the mirror has counted since it was last asked; the witness."""
    with urllib.request.urlopen(f"{endpoint}/-/stats") as answer:
        counted = json.load(answer)["requests"]
    with urllib.request.urlopen(
        urllib.request.Request(f"{endpoint}/-/reset", method="POST")
    ) as answer:
        answer.read()
    return sum(sum(methods.values()) for methods in counted.values())


def replica_bytes(endpoint: str) -> int:
    """Length of all weight files that the mirror serves, as it lists them."""
    total = 0
    for model in MODELS:
        with urllib.request.urlopen(f"{endpoint}/api/models/{model}?blobs=true") as answer:
            siblings = json.load(answer)["siblings"]
        total += sum(item["size"] for item in siblings if item["rfilename"].endswith("tensors"))
    return total


def floor_seconds(requests: int, nbytes: int) -> float:
    """No client with so many connections can do it faster: rounds of latency, then bytes.

    Bytes are counted over the bandwidth of one connection, as if none were read side by side.
    """
    rounds = -(-requests // CONNECTIONS)
    return rounds * LATENCY + nbytes / BANDWIDTH
