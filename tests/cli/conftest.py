"""Commands in this process, where it is not the process that is tested."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kinprint.cli.root import run

Command = Callable[..., subprocess.CompletedProcess[str]]
_LANGUAGE = ("LC_ALL", "LC_MESSAGES", "LANGUAGE", "LANG", "COLUMNS")


@pytest.fixture
def in_process(
    point_hub_at: Callable[[str], None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Callable[[str], Command]:
    """Commands as a process of its own would run them, without its start: of an endpoint."""

    def at(endpoint: str) -> Command:
        point_hub_at(endpoint)

        def call(*arguments: str, text: str = "", **more: str) -> subprocess.CompletedProcess[str]:
            capfd.readouterr()
            with monkeypatch.context() as own:
                own.chdir(tmp_path)
                own.setenv("NO_COLOR", "1")
                for name in _LANGUAGE:
                    own.delenv(name, raising=False)
                for name, value in more.items():
                    own.setenv(name, value)
                own.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode()), "utf-8"))
                code = run(list(arguments))
            said = capfd.readouterr()
            return subprocess.CompletedProcess(arguments, code, said.out, said.err)

        return call

    return at
