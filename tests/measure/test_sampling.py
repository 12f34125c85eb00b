"""Which rows are read, and intervals that must cover as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit

from kinprint.measure.measures import measure, measures
from kinprint.measure.sampling import LEVEL, RUN, sample_rows, sampled_interval, student_reach

TRIALS = 300


def interval(
    name: str, a: np.ndarray, b: np.ndarray, rows: int, seed: int
) -> tuple[float, float] | None:
    picked = list(sample_rows(len(a), rows, seed))
    x, y = a[picked], b[picked]
    return sampled_interval(name, x, y, measure(name, x, y).value, rows / len(a))


def test_rows_depend_on_the_shape_and_the_seed_alone() -> None:
    assert sample_rows(1000, 16) == sample_rows(1000, 16)
    assert sample_rows(1000, 16) != sample_rows(1000, 16, seed=1)
    assert sample_rows(12, 16) == range(12)


@pytest.mark.parametrize(("height", "count"), [(1000, 16), (1000, 3), (17, 16), (5000, 64)])
def test_rows_come_in_runs_from_every_part(height: int, count: int) -> None:
    rows = sample_rows(height, count, seed=3)
    assert len(rows) <= count and len(set(rows)) == len(rows)
    assert list(rows) == sorted(rows) and rows[0] >= 0 and rows[-1] < height
    runs = 1 + int((np.diff(rows) > 1).sum())
    assert runs <= max(count // RUN, 1)
    if count >= 2 * RUN:
        assert rows[0] < height / 2 <= rows[-1]


@pytest.mark.parametrize("name", ["cosine", "pearson", "row_cosine_mean"])
@pytest.mark.parametrize("rows", [16, pytest.param(64, marks=pytest.mark.slow)])
def test_intervals_cover_the_whole_as_often_as_they_say(name: str, rows: int) -> None:
    rng = np.random.default_rng(3)
    covered = 0
    for trial in range(TRIALS):
        a = rng.normal(size=(400, 12)) * rng.uniform(0.5, 2, (400, 1))
        b = 0.5 * a + rng.normal(size=a.shape)
        found = interval(name, a, b, rows, trial)
        assert found is not None
        covered += found[0] <= measure(name, a, b).value <= found[1]
    # Four runs tell little of their own scatter: what is stated as 0.95 may be a little less.
    assert covered / TRIALS > 0.88


def test_most_of_the_rows_leave_little_doubt() -> None:
    rng = np.random.default_rng(4)
    a = rng.normal(size=(64, 8))
    b = a + rng.normal(size=a.shape)
    few, many = interval("cosine", a, b, 16, 0), interval("cosine", a, b, 60, 0)
    assert few is not None and many is not None
    assert many[1] - many[0] < (few[1] - few[0]) / 2


def test_bounds_stay_within_the_measure_s_range() -> None:
    rng = np.random.default_rng(5)
    a = rng.normal(size=(400, 8)) * np.exp(rng.normal(size=(400, 1)))
    found = interval("cosine", a, a + 0.2 * rng.normal(size=a.shape), 16, 0)
    assert found is not None and -1 <= found[0] <= found[1] <= 1


def test_a_sample_that_tells_nothing_has_no_interval() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.normal(size=(2, 400, 8))
    assert interval("cosine", a, b, 2 * RUN, 0) is None, "two runs are too few"
    not_estimable = [name for name, known in measures().items() if not known.estimable]
    assert set(not_estimable) >= {"max_abs_diff", "l2", "raw_hash_equal"}
    assert interval("max_abs_diff", a, b, 32, 0) is None
    a[:] = 0
    assert interval("pearson", a, b, 32, 0) is None, "no value without one of the runs"


def test_student_is_scipys() -> None:
    degrees = np.array([*range(1, 40), 99, 100, 999, 1000])
    found = [student_reach(int(one)) for one in degrees]
    assert np.allclose(found, stdtrit(degrees, 0.5 + LEVEL / 2), rtol=1e-12)
