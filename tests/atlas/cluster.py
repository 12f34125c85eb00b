"""A Dask cluster of this machine: a real scheduler and real workers, each a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import IO, Self

ROOT = Path(__file__).resolve().parents[2]


class Cluster:
    """Starts with its scheduler; workers come and go.

    Parameters
    ----------
    folder
        For logs, what workers keep, and the file in which the scheduler tells its address.
    environment
        What its processes are to have beyond the variables of this one.
    """

    def __init__(self, folder: Path, **environment: str) -> None:
        self._folder = folder
        self._path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
        self._environment = environment
        self._logs: list[IO[bytes]] = []
        told = folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port=0", f"--scheduler-file={told}")
        self.workers: list[subprocess.Popen[bytes]] = []
        while not told.exists() or not told.read_text():
            assert self.scheduler.poll() is None, (folder / "scheduler.log").read_text()
            time.sleep(0.05)
        self.address: str = json.loads(told.read_text())["address"]

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker with one thread, which nobody starts again when it dies."""
        number = str(len(self.workers))
        place = f"--local-directory={self._folder / number}"
        one = self._start("worker", self.address, "--nthreads=1", "--no-nanny", place, name=number)
        self.workers.append(one)
        return one

    def _start(self, *arguments: str, name: str = "") -> subprocess.Popen[bytes]:
        log = (self._folder / f"{arguments[0]}{name}.log").open("wb")
        self._logs.append(log)
        command = [sys.executable, "-m", "dask", *arguments, "--host=127.0.0.1", "--no-dashboard"]
        own = {"PYTHONPATH": self._path, "PYTHONWARNINGS": "default", **self._environment}
        return subprocess.Popen(command, env={**os.environ, **own}, stdout=log, stderr=log)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for one in (*self.workers, self.scheduler):
            one.kill()
            one.wait()
        for log in self._logs:
            log.close()
