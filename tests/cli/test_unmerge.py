"""`kinprint unmerge` as a command: what it prints, writes and refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from kinprint.cli.root import run
from kinprint.mirror import MirrorServer
from tests.diff.merged_models import WIDTH, Family, drawn, tuned


@pytest.fixture
def family(tmp_path: Path) -> Family:
    base = drawn(1)
    found = Family(tmp_path, base, tuned(base, 2), tuned(base, 3, 0.02))
    found.write("a", found.first)
    found.write("b", found.second)
    found.write("child", found.average())
    return found


def test_the_recipe_is_printed_and_written(
    family: Family, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [str(family.folder / name) for name in ("child", "a", "b")]
    recipe, rows = family.folder / "recipe.yaml", family.folder / "rows.csv"
    assert run(["unmerge", *names, "-o", str(recipe), "-o", str(rows)]) == 0
    printed = capsys.readouterr().out
    assert "a linear average" in printed and "(100 %)" in printed
    assert all(line.strip() in printed for line in recipe.read_text().splitlines())
    assert len(rows.read_text().splitlines()) == 1 + len(family.base)


def test_json_is_one_line(family: Family, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(family.folder / name) for name in ("child", "a", "b")]
    assert run(["unmerge", *names, "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == "kinprint.unmerge/1" and told["methods"] == ["linear"]


def test_a_plan_reads_no_weight(family: Family, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(family.folder / name) for name in ("child", "a", "b")]
    assert run(["unmerge", *names, "--dry-run"]) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"{', '.join(names)} together: ") and "read in place" in told


def test_a_plan_counts_the_bytes_of_all_models(
    family: Family, hub_environment: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    """A child in a folder is read in place, and its parents elsewhere are not."""
    names = [str(family.folder / "child"), "a", "b"]
    (tmp_path / "elsewhere").mkdir()
    with MirrorServer(family.folder) as server:
        done = [
            subprocess.run(
                [sys.executable, "-m", "kinprint", "unmerge", *names, "--dry-run", *more],
                env=hub_environment(server.endpoint),
                cwd=tmp_path / "elsewhere",
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            for more in ((), ("--format", "json"))
        ]
    assert done[0].startswith(f"{', '.join(names)} together: ") and "in place" not in done[0]
    assert json.loads(done[1])["models"] == names


@pytest.mark.parametrize(
    ("more", "named"), [(["-o", "recipe.png"], ".yaml"), (["./nowhere"], "nowhere")]
)
def test_a_mistake_is_one_sentence(
    family: Family, capsys: pytest.CaptureFixture[str], more: list[str], named: str
) -> None:
    names = [str(family.folder / name) for name in ("child", "a", "b")]
    assert run(["unmerge", *names, *more]) == 2
    told = capsys.readouterr().err
    assert named in told and len(told.strip().splitlines()) == 1


def test_an_adapter_without_a_base_says_which_it_is_and_stands_on_the_one_that_is_given(
    family: Family, capsys: pytest.CaptureFixture[str]
) -> None:
    family.write("base", family.base)
    adapter = family.folder / "adapter"
    adapter.mkdir()
    told = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["q_proj"]}
    (adapter / "adapter_config.json").write_text(json.dumps(told))
    root = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
    sides = {"A": np.ones((2, WIDTH), np.float32), "B": np.ones((WIDTH, 2), np.float32)}
    save_file(
        {f"{root}{side}.weight": one for side, one in sides.items()},
        adapter / "adapter_model.safetensors",
    )
    child, base = (str(family.folder / name) for name in ("child", "base"))
    asked = ["unmerge", child, str(adapter), "--dry-run"]
    assert run(asked) == 2
    failed = capsys.readouterr().err
    assert failed.startswith(f"kinprint: {adapter}: ") and "give it with --base" in failed
    assert run([*asked, "--base", base]) == 0


def test_report_shows_it_again(family: Family, capsys: pytest.CaptureFixture[str]) -> None:
    names = [str(family.folder / name) for name in ("child", "a", "b")]
    kept, page, again, recipe = (
        str(family.folder / one) for one in ("r.json", "r.html", "again.html", "recipe.yaml")
    )
    assert run(["unmerge", *names, "-o", kept, "-o", page]) == 0
    first = capsys.readouterr().out
    assert run(["report", kept, "-o", again, "-o", recipe]) == 0
    assert capsys.readouterr().out.splitlines()[:5] == first.splitlines()[:5]
    assert Path(again).read_bytes() == Path(page).read_bytes()
    assert "merge_method: linear" in Path(recipe).read_text()
    assert run(["report", kept, "-o", str(family.folder / "r.png")]) == 2
    assert ".yaml" in capsys.readouterr().err
