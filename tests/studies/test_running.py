"""One model that fails in a way that nobody foresaw does not take the others with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kinprint.demo import FOLDER
from kinprint.errors import BadOption, BudgetExceeded, InternalError, Unreachable
from kinprint.model.model import Model, Reading
from kinprint.reader.fetch import Fetcher
from kinprint.studies.registry import study_named
from kinprint.studies.results import Output, Result
from kinprint.studies.study import Procedure, Request, StudyInput, TensorRows
from tests.opened import open_models
from tests.studies.runs import run_studies

NAMES = ("base-a", "base-b", "a-cpt")


@pytest.fixture
def models() -> Iterator[list[Model]]:
    with Fetcher() as fetcher:
        paths = [str(Path(FOLDER) / "zoo" / name) for name in NAMES]
        yield open_models(paths, fetcher)


def run(name: str, models: list[Model]) -> Result:
    (result,) = run_studies([study_named(name)], models, Request())
    return result


def rows_of(result: Result, name: str) -> dict[tuple[object, object], dict[str, Any]]:
    table = result.table(name)
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    return {(row["model_a"], row["model_b"]): row for row in rows}


def test_a_model_whose_tensors_cannot_be_placed_is_named_in_its_rows(
    models: list[Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(addresses: object) -> None:
        raise RuntimeError("an index out of range")

    monkeypatch.setattr(models[1], "locate", broken)
    rows = rows_of(run("same-layer", models), "same-layer")
    assert rows["base-a", "a-cpt"]["status"] == "ok"
    for pair in (("base-a", "base-b"), ("base-b", "a-cpt")):
        assert rows[pair]["status"] == "unreadable"
        assert "RuntimeError: an index out of range" in rows[pair]["note"]


def test_a_tensor_that_breaks_the_sweep_is_named_in_its_rows(
    models: list[Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Reading.take

    def broken(self: Reading) -> Any:
        if self.checkpoint is models[1].checkpoint:
            raise ZeroDivisionError("by nothing")
        return take(self)

    monkeypatch.setattr(Reading, "take", broken)
    rows = rows_of(run("same-layer", models), "same-layer")
    assert [row["status"] for row in rows.values()].count("ok") == 1
    assert "ZeroDivisionError" in rows["base-a", "base-b"]["note"]


def failing(stage: str) -> Procedure:
    """A study that fails in one of its stages if base-b is among its models."""
    own = study_named("same-layer").load()

    def needs(inputs: StudyInput) -> list[TensorRows]:
        if stage == "needs" and "base-b" in inputs.names:
            raise KeyError("layer 99")
        return own.needs(inputs)

    def output(inputs: StudyInput) -> Output:
        if stage == "run" and "base-b" in inputs.names:
            raise KeyError("layer 99")
        return own.run(inputs)

    return Procedure(needs, output)


@pytest.mark.parametrize("stage", ["needs", "run"])
def test_a_model_that_breaks_a_study_is_set_aside_and_named(
    models: list[Model], stage: str
) -> None:
    study = replace(study_named("same-layer"), procedure=failing(stage))
    (result,) = run_studies([study], models, Request())
    assert result.models == ("base-a", "a-cpt")
    assert "base-b was set aside" in result.findings[0]["en"]
    assert "KeyError: 'layer 99'" in result.findings[0]["ko"]
    assert result.table("same-layer").statuses == {"ok": 1}


@pytest.mark.parametrize("stage", ["needs", "run"])
def test_without_models_to_spare_the_error_is_not_hidden(models: list[Model], stage: str) -> None:
    study = replace(study_named("same-layer"), procedure=failing(stage))
    with pytest.raises(InternalError, match="layer 99"):
        run_studies([study], models[:2], Request())


def unreachable(addresses: object) -> None:
    raise Unreachable(host="hub", cause="no route", check="the network")


def test_a_model_that_cannot_be_reached_is_named_in_its_rows(
    models: list[Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models[1], "locate", unreachable)
    rows = rows_of(run("same-layer", models), "same-layer")
    assert rows["base-a", "a-cpt"]["status"] == "ok"
    assert "No connection to hub" in rows["base-a", "base-b"]["note"]


def test_too_few_models_that_can_be_read_end_the_study(
    models: list[Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models[1], "locate", unreachable)
    with pytest.raises(Unreachable):
        run("same-layer", models[:2])


def test_what_concerns_all_models_ends_the_study(
    models: list[Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    def spent(addresses: object) -> None:
        raise BudgetExceeded(needed="2 MB", requests=3, budget="1 MB", suggested="2 MB")

    monkeypatch.setattr(models[1], "locate", spent)
    with pytest.raises(BudgetExceeded):
        run("same-layer", models)


@pytest.mark.parametrize(
    ("name", "count", "told"),
    [("same-layer", 1, "2 or more"), ("layers", 3, "takes 2 of them"), ("layers", 1, "2 of them")],
)
def test_the_number_of_models_is_checked(
    models: list[Model], name: str, count: int, told: str
) -> None:
    with pytest.raises(BadOption, match=told):
        run_studies([study_named(name)], models[:count], Request())


def test_roles_outside_the_layers_leave_their_studies_whole(models: list[Model]) -> None:
    request = Request(roles=("norm_in", "embed"))
    decay, layers = run_studies(
        [study_named(name) for name in ("decay", "layers")], models[:2], request
    )
    assert decay.table("decay_pairs").statuses == {"ok": 36}
    assert len(layers.charts) == 3
