"""Claims of the dispute: each has its words, its place, its check and a command that exists."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import kinprint
from kinprint import text
from kinprint.records import Mark
from kinprint.replica.layout import layout_of
from kinprint.report.views.claims import claims_page
from kinprint.studies.charts import Bars, Chart, Heatmap, Lines, Panels
from kinprint.studies.reproduction.claim_checks import CHECKS, means_by_kind
from kinprint.studies.reproduction.claims import Outcome, claims, judged_claims, numbers
from kinprint.studies.reproduction.pictures import dispute_pictures
from tests.conftest import SHARED

DEMO = Path(kinprint.__file__).parent / "demo" / "zoo"
SEEDS = {
    ("report", "origin/README.md"): ("derivation-report.ko.md", 0),
    ("vs-phi", "README.md"): ("vs-phi-readme.ko.md", 0),
    ("critique", "results/RESULTS.md"): ("critique-results.ko.md", 0),
    ("critique-draft", "README.md"): ("critique-first-draft.ko.md", 1),  # a line was put on top
}


def test_every_claim_has_one_check_or_an_outcome() -> None:
    names = [claim.name for claim in claims()]
    decided = {claim.name for claim in claims() if claim.outcome is not None}
    assert len(names) == len(set(names)) and set(names) - decided == set(CHECKS)


def test_every_claim_says_where_it_stands() -> None:
    for claim in claims():
        assert re.fullmatch(r"[0-9a-f]{40}", claim.source.commit)
        assert claim.address.endswith(f"{claim.file}#L{claim.line}")
        assert claim.command.startswith("kinprint ")


@pytest.mark.parametrize("language", text.languages())
def test_the_page_has_a_row_a_claim(language: str) -> None:
    lines = list(claims_page(judged_claims(), language))
    rows = [line for line in lines if line.startswith("| ") and "`kinprint " in line]
    assert len(rows) == len(claims())
    assert all(line.count(" | ") == 1 for line in rows)
    assert "{" not in "".join(rows)


def test_what_the_published_numbers_refute() -> None:
    false = {one.claim.name for one in judged_claims() if one.outcome is Outcome.FALSE}
    assert {
        "other-layer", "layer-five", "p-value", "layer-ten", "expected-if-independent", "zero-null",
        "post-norm-first-layer", "distance-with-depth", "all-nine", "cosine-range", "layer-table",
        "any-pair",
    } <= false  # fmt: skip


def test_what_both_sides_have_right() -> None:
    true = {one.claim.name for one in judged_claims() if one.outcome is Outcome.TRUE}
    assert {
        "within", "between", "norm-means", "layer-forty", "mean-of-norms", "then-glm-from-phi",
        "mixed-layers", "centred", "positive", "six-pairs", "over-layers", "random-vectors",
        "pearson-range", "scale", "concession", "marked-speculation",
    } <= true  # fmt: skip


def test_what_is_measured_replaces_what_was_published() -> None:
    key = "cosine/norm_in/solar[6]/glm[6]"
    assert CHECKS["layer-five"](numbers()).fields["layer"] == 6
    assert CHECKS["layer-five"](numbers({key: 0.97})).outcome is Outcome.TRUE
    key = "cosine/norm_in/solar[10]/glm[20]"
    assert CHECKS["other-layer"](numbers({key: 0.381})).outcome is Outcome.TRUE


def test_what_a_source_prints_stays_what_it_prints() -> None:
    measured = {"baseline/cross_mean": 0.5, "cosine/norm_in/solar[0]/glm[0]": 0.95}
    found = CHECKS["layer-table"](numbers(measured))
    assert found.outcome is Outcome.FALSE  # it is held against the report's own table
    assert CHECKS["between"](numbers(measured)).outcome is Outcome.TRUE
    others = {f"cosine/norm_in/solar[{layer}]/glm[{layer}]": 0.5 for layer in (10, 20, 30, 40)}
    assert CHECKS["between"](numbers(others)).outcome is Outcome.FALSE


def test_correlations_by_layer_are_no_more_than_chance_if_layers_hang_together() -> None:
    found = CHECKS["random-level"](numbers()).fields
    assert (found["beyond"], found["layers"]) == (4, 46)
    assert found["often"] == pytest.approx(15.6, abs=0.1)  # binomial, 46 draws at 4.55 %
    assert found["apart"] == pytest.approx(5.47, abs=0.01)
    assert found["together"] == pytest.approx(1.38, abs=0.01)


def test_likely_kin_raise_the_means_of_the_heatmap() -> None:
    heatmap = numbers().heatmap
    size = len(heatmap.models)
    for i in range(size):
        assert heatmap.values[i][i] == 1.0
        for j in range(size):
            assert heatmap.values[i][j] == heatmap.values[j][i]
    with_kin, without = (means_by_kind(heatmap, with_kin=kin) for kin in (True, False))
    known = numbers()
    for kind, mean in with_kin.items():  # two digits of 28 cells give the printed means
        assert mean == pytest.approx(known[f"architectures/{kind}/mean"], abs=0.005)
    assert with_kin["moe-moe"] == without["moe-moe"]
    assert with_kin["dense-dense"] > without["dense-dense"]


def test_the_small_models_concede_what_vs_phi_concedes() -> None:
    found = kinprint.study("layer-zero", DEMO / "base-a")
    facts = json.loads(json.dumps(found.document.facts))
    assert round(facts["norm_in"]["base-a"]["cosine"]["mean"], 3) == 0.998
    for language in text.languages():
        assert "0.998" in text.words("study.claim.concession.finds", low=0.9, high=0.95)[language]


def test_seven_of_eleven_entries_of_the_configurations_are_equal() -> None:
    names = (
        "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
        "n_routed_experts", "num_experts_per_tok", "n_shared_experts", "vocab_size", "rope_theta",
        "max_position_embeddings", "num_nextn_predict_layers",
    )  # fmt: skip
    both = [layout_of(name).config for name in ("zai-org/GLM-4.5-Air", "upstage/Solar-Open-100B")]
    assert sum(both[0].get(name) == both[1].get(name) for name in names) == 7


@pytest.mark.zoo
def test_quotations_stand_where_they_are_said_to() -> None:
    checked = 0
    for claim in claims():
        place = SEEDS.get((claim.source.name, claim.file))
        if place is None or claim.quote is None:
            continue
        name, more = place
        line = (SHARED / "seeds" / name).read_text("utf-8").splitlines()[claim.line - 1 + more]
        if "\N{REPLACEMENT CHARACTER}" not in line:  # the text of the draft is damaged
            assert claim.quote in line, claim
            checked += 1
    assert checked > 20


def test_pictures_say_where_their_numbers_come_from() -> None:
    """Published numbers are never drawn as measured ones."""

    def marks(chart: Chart) -> set[Mark]:
        if isinstance(chart, Panels):
            return set().union(*map(marks, chart.charts))
        if isinstance(chart, Bars):
            return {bar.mark for bar in chart.bars}
        if isinstance(chart, Lines):
            return {one.mark for one in chart.series}
        return {chart.mark} if isinstance(chart, Heatmap) else set()

    for chart in dispute_pictures():
        assert marks(chart) == {Mark.RECONSTRUCTED}, chart.name
    key = "cosine/norm_in/solar[10]/glm[10]"
    bars = next(one for one in dispute_pictures({key: 0.5}) if one.name == "baselines")
    assert isinstance(bars, Bars) and bars.bars[0].value == 0.5
    assert [bar.mark for bar in bars.bars[:2]] == [Mark.MEASURED, Mark.RECONSTRUCTED]
