"""The derivation report's studies on demo models, against plain arithmetic, and on bad input."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from kinprint.demo import FOLDER
from kinprint.mirror import MirrorServer
from kinprint.reader.fetch import Fetcher
from kinprint.studies.charts import Bars, Flow, Heatmap, Lines, Panels
from kinprint.studies.registry import study_named
from kinprint.studies.results import Result
from kinprint.studies.study import Request
from tests.opened import open_models
from tests.studies.runs import run_studies

DEMO = FOLDER / "zoo"
ALL = (
    "baseline-claim", "tensor-types", "embeddings", "layers", "configuration", "tokenizers",
    "decay", "raw-bytes", "hypotheses", "repository",
)  # fmt: skip
Vector = NDArray[np.float64]
Change = Callable[[dict[str, Any], dict[str, Any]], None]


def run(
    names: Sequence[str], models: Sequence[Path], request: Request | None = None
) -> list[Result]:
    with Fetcher() as fetcher:
        opened = open_models(models, fetcher)
        return run_studies([study_named(name) for name in names], opened, request or Request())


def weights(name: str) -> dict[str, Vector]:
    found: dict[str, Vector] = {}
    for path in sorted((DEMO / name).glob("*.safetensors")):
        found |= {key: value.astype(np.float64) for key, value in load_file(path).items()}
    return found


def cosine(a: Vector, b: Vector) -> float:
    return float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b))


def norm(layer: int, which: str = "input") -> str:
    return f"model.layers.{layer}.{which}_layernorm.weight"


@pytest.fixture(scope="module")
def related() -> dict[str, Result]:
    return {one.study: one for one in run(ALL, [DEMO / "a-cpt", DEMO / "base-a"])}


@pytest.fixture(scope="module")
def strangers() -> dict[str, Result]:
    return {one.study: one for one in run(ALL, [DEMO / "base-b", DEMO / "base-a"])}


@pytest.fixture
def altered(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Make a copy of base-a that was tampered with."""

    def make(change: Change, name: str = "altered", without: Sequence[str] = ()) -> Path:
        target = tmp_path / name
        shutil.copytree(DEMO / "base-a", target)
        for path in without:
            (target / path).unlink()
        tensors = load_file(target / "model.safetensors")
        config = json.loads((target / "config.json").read_text("utf-8"))
        change(tensors, config)
        save_file(tensors, target / "model.safetensors", {"format": "pt"})
        (target / "config.json").write_text(json.dumps(config), "utf-8")
        return target

    yield make


def nothing(tensors: dict[str, Any], config: dict[str, Any]) -> None:
    """Leave everything as it is."""


def test_the_claim_is_the_published_arithmetic(strangers: dict[str, Result]) -> None:
    a, b = weights("base-b"), weights("base-a")
    layers = (1, 3, 4, 5)
    within = [cosine(b[norm(0)], b[norm(at)]) for at in layers]
    cross = [cosine(a[norm(at)], b[norm(at)]) for at in layers]
    pooled = np.sqrt((np.var(within) + np.var(cross)) / 2)
    sigma = (np.mean(cross) - np.mean(within)) / pooled
    facts = strangers["baseline-claim"].facts["norm_in"]
    assert isinstance(facts, dict)
    assert facts["within_b_mean"] == pytest.approx(np.mean(within))
    assert facts["cross_mean"] == pytest.approx(np.mean(cross))
    assert facts["sigma"] == pytest.approx(sigma, rel=1e-6)
    assert facts["least_p"] == pytest.approx(1 / 70)
    (chart,) = strangers["baseline-claim"].charts
    assert isinstance(chart, Panels) and chart.name == "definitive_evidence"
    assert all(isinstance(panel, Bars) and panel.bands for panel in chart.charts)


def test_models_beyond_the_second_are_controls() -> None:
    (found,) = run(["baseline-claim"], [DEMO / "a-cpt", DEMO / "base-a", DEMO / "base-b"])
    table = found.table("baseline_claim")
    pairs = [(row[1], row[2]) for row in table.rows if row[0] == "norm_in"]
    assert pairs == [("a-cpt", "base-a"), ("a-cpt", "base-b"), ("base-a", "base-b")]
    controls = found.facts["controls"]
    assert isinstance(controls, dict) and set(controls) == {"norm_in", "norm_post_attn"}


