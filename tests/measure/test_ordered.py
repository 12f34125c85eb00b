"""Ranks and percentiles against scipy and numpy."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from kinprint.measure import ordered

coarse = arrays(np.float64, 15, elements=st.integers(-4, 4).map(float))
fine = arrays(np.float64, 15, elements=st.floats(-1e6, 1e6))


@settings(deadline=None)
@given(coarse, coarse)
def test_spearman_with_ties_is_scipys(a: np.ndarray, b: np.ndarray) -> None:
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        assert math.isnan(ordered.spearman(a, b))
        return
    expected = stats.spearmanr(a, b).statistic
    assert ordered.spearman(a, b) == pytest.approx(expected, abs=1e-12)


@given(fine, st.floats(0, 1))
def test_percentiles_are_numpys(a: np.ndarray, share: float) -> None:
    assert ordered.percentile(a, share) == pytest.approx(np.quantile(a, share), rel=1e-9, abs=1e-9)


@given(a=arrays(np.int8, st.integers(0, 40)))
def test_values_that_differ_are_counted_once(a: np.ndarray) -> None:
    assert ordered.distinct(a) == len(set(a.tolist()))


@given(fine, fine)
def test_p99_of_differences_and_difference_of_p99(a: np.ndarray, b: np.ndarray) -> None:
    expected = np.quantile(np.abs(a - b), 0.99)
    assert ordered.p99_abs_diff(a, b) == pytest.approx(expected, rel=1e-9)
    gap = abs(np.quantile(a, 0.99) - np.quantile(b, 0.99))
    assert ordered.p99_gap(a, b) == pytest.approx(gap, rel=1e-9, abs=1e-6)
    assert ordered.p99_gap(a[::-1], b) == ordered.p99_gap(a, b)


def test_the_published_p99_adds_up_like_differences_of_one_number_a_model() -> None:
    """Three models at layer 10: the largest entry is the sum of the others, to the last bit."""
    for one, other, largest in [
        (0.01181650161743164, 0.16787099838256836, 0.1796875),
        (0.671875, 0.08203125, 0.75390625),
        (0.0029296875, 0.02392578125, 0.02685546875),
        (0.0029296875, 0.011474609375, 0.014404296875),
    ]:
        assert one + other == largest
    rng = np.random.default_rng(0)
    a, b, c = (rng.normal(mean, 0.1, 500) for mean in (0.0, 1.0, 2.0))
    gaps = ordered.p99_gap(a, b) + ordered.p99_gap(b, c)
    assert gaps == pytest.approx(ordered.p99_gap(a, c), rel=1e-12)
    assert ordered.p99_abs_diff(a, b) + ordered.p99_abs_diff(b, c) > ordered.p99_abs_diff(a, c)


def test_inputs_stay_as_they_were() -> None:
    a = np.random.default_rng(1).normal(size=50).astype(np.float32)
    before = a.copy()
    ordered.percentile(a, 0.5)
    ordered.spearman(a, a)
    assert (a == before).all()


def test_large_whole_numbers_keep_their_order() -> None:
    a = np.array([2**24, 2**24 + 1, 2**24 + 2], np.int32)
    assert ordered.spearman(a, np.array([0, 2, 1], ml_dtypes.bfloat16)) == pytest.approx(0.5)


def test_nothing_and_no_numbers() -> None:
    assert math.isnan(ordered.spearman([], []))
    assert math.isnan(ordered.p99_abs_diff([], []))
    assert math.isnan(ordered.p99_gap([1.0, math.nan], [1.0, 2.0]))
    assert math.isnan(ordered.spearman([1.0, math.inf], [1.0, 2.0]))
    assert ordered.p99_abs_diff([3.0], [1.0]) == 2
