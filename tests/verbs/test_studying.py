"""`study`, `plan_study`, `reproduce` and the lists from Python: what each option does."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

import kinprint
import kinprint.demo
from kinprint.mirror import MirrorServer
from kinprint.model.model import Model
from kinprint.model.opening import open_model
from kinprint.reader.checkpoint import Checkpoint

PAIR = ("zoo/base-a", "zoo/base-b")


@pytest.fixture
def models(demo: Path) -> list[Path]:
    return [demo / name for name in PAIR]


def test_a_study_looks_where_it_is_told(models: list[Path]) -> None:
    found = kinprint.study(
        "many-layers", *models, layers=[1, 3], roles=["k", "norm_in"], measures=["pearson"], rows=4
    )
    (table,) = found.tables.values()
    assert set(table.column("layer_a")) == {1, 3} and set(table.column("role")) == {"k", "norm_in"}
    assert "pearson" in table.columns and "cosine" not in table.columns


def test_a_model_that_is_not_there_leaves_the_rest_and_is_named(
    models: list[Path], tmp_path: Path
) -> None:
    found = kinprint.study("same-layer", *models, tmp_path / "nowhere", layers=[3])
    assert found.statuses == {"ok": 1} and len(found.failures) == 1
    first = found.document.findings[0]["en"]
    assert "nowhere is not available and is in no number" in first
    assert "(one pair)" in found.document.findings[1]["en"]
    assert "±" not in found.document.findings[1]["en"]


def test_experts_are_looked_for_where_a_study_may_ask_for_them(
    models: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def opening(checkpoint: Checkpoint, base: str | None, *, few_experts: bool) -> Model:
        asked.append(few_experts)
        return open_model(checkpoint, base)

    monkeypatch.setattr("kinprint.verbs.studying.open_model", opening)
    for roles in (["norm_in"], ["norm_in", "k"], ["router"], ["k", "expert_up"], None):
        with contextlib.suppress(kinprint.BadOption):  # these models have no experts
            kinprint.study("layers", *models, roles=roles)
    assert asked[::2] == [True, True, False, False, False]


def test_seed_and_rows_choose_what_is_sampled(models: list[Path]) -> None:
    def cosines(**options: int | None) -> tuple[object, ...]:
        found = kinprint.study("same-layer", *models, roles=["k"], measures=["cosine"], **options)  # type: ignore[arg-type]
        return next(iter(found.tables.values())).column("cosine")

    assert cosines(rows=4) == cosines(rows=4, seed=0) != cosines(rows=4, seed=1)
    assert cosines(rows=None, seed=0) == cosines(rows=None, seed=1)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"layers": [99]}, "layers"),
        ({"roles": ["norm-in"]}, "norm_in"),
        ({"measures": ["cosin"]}, "cosine"),
    ],
)
def test_what_there_is_not_is_refused(
    models: list[Path], options: dict[str, list[str]], named: str
) -> None:
    with pytest.raises(kinprint.BadOption, match=named):
        kinprint.study("same-layer", *models, **options)  # type: ignore[arg-type]
    with pytest.raises(kinprint.BadOption, match=named):
        kinprint.plan_study("same-layer", *models, **options)  # type: ignore[arg-type]


def test_too_few_models_are_refused(models: list[Path]) -> None:
    with pytest.raises(kinprint.BadOption):
        kinprint.study("same-layer", models[0])


def test_a_plan_holds_and_a_budget_too(mirror: MirrorServer) -> None:
    plan = kinprint.plan_study("same-layer", *PAIR, roles=["k"], cache=False)
    found = kinprint.study("same-layer", *PAIR, roles=["k"], cache=False)
    assert not plan.local and plan.models == PAIR
    assert 0 < found.cost.bytes <= plan.cost.bytes + plan.spent.bytes
    with pytest.raises(kinprint.BudgetExceeded):
        kinprint.study("same-layer", *PAIR, roles=["k"], budget=1000, cache=False)


def test_a_study_speaks(models: list[Path]) -> None:
    found = kinprint.study("same-layer", *models, layers=[3], language="ko")
    assert not found.title.isascii() and not found.findings[0].isascii()
    found.language = "en"
    assert found.title == kinprint.find_study("same-layer").title["en"]


def test_lists_know_every_name() -> None:
    studies, measures = kinprint.list_studies(), kinprint.list_measures()
    assert all(kinprint.find_study(name) is study for name, study in studies.items())
    assert {name for study in studies.values() for name in study.measures} <= set(measures)
    with pytest.raises(kinprint.BadOption, match="same-layer"):
        kinprint.find_study("same-layers")


def test_a_dispute_and_its_revisions_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(kinprint.BadOption, match="solar-vs-glm"):
        kinprint.reproduce("solar-glm")
    with pytest.raises(kinprint.FileMissing):
        kinprint.reproduce(revisions=tmp_path / "none.json")
    (tmp_path / "odd.json").write_text('{"solar": []}')
    with pytest.raises(kinprint.BadOption, match="revisions"):
        kinprint.reproduce(revisions=tmp_path / "odd.json")


def test_a_misspelt_role_is_told_before_any_request(mirror: MirrorServer) -> None:
    with pytest.raises(kinprint.BadOption, match="norm_in"):
        kinprint.study("same-layer", *PAIR, roles=["norm-in"])
    with pytest.raises(kinprint.BadOption, match="norm_in"):
        kinprint.plan_study("same-layer", *PAIR, roles=["norm-in"])
    assert mirror.stats.count() == 0


def test_tokenizers_are_compared_without_the_weights(mirror: MirrorServer) -> None:
    found = kinprint.study("tokenizers", *PAIR)
    asked = {seen.path for seen in mirror.stats.last if seen.path.endswith(".safetensors")}
    assert not [path for path in asked if "00002-of" in path or "00003-of" in path]
    assert not [seen for seen in mirror.stats.last if "index.json" in seen.path]
    folders = [kinprint.demo.FOLDER / name for name in PAIR]
    assert found.document.tables == kinprint.study("tokenizers", *folders).document.tables
