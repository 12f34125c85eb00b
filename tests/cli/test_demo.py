"""`kinprint demo` as a process: three answers, the cosine beside each, and the pages it names."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kinprint.demo import FOLDER, PAIRS

Run = Callable[..., subprocess.CompletedProcess[str]]
# What the demo says in each language: of relatives, of strangers, of the cosine and the page.
SAID = {
    "en": ("share trained weights", "No evidence was found", "cosine of their norms", "report"),
    "ko": ("학습된 가중치를 공유합니다", "증거를 찾지", "norm 코사인", "보고서"),
}


@pytest.fixture
def run(tmp_path: Path, hub_environment: Callable[..., dict[str, str]]) -> Iterator[Run]:
    """Run the demo in an empty folder, with a Hub configured that nobody answers for."""
    folder = tmp_path / "empty"
    folder.mkdir()

    def demo(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "kinprint", "demo", *arguments],
            cwd=folder,
            env=hub_environment("http://127.0.0.1:9", HF_HUB_OFFLINE="1", **variables),
            capture_output=True,
            text=True,
            check=False,
        )

    yield demo


@pytest.mark.parametrize(
    ("language", "where"),
    [("ko", "made"), pytest.param("en", None, marks=pytest.mark.slow)],  # the READMEs show both
)
def test_three_answers_and_their_pages(
    run: Run, tmp_path: Path, language: str, where: str | None
) -> None:
    (tmp_path / "empty" / "zoo" / "base-a").mkdir(parents=True)  # which is not read
    done = run(*(() if where is None else ("-o", where)), KINPRINT_LANG=language)
    assert done.returncode == 0 and done.stderr == ""
    related, stranger, cosine, report = SAID[language]
    descendant, laundered, apart = done.stdout.split("\n\n")[1:4]
    assert related in descendant and related in laundered and stranger in apart
    for told, pair in zip((descendant, laundered, apart), PAIRS, strict=True):
        (value,) = re.findall(rf"{cosine}: (0\.\d{{4}})", told)
        assert 0.998 < float(value) < 1
        (named,) = re.findall(rf"{report}: (\S+)", told)
        page = tmp_path / "empty" / named
        assert page == tmp_path / "empty" / (where or "out/demo") / f"{pair.history}.html"
        assert f'lang="{language}"' in page.read_text("utf-8")
        document = json.loads(page.with_suffix(".json").read_text("utf-8"))
        assert [one["name"] for one in document["models"]] == [pair.a, pair.b]
        assert all(one["kind"] == "hub" for one in document["models"])
        norms = [one["cosine"] for one in document["seeds"]]
        assert float(value) == pytest.approx(sum(norms) / len(norms), abs=6e-5)


@pytest.mark.slow
def test_a_folder_of_the_same_name_is_not_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty" / "zoo" / "base-a").mkdir(parents=True)
    done = run("-o", "made")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "empty" / "made" / "stranger.html").is_file()


def test_a_place_that_cannot_be_written_is_refused_before_the_work(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "empty" / "taken").write_text("a file")
    done = run("-o", "taken/inside")
    assert done.returncode == 2 and "taken" in done.stderr
    assert done.stdout == ""


def test_the_models_are_small_and_complete() -> None:
    names = {name for pair in PAIRS for name in (pair.a, pair.b)}
    assert {f"zoo/{path.name}" for path in (FOLDER / "zoo").iterdir()} == names
    files = [path for name in names for path in (FOLDER / name).iterdir()]
    assert {"config.json", "tokenizer.json"} <= {path.name for path in files}
    assert sum(path.stat().st_size for path in files) < 16_000_000
