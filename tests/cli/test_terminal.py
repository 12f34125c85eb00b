"""What a terminal shows: colours where wanted, progress while reading, else plain lines."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kinprint.mirror import MirrorServer
from kinprint.records import Relation
from kinprint.report.relations import SIGNS
from kinprint.text.lines import columns_of

Environment = Callable[..., dict[str, str]]
CODE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
PAIR = ("compare", "zoo/base-a", "zoo/a-cpt", "--level", "quick")
STRANGERS = ("compare", "zoo/base-a", "zoo/base-b", "--level", "quick")


@pytest.fixture
def server(demo: Path) -> Iterator[MirrorServer]:
    with MirrorServer(demo) as running:
        yield running


@pytest.fixture
def shown(
    hub_environment: Environment, server: MirrorServer, tmp_path: Path
) -> Callable[..., tuple[str, str]]:
    """Run a command in a terminal; what it wrote to stdout there, and to a stderr beside."""

    def run(*arguments: str, **more: str) -> tuple[str, str]:
        environment = hub_environment(server.endpoint, TERM="xterm", COLUMNS="80", **more)
        if not environment["NO_COLOR"]:
            del environment["NO_COLOR"]
        screens = [pty.openpty(), pty.openpty()]
        process = subprocess.Popen(
            [sys.executable, "-m", "kinprint", *arguments],
            env=environment | {"OMP_NUM_THREADS": "1"},
            cwd=tmp_path,
            stdout=screens[0][1],
            stderr=screens[1][1],
        )
        texts = []
        for _, terminal in screens:
            os.close(terminal)
        for main, _ in screens:
            text = b""
            with contextlib.suppress(OSError):
                while chunk := os.read(main, 65536):
                    text += chunk
            os.close(main)
            texts.append(text.decode())
        process.wait(timeout=300)
        return texts[0], texts[1]

    return run


def test_the_sentence_has_the_colour_of_its_relation(shown: Callable[..., tuple[str, str]]) -> None:
    out, _ = shown(*PAIR, NO_COLOR="")
    first = out.splitlines()[0]
    assert SIGNS[Relation.PARTIAL].terminal == "cyan" and first.startswith("\x1b[1;36m")
    plain = [CODE.sub("", line) for line in out.splitlines()]
    assert plain[0].startswith("Some parts of zoo/base-a and zoo/a-cpt are shared")
    assert max(map(columns_of, plain)) <= 80
    strangers, _ = shown(*STRANGERS, NO_COLOR="")
    # No evidence is no good news: nothing green.
    assert "\x1b[32m" not in strangers and "\x1b[1;32m" not in strangers


def test_no_color_is_honoured_in_a_terminal(shown: Callable[..., tuple[str, str]]) -> None:
    out, _ = shown(*PAIR, NO_COLOR="1")
    colours = [code for code in CODE.findall(out) if re.search(r"[34][0-7]", code)]
    assert "Some parts of zoo/base-a" in out and colours == []


def test_progress_tells_bytes_requests_and_the_time_left(
    shown: Callable[..., tuple[str, str]], server: MirrorServer
) -> None:
    server.latency = 0.15
    out, err = shown(*PAIR, NO_COLOR="1")
    lines = CODE.sub("", err)
    assert "reading" in lines and "requests" in lines and "left" in lines
    assert re.search(r"\d[\d.]*/\d[\d.]* [kM]?B", lines) and re.search(r"\d+:\d\d|-+:-+", lines)
    for line in re.split(r"[\r\n]+", lines):
        assert columns_of(line) <= 80, line
    assert not re.search(r"\d[\d.]*/\d[\d.]* [kM]?B", CODE.sub("", out))


def test_without_a_terminal_lines_are_plain(
    hub_environment: Environment, server: MirrorServer, tmp_path: Path
) -> None:
    environment = hub_environment(server.endpoint, OMP_NUM_THREADS="1", FORCE_COLOR="")
    del environment["NO_COLOR"]
    done = subprocess.run(
        [sys.executable, "-m", "kinprint", *STRANGERS],
        env=environment, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "\x1b" not in done.stdout and done.stderr == ""
    words = " ".join(done.stdout.split())
    assert "No evidence" in words and "would have been seen nine times in ten" in words
    assert done.stdout.splitlines()[-1].startswith("read ")
