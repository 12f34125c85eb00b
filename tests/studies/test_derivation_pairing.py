"""Pairs of tensors: statuses, intervals, and layers that fit the models."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from kinprint.demo import FOLDER
from kinprint.model.model import Model
from kinprint.model.opening import open_models
from kinprint.reader.checkpoint import open_checkpoints
from kinprint.reader.fetch import Fetcher
from kinprint.studies.pairing import (
    Compared,
    all_layers,
    compare,
    default_layers,
    spread,
    tell_gaps,
)
from kinprint.studies.sampling import sample_rows
from kinprint.studies.scene import Request, Scene, Taken

NAMES = ("cosine", "pearson")


@pytest.fixture(scope="module")
def models() -> Iterator[list[Model]]:
    zoo = FOLDER / "zoo"
    with Fetcher() as fetcher:
        paths = [str(zoo / "base-a"), str(zoo / "base-b")]
        yield open_models(open_checkpoints(paths, fetcher))


def vector(*values: float) -> Taken:
    return Taken("ok", values=np.array(values, np.float32), shape=(len(values),))


def matrix(values: np.ndarray, rows: tuple[int, ...], height: int) -> Taken:
    shape = (height, values.shape[1])
    return Taken("ok", values=values.astype(np.float32), shape=shape, rows=rows)


def test_vectors_have_values_and_no_interval() -> None:
    found = compare(vector(1, 2, 3), vector(1, 2, 4), NAMES)
    assert found.ok and found.sample == "" and not found.intervals
    x, y = np.array([1, 2, 3.0]), np.array([1, 2, 4.0])
    expected = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
    assert found.value("cosine") == pytest.approx(expected)
    assert found.value("pearson") == pytest.approx(np.corrcoef(x, y)[0, 1])


@pytest.mark.parametrize(
    ("a", "b", "status"),
    [
        (vector(1, 2, 3), vector(1, 2), "shape_mismatch"),
        (vector(1, 2, 3), Taken("missing", "b has none"), "missing"),
        (Taken("unreadable", "packed"), Taken("missing", "none"), "unreadable"),
        (vector(1, float("nan"), 3), vector(1, 2, 3), "undefined"),
        (vector(0, 0, 0), vector(1, 2, 3), "undefined"),
    ],
)
def test_what_cannot_be_compared_has_a_status_and_a_reason(a: Taken, b: Taken, status: str) -> None:
    for found in (compare(a, b, NAMES), compare(b, a, NAMES)):
        assert not found.ok and found.reason
        assert found.value("cosine") is None
    assert compare(a, b, NAMES).status == status


def test_one_measure_without_a_value_does_not_hide_the_others() -> None:
    found = compare(vector(1, 1, 1), vector(1, 2, 3), NAMES)
    assert found.ok and found.value("cosine") is not None
    assert found.value("pearson") is None and found.reason.startswith("pearson")


def test_a_sample_of_rows_has_an_interval_that_covers_the_whole() -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for trial in range(60):
        x = rng.normal(size=(400, 24)) * rng.uniform(0.5, 2, (400, 1))
        y = 0.5 * x + rng.normal(size=x.shape)
        rows = tuple(sample_rows(400, 32, trial))
        picked = list(rows)
        found = compare(matrix(x[picked], rows, 400), matrix(y[picked], rows, 400), ["cosine"])
        assert found.sample == "32/400"
        low, high = found.bounds("cosine")
        assert low is not None and high is not None and low < high
        whole = (x * y).sum() / np.linalg.norm(x) / np.linalg.norm(y)
        covered += low <= whole <= high
    assert covered >= 52


def test_tensors_of_different_height_are_compared_only_by_paired_rows() -> None:
    values = np.arange(12.0).reshape(3, 4)
    a, b = matrix(values, (0, 1, 2), 50), matrix(values, (4, 5, 6), 70)
    assert compare(a, b, NAMES).status == "shape_mismatch"
    assert compare(a, b, NAMES, any_rows=True).value("cosine") == pytest.approx(1)


def test_layers_fit_the_depth(models: list[Model]) -> None:
    scene = Scene(tuple(models), ("a", "b"), Request())
    assert default_layers(scene, (0, 10, 20, 30, 40)) == (0, 1, 3, 4, 5)
    assert default_layers(scene, (1, 5)) == (1, 5)
    assert default_layers(scene, (45,)) == (5,)
    assert all_layers(scene) == tuple(range(6))
    asked = Scene(tuple(models), ("a", "b"), Request(layers=(2, 99)))
    assert default_layers(asked, (10,)) == all_layers(asked) == (2, 99)


def test_spread_divides_by_n_and_leaves_gaps_out() -> None:
    found = spread([1.0, None, 3.0, float("nan")])
    assert (found.count, found.mean, found.std) == (2, 2.0, 1.0)
    assert spread([None]).mean is None


def test_gaps_are_counted_in_both_languages() -> None:
    assert tell_gaps(["ok", "ok"]) == ()
    (told,) = tell_gaps(["ok", "missing", "missing", "undefined"])
    assert "3 of 4" in told["en"] and "missing 2" in told["en"] and "4개" in told["ko"]
    assert Compared("ok").bounds("cosine") == (None, None)
