"""The tables beside these tests were copied faithfully from the publications."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kinprint.studies.reproduction.published import published
from tests.conftest import SHARED

Rows = Callable[[str], list[dict[str, str]]]

REFERENCE = SHARED / "reference"
LAYERWISE = "derivation/out_solar_vs_glm45_layerwise_similarity.csv"
ROLES = {"norm_pre": "norm_in", "norm_post": "norm_post_attn", "router_or_gate": "router"}

pytestmark = pytest.mark.zoo


def table(path: str) -> list[dict[str, str]]:
    with (REFERENCE / path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_figures(rows: Rows) -> None:
    numbers = {
        str(value)
        for path in (REFERENCE / "vs-phi").glob("*.json")
        for matrices in [json.loads(path.read_text("utf-8"))["mats"]]
        for matrix in matrices.values()
        for line in matrix
        for value in line
    }
    texts = {
        name: (SHARED / "seeds" / name).read_text("utf-8")
        for name in ("critique-results.ko.md", "derivation-report.ko.md")
    }
    for row in rows("figures.csv"):
        source = row["source"].split()[0]
        if source.startswith("reference/vs-phi/"):
            assert row["value"] in numbers, row
        elif source.startswith("reference/"):
            assert row["value"] in (SHARED / source).read_text("utf-8"), row
        else:
            assert row["value"] in texts[source.removeprefix("seeds/")], row


def test_shards(rows: Rows) -> None:
    original = [
        (row["key_A"], row["shard_A"], row["key_B"], row["shard_B"]) for row in table(LAYERWISE)
    ]
    assert [tuple(row.values()) for row in rows("shards.csv")] == original


def test_configurations() -> None:
    original = json.loads(
        (REFERENCE / "derivation/out_solar_vs_glm45_00_config_compare.json").read_text("utf-8")
    )
    copied = json.loads(Path(__file__).with_name("configurations.json").read_text("utf-8"))
    assert copied == {side["repo"]: side["config_summary"] for side in original.values()}


def test_packaged_numbers() -> None:
    known = {(one.key, one.source): one.value for one in published()}
    for row in table(LAYERWISE):
        key = f"cosine/{ROLES[row['category']]}/solar[{row['layer_A']}]/glm[{row['layer_B']}]"
        assert known[key, LAYERWISE] == pytest.approx(float(row["cosine"]), rel=1e-6)
