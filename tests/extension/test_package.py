"""The package that CONTRIBUTING.md shows, installed as it stands there, adds one of each kind."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import kinprint
from kinprint.extensions import GROUPS
from tests.conftest import DEMO, REPOSITORY

GUIDE = REPOSITORY / "CONTRIBUTING.md"
SOURCE = Path(kinprint.__file__).parents[1]
BLOCK = re.compile(r"^```(?:python|toml)\n# (?P<path>\S+)\n(?P<content>.*?)^```$", re.M | re.S)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which the package of the guide is installed."""
    project, target = tmp_path_factory.mktemp("acme"), tmp_path_factory.mktemp("installed")
    for found in BLOCK.finditer(GUIDE.read_text("utf-8")):
        file = project / found["path"]
        file.parent.mkdir(exist_ok=True)
        file.write_text(found["content"], "utf-8")
    (project / "acme_kinprint/__init__.py").write_text("", "utf-8")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    here = ["--no-index", "--no-deps", "--no-build-isolation", "--target", str(target)]
    subprocess.run([*pip, *here, str(project)], check=True)
    return target


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """A folder with one model in the format, and with the names, of the package."""
    folder = tmp_path / "models" / "small"
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (16, 8)}
    for layer in range(2):
        block = f"model.layers.{layer}."
        shapes |= {f"{block}mix.weight": (24, 8), f"{block}unmix.weight": (8, 8)}
        shapes |= {f"{block}calm.weight": (8,)}
    arrays = {name: rng.normal(size=shape).astype("<f4") for name, shape in shapes.items()}
    header = json.dumps(shapes).encode()
    raw = b"".join(array.tobytes() for array in arrays.values())
    (folder / "weights.acme").write_bytes(struct.pack("<Q", len(header)) + header + raw)
    config = {
        "model_type": "acme", "hidden_size": 8, "num_hidden_layers": 2,
        "num_attention_heads": 2, "head_dim": 4, "vocab_size": 16,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    np.save(tmp_path / "gain.npy", arrays["model.layers.1.calm.weight"])
    return folder.parent


def run(*arguments: str, path: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Run kinprint as a process that finds packages in `path`."""
    places = [str(SOURCE)] if path is None else [str(path), str(SOURCE)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places), "KINPRINT_LANG": "en"}
    command = [sys.executable, "-m", "kinprint", *arguments]
    return subprocess.run(
        command, env={**environment, **more}, capture_output=True, text=True, check=False
    )


def result(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_kind_is_found(package: Path) -> None:
    found = result(run("extensions", "--format", "json", path=package))["extensions"]
    assert [one["group"] for one in found] == list(GROUPS)
    assert {one["fault"] for one in found} == {None}
    assert {one["package"] for one in found} == {"acme-kinprint 1.0"}
    shown = run("extensions", path=package).stdout
    assert all(group in shown for group in GROUPS)


def test_without_the_package_there_is_nothing() -> None:
    assert result(run("extensions", "--format", "json"))["extensions"] == []


def test_a_format_a_source_and_an_architecture_together(package: Path, models: Path) -> None:
    inspected = run(
        "inspect", "acme://small", "--format", "json", path=package, ACME_MODELS=str(models)
    )
    found = result(inspected)
    assert (found["format"], found["family"], found["unknown"]) == ("acme", "acme", [])
    tensors = {one["name"]: one for one in found["tensors"]}
    mixed = tensors["model.layers.1.mix.weight"]
    assert (mixed["role"], mixed["layer"]) == ("qkv", 1)
    assert mixed["splits"]["pattern"] == "2 x (q:4, k:4, v:4)"
    assert tensors["model.layers.0.calm.weight"]["role"] == "norm_in"
    assert found["warnings"] == []


def test_without_the_package_the_file_is_no_weight_file(models: Path) -> None:
    done = run("inspect", str(models / "small"))
    assert done.returncode == 2
    assert "weights.acme" in done.stderr


def test_a_study_and_a_measure(package: Path, models: Path, tmp_path: Path) -> None:
    listed = run("study", "list", path=package).stdout
    assert "acme-gains" in listed and "layers" in listed
    done = run(
        "study", "run", "acme-gains", str(models / "small"), "--format", "json", path=package
    )
    (table,) = result(done)["tables"]
    row = dict(zip(table["columns"], table["rows"][1], strict=True))
    assert row["mean"] == pytest.approx(float(np.load(tmp_path / "gain.npy").mean()))
    measured = run(
        "study", "run", "same-layer", str(DEMO / "zoo/base-a"), str(DEMO / "zoo/a-cpt"),
        "--measures", "acme_median", "--format", "json", path=package,
    )  # fmt: skip
    assert "acme_median" in json.dumps(result(measured)["tables"])


def test_a_test_is_shown_and_decides_nothing(package: Path, tmp_path: Path) -> None:
    pair = (str(DEMO / "zoo/base-a"), str(DEMO / "zoo/base-b"))
    line, kept = tmp_path / "answer.line.txt", tmp_path / "with.json"
    done = run("compare", *pair, "-o", str(kept), "-o", str(line), path=package)
    assert done.returncode == 0, done.stderr
    done = run("compare", *pair, "-o", str(tmp_path / "without.json"))
    assert done.returncode == 0, done.stderr
    added, plain = (
        json.loads((tmp_path / f"{name}.json").read_bytes()) for name in ("with", "without")
    )
    (shown,) = [one for one in added["evidence"] if one["tier"] == "extension"]
    assert (shown["test"], shown["status"]) == ("acme.signs", "ok")
    assert shown.get("share") is None and shown.get("adjusted") is None
    others = [one for one in added["evidence"] if one["tier"] != "extension"]
    assert others == plain["evidence"]
    for part in ("verdict", "shared", "plan", "seeds"):
        assert added[part] == plain[part], part
    assert line.read_text() == f"{added['a']} {added['verdict']['relation']} {added['b']}\n"


def test_a_broken_package_breaks_no_command(package: Path, models: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(package, broken)
    for file in (broken / "acme_kinprint").glob("*.py"):
        file.write_text("raise RuntimeError('a broken package')\n")
    found = result(run("extensions", "--format", "json", path=broken))["extensions"]
    assert all("RuntimeError: a broken package" in one["fault"] for one in found)
    fine = run("inspect", str(DEMO / "zoo/base-a"), "--format", "json", path=broken)
    assert result(fine)["format"] == "safetensors"
    done = run("inspect", str(models / "small"), path=broken)
    assert done.returncode == 2
    assert "'acme' of acme-kinprint 1.0 could not be loaded" in done.stderr
    assert "Traceback" not in done.stderr