def test_types_have_the_published_columns_and_numbers(strangers: dict[str, Result]) -> None:
    a, b = weights("base-b"), weights("base-a")
    table = strangers["tensor-types"].table("tensor_types_detailed")
    assert table.columns[:9] == (
        "layer", "key", "status", "cosine", "rel_rmse", "raw_hash_equal", "a_shape", "b_shape",
        "note",
    )  # fmt: skip
    row = next(row for row in table.rows if row[1] == norm(2))
    x, y = a[norm(2)], b[norm(2)]
    assert row[3] == pytest.approx(cosine(x, y))
    assert row[4] == pytest.approx(np.linalg.norm(x - y) / np.linalg.norm(x))
    assert row[5] is False and row[6] == "(128,)"
    means = strangers["tensor-types"].facts["norm_in"]
    assert isinstance(means, dict)
    expected = [cosine(a[norm(at)], b[norm(at)]) for at in range(6)]
    assert means["mean"] == pytest.approx(np.mean(expected))
    assert means["std"] == pytest.approx(np.std(expected))


def test_sampled_matrices_say_so_and_whole_ones_agree_with_numpy() -> None:
    a, b = weights("a-cpt"), weights("base-a")
    key = "model.layers.1.self_attn.q_proj.weight"
    request = Request(roles=("q",), layers=(1,))
    (sampled,) = run(["tensor-types"], [DEMO / "a-cpt", DEMO / "base-a"], request)
    whole_request = Request(roles=("q",), layers=(1,), rows=None, measures=("max_abs_diff",))
    (whole,) = run(["tensor-types"], [DEMO / "a-cpt", DEMO / "base-a"], whole_request)
    part, full = sampled.tables[0], whole.tables[0]
    assert part.column("sample") == ("16/128",)
    low, high = part.column("cosine_low")[0], part.column("cosine_high")[0]
    assert isinstance(low, float) and isinstance(high, float)
    assert full.column("cosine")[0] == pytest.approx(cosine(a[key], b[key]))
    assert low - 0.01 <= cosine(a[key], b[key]) <= high + 0.01
    assert full.column("cosine_low") == (None,)
    assert full.column("max_abs_diff")[0] == pytest.approx(np.abs(a[key] - b[key]).max())


def test_embeddings_of_shared_tokens(related: dict[str, Result]) -> None:
    a, b = weights("a-cpt"), weights("base-a")
    key = "model.embed_tokens.weight"
    found = related["embeddings"]
    assert found.facts["num_tokens"] == 200
    rows = found.table("embedding_comparison").rows
    values = [cosine(a[key][int(row[1] or 0)], b[key][int(row[2] or 0)]) for row in rows]
    assert [row[5] for row in rows] == pytest.approx(values)
    assert found.facts["mean_cosine"] == pytest.approx(np.mean(values))
    assert found.facts["high_similarity_count"] == sum(one > 0.9 for one in values)
    texts = [str(row[0]) for row in rows]
    assert all(text.strip().isascii() and text.strip().isalpha() for text in texts)
    baseline = found.facts["baseline_mean"]
    assert isinstance(baseline, float) and baseline < 0.5
    samples = found.facts["sample_results"]
    assert isinstance(samples, list) and isinstance(samples[0], dict)
    assert set(samples[0]) == {"token", "a_id", "b_id", "cosine"}


def test_layers_have_the_published_columns_and_charts(strangers: dict[str, Result]) -> None:
    found = strangers["layers"]
    table = found.table("layerwise_similarity")
    assert table.columns[:12] == (
        "layer_B", "layer_A", "category", "cosine", "pearson", "aligned_expert_cosine", "bytes",
        "shape", "key_A", "key_B", "shard_A", "shard_B",
    )  # fmt: skip
    a, b = weights("base-b"), weights("base-a")
    row = next(row for row in table.rows if row[:3] == (3, 3, "norm_post"))
    key = norm(3, "post_attention")
    assert row[3] == pytest.approx(cosine(a[key], b[key]))
    assert row[4] == pytest.approx(np.corrcoef(a[key], b[key])[0, 1])
    assert row[6] == 256 and row[8] == key and str(row[10]).startswith("model-0000")
    names = {chart.name for chart in found.charts}
    assert names == {"plot_cosine_by_layer", "plot_pearson_by_layer", "layernorm_by_layer"}
    for chart in found.charts:
        assert isinstance(chart, Lines)
        assert chart.bands or any(series.kind == "random" for series in chart.series)


