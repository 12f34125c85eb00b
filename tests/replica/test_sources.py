"""The packaged numbers are the published ones, where a copy of those lies beside the checkout."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kinprint.replica.figures import correlations, moments
from kinprint.replica.layout import layout_of

SHARED = Path(__file__).parents[2].parent / "shared"
REFERENCE = SHARED / "reference"
ROLES = {"norm_pre": "input", "norm_post": "post"}
PARAMS = {"input": "input_layernorm", "post": "post_attention_layernorm"}

pytestmark = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason=f"the published tables are not at {REFERENCE}"
)


def table(path: str) -> list[dict[str, str]]:
    with (REFERENCE / path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_moments_and_correlations_of_solar_and_glm() -> None:
    known = {(pair.role, pair.a, pair.b): pair.value for pair in correlations()}
    for row in table("sanity-check/layernorm_sanity.csv"):
        role, layer = ROLES[row["category"]], int(row["layer"])
        for letter, model in (("A", "solar"), ("B", "glm")):
            ours = moments(model, role, 46)[layer]
            assert ours.status == "reconstructed"
            assert (ours.mean, ours.std) == (
                float(row[f"{letter}_mean"]),
                float(row[f"{letter}_std"]),
            )
        assert known[role, ("solar", layer), ("glm", layer)] == float(row["cosine_centered"])


@pytest.mark.parametrize("layer", [10, 20, 30])
@pytest.mark.parametrize("role", ["input", "post"])
def test_moments_of_phi_follow_from_the_confusion_matrices(role: str, layer: int) -> None:
    phi = moments("phi", role, 32)[layer]
    found = {
        metric: json.loads(
            (REFERENCE / f"vs-phi/confusion_{metric}_layer{layer}.json").read_text("utf-8")
        )["mats"][PARAMS[role]]
        for metric in ("cosine", "pearson", "rel_l2", "cv_diff")
    }
    for row, model in enumerate(("solar", "glm")):
        other = moments(model, role, 46)[layer]
        sizes = np.hypot(other.mean, other.std), np.hypot(phi.mean, phi.std)
        dot = other.mean * phi.mean + found["pearson"][row][2] * other.std * phi.std
        assert dot / np.prod(sizes) == pytest.approx(found["cosine"][row][2], abs=1e-6)
        distance = np.sqrt(sizes[0] ** 2 + sizes[1] ** 2 - 2 * dot) / sizes[0]
        assert distance == pytest.approx(found["rel_l2"][row][2], abs=1e-5)
        spread = abs(other.variation - phi.variation)
        assert spread == pytest.approx(found["cv_diff"][row][2], abs=1e-6)


def test_correlations_name_their_field() -> None:
    checked = 0
    for pair in correlations():
        path, _, field = pair.source.partition(": ")
        if not path.startswith("reference/vs-phi/"):
            continue
        content = json.loads((SHARED / path).read_text("utf-8"))
        param, pick = field.split()
        axis = [str(name) for name in content.get("models", content.get("layers"))]
        row, column = (axis.index(name) for name in pick.split("/"))
        assert content["mats"][param][row][column] == pair.value, pair
        assert param == PARAMS[pair.role]
        checked += 1
    assert checked == 36


def test_expected_figures_are_copied_faithfully(
    rows: Callable[[str], list[dict[str, str]]],
) -> None:
    published = {
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
            assert row["value"] in published, row
        elif source.startswith("reference/"):
            assert row["value"] in (SHARED / source).read_text("utf-8"), row
        else:
            assert row["value"] in texts[source.removeprefix("seeds/")], row


def test_shards_are_copied_faithfully(rows: Callable[[str], list[dict[str, str]]]) -> None:
    published = [
        (row["key_A"], row["shard_A"], row["key_B"], row["shard_B"])
        for row in table("derivation/out_solar_vs_glm45_layerwise_similarity.csv")
    ]
    assert [tuple(row.values()) for row in rows("shards.csv")] == published


def test_configurations_agree_where_they_were_published() -> None:
    text = (REFERENCE / "derivation/out_solar_vs_glm45_00_config_compare.json").read_text("utf-8")
    for side in json.loads(text).values():
        config = layout_of(side["repo"]).config
        assert {key: config[key] for key in side["config_summary"]} == side["config_summary"]
