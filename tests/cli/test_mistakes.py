"""What somebody new types wrongly: one sentence says what happened and what to do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kinprint.cli.root import run

ZOO = Path(__file__).resolve().parents[2] / "src" / "kinprint" / "demo" / "zoo"
BASE, CHILD = str(ZOO / "base-a"), str(ZOO / "a-cpt")
MISTAKES: dict[str, tuple[list[str], str]] = {
    "a misspelt command": (["compar", BASE, CHILD], "the nearest is compare"),
    "a misspelt command of a group": (["atlas", "serch", BASE], "the nearest is search"),
    "a command like no other": (["frobnicate"], " --help` lists all"),
    "one model": (["compare", BASE], "it is the only one"),
    "an option without its value": (["compare", BASE, CHILD, "--given"], " compare --help`"),
    "an argument without a metavar": (["mirror"], "FOLDER is missing"),
    "a folder that is not there": (["inspect", "nothing/"], "there is no such file or folder"),
    "the Hub itself": (["inspect", "https://huggingface.co/"], "names no model"),
    "an atlas that is a file": (["identify", BASE, "--atlas", "notes.txt"], "Not a directory"),
    "nothing to add": (["atlas", "build"], "There is nothing to add"),
    "no JSON": (["report", "notes.txt"], "it is not JSON. Give a JSON file"),
    "JSON of something else": (["report", f"{BASE}/config.json"], "what kind of result it is"),
    "a result of a later version": (["report", "later.json"], "(kinprint.compare/99)"),
    "no such result": (["report", "nothing.json"], "has no file 'nothing.json'"),
    "a folder without a result": (["report", "empty"], "is a folder without a result"),
    "a file for a study": (["study", "run", "same-layer", BASE, "-o", "notes.txt"], "a folder"),
    "hashes of three": (["compare", BASE, CHILD, BASE, "--no-hash"], "--no-hash is for two models"),
    "all and some rows": (["diff", BASE, CHILD, "--sample", "--full"], "give one of them"),
    "a plan to write": (["compare", BASE, CHILD, "--dry-run", "-o", "x.json"], "nothing for -o"),
    "a code of a plan": (["matrix", BASE, CHILD, "--dry-run", "--exit-code"], "for --exit-code"),
    "a plan of a diff": (["diff", BASE, CHILD, "--dry-run", "-o", "x.json"], "nothing for -o"),
    "a plan of a merge": (["unmerge", CHILD, BASE, "--dry-run", "-o", "x.json"], "nothing for -o"),
    "a plan of a study": (
        ["study", "run", "same-layer", BASE, CHILD, "--dry-run", "-o", "x"], "nothing for -o",
    ),
    "a seed for all rows": (["unmerge", CHILD, BASE, "--seed", "5"], "give --sample too"),
    "a base of no adapter": (["compare", BASE, CHILD, "--base", BASE], "give it with --given"),
    "a base for a plan": (["compare", BASE, CHILD, "--base", BASE, "--dry-run"], "with --given"),
    "a base for a diff": (["diff", BASE, CHILD, "--base", BASE], "give it with --given"),
    "a base for many": (["matrix", BASE, CHILD, "--base", BASE], "no model given is an adapter"),
    "a base for a study": (
        ["study", "run", "same-layer", BASE, CHILD, "--base", BASE], "no model given is an adapter",
    ),
    "a stream": (["compare", BASE, CHILD, "-o", "-"], "--format json"),
    "a stream for an atlas": (["atlas", "tree", "-o", "-"], "--format json"),
    "nowhere to write": (["compare", BASE, CHILD, "-o", "notes.txt/x.html"], "Not a directory"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "later.json").write_text('{"schema": "kinprint.compare/99"}')
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence_in_each_language(
    mistake: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, words = MISTAKES[mistake]
    told = {}
    for language in ("en", "ko"):
        monkeypatch.setenv("KINPRINT_LANG", language)
        assert run(arguments) == 2
        told[language] = capsys.readouterr().err
        assert told[language].startswith("kinprint: ") and told[language].count("\n") == 1
        assert told[language].endswith(".\n")
    assert words in told["en"]
    said = told["ko"].partition("kinprint: ")[2]
    assert any("가" <= letter <= "힣" for letter in said)
    assert not any(word in said for word in ("there is", "is not", "Not a", "malformed", "missing"))


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "model", CHILD, "-o", "model/config.json"],
        ["compare", CHILD, BASE, "--control", "model", "-o", "model/report.html"],
        ["matrix", CHILD, BASE, "model", "-o", "model/report/"],
        ["diff", BASE, "model", "-o", "model/report.html"],
        ["diff", BASE, CHILD, "--parent", "model", "-o", "model/report.html"],
        ["unmerge", BASE, "model", "-o", "model/recipe.yaml"],
        ["identify", "model", "-o", "model/config.json"],
        ["study", "run", "same-layer", BASE, "model", "-o", "model/report"],
        ["atlas", "tree", "-o", "model/config.json"],
        ["demo", "-o", "model"],
        ["reproduce", "solar-vs-glm", "-o", "model"],
    ],
    ids=lambda given: " ".join(given[:2]),
)
def test_models_stay_as_they_are(
    arguments: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = folder / "model"
    model.mkdir()
    for file in Path(BASE).iterdir():
        (model / file.name).symlink_to(file)
    (model / "config.json").unlink()
    (model / "config.json").write_bytes((Path(BASE) / "config.json").read_bytes())
    before = {file: file.read_bytes() for file in model.iterdir()}
    assert run(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert {file: file.read_bytes() for file in model.iterdir()} == before


def test_where_an_adapter_cannot_be_read_its_base_is_not_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "adapter_config.json").write_text("{}")
    (tmp_path / "adapter_model.safetensors").write_bytes(b"\0" * 8)
    for command in (["matrix"], ["study", "run", "same-layer"]):
        run([*command, BASE, CHILD, str(tmp_path), "--base", BASE])
        told = "".join(capsys.readouterr())
        assert "no model given is an adapter" not in told and "adapter_model" in told


def test_one_model_given_twice_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", BASE, BASE]) == 0
    assert "it was compared with itself" in capsys.readouterr().err
    assert run(["compare", BASE, CHILD, "--level", "quick"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("folder")
def test_an_empty_atlas_says_where_it_was_looked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run(["atlas", "tree", "--atlas", str(tmp_path)]) == 0
    assert capsys.readouterr().err.startswith(f"Looked in {tmp_path}. ")


def test_offline_a_name_may_have_been_meant_for_a_folder(
    hub_environment: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    for name, told in (("zoo/nothing", True), ("hf://zoo/nothing", False)):
        done = subprocess.run(
            [sys.executable, "-m", "kinprint", "inspect", name],
            env=hub_environment("http://127.0.0.1:9", HF_HUB_OFFLINE="1"),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 2
        assert ("there is no folder of that name here" in done.stderr) is told


@pytest.mark.parametrize(
    ("language", "words"),
    [("en", "(Connection refused)"), ("ko", "(접속이 거부되었습니다)")],
)
def test_what_the_system_says_is_said_in_the_users_language(
    language: str,
    words: str,
    point_hub_at: Callable[[str], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    point_hub_at("http://127.0.0.1:9")
    monkeypatch.setenv("KINPRINT_LANG", language)
    monkeypatch.chdir(tmp_path)
    assert run(["inspect", "zoo/nothing"]) == 2
    assert words in capsys.readouterr().err