def test_decay_is_the_mean_of_the_roles(strangers: dict[str, Result]) -> None:
    a, b = weights("base-b"), weights("base-a")
    sims = np.array([
        [np.mean([cosine(a[norm(i, w)], b[norm(j, w)]) for w in ("input", "post_attention")])
         for j in range(6)] for i in range(6)
    ])  # fmt: skip
    facts = strangers["decay"].facts
    assert facts["diagonal_mean"] == pytest.approx(np.diag(sims).mean())
    assert facts["off_diagonal_mean"] == pytest.approx(sims[~np.eye(6, dtype=bool)].mean())
    assert facts["early_layers_sim"] == pytest.approx(np.diag(sims)[:3].mean())
    heatmap = strangers["decay"].charts[0]
    assert isinstance(heatmap, Heatmap) and heatmap.name == "decay_heatmap"
    assert np.array(heatmap.values, float) == pytest.approx(sims)


def test_bits_of_a_copy_and_of_strangers(
    strangers: dict[str, Result], altered: Callable[..., Path]
) -> None:
    (copy,) = run(["raw-bytes"], [altered(nothing), DEMO / "base-a"])
    assert copy.facts["identical"] == copy.facts["compared"] == 56
    assert copy.facts["equal_share_mean"] == 1.0
    facts = strangers["raw-bytes"].facts
    assert facts["identical"] == 0
    seen, chance = facts["equal_share_mean"], facts["equal_share_by_chance_mean"]
    assert isinstance(seen, float) and isinstance(chance, float)
    assert seen == pytest.approx(chance, abs=0.01)


def test_configuration_tells_what_changed(altered: Callable[..., Path]) -> None:
    def change(tensors: dict[str, Any], config: dict[str, Any]) -> None:
        config["rope_theta"] = 5e5
        config["sliding_window"] = 64
        del config["initializer_range"]
        config["num_hidden_layers"] = float(config["num_hidden_layers"])

    (found,) = run(["configuration"], [altered(change), DEMO / "base-a"])
    facts = found.facts
    assert facts["changed"] == {"rope_theta": {"A": 5e5, "B": 1e4}}
    assert facts["added"] == {"sliding_window": 64}
    assert facts["removed"] == {"initializer_range": 0.02}
    first = facts["A"]
    assert isinstance(first, dict) and isinstance(first["config_summary"], dict)
    assert first["config_summary"]["hidden_size"] == 128


def test_tokenizers_that_are_the_same(related: dict[str, Result]) -> None:
    facts = related["tokenizers"].facts
    assert facts["token_set_overlap"] == {
        "intersection": 4096, "union": 4096, "jaccard": 1.0, "overlap_vs_smaller": 1.0,
        "special": 1,
    }  # fmt: skip
    assert facts["same_id_exact_matches"] == {"matches": 4096, "denom": 4096, "ratio": 1.0}
    assert facts["best_ascii_offset"] == 0


def test_hypotheses_weigh_what_was_measured(
    related: dict[str, Result], strangers: dict[str, Result]
) -> None:
    kin = related["hypotheses"].table("hypotheses")
    apart = strangers["hypotheses"].table("hypotheses")
    against, keys = kin.columns.index("against_en"), kin.column("key")
    at = keys.index("chance")
    assert "Norms correlate 0.8" in str(kin.rows[at][against]) and not apart.rows[at][against]
    at = keys.index("derived")
    undecided = kin.columns.index("open_en")
    assert not kin.rows[at][undecided] and "no proof" in str(apart.rows[at][undecided])
    assert not apart.rows[at][against], "what does not tell speaks against nobody"
    for found in (related["hypotheses"], strangers["hypotheses"]):
        assert "verdict" not in found.facts
        (flow,) = found.charts
        assert isinstance(flow, Flow) and flow.end == found.models[0]
    assert {step.kind for step in related["hypotheses"].charts[0].steps} == {"kept"}  # type: ignore[union-attr]


def test_repository_claims_have_their_source(altered: Callable[..., Path]) -> None:
    code = "\n".join(f"        value_{at} = compute_step({at})" for at in range(30))
    first, second = altered(nothing, "first"), altered(nothing, "second")
    header = "# Copyright 2025 The Example team\n# Licensed under the Apache License, Version 2.0\n"
    (first / "modeling_alpha_moe.py").write_text(f"{header}class AlphaMoe:\n{code}\n", "utf-8")
    body = f"class BetaModel:\n{code}\n        one_more = True\n"
    (second / "modeling_beta.py").write_text(body, "utf-8")
    (second / "README.md").write_text("---\nlicense: mit\nbase_model: a/b\n---\n", "utf-8")
    (found,) = run(["repository"], [first, second])
    claims = {(row[0], row[1], row[2], row[4]) for row in found.table("claims").rows}
    assert ("first", "copyright", "Copyright 2025 The Example team", 1) in claims
    assert ("second", "licence", "license: mit", 2) in claims
    assert ("second", "base_model", "base_model: a/b", 3) in claims
    (row,) = found.table("code_overlap").rows
    assert row[:6] == ("modeling_alpha_moe.py", "modeling_beta.py", "ok", 31, 32, 30)
    assert found.facts["counted_as_evidence"] is False


