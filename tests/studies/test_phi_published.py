"""Published matrices of norm vectors come back from the replicas, in their published form."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kinprint.model.model import Model
from kinprint.studies.registry import study_named
from kinprint.studies.results import Result
from kinprint.studies.running import Task, run_tasks
from kinprint.studies.study import Request

FIGURES = Path(__file__).resolve().parents[1] / "replica" / "figures.csv"
ROLES = {"input": "input_layernorm", "post": "post_attention_layernorm"}
# Absolute differences depend on the shape of the distributions, which replicas do not
# imitate beyond two moments, so their tolerance is wider; percentiles depend on it wholly.
TOLERANCES = {
    "cosine": 0.002, "centered_cosine": 0.002, "pearson": 0.002, "rel_l2": 0.002,
    "cv_diff": 0.002, "mean_abs_diff": 0.006,
}  # fmt: skip
NAMES = ("solar", "glm", "phi")


@pytest.fixture(scope="module")
def results(replica_models: dict[str, Model]) -> dict[str, Result]:
    models = tuple(replica_models[name] for name in NAMES)
    request = Request(roles=("norm_in", "norm_post_attn"))
    studies = [study_named(name) for name in ("confusion", "confusion-mixed", "within-model")]
    found = run_tasks([Task(study, models, request, NAMES) for study in studies])
    return {one.study: one for one in found}


def published(source: str) -> list[dict[str, str]]:
    with FIGURES.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if f"/{source}_" in row["source"]]


def facts_of(result: Result, stem: str) -> dict[str, Any]:
    found = result.facts[stem]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("source", "study"), [("confusion", "confusion"), ("within", "within-model")]
)
def test_every_published_matrix_comes_back(
    results: dict[str, Result], source: str, study: str
) -> None:
    rows = [row for row in published(source) if row["metric"] in TOLERANCES]
    seen = set()
    for row in rows:
        stem = Path(row["source"]).stem
        mixed = "mixed" in stem
        facts = facts_of(results["confusion-mixed" if mixed else study], stem)
        matrix = np.array(facts["mats"][ROLES[row["role"]]], float)
        if study == "confusion":
            at = NAMES.index(row["model_a"]), NAMES.index(row["model_b"])
        else:
            layers = facts["layers"]
            at = layers.index(int(row["layer_a"])), layers.index(int(row["layer_b"]))
        assert facts["metric"] == row["metric"]
        value, wanted = matrix[at], float(row["value"])
        assert value == pytest.approx(wanted, rel=0, abs=TOLERANCES[row["metric"]]), row
        seen.add((stem, row["role"]))
    assert len(seen) >= 6 * 2 * 3  # measures, roles, and three layers or three models


def test_files_are_called_as_published(results: dict[str, Result]) -> None:
    drawn = {chart.name for result in results.values() for chart in result.charts}
    told = {name for result in results.values() for name in result.facts}
    measures = (*TOLERANCES, "p99_abs_diff")
    wanted = {f"confusion_{name}_layer{layer}" for name in measures for layer in (10, 20, 30)}
    wanted |= {f"confusion_mixed_{name}_s10_g20_p30" for name in measures}
    wanted |= {f"within_{m}_{n}_layers10_20_30" for m in measures for n in NAMES}
    assert drawn == told == wanted


def test_the_json_has_the_published_keys(results: dict[str, Result]) -> None:
    same = facts_of(results["confusion"], "confusion_cosine_layer10")
    assert {"metric", "layer", "models", "mats"} <= same.keys()
    mixed = facts_of(results["confusion-mixed"], "confusion_mixed_cosine_s10_g20_p30")
    assert [mixed[f"{name}_layer"] for name in NAMES] == [10, 20, 30]
    within = facts_of(results["within-model"], "within_cosine_glm_layers10_20_30")
    assert (within["model"], within["layers"]) == ("glm", [10, 20, 30])
    assert within["params"] == list(ROLES.values())
