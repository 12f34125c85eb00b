"""Combinations against their definitions: chi-square tails, unions, integrals of e-values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinprint.nulls.combination import (
    average,
    bonferroni,
    calibrate,
    calibrate_mixed,
    equal_weights,
    falling_weights,
    fisher,
    multiply,
    p_of,
    sequential,
)

logs = st.lists(st.floats(-300, 0), min_size=1, max_size=12)


@given(logs)
def test_fisher_is_the_chi_square_tail(log10_ps: list[float]) -> None:
    from scipy.stats import chi2

    x = -2 * math.log(10) * sum(log10_ps)
    expected = chi2.logsf(x, 2 * len(log10_ps)) / math.log(10)
    if math.isfinite(expected) and x < 1400:
        assert fisher(log10_ps) == pytest.approx(expected, rel=1e-7, abs=1e-9)
    assert fisher(log10_ps) >= sum(log10_ps) - 1e-9


def test_fisher_far_out_and_at_the_edges() -> None:
    assert fisher([-1000.0]) == pytest.approx(-1000.0)
    assert fisher([]) == fisher([0.0, 0.0]) == 0.0
    assert -2000 < fisher([-1000.0, -1000.0]) < -1996
    with pytest.raises(ValueError, match="between"):
        fisher([0.5, -3.0])


def test_bonferroni_counts_the_whole_menu() -> None:
    assert bonferroni([-9.0, -2.0], 100) == pytest.approx(-7.0)
    assert bonferroni([-1.0], 17) == 0.0
    assert bonferroni([], 17) == 0.0
    with pytest.raises(ValueError, match="menu"):
        bonferroni([-1.0, -1.0], 1)


@pytest.mark.parametrize("kappa", [0.05, 0.5, 0.9])
def test_calibrators_integrate_to_one(kappa: float) -> None:
    x = np.linspace(0, 2000, 400_001)  # p = e^-x
    e = np.array(
        [10 ** calibrate(-v / math.log(10), kappa) if v < 300 else 0.0 for v in x[:60_001]]
    )
    total = np.trapezoid(e * np.exp(-x[:60_001]), x[:60_001])
    assert total == pytest.approx(1.0, abs=2e-3)


def test_the_mixture_is_the_mean_over_kappa() -> None:
    kappas = (np.arange(20_000) + 0.5) / 20_000
    for log10_p in (-1e-6, -0.1, -1.0, -5.0, -40.0):
        mean = np.mean([10 ** (calibrate(log10_p, k) + log10_p) for k in kappas])
        assert calibrate_mixed(log10_p) == pytest.approx(math.log10(mean) - log10_p, abs=1e-4)
    assert calibrate_mixed(-5000.0) == pytest.approx(5000 - 2 * math.log10(5000 * math.log(10)))
    assert calibrate_mixed(0.0) == pytest.approx(math.log10(0.5))


@given(logs)
def test_averages_lie_between(log10_es: list[float]) -> None:
    flipped = [-e for e in log10_es]
    assert min(flipped) - 1e-9 <= average(flipped) <= max(flipped) + 1e-9
    assert p_of(average(flipped)) <= 0


def test_products_and_weights() -> None:
    assert multiply([2.0, 3.0, -1.0]) == 4.0
    assert sum(falling_weights(7)) == pytest.approx(1.0)
    assert sum(equal_weights(7)) == pytest.approx(1.0)
    assert average([3.0, 0.0], [0.5, 0.25]) == pytest.approx(math.log10(500.25))
    with pytest.raises(ValueError, match="weights"):
        average([1.0, 1.0], [0.9, 0.9])


def test_spending_is_fixed_before_the_first_test() -> None:
    weights = falling_weights(3)
    assert sequential([-5.0], weights) == pytest.approx(-5 - math.log10(4 / 7))
    assert sequential([None, None, -5.0], weights) == pytest.approx(-5 - math.log10(1 / 7))
    assert sequential([None, None, None], weights) == 0.0
    with pytest.raises(ValueError, match="weights"):
        sequential([-5.0, -5.0], [1.0])