@pytest.mark.parametrize("order", [1, -1])
def test_nothing_crashes_on_bad_models(altered: Callable[..., Path], order: int) -> None:
    def change(tensors: dict[str, Any], config: dict[str, Any]) -> None:
        tensors[norm(1)] = np.full_like(tensors[norm(1)], np.nan)
        tensors[norm(2)] = np.zeros_like(tensors[norm(2)])
        del tensors[norm(3)]
        tensors[norm(4)] = tensors[norm(4)][:96].copy()

    broken = altered(change, without=["tokenizer.json"])
    found = {one.study: one for one in run(ALL, [broken, DEMO / "base-b"][::order])}
    types = found["tensor-types"].table("tensor_types_detailed")
    rows = {(row[0], row[9]): row[2] for row in types.rows}
    statuses = [rows[at, "norm_in"] for at in range(6)]
    assert statuses == ["ok", "undefined", "undefined", "missing", "shape_mismatch", "ok"]
    for at, row in enumerate(types.rows):
        assert row[2] == "ok" or row[8], at
    assert found["embeddings"].statuses == {"missing": 1}
    assert found["tokenizers"].statuses == {"missing": 1, "ok": 1}
    assert found["baseline-claim"].table("baseline_claim").rows[0][3] != "ok"
    assert found["decay"].statuses["ok"] == 36
    for one in found.values():
        assert all(words["en"] and words["ko"] for words in one.findings)


def test_layers_and_roles_that_nobody_has_are_answered() -> None:
    request = Request(roles=("router", "norm_in"), layers=(0, 40))
    pair = [DEMO / "base-a", DEMO / "base-b"]
    for found in run(("tensor-types", "layers", "decay", "raw-bytes"), pair, request):
        assert found.statuses["missing"] >= 1, found.study
        assert found.findings


def test_a_tokenizer_that_is_broken_counts_as_none(altered: Callable[..., Path]) -> None:
    broken = altered(nothing)
    (broken / "tokenizer.json").write_text('{"model": {"type": "BPE", "vocab": []}}', "utf-8")
    found = run(("tokenizers", "embeddings"), [broken, DEMO / "base-a"])
    assert [one.statuses.get("missing") for one in found] == [1, 1]


def test_swapping_models_keeps_symmetric_numbers(strangers: dict[str, Result]) -> None:
    swapped = run(("layers", "decay"), [DEMO / "base-a", DEMO / "base-b"])
    one, other = (
        found.table("layerwise_similarity") for found in (strangers["layers"], swapped[0])
    )
    assert one.column("cosine") == pytest.approx(other.column("cosine"))
    assert strangers["decay"].facts["diagonal_mean"] == pytest.approx(
        swapped[1].facts["diagonal_mean"]
    )


def test_over_the_hub_the_last_change_of_each_file_is_known(
    copy_of: Callable[[str], Path], make_mirror: Callable[..., MirrorServer]
) -> None:
    folder = copy_of("zoo/base-a")
    notice = "Copyright 2025 The Example team\n"
    (folder / "zoo" / "base-a" / "NOTICE").write_text(notice, "utf-8")
    make_mirror(folder)
    (found,) = run(["repository"], [Path("zoo/base-a"), Path("zoo/base-a")])
    about = found.facts["A"]
    assert isinstance(about, dict)
    claims = found.table("claims")
    assert set(claims.column("by")) == {about["commit"]}
    assert all(re.match(r"\d{4}-\d\d-\d\d", str(day)) for day in claims.column("changed"))
    told = [words["en"] for words in found.findings]
    assert any(f"{str(about['commit'])[:12]}: 1." in one for one in told)


def test_over_the_hub_hashes_and_commits_are_known(mirror: MirrorServer) -> None:
    names = ("raw-bytes", "repository")
    same = run(names, [Path("zoo/base-a"), Path("zoo/base-a")])
    assert same[0].facts["files_without_hash"] == 0
    (row,) = [row for row in same[0].table("equal_files").rows if row[0] == "model.safetensors"]
    assert row[1] == "model.safetensors" and row[3]
    commit = same[1].facts["A"]
    assert isinstance(commit, dict) and len(str(commit["commit"])) == 40
    apart = run(names[:1], [Path("zoo/base-b"), Path("zoo/base-a")])[0]
    assert not [row for row in apart.table("equal_files").rows if "safetensors" in str(row[0])]
