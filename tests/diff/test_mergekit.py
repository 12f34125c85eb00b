"""Beside mergekit itself, where it is installed: its merges are told, and it takes our recipes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import yaml

import kinprint
from benchmarks.merges import equal_share, made
from tests.diff.merged_models import Family, drawn, tuned

pytest.importorskip("mergekit")


@pytest.mark.parametrize("method", ["linear", "task_arithmetic", "ties"])
def test_a_merge_of_mergekit_is_told_and_made_again(method: str, tmp_path: Path) -> None:
    base = drawn(1)
    family = Family(tmp_path, base, tuned(base, 2), tuned(base, 3, 0.02))
    models = [
        {"model": str(family.write(name, tensors)), "parameters": {"weight": weight}}
        for name, tensors, weight in (("a", family.first, 0.3), ("b", family.second, 0.7))
    ]
    under = family.write("base", base)
    config = {"merge_method": method, "models": models, "dtype": "bfloat16"}
    if method != "linear":
        config["base_model"] = str(under)
    made(sys.executable, [(config, tmp_path / "child")])
    parents = [one["model"] for one in models]
    found = kinprint.unmerge(tmp_path / "child", [str(one) for one in parents], base=under)
    assert found.methods[0].value == method and found.recipe is not None
    made(sys.executable, [(yaml.safe_load(found.recipe.yaml), tmp_path / "again")])
    assert equal_share(tmp_path / "child", tmp_path / "again") == 1.0
