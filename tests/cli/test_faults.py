"""What nobody foresaw: planted in a real process, it ends with 2 and a sentence, never with 1."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kinprint import text

PLANT = """
import {module} as room
def fail(*arguments, **named):
    {statement}
room.{name} = fail
from kinprint.cli import main
main({arguments!r})
"""
Plant = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def plant(hub_environment: Callable[..., dict[str, str]], demo: Path, tmp_path: Path) -> Plant:
    """Run `compare --exit-code` of two relatives in a process where one function fails."""

    def run(
        statement: str,
        *options: str,
        module: str = "kinprint.lineage.compare",
        name: str = "compare_opened",
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        pair = [str(demo / "zoo" / one) for one in ("base-a", "a-cpt")]
        arguments = ["compare", *pair, "--level", "quick", "--exit-code", *options]
        code = PLANT.format(module=module, name=name, statement=statement, arguments=arguments)
        return subprocess.run(
            [sys.executable, "-c", code],
            env=hub_environment("http://127.0.0.1:9", **variables),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


@pytest.mark.parametrize("language", text.languages())
@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("raise ValueError('odd')", "ValueError: odd"),
        ("raise AssertionError", "AssertionError"),
        ("raise MemoryError", "MemoryError"),
        ("return fail()", "RecursionError"),
        ("raise SystemExit(1)", "SystemExit: 1"),
        ("from concurrent.futures.process import BrokenProcessPool as E; raise E('x')", "Pool: x"),
    ],
)
def test_a_fault_is_one_sentence_and_never_an_accusation(
    plant: Plant, statement: str, named: str, language: str
) -> None:
    done = plant(statement, KINPRINT_LANG=language)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and done.stderr.startswith("kinprint: ")
    assert named in done.stderr and "--debug" in done.stderr
    before, _, after = text.say("cli.internal-error", language, cause="|").partition("|")
    assert before in done.stderr and after in done.stderr


@pytest.mark.parametrize("how", ["option", "variable"])
def test_debug_shows_the_traceback(plant: Plant, how: str) -> None:
    if how == "variable":
        done = plant("raise ValueError('odd')", KINPRINT_DEBUG="1")
    else:
        done = plant("raise ValueError('odd')", "--debug")
    assert done.returncode == 2
    assert "Traceback (most recent call last)" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("kinprint: ")


def test_a_fault_in_telling_of_a_fault_ends_with_2(plant: Plant) -> None:
    told = {"module": "kinprint.cli.root", "name": "_tell", "HF_ENDPOINT": "nowhere"}
    done = plant("raise ValueError('odd')", **told)
    assert done.returncode == 2 and "ValueError: odd" in done.stderr
    unloaded = plant("raise ImportError('broken')", module="kinprint.cli.root", name="run")
    assert unloaded.returncode == 2 and "ImportError: broken" in unloaded.stderr


def test_an_interrupt_is_told_apart(plant: Plant) -> None:
    assert plant("raise KeyboardInterrupt").returncode == 130


def test_without_a_fault_the_same_command_says_related(plant: Plant) -> None:
    done = plant("return room.compare_opened(*arguments, **named)", name="not_called")
    assert done.returncode == 1, done.stderr


def _small_files() -> None:
    """No file may grow beyond a kilobyte: what a full disk does, to the files of a process."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


@pytest.mark.parametrize(
    ("command", "output", "form"),
    [
        ("compare --level quick", "result.json", "text"),
        ("compare --level quick", "result.json", "json"),
        ("study run same-layer", "out", "text"),
    ],
)
def test_a_full_disk_does_not_lose_the_answer(
    hub_environment: Callable[..., dict[str, str]],
    demo: Path,
    tmp_path: Path,
    command: str,
    output: str,
    form: str,
) -> None:
    pair = [str(demo / "zoo" / one) for one in ("base-a", "a-cpt")]
    own = {"PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "kinprint", *command.split(), *pair, "-o", output, "--format", form],
        env=hub_environment("http://127.0.0.1:9", **own),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=_small_files,
    )
    assert done.returncode == 2
    assert "result.json" in done.stderr and done.stderr.count("kinprint: ") == 1
    if form == "json":
        json.loads(done.stdout)
    else:
        assert len(done.stdout.splitlines()) > 5
    assert not list(tmp_path.rglob("*result.json*"))
