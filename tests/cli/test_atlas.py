"""`kinprint identify` and `kinprint atlas` as commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import kinprint
from benchmarks.redteam.checkpoint import load, write_folder
from kinprint.cli.root import run
from kinprint.mirror import MirrorServer
from tests.conftest import DEMO
from tests.fewer_layers import short_zoo

MODELS = DEMO / "zoo"


@pytest.fixture(scope="module")
def atlas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("atlas")
    assert run(["atlas", "build", str(short_zoo() / "base-a"), "--atlas", str(place)]) == 0
    assert run(["atlas", "add", str(short_zoo() / "base-b"), "--atlas", str(place)]) == 0
    return place


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_identify_lists_parents_and_has_exit_codes(
    atlas: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["identify", str(short_zoo() / "a-cpt"), "--atlas", str(atlas), "--format", "json"]
    assert run([*asked, "--exit-code"]) == 1
    (told,) = lines(capsys)
    assert [Path(one["name"]).name for one in told["parents"]] == ["base-a"]
    assert run(asked) == 0


def test_identify_says_what_was_found_to_people(
    atlas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, page, again = (tmp_path / name for name in ("found.json", "page.html", "again.html"))
    asked = ["identify", str(short_zoo() / "a-cpt"), "--atlas", str(atlas)]
    assert run([*asked, "-o", str(file), "-o", str(page)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "1. base-a" in said and "corrected for all models searched (2)" in said
    assert json.loads(file.read_text())["searched"] == 2
    assert run(["report", str(file), "-o", str(again)]) == 0
    assert "1. base-a" in capsys.readouterr().out
    assert again.read_bytes() == page.read_bytes()


def test_what_could_not_be_tested_is_not_cleared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing links, a model that was not tested leaves it open: 3, and the headline."""
    atlas = tmp_path / "atlas"
    ids = [
        one.id
        for one in kinprint.Atlas(atlas).build([short_zoo() / "base-a", short_zoo() / "base-b"])
    ]
    base = load(short_zoo() / "base-a")
    zeros = {name: np.zeros_like(one) for name, one in base.tensors.items()}
    (tmp_path / "zeros").mkdir()
    write_folder(replace(base, tensors=zeros), tmp_path / "zeros")
    asked = ["identify", "--atlas", str(atlas), "--exit-code"]
    assert run([*asked, str(tmp_path / "zeros")]) == 3
    assert "No link was found" not in capsys.readouterr().out
    broken = atlas / "fingerprints" / f"{ids[0]}.parquet"
    raw = bytearray(broken.read_bytes())
    raw[len(raw) // 2] ^= 255
    broken.write_bytes(raw)
    assert run([*asked, str(short_zoo() / "a-cpt")]) == 3
    assert "no test could be run: 1" in " ".join(capsys.readouterr().out.split())
    broken.unlink()
    assert run([*asked, str(short_zoo() / "a-cpt")]) == 0


def test_an_atlas_without_models_answers_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["identify", str(short_zoo() / "a-cpt"), "--atlas", str(tmp_path)]
    assert run(asked) == 0
    seen = capsys.readouterr()
    assert "has no model" in " ".join(seen.out.split())
    assert str(tmp_path) in seen.err and "atlas build" in seen.err
    assert run([*asked, "--exit-code"]) == 2


@pytest.mark.parametrize(
    "command", [["identify", str(MODELS / "a-cpt")], ["atlas", "tree"], ["atlas", "stats"],
                ["atlas", "search", str(MODELS / "a-cpt")], ["atlas", "verify"]],
)  # fmt: skip
def test_an_atlas_that_is_not_there_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert run([*command, "--atlas", str(tmp_path / "nowhere")]) == 2
    seen = capsys.readouterr()
    assert str(tmp_path / "nowhere") in seen.err and not seen.out


def test_what_identify_cannot_write_is_said_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["identify", "nowhere/at-all", "-o", str(tmp_path / "page.png")]) == 2
    seen = capsys.readouterr()
    assert "page.png" in seen.err and ".json" in seen.err and not seen.out


def test_building_tells_failures_and_adds_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = tmp_path / "models.txt"
    names.write_text(f"# two models\n{short_zoo() / 'base-a'}\n{tmp_path / 'nowhere'}\n")
    place = ["--atlas", str(tmp_path / "atlas"), "--format", "json"]
    assert run(["atlas", "build", str(names), *place]) == 2
    seen = capsys.readouterr()
    first, second = (json.loads(line) for line in seen.out.splitlines())
    assert first["entry"] and first["error"] is None and not first["there"]
    assert second["entry"] is None and "nowhere" in second["error"] and "nowhere" in seen.err
    assert run(["atlas", "build", str(short_zoo() / "base-a"), *place]) == 0
    assert lines(capsys)[0]["there"] is True
    assert run(["atlas", "stats", *place]) == 0
    assert lines(capsys)[0]["models"] == 1


