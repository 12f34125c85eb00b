"""The critique's published tables come back from the replicas, to the tolerance of bf16."""

from __future__ import annotations

from typing import Any

import pytest

from kinprint.model.model import Model
from kinprint.studies.charts import Bars
from kinprint.studies.registry import study_named
from kinprint.studies.results import Result
from kinprint.studies.running import Task, run_tasks
from kinprint.studies.study import Request

CLOSE = 0.002
MOE = ("solar", "glm", "phi", "mixtral")
DENSE = ("mistral", "yi6", "yi9", "qwen")
TASKS: dict[str, tuple[str, tuple[str, ...]]] = {
    "layer-zero": ("layer-zero", ("solar", "glm")),
    "fair-baseline": ("fair-baseline", ("solar", "glm")),
    "same-layer": ("same-layer", MOE),
    "many-layers": ("many-layers", MOE),
    "as published": ("architectures", (*MOE, *DENSE)),
    "with all five": ("architectures", (*MOE, *DENSE, "internlm")),
    "metrics": ("metrics", MOE),
    "baselines": ("baselines", ("solar", "glm")),
    "multi-model": ("multi-model", (*MOE, "mixtral22")),
    "derived": ("same-layer", ("solar", "glm", "intellect")),
    "summary": ("summary", (*MOE, *DENSE, "internlm")),
}


@pytest.fixture(scope="module")
def results(replica_models: dict[str, Model]) -> dict[str, Result]:
    tasks = [
        Task(study_named(study), tuple(replica_models[name] for name in names), Request(), names)
        for study, names in TASKS.values()
    ]
    return dict(zip(TASKS, run_tasks(tasks), strict=True))


def fact(result: Result, *path: str) -> Any:
    found: Any = result.facts
    for step in path:
        found = found[step]
    return found


def value(result: Result, measure: str, **where: object) -> Any:
    """The only row of the study's table with these cells."""
    table = result.table(result.study)
    found = [
        row[table.columns.index(measure)]
        for row in table.rows
        if all(row[table.columns.index(name)] == wanted for name, wanted in where.items())
    ]
    assert len(found) == 1
    return found[0]


def close(wanted: float | tuple[float, ...]) -> Any:
    return pytest.approx(wanted, rel=0, abs=CLOSE)


@pytest.mark.parametrize(
    ("model", "cosines", "mean"),
    [
        ("solar", (0.3731, 0.3773, 0.3771, 0.3761), 0.3759),
        ("glm", (0.3758, 0.3757, 0.3773, 0.3790), 0.3769),
    ],
)
def test_layer_zero(
    results: dict[str, Result], model: str, cosines: tuple[float, ...], mean: float
) -> None:
    found = results["layer-zero"]
    pairs = ("0-10", "0-20", "0-30", "0-40")
    assert [fact(found, "norm_in", model, pair, "cosine") for pair in pairs] == close(cosines)
    assert fact(found, "norm_in", model, "cosine", "mean") == close(mean)


@pytest.mark.parametrize(
    ("model", "cosines", "mean"),
    [("solar", (0.9882, 0.9960), 0.9921), ("glm", (0.9982, 0.9976), 0.9979)],
)
def test_fair_baseline(
    results: dict[str, Result], model: str, cosines: tuple[float, ...], mean: float
) -> None:
    found = results["fair-baseline"]
    pairs = ("10-20", "20-30")
    assert [fact(found, "norm_in", model, pair, "cosine") for pair in pairs] == close(cosines)
    assert fact(found, "norm_in", model, "cosine", "mean") == close(mean)


@pytest.mark.parametrize(
    ("a", "b", "cosine"),
    [
        ("solar", "glm", 0.9811),
        ("solar", "phi", 0.9776),
        ("solar", "mixtral", 0.9408),
        ("glm", "phi", 0.9881),
        ("glm", "mixtral", 0.9497),
        ("phi", "mixtral", 0.9465),
    ],
)
def test_mixtures_at_layer_ten(results: dict[str, Result], a: str, b: str, cosine: float) -> None:
    assert value(results["same-layer"], "cosine", model_a=a, model_b=b) == close(cosine)


