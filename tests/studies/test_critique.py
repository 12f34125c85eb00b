"""The critique's studies on small models: numbers against NumPy, groups, gaps and words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save_file

from kinprint.reader.fetch import Fetcher
from kinprint.studies.charts import Bars, Heatmap, Lines, Panels
from kinprint.studies.registry import studies, study_named
from kinprint.studies.results import Result
from kinprint.studies.study import Request
from tests.conftest import ZOO
from tests.opened import open_models
from tests.studies.runs import run_studies

Vector = NDArray[np.float32]
CODES = {
    "confusion": "P1", "confusion-mixed": "P2", "within-model": "P3", "elementwise": "P4",
    "initialisation": "P5", "layer-zero": "C1", "fair-baseline": "C2", "same-layer": "C3",
    "many-layers": "C4", "architectures": "C5", "metrics": "C6", "baselines": "C0",
    "multi-model": "C0", "all-layers": "C0", "weights": "C0", "summary": "C0",
}  # fmt: skip
CRITIQUE = tuple(name for name, code in CODES.items() if code.startswith("C"))


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a small model of norm vectors, a query and, for mixtures, a router a layer."""

    def make(
        name: str, seed: int, layers: int = 48, width: int = 64, *, moe: bool = False,
        change: Callable[[Vector], Vector] = lambda vector: vector,
    ) -> Path:  # fmt: skip
        chance = np.random.default_rng(seed)
        tensors: dict[str, Vector] = {}
        for layer in range(layers):
            at = f"model.layers.{layer}."
            for norm in ("input_layernorm", "post_attention_layernorm"):
                drawn = chance.normal(1.0, 0.1 + layer / 1000, width).astype(np.float32)
                tensors[f"{at}{norm}.weight"] = change(drawn)
            query = chance.normal(size=(width, width)).astype(np.float32)
            tensors[f"{at}self_attn.q_proj.weight"] = query
            if moe:
                router = chance.normal(size=(4, width)).astype(np.float32)
                tensors[f"{at}block_sparse_moe.gate.weight"] = router
        config: dict[str, object] = {
            "model_type": "mixtral" if moe else "llama", "hidden_size": width,
            "num_hidden_layers": layers, "num_attention_heads": 4, "num_key_value_heads": 4,
            "intermediate_size": 2 * width, "vocab_size": 100,
        }  # fmt: skip
        folder = tmp_path / name
        folder.mkdir()
        save_file(tensors, folder / "model.safetensors")
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        return folder

    return make


@pytest.fixture
def study() -> Iterator[Callable[..., Result]]:
    with Fetcher() as fetcher:

        def do(name: str, paths: Sequence[Path], **request: Any) -> Result:
            models = open_models(paths, fetcher)
            return run_studies([study_named(name)], models, Request(**request))[0]

        yield do


Study = Callable[..., Result]
Write = Callable[..., Path]


def norm(path: Path, layer: int) -> NDArray[np.float64]:
    from safetensors import safe_open

    with safe_open(path / "model.safetensors", "np") as file:
        found = file.get_tensor(f"model.layers.{layer}.input_layernorm.weight")
    return np.asarray(found, np.float64)