def test_search_ranks(atlas: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ["--atlas", str(atlas), "--format", "json"]
    assert run(["atlas", "search", str(short_zoo() / "a-cpt"), "-n", "1", *place]) == 0
    (first,) = lines(capsys)
    assert str(first["name"]).endswith("base-a")


def test_an_atlas_is_passed_on(
    atlas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, back = tmp_path / "out", tmp_path / "back"
    assert run(["atlas", "export", str(out), "--atlas", str(atlas)]) == 0
    assert run(["atlas", "pull", str(out), "--atlas", str(back)]) == 0
    capsys.readouterr()
    assert run(["atlas", "pull", str(out), "--atlas", str(back), "--format", "json"]) == 0
    assert lines(capsys)[0]["taken"] == 0
    assert run(["atlas", "stats", "--atlas", str(back)]) == 0
    assert "2" in capsys.readouterr().out


def test_what_is_broken_is_told_with_two(
    atlas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["atlas", "export", str(tmp_path), "--atlas", str(atlas)])
    one = next((tmp_path / "fingerprints").iterdir())
    one.write_bytes(one.read_bytes()[:-9])
    for part in (tmp_path / "index").iterdir():
        part.unlink()
    capsys.readouterr()
    assert run(["atlas", "stats", "--atlas", str(tmp_path)]) == 2
    assert one.stem in capsys.readouterr().err


def test_a_place_that_cannot_be_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    place = ["--atlas", str(tmp_path / "file")]
    assert run(["atlas", "add", str(short_zoo() / "base-a"), *place]) == 2
    assert "cannot be read or written" in capsys.readouterr().err


def test_building_of_nothing_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["atlas", "build", "--atlas", str(tmp_path)]) == 2
    assert "--search" in capsys.readouterr().err


def test_what_a_search_found_is_told_and_what_the_atlas_has(
    atlas: Path,
    make_mirror: Callable[[Path], MirrorServer],
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_mirror(short_zoo().parent)
    place = ["--atlas", str(atlas), "--jobs", "1"]
    assert run(["atlas", "build", "--search", "zzzzz", *place]) == 0
    said = capsys.readouterr().out
    assert "The search for 'zzzzz' found 0 models." in said
    assert "0 in the atlas, 0 failed. The atlas has 2 models in all." in said
    assert run(["atlas", "build", str(short_zoo() / "base-b"), "--search", "base-a", *place]) == 0
    said = capsys.readouterr().out
    assert "The search for 'base-a' found 1 model." in said
    assert "2 in the atlas, 0 failed." in said


def test_a_list_that_is_not_there_is_no_repository(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ["--atlas", str(tmp_path)]
    assert run(["atlas", "build", "nothere.txt", str(short_zoo() / "base-a"), *place]) == 2
    seen = capsys.readouterr()
    assert "there is no such list of models" in seen.err
    assert "1 in the atlas, 1 failed." in seen.out


@pytest.mark.parametrize("command", [["identify", str(MODELS / "a-cpt")], ["atlas", "tree"]])
def test_where_seeds_differ_those_of_the_atlas_are_named(
    atlas: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    assert run([*command, "--atlas", str(atlas), "--seed", "5"]) == 0
    assert capsys.readouterr().err.endswith("with other seeds: give --seed 0.\n")


def test_a_cluster_that_is_not_there_is_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kinprint.atlas.pools.CONNECTING", 0.5)
    place = ["--atlas", str(tmp_path / "atlas"), "--cluster", "127.0.0.1:9"]
    assert run(["atlas", "add", str(short_zoo() / "base-a"), *place]) == 2
    told = capsys.readouterr()
    assert "leave --cluster out" in told.err and "Traceback" not in told.err
    assert run(["atlas", "build", str(short_zoo()), *place, "--budget", "1MB"]) == 2
    assert "--jobs" in capsys.readouterr().err


def test_families_are_shown_as_trees_and_written(
    atlas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "tree.html"
    asked = ["atlas", "tree", "--atlas", str(atlas), "--jobs", "1"]
    assert run([*asked, "-o", str(page)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "No link was found between any two of the 2 models" in said
        and "Without a link: base-a" in said
    )
    assert "base-b" in page.read_text()
    assert run([*asked, "--format", "json"]) == 0
    (told,) = lines(capsys)
    assert told["schema"] == "kinprint.tree/1" and told["compared"] == told["pairs"] == 1
    assert run([*asked, "-o", str(tmp_path / "tree.pdf")]) == 2
    assert ".graphml" in capsys.readouterr().err


def test_families_are_drawn_again_from_their_json(
    atlas: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [tmp_path / f"tree.{end}" for end in ("json", "html", "svg", "graphml", "csv")]
    again = [tmp_path / f"again.{end}" for end in ("json", "html", "svg", "graphml", "csv")]
    wanted = [part for one in files for part in ("-o", str(one))]
    assert run(["atlas", "tree", "--atlas", str(atlas), "--jobs", "1", *wanted]) == 0
    first = capsys.readouterr().out.splitlines()
    wanted = [part for one in again for part in ("-o", str(one))]
    assert run(["report", str(files[0]), *wanted]) == 0
    *lines, cost = first[: -len(files)]
    assert capsys.readouterr().out.splitlines()[: -len(files)] == lines
    assert cost.startswith("nothing was read over the network")  # then, and not again
    assert [one.read_bytes() for one in again] == [one.read_bytes() for one in files]
    assert run(["report", str(files[0]), "-o", str(tmp_path / "tree.pdf")]) == 2
    assert ".graphml" in capsys.readouterr().err
    assert run(["report", "--help"]) == 0
    told = capsys.readouterr().out
    kinds = ("compare", "matrix", "study run", "diff", "unmerge", "atlas tree")
    assert all(f"`{kind}`" in " ".join(told.split()) for kind in kinds)
