"""The derivation report's methods on models whose family tree is known."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kinprint.model.model import Model
from kinprint.reader.fetch import Fetcher
from kinprint.studies.registry import study_named
from kinprint.studies.results import Result
from kinprint.studies.study import Request
from tests.conftest import ZOO
from tests.opened import open_models
from tests.studies.runs import run_studies

pytestmark = pytest.mark.zoo


@pytest.fixture(scope="module")
def tree() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ZOO / "zoo.json").read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def models(tree: dict[str, Any]) -> Iterator[dict[str, Model]]:
    with Fetcher() as fetcher:
        opened = open_models([str(ZOO / name) for name in tree], fetcher)
        yield dict(zip(tree, opened, strict=True))


def ancestors(tree: dict[str, Any], name: str) -> set[str]:
    found = {name}
    for parent in tree[name]["parents"]:
        found |= ancestors(tree, parent)
    return found


def run(models: dict[str, Model], study: str, *names: str) -> Result:
    return run_studies([study_named(study)], [models[name] for name in names], Request())[0]


def test_most_independent_pairs_are_above_three_sigma_on_input_norms_and_none_on_others(
    tree: dict[str, Any], models: dict[str, Model]
) -> None:
    found = run(models, "baseline-claim-refuted", *tree)
    table = found.table("baseline_claim")
    sigmas: dict[str, list[float]] = {"norm_in": [], "norm_post_attn": []}
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        a, b = str(cells["a"]), str(cells["b"])
        known = cells["status"] == "ok" and "tie-a" not in (a, b)
        if known and not ancestors(tree, a) & ancestors(tree, b):
            assert isinstance(cells["sigma"], float)
            sigmas[str(cells["role"])].append(cells["sigma"])
    shares = {
        role: [sum(one > level for one in values) / len(values) for level in (3, 5)]
        for role, values in sigmas.items()
    }
    assert len(sigmas["norm_in"]) == len(sigmas["norm_post_attn"]) == 302
    assert shares["norm_in"][0] > 0.6 and shares["norm_in"][1] > 0.4
    assert shares["norm_post_attn"][0] < 0.02 and shares["norm_post_attn"][1] == 0
    facts = found.facts["norm_in"]
    assert isinstance(facts, dict) and facts["failed"] == 46  # a narrower model fits none


def test_layers_are_found_again_after_depth_was_changed(models: dict[str, Model]) -> None:
    for deeper in ("a-depthup", "a-depthprune"):
        found = run(models, "layers", deeper, "base-a")
        facts = found.facts["layer_alignment"]
        assert isinstance(facts, dict)
        mean, chance = facts["mean_pearson"], facts["mean_by_chance"]
        assert isinstance(mean, float) and isinstance(chance, float)
        assert mean > 0.8 and chance < 0.2
        pairs = [row[:2] for row in found.table("layer_alignment").rows]
        second = [pair[1] for pair in pairs]
        assert second == sorted(second)  # type: ignore[type-var]


def test_layers_of_strangers_pair_no_better_than_chance(models: dict[str, Model]) -> None:
    facts = run(models, "layers", "base-d", "base-b").facts["layer_alignment"]
    assert isinstance(facts, dict)
    mean, chance = facts["mean_pearson"], facts["mean_by_chance"]
    assert isinstance(mean, float) and isinstance(chance, float)
    assert mean < chance + 0.15


def test_routers_are_paired_by_assignment(models: dict[str, Model]) -> None:
    table = run(models, "layers", "moe-k", "a-upcycled").table("layerwise_similarity")
    routers = [row for row in table.rows if row[2] == "router_or_gate"]
    assert len(routers) == 6
    for row in routers:
        plain, aligned = row[3], row[5]
        assert isinstance(plain, float) and isinstance(aligned, float)
        assert row[14] == "4/4"  # never a sample: experts may be in any order


def test_norms_alone_are_seen_by_pearson_and_not_by_cosine(models: dict[str, Model]) -> None:
    kin = run(models, "tensor-types", "a-normsonly", "base-a").facts["norm_in"]
    apart = run(models, "tensor-types", "base-b", "base-a").facts["norm_in"]
    assert isinstance(kin, dict) and isinstance(apart, dict)
    for facts in (kin, apart):
        assert isinstance(facts["mean"], float) and facts["mean"] > 0.99
    assert isinstance(kin["pearson_mean"], float) and isinstance(apart["pearson_mean"], float)
    assert kin["pearson_mean"] > 0.5 and abs(apart["pearson_mean"]) < 0.15


def test_a_shared_start_is_told_from_a_shared_past(models: dict[str, Model]) -> None:
    table = run(models, "hypotheses", "tie-a", "base-a").table("hypotheses")
    at = table.column("key").index("same_initialisation")
    assert "one constant" in str(table.rows[at][table.columns.index("for_en")])
    table = run(models, "hypotheses", "a-cpt", "base-a").table("hypotheses")
    assert not table.rows[at][table.columns.index("for_en")]


def test_other_tokenizers_and_widths(models: dict[str, Model]) -> None:
    facts = run(models, "tokenizers", "a-extvocab", "base-a").facts["token_set_overlap"]
    assert isinstance(facts, dict)
    assert (facts["intersection"], facts["union"]) == (4096, 5120)
    other = run(models, "embeddings", "base-g", "base-a")
    assert other.facts["num_tokens"] == 200
    ids = other.table("embedding_comparison")
    assert ids.column("a_id") != ids.column("b_id")
    narrow = run(models, "embeddings", "a-hidprune", "base-a")
    assert narrow.statuses == {"shape_mismatch": 200}


def test_every_study_survives_every_kind_of_model(models: dict[str, Model]) -> None:
    names = (
        "baseline-claim", "tensor-types", "embeddings", "layers", "configuration", "tokenizers",
        "decay", "raw-bytes", "hypotheses", "repository",
    )  # fmt: skip
    request = Request(rows=4)
    for first, second in (
        ("neox-j", "base-a"),
        ("moe-k", "a-hidprune"),
        ("a-rotated", "a-upcycled"),
    ):
        chosen = [models[first], models[second]]
        for found in run_studies([study_named(name) for name in names], chosen, request):
            assert found.models == (first, second)
            assert all(words["en"] and words["ko"] for words in found.findings)