def cosine(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def fact(result: Result, *path: str) -> Any:
    found: Any = result.facts
    for step in path:
        found = found[step]
    return found


def rows(result: Result) -> list[dict[str, Any]]:
    table = result.table(result.study)
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_depths_are_what_numpy_says(study: Study, write: Write) -> None:
    path = write("one", 1)
    zero, fair = study("layer-zero", [path]), study("fair-baseline", [path])
    wanted = [cosine(norm(path, 0), norm(path, layer)) for layer in (10, 20, 30, 40)]
    assert [row["cosine"] for row in rows(zero)] == pytest.approx(wanted)
    found = fact(zero, "norm_in", "one", "cosine")
    assert found["mean"] == pytest.approx(np.mean(wanted))
    assert found["std"] == pytest.approx(np.std(wanted))  # divides by n
    steps = [cosine(norm(path, a), norm(path, b)) for a, b in ((10, 20), (20, 30))]
    assert [row["cosine"] for row in rows(fair)] == pytest.approx(steps)


def test_a_shallow_model_does_not_move_the_layers_of_a_deep_one(study: Study, write: Write) -> None:
    paths = [write("deep", 1), write("shallow", 2, layers=8)]
    found = rows(study("layer-zero", paths))
    layers = {name: [row["layer_b"] for row in found if row["model_a"] == name]
              for name in ("deep", "shallow")}  # fmt: skip
    assert layers["deep"] == [10, 20, 30, 40]
    assert all(0 < layer < 8 for layer in layers["shallow"])
    assert {row["status"] for row in found} == {"ok"}


def test_equal_distances_stay_equal_in_shallow_models(study: Study, write: Write) -> None:
    deep, shallow = write("deep", 1), write("shallow", 2, layers=6)
    found = study("fair-baseline", [shallow])
    assert len({row["layer_b"] - row["layer_a"] for row in rows(found)}) == 1
    taken = sorted({row[side] for row in rows(found) for side in ("layer_a", "layer_b")})
    said = found.findings[0]["en"]
    assert "10, 20, 30" in said and f"it took {', '.join(map(str, taken))}." in said
    assert "it took" not in study("fair-baseline", [deep]).findings[0]["en"]
    asked = study("fair-baseline", [shallow], layers=(1, 3))
    assert all("it took" not in one["en"] for one in asked.findings)


def test_pairs_at_one_and_at_many_layers(study: Study, write: Write) -> None:
    paths = [write(name, seed) for seed, name in enumerate("abcd")]
    by_layer = {
        layer: [cosine(norm(x, layer), norm(y, layer)) for x, y in combinations(paths, 2)]
        for layer in (5, 10, 15, 20, 25, 30)
    }
    one, many = study("same-layer", paths), study("many-layers", paths)
    found = fact(one, "norm_in", "layers", "10", "cosine")
    assert (found["mean"], found["std"]) == pytest.approx(
        (np.mean(by_layer[10]), np.std(by_layer[10]))
    )
    values = np.array(list(by_layer.values()))
    every = fact(many, "norm_in", "all", "cosine")
    assert (every["mean"], every["std"]) == pytest.approx((values.mean(), values.std()))
    between = fact(many, "norm_in", "std_of_layer_means", "cosine")
    assert between == pytest.approx(values.mean(axis=1).std())
    (heatmap,), (lines,) = one.charts, many.charts
    assert isinstance(heatmap, Heatmap) and isinstance(lines, Lines)
    grid = np.array(heatmap.values, float)
    assert np.array_equal(grid, grid.T) and np.diag(grid) == pytest.approx(1)
    assert lines.series[0].kind == "random"  # what shuffled places give, layer by layer
    assert lines.series[1].y == pytest.approx(values.mean(axis=1))


def test_kinds_of_models_and_their_groups(study: Study, write: Write) -> None:
    paths = [
        write("dense-a", 1), write("moe-a", 2, moe=True), write("dense-b", 3),
        write("moe-b", 4, moe=True), write("wide", 5, width=96),
    ]  # fmt: skip
    found = study("architectures", paths)
    counts = {
        group: (fact(found, "norm_in", group, "cosine", "count"),
                fact(found, "norm_in", group, "cosine", "pairs"))
        for group in ("MoE-MoE", "MoE-dense", "dense-dense")
    }  # fmt: skip
    assert counts == {"MoE-MoE": (1, 1), "MoE-dense": (4, 6), "dense-dense": (1, 3)}
    assert found.statuses == {"ok": 6, "shape_mismatch": 4}
    kinds = found.table("models").column("kind")
    assert kinds == ("dense", "MoE", "dense", "MoE", "dense")
    bars, heatmap = found.charts
    assert isinstance(bars, Bars) and isinstance(heatmap, Heatmap)
    assert [name.split(" ")[0] for name in heatmap.rows[:2]] == ["moe-a", "moe-b"]
    assert heatmap.values[-1][:4] == (None,) * 4  # the wide one, told apart by its gaps


def test_metrics_have_a_random_baseline_for_every_width(study: Study, write: Write) -> None:
    paths = [write("a", 1), write("b", 2), write("wide", 3, width=96)]
    found = study("metrics", paths)
    assert fact(found, "random").keys() == {"64", "96"}
    again = study("metrics", paths)
    assert fact(again, "random") == fact(found, "random")
    groups = [row["group"] for row in rows(found)]
    assert [groups.count(one) for one in ("between", "within", "layer_zero")] == [3, 2, 2]
    assert found.statuses == {"ok": 5, "shape_mismatch": 2}
    (panels,) = found.charts
    assert isinstance(panels, Panels) and len(panels.charts) == 3
    assert all(isinstance(bars, Bars) and bars.bands for bars in panels.charts)


def test_metrics_with_a_single_layer_have_no_within(study: Study, write: Write) -> None:
    found = study("metrics", [write("a", 1), write("b", 2)], layers=(7,))
    assert {row["group"] for row in rows(found)} == {"between", "layer_zero"}


def test_three_bars(study: Study, write: Write) -> None:
    found = study("baselines", [write("a", 1), write("b", 2)])
    means = [fact(found, "norm_in", name, "cosine", "mean") for name in ("fair", "cross")]
    difference = fact(found, "norm_in", "fair_minus_cross", "cosine")
    assert difference == pytest.approx(means[0] - means[1])
    (bars,) = found.charts
    assert isinstance(bars, Bars) and len(bars.bars) == 3 and bars.bands


def test_weights_are_sampled_with_an_interval(study: Study, write: Write) -> None:
    found = study("weights", [write("a", 1), write("b", 2)], roles=("q", "gate"))
    query, gate = rows(found)
    assert (query["status"], query["sample"]) == ("ok", "16/64")
    assert query["cosine_low"] <= query["cosine"] <= query["cosine_high"]
    assert gate["status"] == "missing" and gate["note"]


def test_all_layers_leave_gaps_where_one_model_ends(study: Study, write: Write) -> None:
    found = study("all-layers", [write("a", 1, layers=6), write("b", 2, layers=4)])
    (heatmap,) = found.charts
    assert isinstance(heatmap, Heatmap) and heatmap.columns == tuple("012345")
    assert [value is None for value in heatmap.values[0]] == [False] * 4 + [True] * 2
    assert found.statuses == {"ok": 4, "missing": 2}


@pytest.mark.parametrize("name", CRITIQUE)
def test_no_study_breaks_on_bad_models(study: Study, write: Write, name: str) -> None:
    paths = [
        write("good", 1), write("shallow", 2, layers=1), write("narrow", 3, width=32),
        write("nan", 4, change=lambda vector: np.full_like(vector, np.nan)),
        write("zeros", 5, change=np.zeros_like),
    ]  # fmt: skip
    for request in ({}, {"layers": (10,)}, {"layers": (99, 3)}, {"measures": ("l2",)}):
        found = study(name, paths, **request)
        assert found.models == ("good", "shallow", "narrow", "nan", "zeros")
        assert found.findings or request
        for table in found.tables:
            assert all(len(row) == len(table.columns) for row in table.rows)
            if "status" not in table.columns:
                continue
            for row in table.rows:
                named = dict(zip(table.columns, row, strict=True))
                assert named["status"] == "ok" or named["note"]


@pytest.mark.zoo
def test_the_zoo_by_kind(study: Study) -> None:
    names = ("base-a", "base-b", "moe-k", "a-upcycled", "neox-j", "qwen-i", "a-hidprune")
    found = study("architectures", [ZOO / name for name in names])
    kinds = dict(zip(names, found.table("models").column("kind"), strict=True))
    assert [name for name, kind in kinds.items() if kind == "MoE"] == ["moe-k", "a-upcycled"]
    assert found.statuses == {"ok": 15, "shape_mismatch": 6}
    for row in rows(found):
        if row["status"] != "ok":
            continue
        assert row["cosine"] > 0.99  # whoever they are
        related = {row["model_a"], row["model_b"]} == {"base-a", "a-upcycled"}
        assert (row["pearson"] > 0.5) == related


def test_the_catalogue_knows_the_studies() -> None:
    found = {name: one.code for name, one in studies().items() if name in CODES}
    assert found == CODES
    for name in CODES:
        one = study_named(name)
        one.load()
        for words in (one.title, one.shows, one.cannot):
            assert words["en"] and words["ko"] and words["en"] != words["ko"]
            assert any("가" <= letter <= "힣" for letter in words["ko"])
