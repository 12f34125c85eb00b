"""Intervals must cover as often as they say: checked by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from kinprint.measure.direct import cosine
from kinprint.measure.rows import row_cosines
from kinprint.measure.sampling import (
    Interval,
    bounded_interval,
    cosine_interval,
    student_interval,
)

TRIALS = 1000


def _share(cover: Callable[[np.random.Generator], bool], seed: int = 0) -> float:
    rng = np.random.default_rng(seed)
    return float(np.mean([cover(rng) for _ in range(TRIALS)]))


def _holds(interval: Interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


@pytest.mark.parametrize("rows", [8, 16, 64])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_student_covers_row_cosines_of_a_finite_whole(rows: int, level: float) -> None:
    rng = np.random.default_rng(1)
    a = rng.normal(size=(200, 40))
    values = row_cosines(a, a * 0.6 + rng.normal(size=(200, 40)))
    truth = float(values.mean())

    def cover(draw: np.random.Generator) -> bool:
        sample = draw.choice(values, rows, replace=False)
        return _holds(student_interval(sample, 200, level), truth)

    assert _share(cover) == pytest.approx(level, abs=0.035)


def test_without_the_finite_correction_it_would_cover_too_much() -> None:
    values = np.random.default_rng(2).uniform(-1, 1, 100)

    def cover(draw: np.random.Generator) -> bool:
        sample = draw.choice(values, 80, replace=False)
        return _holds(student_interval(sample, None), float(values.mean()))

    assert _share(cover) > 0.99


@pytest.mark.parametrize("rows", [10, 50, 150])
def test_certain_bounds_cover_even_what_student_does_not(rows: int) -> None:
    """Two values in a hundred at the far end: Student often sees no scatter at all."""
    values = np.full(200, 0.9)
    values[:4] = -1
    truth = float(values.mean())

    def certain(draw: np.random.Generator) -> bool:
        return _holds(bounded_interval(draw.choice(values, rows, replace=False), 200), truth)

    def student(draw: np.random.Generator) -> bool:
        return _holds(student_interval(draw.choice(values, rows, replace=False), 200), truth)

    assert _share(certain) >= 0.95
    if rows < 100:
        assert _share(student) < 0.85


def test_certain_bounds_are_their_formulas() -> None:
    values = np.array([0.1, 0.2, 0.6, 0.3])
    few = bounded_interval(np.tile(values, 25))
    assert few.high - few.value == pytest.approx(2 * math.sqrt(math.log(80) / 200))
    log, kappa = math.log(400), 7 / 3 + 3 / math.sqrt(2)
    many = bounded_interval(np.tile(values, 1000))
    reach = values.std() * math.sqrt(2 * log / 4000) + kappa * 2 * log / 4000
    assert many.high - many.value == pytest.approx(reach)
    assert bounded_interval(values).low == -1
    half = bounded_interval(np.tile(values, 25), population=200)
    assert half.high - half.value == pytest.approx(
        2 * math.sqrt((1 - 99 / 200) * math.log(80) / 200)
    )
    whole = bounded_interval(values, population=4)
    assert whole.low == whole.high == whole.value


@pytest.mark.parametrize("relation", [0.0, 0.3, 3.0])
@pytest.mark.parametrize("scatter", [0.0, 0.5])
def test_jackknife_covers_the_cosine_of_the_whole(relation: float, scatter: float) -> None:
    """Rows of unequal length (log-normal) are the hard case; 32 rows of 400."""
    rng = np.random.default_rng(3)
    lengths = np.exp(scatter * rng.normal(size=(400, 1)))
    a = rng.normal(size=(400, 24)) * lengths
    b = relation * a + rng.normal(size=(400, 24)) * lengths
    truth = cosine(a, b)

    def cover(draw: np.random.Generator) -> bool:
        rows = draw.choice(400, 32, replace=False)
        return _holds(cosine_interval(a[rows], b[rows], 400), truth)

    assert 0.91 <= _share(cover) <= 0.985


def test_the_cosine_interval_is_about_the_cosine() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 20, 30))
    found = cosine_interval(a, b)
    assert found.value == pytest.approx(cosine(a, b))
    assert -1 <= found.low < found.value < found.high <= 1
    for other in (cosine_interval(b, a), cosine_interval(a * 1e200, b * 1e-200)):
        assert (other.value, other.low, other.high) == pytest.approx(
            (found.value, found.low, found.high), rel=1e-9
        )
    assert cosine_interval(a, b, population=20).low == pytest.approx(found.value)


def test_a_copy_is_a_copy() -> None:
    a = np.random.default_rng(5).normal(size=(10, 6))
    found = cosine_interval(a, a)
    assert found.value == pytest.approx(1)
    assert found.low == pytest.approx(1, abs=1e-9)


def test_too_few_rows_say_nothing_of_their_error() -> None:
    assert math.isnan(student_interval([0.5]).low)
    assert student_interval([0.5]).value == 0.5
    assert math.isnan(student_interval([]).value)
    assert math.isnan(bounded_interval([]).value)
    assert student_interval([0.1, math.nan, 0.3]).rows == 2
    one = cosine_interval(np.ones((1, 3)), np.ones((1, 3)))
    assert one.value == pytest.approx(1)
    assert math.isnan(one.low)
    assert math.isnan(cosine_interval(np.zeros((4, 3)), np.ones((4, 3))).value)
    assert math.isnan(cosine_interval(np.full((4, 3), np.nan), np.ones((4, 3))).value)
    with pytest.raises(ValueError, match="no rows in common"):
        cosine_interval(np.ones((2, 3)), np.ones((3, 3)))
