"""Help and mistakes in usage, in every language: complete, within a terminal, in one sentence."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from kinprint import text
from kinprint.cli.commands import Command, Option
from kinprint.cli.root import kinprint_command
from kinprint.text.lines import columns_of
from kinprint.verbs.studying import ROWS

HANGUL = re.compile(r"[가-힣]")


def commands(
    command: click.Command = kinprint_command, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Every command with the words that lead to it."""
    assert isinstance(command, Command)
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))


ALL = [pytest.param(*one, id=" ".join(one[0]) or "kinprint") for one in commands()]


@pytest.mark.parametrize("language", text.languages())
@pytest.mark.parametrize(("path", "command"), ALL)
def test_help_is_complete_and_fits(
    path: tuple[str, ...], command: Command, language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KINPRINT_LANG", language)
    shown = CliRunner().invoke(kinprint_command, [*path, "--help"], prog_name="kinprint")
    assert shown.exit_code == 0, shown.output
    assert max(map(columns_of, shown.output.splitlines())) <= 80
    for param in command.params:
        if isinstance(param, Option) and not param.hidden:
            assert all(name in shown.output for name in param.opts)
            assert "{" not in param.words(command.key)
            assert not re.search(r"\[(\]|None|Sentinel)", param.words(command.key))
            assert language != "ko" or HANGUL.search(param.words(command.key))
    headings = re.findall(r"^(\w+):", shown.output, re.MULTILINE)
    assert headings
    assert language != "ko" or all(HANGUL.search(one) for one in headings)
    first = shown.output.split("\n\n")[1]
    assert language != "ko" or HANGUL.search(first)


def test_what_holds_where_nothing_is_given_is_shown_or_nothing_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KINPRINT_LANG", "en")
    told = Option(["--rows"], show_default="16").words("study.run")
    assert told == "Rows of a matrix to sample.  [16]" and ROWS == 16
    assert Option(["--rows"]).words("study.run") == "Rows of a matrix to sample."


MISTAKES = [
    (("frobnicate",), "frobnicate"),
    (("inspect",), "MODEL"),
    (("compare", "a", "b", "--levl", "quick"), "--level"),
    (("compare", "a", "b", "--level", "huge"), "quick, standard, deep"),
    (("compare", "a", "b", "--alpha", "2"), "--alpha"),
    (("matrix", "a", "b", "--jobs", "0"), "--jobs"),
    (("matrix", "a", "b", "--jobs", "many"), "--jobs"),
    (("mirror", "nowhere", "--port"), "--port"),
    (("mirror", "nowhere", "--port", "70000"), "65535"),
    (("mirror", "nowhere"), "FOLDER"),
    (("study", "run", "layers", "--full=yes", "x"), "--full"),
    (("study", "show", "sames-layer"), "same-layer"),
    (("report", "a.json", "b.json"), "b.json"),
    (("cache", "empty"), "empty"),
    (("compare", "a"), "MODEL"),
    (("compare", "a", "b", "c", "--direction"), "3"),
]


@pytest.mark.parametrize("language", text.languages())
@pytest.mark.parametrize(("arguments", "named"), MISTAKES, ids=[" ".join(m[0]) for m in MISTAKES])
def test_a_mistake_is_one_sentence_in_the_users_language(
    hub_environment: Callable[..., dict[str, str]],
    tmp_path: Path,
    arguments: tuple[str, ...],
    named: str,
    language: str,
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kinprint", *arguments],
        env=hub_environment("http://127.0.0.1:9", KINPRINT_LANG=language),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("kinprint: ") and done.stderr.count("\n") == 1
    assert named in done.stderr and "True" not in done.stderr
    assert bool(HANGUL.search(done.stderr)) == (language == "ko")


@pytest.mark.parametrize(
    ("value", "spoken"),
    [("ko_KR.UTF-8", "ko"), ("ko", "ko"), ("KO", "ko"), ("de_DE", "en"), ("C", "en"), ("", "en")],
)
def test_the_language_is_the_environments(
    value: str, spoken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KINPRINT_LANG", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", value)
    shown = CliRunner().invoke(kinprint_command, ["--help"])
    assert text.say("cli.usage", spoken) in shown.output


def test_words_are_completed_for_a_shell(hub_environment: Callable[..., dict[str, str]]) -> None:
    program = Path(sys.executable).with_name("kinprint")
    done = subprocess.run(
        [program],
        env=hub_environment(
            _KINPRINT_COMPLETE="bash_complete", COMP_WORDS="kinprint co", COMP_CWORD="1"
        ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "plain,compare" in done.stdout.splitlines()


@pytest.mark.parametrize("command", ["study run layers A B", "inspect A", "plan A B"])
def test_it_is_no_fault_that_nobody_reads_the_answer(
    hub_environment: Callable[..., dict[str, str]], demo: Path, command: str
) -> None:
    words = command.replace("A", str(demo / "zoo/base-a")).replace("B", str(demo / "zoo/base-b"))
    shell = f"{sys.executable} -m kinprint {words} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", shell],
        env=hub_environment("http://127.0.0.1:9"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_related_is_told_even_if_nobody_reads_the_answer(
    hub_environment: Callable[..., dict[str, str]], demo: Path
) -> None:
    pair = f"{demo / 'zoo/base-a'} {demo / 'zoo/a-cpt'} --level quick --exit-code"
    shell = f"{sys.executable} -m kinprint compare {pair} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", shell],
        env=hub_environment("http://127.0.0.1:9"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1 and done.stderr == ""
