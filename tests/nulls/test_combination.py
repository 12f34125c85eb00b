"""Combinations against their definitions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinprint.nulls.combination import equal_weights, fisher

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


def test_equal_shares_make_a_whole() -> None:
    assert sum(equal_weights(7)) == pytest.approx(1.0) and len(set(equal_weights(7))) == 1
