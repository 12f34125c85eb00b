"""Commands as people type them, run as processes and measured from the outside."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

from benchmarks.network import Traffic, environment, traffic_since

# Linux counts the memory of the process that starts another as the other's: a small one does it.
_LAUNCHER = """
import os, sys, time
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
started = time.monotonic()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, usage = os.wait4(child, 0)
print(time.monotonic() - started, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@dataclass(frozen=True, slots=True)
class Run:
    """One process from start to end, interpreter included."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    traffic: Traffic


def run(endpoint: str, home: str, *arguments: str, module: str = "kinprint") -> Run:
    """Run `kinprint` with arguments against a mirror; `home` holds its cache."""
    if endpoint:
        traffic_since(endpoint)
    launcher = [sys.executable, "-ISc", _LAUNCHER]
    done = subprocess.run(
        [*launcher, sys.executable, "-m", module, *arguments],
        env=environment(endpoint, home),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds, cpu, peak = done.stdout.split()
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    seen = traffic_since(endpoint) if endpoint else Traffic()
    return Run(float(seconds), float(cpu), int(peak) * unit, seen)
