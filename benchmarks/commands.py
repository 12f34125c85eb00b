"""Commands as people type them, run as processes and measured from the outside."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

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


class Run(Struct, frozen=True):
    """One process from start to end, interpreter included."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int
    traffic: Traffic = field(default_factory=Traffic)


def run(endpoint: str, home: str, *arguments: str, module: str = "kinprint") -> Run:
    """Run `kinprint` with arguments against a mirror; `home` holds its cache."""
    if endpoint:
        traffic_since(endpoint)
    command = (sys.executable, "-m", module, *arguments)
    found = run_command(command, environment(endpoint, home))
    return replace(found, traffic=traffic_since(endpoint)) if endpoint else found


def run_command(command: Sequence[str], variables: Mapping[str, str]) -> Run:
    """Run any command to its end."""
    done = subprocess.run(
        [sys.executable, "-ISc", _LAUNCHER, *command],
        env=variables,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    seconds, cpu, peak = done.stdout.split()
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return Run(float(seconds), float(cpu), int(peak) * unit)


class Together(Struct, frozen=True):
    """A command with all processes that it starts.

    `peak_bytes` is the most that they held at one time, as seen every tenth of a second; Linux
    alone tells it, and it is 0 elsewhere.
    """

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def run_together(home: str, *arguments: str) -> Together:
    """Run `kinprint` with arguments and look at its processes meanwhile."""
    before, started, peak = _cpu_of_children(), time.monotonic(), 0
    command = [sys.executable, "-m", "kinprint", *arguments]
    with subprocess.Popen(
        command, env=environment("", home), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None:
            peak = max(peak, sum(map(_resident, _family(process.pid))))
            time.sleep(0.1)
    assert process.returncode == 0
    return Together(time.monotonic() - started, _cpu_of_children() - before, peak)


def _cpu_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _family(process: int) -> list[int]:
    """A process and those that it started, as far as they are still there."""
    found = [process]
    for told in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = told.read_text().split()
        except OSError:
            continue
        found += [member for child in children for member in _family(int(child))]
    return found


def _resident(process: int) -> int:
    try:
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
    except OSError:
        return 0
    return int(pages) * resource.getpagesize()