def test_mean_of_the_mixtures(results: dict[str, Result]) -> None:
    found = fact(results["same-layer"], "norm_in", "layers", "10", "cosine")
    assert (found["mean"], found["std"], found["count"]) == (close(0.9639), close(0.0187), 6)


def test_many_layers(results: dict[str, Result]) -> None:
    published = {
        5: (0.9432, 0.0063), 10: (0.9639, 0.0187), 15: (0.9800, 0.0097),
        20: (0.9897, 0.0022), 25: (0.9889, 0.0039), 30: (0.9710, 0.0195),
    }  # fmt: skip
    found = results["many-layers"]
    for layer, (mean, std) in published.items():
        moments = fact(found, "norm_in", "layers", str(layer), "cosine")
        assert (moments["mean"], moments["std"]) == (close(mean), close(std))
    every = fact(found, "norm_in", "all", "cosine")
    assert (every["count"], every["mean"], every["std"]) == (36, close(0.9728), close(0.0202))
    assert fact(found, "norm_in", "std_of_layer_means", "cosine") == close(0.0161)


@pytest.mark.parametrize(
    ("group", "mean", "std", "count"),
    [
        ("MoE-MoE", 0.9639, 0.0187, 6),
        ("MoE-dense", 0.9722, 0.0178, 16),
        ("dense-dense", 0.9738, 0.0183, 6),
    ],
)
def test_architectures_as_published(
    results: dict[str, Result], group: str, mean: float, std: float, count: int
) -> None:
    found = fact(results["as published"], "norm_in", group, "cosine")
    assert (found["mean"], found["std"], found["count"]) == (close(mean), close(std), count)


def test_architectures_with_the_model_that_was_lost(results: dict[str, Result]) -> None:
    """InternLM2 calls its norms otherwise; of its values nothing was published."""
    found = results["with all five"]
    groups = [
        fact(found, "norm_in", one, "cosine") for one in ("MoE-MoE", "MoE-dense", "dense-dense")
    ]
    assert [one["pairs"] for one in groups] == [6, 20, 10]
    assert [one["count"] for one in groups] == [6, 16, 6]
    assert found.statuses == {"ok": 28, "not_in_replica": 8}
    kinds = dict(zip(*map(found.table("models").column, ("model", "kind")), strict=True))
    assert kinds == dict.fromkeys(MOE, "MoE") | dict.fromkeys((*DENSE, "internlm"), "dense")


def test_averages_with_and_without_likely_kin(results: dict[str, Result]) -> None:
    found = results["as published"]
    mixed, strangers = (
        fact(found, "norm_in", *way, "MoE-dense", "cosine") for way in ((), ("without_kin",))
    )
    assert (mixed["count"], strangers["count"]) == (16, 15)
    assert mixed["mean"] == close(0.9722)
    kin = value(found, "cosine", model_a="mixtral", model_b="mistral")
    assert strangers["mean"] == pytest.approx((16 * mixed["mean"] - kin) / 15)
    assert fact(found, "norm_in", "without_kin", "dense-dense", "cosine", "count") == 5
    bars = found.charts[0]
    assert isinstance(bars, Bars) and len(bars.bars) == 5
    said = " ".join(words["en"] for words in found.findings)
    assert "mixtral[10] – mistral[10]" in said and "model card of Yi-9B" in said


