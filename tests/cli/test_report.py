"""`-o` and `kinprint report`: files as people ask for them, and again from the JSON, offline."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kinprint.mirror import MirrorServer

Run = Callable[..., subprocess.CompletedProcess[str]]
PAIR = ("zoo/base-a", "zoo/a-cpt")
ENDINGS = ("json", "html", "md", "csv", "png", "svg")


@pytest.fixture(scope="module")
def server(demo: Path) -> Iterator[MirrorServer]:
    with MirrorServer(demo) as running:
        yield running


@pytest.fixture
def run(in_process: Callable[[str], Run], server: MirrorServer) -> Run:
    return in_process(server.endpoint)


@pytest.fixture
def process(
    hub_environment: Callable[..., dict[str, str]], server: MirrorServer, tmp_path: Path
) -> Run:
    def call(
        *arguments: str, text: str | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kinprint", *arguments],
            env=hub_environment(server.endpoint, OMP_NUM_THREADS="1", **more),
            cwd=tmp_path,
            input=text,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return call


def test_what_compare_writes_report_draws_again(
    process: Run, tmp_path: Path, server: MirrorServer
) -> None:
    wanted = [part for end in ENDINGS for part in ("-o", f"first/r.{end}")]
    done = process("compare", *PAIR, "--level", "quick", *wanted, "-o", "first/all/")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "written to first/all"
    first = tmp_path / "first"
    assert {one.name for one in first.iterdir()} == {*(f"r.{end}" for end in ENDINGS), "all"}
    asked = server.stats.count("hub") + server.stats.count("storage")
    again = [part for end in ENDINGS for part in ("-o", f"again/r.{end}")]
    redrawn = process("report", "first/r.json", *again, "-o", "again/all")
    assert redrawn.returncode == 0, redrawn.stderr
    assert server.stats.count("hub") + server.stats.count("storage") == asked  # offline
    made = [one.relative_to(first) for one in first.rglob("*") if one.is_file()]
    assert len(made) > 15
    for one in made:
        assert (first / one).read_bytes() == (tmp_path / "again" / one).read_bytes(), one
    assert "shared as trained: norms" in " ".join(redrawn.stdout.split())
    assert redrawn.stdout.splitlines()[0] == done.stdout.splitlines()[0]
    assert "requests" in done.stdout and "requests" not in redrawn.stdout  # that was long ago


def test_three_models_are_a_matrix_by_either_name(run: Run, tmp_path: Path) -> None:
    names = (*PAIR, "zoo/base-b")
    quick = ("--level", "quick", "--jobs", "1")
    one = run("compare", *names, *quick, "-o", "m.html", "-o", "m.json", "-o", "m.png")
    other = run("matrix", *names, *quick, "-o", "n.json")
    assert one.returncode == other.returncode == 0, one.stderr + other.stderr
    found, same = (json.loads((tmp_path / name).read_text()) for name in ("m.json", "n.json"))
    for each in (found, same):
        del each["read"]
    assert found == same and found["schema"] == "kinprint.matrix/2"
    again = run("report", "m.json", "-o", "again.html", "-o", "again.png")
    assert again.returncode == 0, again.stderr
    for end in ("html", "png"):
        assert (tmp_path / f"m.{end}").read_bytes() == (tmp_path / f"again.{end}").read_bytes()
    refused = run("compare", *names, "--control", "zoo/a-cpt")
    assert refused.returncode == 2 and "--control" in refused.stderr
    assert run("compare", "zoo/base-a").returncode == 2


def test_a_model_that_cannot_be_read_does_not_hide_the_others(run: Run, tmp_path: Path) -> None:
    done = run("compare", *PAIR, "zoo/nothing", "--level", "quick", "--jobs", "1", "-o", "m.html")
    assert done.returncode == 2
    assert "zoo/nothing" in done.stderr and "partial" in done.stdout
    assert "zoo/nothing" in (tmp_path / "m.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("path", "said"),
    [("r.docx", ".html"), ("r", "it is a file"), ("r/page.html", "nothing can be written")],
)
def test_places_that_cannot_be_written_are_named_before_reading(
    run: Run, tmp_path: Path, server: MirrorServer, path: str, said: str
) -> None:
    (tmp_path / "r").write_text("in the way")
    asked = server.stats.count("hub") + server.stats.count("storage")
    done = run("compare", *PAIR, "-o", path)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1
    assert server.stats.count("hub") + server.stats.count("storage") == asked


def test_what_is_no_result_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "odd.json").write_text('{"schema": "else/1"}')
    for name, said in (("odd.json", "odd.json"), ("nowhere.json", "nowhere.json")):
        done = run("report", name, "-o", "page.html")
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
    cut = run("report", "-", text='{"schema": "kinprint.compare/1"')
    assert cut.returncode == 2 and "'-'" in cut.stderr
    assert not (tmp_path / "page.html").exists()


def test_a_result_may_come_from_a_pipe(process: Run) -> None:
    made = process("compare", *PAIR, "--level", "quick", "--format", "json")
    shown = process("report", "-", text=made.stdout)
    assert shown.returncode == 0, shown.stderr
    assert "shared as trained: norms" in " ".join(shown.stdout.split())
    again = process("report", "-", "--format", "json", text=made.stdout)
    assert json.loads(again.stdout) == json.loads(made.stdout)


def test_the_result_of_a_study_is_drawn_again(run: Run, tmp_path: Path) -> None:
    made = run("study", "run", "same-layer", "zoo/base-a", "zoo/base-b", "-o", "made")
    assert made.returncode == 0, made.stderr
    again = run("report", "made/result.json", "-o", "again")
    assert again.returncode == 0, again.stderr
    files = [one.relative_to(tmp_path / "made") for one in (tmp_path / "made").rglob("*")]
    assert len(files) > 4
    for one in files:
        assert (tmp_path / "made" / one).read_bytes() == (tmp_path / "again" / one).read_bytes()
    refused = run("report", "made", "-o", "page.html")
    assert refused.returncode == 2 and "folder" in refused.stderr
