"""`kinprint study` as people use it: over a mirror, real exit codes, and some real processes."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import kinprint
from kinprint.mirror import MirrorServer
from kinprint.studies.registry import studies
from kinprint.text.lines import columns_of

Run = Callable[..., subprocess.CompletedProcess[str]]
PAIR = ("zoo/base-a", "zoo/a-cpt")


@pytest.fixture
def server(demo: Path) -> Iterator[MirrorServer]:
    with MirrorServer(demo) as running:
        yield running


@pytest.fixture
def study(in_process: Callable[[str], Run], server: MirrorServer) -> Run:
    command = in_process(server.endpoint)
    return lambda *arguments, **more: command("study", *arguments, **more)


@pytest.fixture
def process(
    hub_environment: Callable[..., dict[str, str]], server: MirrorServer, tmp_path: Path
) -> Run:
    def run(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kinprint", "study", *arguments],
            env=hub_environment(server.endpoint, OMP_NUM_THREADS="1", **more),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


def widest(text: str) -> int:
    return max(columns_of(line) for line in text.splitlines())


@pytest.mark.parametrize("language", ["en", "ko"])
def test_list_and_show_fit_a_terminal(study: Run, language: str) -> None:
    listed = study("list", KINPRINT_LANG=language)
    assert listed.returncode == 0, listed.stderr
    assert widest(listed.stdout) <= 80
    for name in studies():
        assert re.search(rf"^{name} ", listed.stdout, re.MULTILINE)
    shown = study("show", "metrics", KINPRINT_LANG=language)
    assert shown.returncode == 0, shown.stderr
    assert widest(shown.stdout) <= 80
    assert ("보여 줄 수 없는 것" if language == "ko" else "What it cannot show") in shown.stdout
    assert "pearson:" in shown.stdout


def test_list_as_json(process: Run) -> None:
    found = json.loads(process("list", "--format", "json").stdout)
    assert found["schema"] == "kinprint.studies/1"
    assert [one["name"] for one in found["studies"]] == list(studies())


def test_a_run_prints_numbers_that_are_true(process: Run, demo: Path) -> None:
    done = process("run", "same-layer", *PAIR, "--layers", "3", "--format", "json")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["schema"] == "kinprint.study/1"
    assert found["asked"]["layers"] == [3]
    assert [one["name"] for one in found["sources"]] == list(PAIR)
    a, b = (_norm(demo / name, 3) for name in PAIR)
    expected = float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))
    (table,) = [one for one in found["tables"] if "cosine" in one["columns"]]
    row = dict(zip(table["columns"], table["rows"][0], strict=True))
    assert row["cosine"] == pytest.approx(expected, abs=1e-6)
    assert found["read"]["requests"] > 0


def test_a_run_for_people(study: Run, tmp_path: Path) -> None:
    done = study("run", "same-layer", *PAIR, "-o", "made")
    assert done.returncode == 0, done.stderr
    assert widest(done.stdout) <= 80
    assert "Rows by status: ok" in done.stdout
    assert re.search(r"^read .* in \d+ requests, ", done.stdout, re.MULTILINE)
    made = {path.name for path in (tmp_path / "made").iterdir()}
    assert {"result.json", "README.md", "README.ko.md"} <= made
    kinprint.report(tmp_path / "made").save(tmp_path / "again")
    for file in (tmp_path / "made").rglob("*.*"):
        again = tmp_path / "again" / file.relative_to(tmp_path / "made")
        assert again.read_bytes() == file.read_bytes()


def test_a_model_that_cannot_be_opened_is_set_aside(study: Run) -> None:
    done = study("run", "same-layer", *PAIR, "zoo/nothing", "--layers", "3")
    assert done.returncode == 2
    assert "base-a" in done.stdout and "zoo/nothing is not available" in done.stdout
    assert done.stderr.startswith("kinprint: There is no model 'zoo/nothing'")
    assert done.stderr.count("\n") == 1


def test_nothing_is_written_unasked_and_korean_is_spoken(process: Run, tmp_path: Path) -> None:
    before = {path for path in tmp_path.iterdir() if path.name != "hf-home"}
    done = process("run", "same-layer", *PAIR, LANG="ko_KR.UTF-8")
    assert done.returncode == 0, done.stderr
    assert "보여 줄 수 없는 것" in done.stdout
    assert widest(done.stdout) <= 80
    assert {path for path in tmp_path.iterdir() if path.name != "hf-home"} == before


def test_a_dry_run_says_what_the_run_then_costs(study: Run, server: MirrorServer) -> None:
    options = ("tensor-types", *PAIR, "--rows", "4", "--format", "json")
    planned = json.loads(study("run", *options, "--dry-run").stdout)
    assert planned["schema"] == "kinprint.study-plan/1"
    assert planned["bytes"] > 0
    server.stats.reset()
    done = json.loads(study("run", *options).stdout)
    opening = 4  # which commit is it now, and where does the file lie, of each model
    assert done["read"]["requests"] == planned["requests"] + opening
    assert server.stats.storage_body_bytes == planned["bytes"]
    nothing = json.loads(study("run", *options, "--dry-run").stdout)
    assert (nothing["bytes"], nothing["requests"]) == (0, 0)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("same-layer", *PAIR, "--measures", "cosin"), "'cosine'"),
        (("same-layer", *PAIR, "--roles", "norm_inn"), "'norm_in'"),
        (("same-layer", *PAIR, "--layers", "99"), "0 to 5"),
        (("same-layer", *PAIR, "--layers", "3-1"), "0-45"),
        (("same-layer", *PAIR, "--layers", "x"), "0-45"),
        (("same-layer", *PAIR, "--rows", "2", "--full"), "--full"),
        (("same-layer", PAIR[0]), "MODEL cannot be 'zoo/base-a': 'same-layer' takes 2 or more"),
        (("same-layr", *PAIR), "same-layer"),
        (("same-layer", PAIR[0], "zoo/nothing"), "There is no model 'zoo/nothing'"),
        (("same-layer", *PAIR, "--budget", "1kB"), "--budget"),
    ],
)
def test_mistakes_are_answered_with_a_sentence(
    study: Run, arguments: tuple[str, ...], said: str
) -> None:
    done = study("run", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.startswith("kinprint: ")
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""


def test_a_place_that_cannot_be_written_to_is_refused_before_anything_is_read(
    study: Run, server: MirrorServer, tmp_path: Path
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("mine")
    for place in ("/dev/null/out", "taken"):
        done = study("run", "same-layer", *PAIR, "-o", place)
        assert done.returncode == 2 and done.stdout == ""
        assert done.stderr.startswith("kinprint: -o cannot be ")
    assert server.stats.count("hub") + server.stats.count("storage") == 0


def _norm(folder: Path, layer: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    name = f"model.layers.{layer}.input_layernorm.weight"
    for file in folder.glob("*.safetensors"):
        tensors = load_file(file)
        if name in tensors:
            return tensors[name].astype(np.float64)
    raise AssertionError(name)
