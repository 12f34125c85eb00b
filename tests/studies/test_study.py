"""What a study looks at, and how many numbers become a few."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from kinprint import text
from kinprint.demo import FOLDER
from kinprint.model.model import Model
from kinprint.reader.fetch import Fetcher
from kinprint.studies.registry import study_named
from kinprint.studies.results import Table
from kinprint.studies.study import Request, StudyInput
from kinprint.studies.summary import rounded, spread
from tests.opened import open_models


@pytest.fixture(scope="module")
def models() -> Iterator[list[Model]]:
    zoo = FOLDER / "zoo"
    with Fetcher() as fetcher:
        paths = [str(zoo / "base-a"), str(zoo / "base-b")]
        yield open_models(paths, fetcher)


def inputs(
    models: list[Model], layers: tuple[int, ...], asked: tuple[int, ...] | None = None
) -> StudyInput:
    study = replace(study_named("layer-zero"), layers=layers)
    return StudyInput(study, tuple(models), ("a", "b"), Request(layers=asked))


def test_layers_fit_the_depth(models: list[Model]) -> None:
    assert inputs(models, (0, 10, 20, 30, 40)).fitted_layers() == (0, 1, 3, 4, 5)
    assert inputs(models, (1, 5)).fitted_layers() == (1, 5)
    assert inputs(models, (45,)).fitted_layers() == (5,)
    assert inputs(models, ()).own_layers() == tuple(range(6))


def test_layers_that_are_asked_for_are_taken(models: list[Model]) -> None:
    asked = inputs(models, (10,), asked=(2, 99))
    assert asked.fitted_layers() == asked.own_layers() == asked.stored_layers() == (2, 99)


def test_roles_and_measures_are_the_study_s_own_unless_asked_for(models: list[Model]) -> None:
    own = inputs(models, (10,))
    assert own.roles == ("norm_in",) and own.measures == ("cosine", "pearson")
    asked = replace(own, request=Request(roles=("q",), measures=("l2",)))
    assert asked.roles == ("q",) and asked.measures == ("l2",)


def test_spread_divides_by_n_and_leaves_gaps_out() -> None:
    found = spread([1.0, None, 3.0, float("nan")])
    assert (found.count, found.mean, found.std) == (2, 2.0, 1.0)
    assert spread([None]).mean is None
    assert spread([5.0]).deviation is None


def test_numbers_in_sentences() -> None:
    assert (rounded(0.12345), rounded(None), rounded("no number")) == ("0.123", "–", "–")
    assert (rounded(-0.0001), rounded(-0.00001, 4), rounded(-1)) == ("0.000", "0.0000", "-1.000")


def table(*statuses: str) -> Table:
    return Table("t", text.plain("t"), ("status",), tuple((one,) for one in statuses))


def test_gaps_are_counted_in_every_language() -> None:
    assert table("ok", "ok").gaps == ()
    (told,) = table("ok", "missing", "missing", "undefined").gaps
    assert "3 of 4" in told["en"] and "missing: 2" in told["en"] and "4개" in told["ko"]
