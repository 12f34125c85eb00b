"""Networks trained in a test: their gradients, their learning, and what their norms show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.reader.fetch import Fetcher
from kinprint.studies.charts import Bars, Panels
from kinprint.studies.phi.initialisation import INITIALISATION, run
from kinprint.studies.phi.tiny_network import (
    ONES,
    RANDOM,
    Shape,
    fresh,
    loss_and_gradients,
    train,
)
from kinprint.studies.reading import read_tensors
from kinprint.studies.registry import study_named
from kinprint.studies.results import Result
from kinprint.studies.study import Request, StudyInput
from tests.opened import open_models
from tests.studies.runs import run_studies

TINY = Shape(width=7, hidden=5, blocks=2, inputs=4, classes=3, batch=6, steps=3)
SHORT = replace(Shape(), steps=150, rate=1e-3)


@pytest.mark.parametrize("start", [ONES, RANDOM])
def test_gradients_are_those_of_finite_differences(start: str) -> None:
    chance = np.random.default_rng(5)
    weights = {name: value.astype(np.float64) for name, value in fresh(TINY, 1, start).items()}
    inputs = chance.normal(size=(TINY.batch, TINY.inputs))
    labels = chance.integers(0, TINY.classes, TINY.batch)
    _, gradients = loss_and_gradients(TINY, weights, inputs, labels)
    assert gradients.keys() == weights.keys()
    step = 1e-5
    for name, value in weights.items():
        for at in np.ndindex(value.shape):
            moved = []
            for way in (step, -step):
                other = {**weights, name: value.copy()}
                other[name][at] += way
                moved.append(loss_and_gradients(TINY, other, inputs, labels)[0])
            wanted = (moved[0] - moved[1]) / (2 * step)
            assert gradients[name][at] == pytest.approx(wanted, rel=1e-4, abs=1e-7), (name, at)


def test_training_is_decided_by_the_seed() -> None:
    one, again, other = (train(TINY, seed, ONES) for seed in (3, 3, 4))
    assert one.losses == again.losses
    assert all(np.array_equal(one.weights[name], again.weights[name]) for name in one.weights)
    assert not np.array_equal(one.weights["norm_0"], other.weights["norm_0"])
    assert one.weights["norm_0"].dtype == np.float32


@pytest.fixture(scope="module")
def result() -> Result:
    """The study as anyone runs it, without any model."""
    return run_studies([study_named("initialisation")], [], Request())[0]


def facts(result: Result, start: str) -> Any:
    return result.facts[f"norms_start_{start}"]


def test_every_network_learns(result: Result) -> None:
    table = result.table("losses")
    assert len(table.rows) == 10
    for row in table.rows:
        named = dict(zip(table.columns, row, strict=True))
        assert isinstance(named["loss_first"], float) and isinstance(named["loss_last"], float)
        if named["network"] != "0 continued":
            assert named["loss_last"] < 0.75 * named["loss_first"]
        assert named["loss_last"] < np.log(Shape().classes) / 2


def test_norms_moved_from_where_they_started() -> None:
    trained = train(SHORT, 0, ONES)
    for name in SHORT.norms:
        assert np.abs(trained.weights[name] - 1).max() > 0.02


def test_the_start_decides_the_cosine(result: Result) -> None:
    ones, random = facts(result, ONES), facts(result, RANDOM)
    assert ones["independent_cosine_mean"] > 0.999
    assert abs(random["independent_cosine_mean"]) < 0.1
    assert abs(ones["independent_pearson_mean"]) < 0.1
    assert abs(random["independent_pearson_mean"]) < 0.1


def test_a_child_shows_in_pearson(result: Result) -> None:
    for start in (ONES, RANDOM):
        assert facts(result, start)["child_pearson_mean"] > 0.8


def test_given_models_stand_beside(demo: Path) -> None:
    study, request = study_named("initialisation"), Request(layers=(2,), roles=("norm_in",))
    with Fetcher() as fetcher:
        paths = [str(demo / "zoo" / name) for name in ("base-a", "base-b")]
        models = tuple(open_models(paths, fetcher))
        inputs = StudyInput(study, models, ("base-a", "base-b"), request)
        read = read_tensors(models, INITIALISATION.needs(inputs), request)
        found = run(replace(inputs, tensors=read.tensors), TINY)
    (table,) = [table for table in found.tables if table.name == "given"]
    (row,) = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert row["status"] == "ok"
    assert isinstance(row["cosine"], float) and row["cosine"] > 0.99
    chart = found.charts[0]
    assert isinstance(chart, Panels)
    for bars in chart.charts:
        assert isinstance(bars, Bars) and bars.bands
        assert [bar.kind for bar in bars.bars] == ["control", "related"] * 2 + ["pair"]


def test_pictures_without_models_show_the_networks_alone(result: Result) -> None:
    chart = result.charts[0]
    assert isinstance(chart, Panels)
    assert all(isinstance(bars, Bars) and len(bars.bars) == 4 for bars in chart.charts)
    assert len(result.findings) == 2
