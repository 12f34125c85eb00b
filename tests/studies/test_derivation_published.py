"""Published numbers of the derivation report come back from the replicas.

Replicas carry norm vectors that follow published statistics; matrices and tokenizers are
not published and are absent, which the studies must say and survive.
"""

from __future__ import annotations

import pytest

from kinprint.model.model import Model
from kinprint.studies.registry import study_named
from kinprint.studies.results import Fact, Result
from kinprint.studies.running import Task, run_tasks
from kinprint.studies.study import Request

STUDIES = (
    "baseline-claim", "tensor-types", "embeddings", "layers", "configuration", "tokenizers",
    "decay", "hypotheses", "repository",
)  # fmt: skip
NAMES = ("solar", "glm")


@pytest.fixture(scope="module")
def results(replica_models: dict[str, Model]) -> dict[str, Result]:
    models = tuple(replica_models[name] for name in NAMES)
    tasks = [Task(study_named(name), models, Request(rows=4), NAMES) for name in STUDIES]
    return {one.study: one for one in run_tasks(tasks)}


def fact(results: dict[str, Result], study: str, *path: str) -> Fact:
    found: Fact = dict(results[study].facts)
    for key in path:
        assert isinstance(found, dict)
        found = found[key]
    return found


@pytest.mark.parametrize(
    ("name", "value", "tolerance"),
    [
        ("within_b_mean", 0.377, 0.0005),
        ("within_a_mean", 0.376, 0.0005),
        ("cross_mean", 0.989, 0.0005),
        ("difference", 0.612, 0.0005),
        ("sigma", 182, 0.5),
        ("log10_p", -7190, 20),
    ],
)
def test_the_claim(results: dict[str, Result], name: str, value: float, tolerance: float) -> None:
    found = fact(results, "baseline-claim", "norm_in", name)
    assert found == pytest.approx(value, abs=tolerance)


def test_the_claim_about_a_control_is_as_strong(replica_models: dict[str, Model]) -> None:
    models = tuple(replica_models[name] for name in (*NAMES, "phi"))
    task = Task(study_named("baseline-claim"), models, Request(), (*NAMES, "phi"))
    (found,) = run_tasks([task])
    controls = found.facts["controls"]
    assert isinstance(controls, dict) and isinstance(controls["norm_in"], dict)
    # Of Phi's layer 0 two cosines were published, which is no baseline of four.
    assert controls["norm_in"]["pairs"] == 0 and controls["norm_in"]["failed"] == 2


def test_published_cosines_of_phi_give_more_sigmas_than_the_claim(
    replica_models: dict[str, Model],
) -> None:
    names = ("glm", "phi", "solar")
    models = tuple(replica_models[name] for name in names)
    request = Request(layers=(10, 20, 30), roles=("norm_in",))
    (found,) = run_tasks([Task(study_named("baseline-claim-refuted"), models, request, names)])
    table = found.table("baseline_claim")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    sigmas = {
        (row["a"], row["b"]): float(str(row["sigma"])) for row in rows if row["status"] == "ok"
    }
    assert sigmas["phi", "glm"] > 2 * sigmas["solar", "glm"]
    assert {row["mark"] for row in rows if row["status"] == "ok"} == {"reconstructed"}
    assert all(row["sigma"] is None for row in rows if row["status"] != "ok")


def test_means_by_type(results: dict[str, Result]) -> None:
    for role, mean, std in (("norm_in", 0.94874, 0.15640), ("norm_post_attn", 0.98638, 0.02586)):
        assert fact(results, "tensor-types", role, "mean") == pytest.approx(mean, abs=1e-4)
        assert fact(results, "tensor-types", role, "std") == pytest.approx(std, abs=1e-4)
        assert fact(results, "tensor-types", role, "count") == 46
    table = results["tensor-types"].table("tensor_types_detailed")
    q = [row for row in table.rows if row[9] == "q" and row[0] == 0]
    assert q[0][2] == "shape_mismatch"
    assert q[0][6:8] == ("(8192, 4096)", "(12288, 4096)")


def test_layers_by_layer(results: dict[str, Result]) -> None:
    table = results["layers"].table("layerwise_similarity")
    first = next(row for row in table.rows if row[:3] == (0, 0, "norm_pre"))
    assert first[3] == pytest.approx(0.127247, abs=2e-4)
    assert first[4] == pytest.approx(-0.013288, abs=2e-4)
    assert first[6] == 8192
    assert first[10:12] == ("model-00002-of-00042.safetensors", "model-00001-of-00047.safetensors")
    beyond = [row for row in table.rows if row[0] in (46, 47)]
    assert beyond and {row[12] for row in beyond} == {"missing"}
    # Correlations of different layers were not published, so that replicas have no assignment.
    assert not results["layers"].table("layer_alignment").rows


def test_decay(results: dict[str, Result]) -> None:
    published = {
        "diagonal_mean": 0.96756, "early_layers_sim": 0.94046, "late_layers_sim": 0.99467,
        "decay": -0.05421, "pearson_mean": 0.00536,
    }  # fmt: skip
    for name, value in published.items():
        assert fact(results, "decay", name) == pytest.approx(value, abs=1e-4), name
    layers = fact(results, "decay", "layerwise_similarity")
    assert isinstance(layers, list) and isinstance(layers[0], dict)
    assert layers[0]["sim"] == pytest.approx(0.49055, abs=2e-4)


def test_configuration(results: dict[str, Result]) -> None:
    assert fact(results, "configuration", "A", "config_summary", "num_hidden_layers") == 48
    changed = fact(results, "configuration", "changed")
    assert isinstance(changed, dict)
    assert changed["num_attention_heads"] == {"A": 64, "B": 96}
    removed = fact(results, "configuration", "removed")
    assert isinstance(removed, dict) and removed["num_nextn_predict_layers"] == 1
    equal = fact(results, "configuration", "equal")
    assert isinstance(equal, dict) and equal["hidden_size"] == 4096


def test_what_replicas_lack_is_said(results: dict[str, Result]) -> None:
    assert results["embeddings"].statuses == {"missing": 1}
    assert results["tokenizers"].statuses == {"missing": 2}
    assert all(one.labels for one in results.values())


def test_the_summary_of_evidence(results: dict[str, Result]) -> None:
    table = results["hypotheses"].table("evidence_strength")
    values = dict(zip(table.column("key"), table.column("value"), strict=True))
    assert values["norm_mean_cosine"] == pytest.approx(0.968, abs=5e-4)
    assert values["within_against_cross"] == pytest.approx(182, abs=0.5)
    shuffled = results["hypotheses"].facts["norm_shuffled_cosine"]
    assert shuffled == pytest.approx(0.968, abs=1e-3)
