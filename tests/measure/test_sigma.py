"""The published "182 sigma", number by number."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from kinprint.measure.sigma import effect_size, log10_normal_tail

FIRST_MODEL = [0.375810, 0.375664, 0.377255, 0.379035]
SECOND_MODEL = [0.373059, 0.377298, 0.377100, 0.376059]
CROSS = [0.981094, 0.991792, 0.991429, 0.991635]


def test_the_report_is_reproduced() -> None:
    """Within: the first model alone. Deviations of the population, not of the sample."""
    effect = effect_size(FIRST_MODEL, CROSS)
    assert round(effect.within_mean, 3) == 0.377
    assert round(effect.cross_mean, 3) == 0.989
    assert round(effect.difference, 3) == 0.612
    assert round(effect.sigma) == 182
    assert effect.sigma == pytest.approx(181.93598639, abs=1e-8)
    assert effect.log10_p == pytest.approx(-7190.385, abs=1e-3)
    assert effect.log10_p < -1000


def test_no_other_reading_gives_182() -> None:
    """Both models as baseline give 179, sample deviations 158; a t-test nothing near 10^-1000."""
    assert round(effect_size(FIRST_MODEL + SECOND_MODEL, CROSS).sigma) == 179
    assert stats.ttest_ind(CROSS, FIRST_MODEL).pvalue > 1e-13


def test_so_few_numbers_cannot_show_so_much() -> None:
    assert effect_size(FIRST_MODEL, CROSS).least_p == pytest.approx(1 / 70)
    exact = stats.mannwhitneyu(CROSS, FIRST_MODEL, alternative="greater", method="exact")
    assert exact.pvalue == pytest.approx(1 / 70)


def test_the_tail_in_log_space() -> None:
    assert log10_normal_tail(2.0) == pytest.approx(math.log10(stats.norm.sf(2.0)))
    assert log10_normal_tail(0.0) == pytest.approx(math.log10(0.5))
    assert log10_normal_tail(1e5) == pytest.approx(-5e9 / math.log(10), rel=1e-6)


def test_no_scatter_and_no_numbers() -> None:
    still = effect_size([0.5, 0.5], [0.9, 0.9])
    assert still.difference == pytest.approx(0.4)
    assert math.isnan(still.sigma)
    assert math.isnan(still.log10_p)
    assert math.isnan(effect_size([], [1.0]).difference)
    assert math.isnan(effect_size([math.nan], [1.0]).difference)
