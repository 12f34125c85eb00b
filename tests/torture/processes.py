"""Processes that are killed, crowded and short of memory, and one that runs for long."""

from __future__ import annotations

import gc
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import kinprint
from kinprint.mirror import MirrorServer
from tests.torture import faults
from tests.torture.scene import (
    MODELS,
    PAIRS,
    Row,
    compared,
    demo_mirror,
    memory,
    open_files,
    patience,
    said,
)

_PAIR = ("zoo/base-a", "zoo/a-cpt")
_GIGABYTE = 1 << 30


class Started:
    """A comparison in a process of its own, with a cache of one's choice."""

    def __init__(
        self, server: MirrorServer, home: Path, before: Callable[[], None] | None = None
    ) -> None:
        command = [sys.executable, "-X", "faulthandler", "-m", "kinprint", "compare", *_PAIR]
        kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
        own = {"HF_ENDPOINT": server.endpoint, "HF_HOME": str(home), "HOME": str(home)}
        alone = {
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "HF_HUB_DOWNLOAD_TIMEOUT": "120",
        }
        self.process = subprocess.Popen(
            [*command, "--level", "quick", "--format", "json"],
            env=kept | own | alone,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=before,
        )

    def ended(self) -> str:
        """What it said, or how it failed."""
        out, err = self.process.communicate(timeout=600)
        if self.process.returncode:
            return f"exit code {self.process.returncode}: {err[-300:].decode(errors='replace')}"
        found = kinprint.report(out)
        assert isinstance(found, kinprint.Comparison)
        return said(found)


@contextmanager
def _crowd() -> Iterator[tuple[MirrorServer, Path, str]]:
    with demo_mirror() as server, patience(120), tempfile.TemporaryDirectory() as home:
        yield server, Path(home), compared(_PAIR)


def kills(count: int) -> tuple[Row, list[str]]:
    """`kill -9` at random moments, all on one cache; afterwards the result is the same."""
    draw = random.Random(count)
    lost: list[str] = []
    killed = 0
    with _crowd() as (server, home, expected):
        began = time.monotonic()
        first = Started(server, home).ended()
        whole = time.monotonic() - began
        while killed < count:
            one = Started(server, home)
            time.sleep(draw.uniform(0.1, whole))
            one.process.send_signal(signal.SIGKILL)
            one.process.communicate()
            killed += one.process.returncode == -signal.SIGKILL
            if killed % 10 == 9 or killed == count:
                how = Started(server, home).ended()
                lost += [f"after kill {killed}: {how[:300]}"] if how != expected else []
            if killed % 25 == 24:
                subprocess.run(["rm", "-rf", str(home / "assets")], check=True)  # cold again
        lost += [f"first: {first[:300]}"] if first != expected else []
    same = "the result afterwards is the same"
    return Row("kill -9 at random moments", f"{killed} processes killed", same, len(lost)), lost


def crowd(count: int) -> tuple[Row, list[str]]:
    """Many processes that begin at once on one empty cache."""
    with _crowd() as (server, home, expected):
        started = [Started(server, home) for _ in range(count)]
        ended = [one.ended() for one in started]
        lost = [how[:300] for how in ended if how != expected]
    return Row(
        "processes on one cache", f"{count} at once", f"{count - len(lost)} same result", len(lost)
    ), lost


def storm(count: int, share: float) -> tuple[Row, list[str]]:
    """Processes of their own, each request of which fails with some chance; none may crash."""
    draw = random.Random(count)
    told, lost = 0, []
    with _crowd() as (server, home, expected):
        for number in range(count):
            server.faults.replace(faults.mixed(share, draw))
            how = Started(server, home / str(number)).ended()
            told += how.startswith("exit code 2")
            if how != expected and not how.startswith("exit code 2"):
                lost.append(f"run {number}: {how[:2000]}")
    return Row(
        f"processes at {share:.0%} faults",
        f"{count} processes",
        f"{count - told - len(lost)} same result, {told} one sentence",
        len(lost),
    ), lost


def little_memory() -> tuple[Row, list[str]]:
    """One gigabyte of address space."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_GIGABYTE, _GIGABYTE))

    with _crowd() as (server, home, expected):
        how = Started(server, home, limit).ended()
    lost = [how[:300]] if how != expected else []
    return Row("`ulimit -v` of 1 GB", "1 comparison", "same result", len(lost)), lost


def soak(seconds: float) -> tuple[Row, list[str]]:
    """A mirror and a stream of comparisons and studies; memory and open files stay flat."""
    lost: list[str] = []
    runs = 0
    with demo_mirror() as server, patience(120):
        expected = {pair: compared(pair) for pair in PAIRS}
        samples: list[tuple[int, int]] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            pair = PAIRS[runs % len(PAIRS)]
            if compared(pair) != expected[pair]:
                lost.append(f"run {runs}: another result")
            kinprint.study("same-layer", *MODELS[:2], cache=False)
            runs += 2
            gc.collect()
            samples.append((memory(), open_files()))
        served = server.stats.count()
    third = max(1, len(samples) // 3)
    early, late = samples[third : 2 * third] or samples, samples[-third:]
    grown = [_middle(late, at) - _middle(early, at) for at in (0, 1)]
    if grown[0] > 16 << 20 or grown[1] > 5:
        lost.append(f"grew by {grown[0]:,} bytes and {grown[1]} open files")
    load = f"{seconds / 60:.0f} minutes, {runs:,} runs, {served:,} requests served"
    flat = f"memory {grown[0] / 2**20:+.1f} MiB, open files {grown[1]:+d}"
    return Row("soak", load, flat, len(lost)), lost


def _middle(samples: list[tuple[int, int]], at: int) -> int:
    return sorted(one[at] for one in samples)[len(samples) // 2]
