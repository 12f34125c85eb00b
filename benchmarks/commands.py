"""Commands as people type them, run as processes and measured from the outside."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass

from benchmarks.network import Traffic, environment, traffic_since


@dataclass(frozen=True, slots=True)
class Run:
    """One process from start to end, interpreter included."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    traffic: Traffic


def run(endpoint: str, home: str, *arguments: str) -> Run:
    """Run `kinprint` with arguments against a mirror; `home` holds its cache.

    What it prints is thrown away: Linux counts the memory of the process that starts another as
    the other's, so this one keeps little.
    """
    if endpoint:
        traffic_since(endpoint)
    started = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "kinprint", *arguments],
        env=environment(endpoint, home),
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return Run(
        seconds,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * unit,
        traffic_since(endpoint) if endpoint else Traffic(),
    )
