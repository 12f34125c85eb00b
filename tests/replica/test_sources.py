"""The packaged numbers are the published ones, which lie in tables beside these tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kinprint.replica.figures import correlations, moments
from kinprint.replica.layout import layout_of

Rows = Callable[[str], list[dict[str, str]]]
Place = tuple[str, int]

CONFIGURATIONS = Path(__file__).with_name("configurations.json")
PARAMS = {"input": "input_layernorm", "post": "post_attention_layernorm"}


@pytest.fixture(scope="module")
def figures(rows: Rows) -> dict[tuple[str, str, Place, Place, str], float]:
    """Published figures by metric, role, both places and file."""
    return {
        (
            row["metric"],
            row["role"],
            (row["model_a"], int(row["layer_a"])),
            (row["model_b"], int(row["layer_b"])) if row["model_b"] else ("", 0),
            row["source"].removeprefix("reference/"),
        ): float(row["value"])
        for row in rows("figures.csv")
    }


Figures = dict[tuple[str, str, Place, Place, str], float]


def test_moments_and_correlations_of_solar_and_glm(figures: Figures) -> None:
    source, nothing = "sanity-check/layernorm_sanity.csv", ("", 0)
    known = {(pair.role, pair.a, pair.b): pair.value for pair in correlations()}
    for role in PARAMS:
        for layer in range(46):
            places = ("solar", layer), ("glm", layer)
            for place in places:
                ours = moments(place[0], role)[layer]
                assert ours.status == "reconstructed"
                assert ours.mean == figures["mean", role, place, nothing, source]
                assert ours.std == figures["std", role, place, nothing, source]
            assert known[role, *places] == figures["pearson", role, *places, source]


@pytest.mark.parametrize("layer", [10, 20, 30])
@pytest.mark.parametrize("role", ["input", "post"])
def test_moments_of_phi_follow_from_the_confusion_matrices(
    figures: Figures, role: str, layer: int
) -> None:
    phi = moments("phi", role)[layer]
    for model in ("solar", "glm"):
        found = {
            metric: figures[
                metric,
                role,
                (model, layer),
                ("phi", layer),
                f"vs-phi/confusion_{metric}_layer{layer}.json",
            ]
            for metric in ("cosine", "pearson", "rel_l2", "cv_diff")
        }
        other = moments(model, role)[layer]
        sizes = np.hypot(other.mean, other.std), np.hypot(phi.mean, phi.std)
        dot = other.mean * phi.mean + found["pearson"] * other.std * phi.std
        assert dot / np.prod(sizes) == pytest.approx(found["cosine"], abs=1e-6)
        distance = np.sqrt(sizes[0] ** 2 + sizes[1] ** 2 - 2 * dot) / sizes[0]
        assert distance == pytest.approx(found["rel_l2"], abs=1e-5)
        spread = abs(other.variation - phi.variation)
        assert spread == pytest.approx(found["cv_diff"], abs=1e-6)


def test_correlations_name_their_file_and_field(figures: Figures) -> None:
    checked = 0
    for pair in correlations():
        path, _, field = pair.source.removeprefix("reference/").partition(": ")
        if not path.startswith("vs-phi/"):
            continue
        assert figures["pearson", pair.role, pair.a, pair.b, path] == pair.value, pair
        same_model = pair.a[0] == pair.b[0]
        axes = [str(place[1]) if same_model else place[0] for place in (pair.a, pair.b)]
        assert field == f"{PARAMS[pair.role]} {'/'.join(axes)}"
        checked += 1
    assert checked == 36


def test_configurations_agree_where_they_were_published() -> None:
    """From derivation/out_solar_vs_glm45_00_config_compare.json of the derivation report."""
    for repository, published in json.loads(CONFIGURATIONS.read_text("utf-8")).items():
        config = layout_of(repository).config
        assert {key: config[key] for key in published} == published
