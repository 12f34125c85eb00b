"""The READMEs say what the commands print, and both say the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kinprint
from kinprint.demo import FOLDER

ROOT = Path(__file__).resolve().parents[1]
READMES = ("README.md", "README.ko.md")


@pytest.mark.parametrize(("name", "language"), [("README.md", "en"), ("README.ko.md", "ko")])
def test_the_demo_prints_what_the_readme_shows(name: str, language: str, tmp_path: Path) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    ((_, shown),) = re.findall(
        r"```console\n\$ (KINPRINT_LANG=ko )?make demo\n(.*?)```", text, re.DOTALL
    )
    done = run_kinprint("demo", folder=tmp_path, KINPRINT_LANG=language)
    assert done.startswith(shown)


def test_comparing_prints_what_the_readme_shows() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```console\n(\$ kinprint compare .*?)```", text, re.DOTALL)
    told = [part.partition("\n") for part in block.split("$ kinprint ")[1:]]
    assert len(told) == 2
    for command, _, shown in told:
        done = run_kinprint(*command.split(), "--no-cache", folder=FOLDER / "zoo")
        assert done.startswith(shown)


def run_kinprint(*arguments: str, folder: Path, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "kinprint", *arguments],
        cwd=folder,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_both_readmes_have_the_same_parts() -> None:
    def outline(name: str) -> list[str]:
        text = (ROOT / name).read_text(encoding="utf-8")
        code = re.findall(r"^```(\w*)", text, re.MULTILINE)
        heads = re.findall(r"^(#+) ", text, re.MULTILINE)
        rows = re.findall(r"^\|", text, re.MULTILINE)
        return [*heads, *code, str(len(rows))]

    assert outline(READMES[0]) == outline(READMES[1])


@pytest.mark.parametrize(
    "name",
    [*READMES, "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "src/kinprint/demo/README.md"],
)
def test_links_and_paths_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / name).parent.joinpath(target).exists(), target


def test_architecture_knows_every_room() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = [
        path.name + ("/" if path.is_dir() else "")
        for path in (ROOT / "src" / "kinprint").iterdir()
        if not path.name.startswith(("_", "py.typed"))
    ]
    assert [room for room in rooms if f"`{room}`" not in text] == []


def test_every_room_in_the_reader_is_on_the_map() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([a-z_]+\.py)`", text):
        assert list((ROOT / "src").rglob(name)), f"{name} is on the map and not in the house"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What the site quotes, kept as data that is read again in every language."""
    zoo, folder = FOLDER / "zoo", tmp_path_factory.mktemp("compared")
    places = [folder / f"{other}.json" for other in ("a-cpt", "base-b")]
    for place in places:
        kinprint.compare(zoo / "base-a", zoo / place.stem).save(place)
    return places


@pytest.mark.parametrize(("end", "language"), [(".md", "en"), (".ko.md", "ko")])
def test_the_site_quotes_what_comparing_says(end: str, language: str, compared: list[Path]) -> None:
    docs = ROOT / "docs"
    index = (docs / f"index{end}").read_text(encoding="utf-8")
    quoted = re.findall(r"^((?:> .*\n)+)\{ \.answer \}", index, re.MULTILINE)
    pairs = [kinprint.Comparison.load(place, language) for place in compared]
    assert [" ".join(one.replace("> ", "").split()) for one in quoted] == [
        one.summary for one in pairs
    ]
    linked, apart = (" ".join(one.statements.values()) for one in pairs)
    p = re.findall(r"p ≤ 10\^-\d+", index)[0]
    assert p in linked
    verdicts = (docs / f"verdicts{end}").read_text(encoding="utf-8")
    (power,) = re.findall(r"(?:feed-forward|피드포워드) 0\.0\d+(?=\")", verdicts)
    assert power in apart