@pytest.mark.parametrize(
    ("where", "cosine", "pearson", "l2"),
    [
        ({"model_a": "solar", "model_b": "glm"}, 0.9811, 0.0092, 17.1803),
        ({"model_a": "solar", "model_b": "phi"}, 0.9776, 0.0006, 6.4785),
        ({"model_a": "glm", "model_b": "mixtral"}, 0.9497, -0.0057, 75.2530),
        ({"group": "within", "model_a": "solar"}, 0.9882, 0.4567, 6.0495),
        ({"group": "within", "model_a": "glm"}, 0.9982, 0.7720, 9.9148),
        ({"group": "layer_zero", "model_a": "solar"}, 0.3731, 0.0418, 14.5038),
        ({"group": "layer_zero", "model_a": "glm"}, 0.3758, 0.0521, 31.2930),
    ],
)
def test_metrics(
    results: dict[str, Result], where: dict[str, str], cosine: float, pearson: float, l2: float
) -> None:
    found = results["metrics"]
    assert value(found, "cosine", **where) == close(cosine)
    assert value(found, "pearson", **where) == close(pearson)
    # Distances reach 75, so that rounding to bf16 shows in their third decimal.
    assert value(found, "l2", **where) == pytest.approx(l2, rel=0, abs=0.005)


def test_random_vectors(results: dict[str, Result]) -> None:
    found = fact(results["metrics"], "random", "4096")
    assert found["cosine"]["mean"] == pytest.approx(0.9901, abs=1e-4)
    assert found["cosine"]["std"] == pytest.approx(0.0002, abs=1e-4)
    # Its own standard error is 0.0008; the published mean is one draw of many.
    assert found["pearson"]["mean"] == pytest.approx(0.0007, abs=0.003)
    assert found["pearson"]["std"] == pytest.approx(0.0150, abs=0.0015)
    assert found["l2"]["mean"] == pytest.approx(9.0468, abs=0.02)
    assert found["l2"]["std"] == pytest.approx(0.0996, abs=0.01)


def test_three_baselines(results: dict[str, Result]) -> None:
    found = results["baselines"]
    assert fact(found, "norm_in", "layer_zero", "cosine", "mean") == close(0.3764)
    assert fact(found, "norm_in", "fair", "cosine", "mean") == close(0.9950)
    assert fact(found, "norm_in", "cross", "cosine", "mean") == close(0.9811)
    points = 100 * fact(found, "norm_in", "fair_minus_cross", "cosine")
    assert points == pytest.approx(1.4, abs=0.1)


def test_a_wider_model_is_told_and_not_dropped(results: dict[str, Result]) -> None:
    found = results["multi-model"]
    table = found.table("multi-model")
    for row in table.rows:
        named = dict(zip(table.columns, row, strict=True))
        wide = "mixtral22" in (named["model_a"], named["model_b"])
        unpublished = named["role"] == "norm_post_attn" and "mixtral" in named.values()
        expected = "shape_mismatch" if wide else "not_in_replica" if unpublished else "ok"
        assert named["status"] == expected
        if wide:
            assert "4096" in str(named["note"]) and "6144" in str(named["note"])
            assert named["cosine"] is None
    assert found.statuses == {"ok": 9, "shape_mismatch": 8, "not_in_replica": 3}
    assert any("other shape: 8" in words["en"] for words in found.findings)


def test_a_derived_pair_shows_in_pearson_alone(results: dict[str, Result]) -> None:
    found = results["derived"]
    assert value(found, "pearson", model_a="glm", model_b="intellect") > 0.999
    assert abs(value(found, "pearson", model_a="solar", model_b="glm")) < 0.02
    assert value(found, "cosine", model_a="solar", model_b="glm") > 0.98


def test_pictures_are_called_as_published(results: dict[str, Result]) -> None:
    drawn = {chart.name for result in results.values() for chart in result.charts}
    assert {
        "exp1_layer0_outlier", "exp2_fair_baseline", "exp3_moe_heatmap", "exp4_multi_layer",
        "exp5_architecture_comparison", "exp5_full_heatmap", "exp6_metric_comparison",
        "summary_comparison", "baseline_comparison", "multi_model_comparison",
    } <= drawn  # fmt: skip
    (summary,) = results["summary"].charts
    assert len(getattr(summary, "charts", ())) == 4


def test_replicas_are_labelled(results: dict[str, Result]) -> None:
    assert all(len(result.labels) == len(result.models) for result in results.values())
