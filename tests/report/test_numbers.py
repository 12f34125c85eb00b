"""Numbers as people read them; p-values are rounded up, wherever they are shown."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinprint.report import numbers
from kinprint.report.numbers import SENTENCE, SHORT, PStyle, RoundedP, rounded_p

STYLES = (SENTENCE, SHORT, PStyle(powers=-2, decimals=4, tenths=-100))


def log10_of(shown: RoundedP) -> float:
    return float(shown.power) if shown.power else math.log10(float(shown.number))


@given(st.floats(-1e5, 0.0), st.sampled_from(STYLES))
def test_no_style_claims_more_than_was_found(log10_p: float, style: PStyle) -> None:
    shown = rounded_p(log10_p, style)
    assert bool(shown.number) != bool(shown.power)
    assert log10_of(shown) >= log10_p - 1e-8
    assert log10_of(shown) <= log10_p + 1.0


@given(st.floats(-1e5, 0.0))
def test_all_forms_of_a_p_value_are_rounded_up(log10_p: float) -> None:
    claim = numbers.p_claim(log10_p)
    assert claim == f"p {'≤' if '^' in claim else '='} {rounded_p(log10_p, SENTENCE)}"
    read = float(numbers.log10_reading(log10_p).replace("−", "-").replace(",", ""))
    assert read >= log10_p - 1e-6
    if log10_p > -4:
        share = float(numbers.percent(log10_p).removesuffix(" %"))
        assert share >= 100 * 10**log10_p - 1e-6


@pytest.mark.parametrize(
    ("log10_p", "short", "claim"),
    [
        (0.0, "1.00", "p = 1"),
        (math.log10(0.314), "0.32", "p = 0.32"),
        (math.log10(0.05), "0.05", "p = 0.05"),
        (-2.5, "10^-2.5", "p = 0.0032"),
        (-7.29, "10^-7.2", "p ≤ 10^-7"),
        (-5085.85, "10^-5085", "p ≤ 10^-5085"),
    ],
)
def test_how_p_values_are_written(log10_p: float, short: str, claim: str) -> None:
    assert numbers.p_value(log10_p) == short
    assert numbers.p_claim(log10_p) == claim


def test_what_is_no_number_is_a_dash() -> None:
    assert numbers.p_value(None) == numbers.reading(math.nan) == numbers.log10_reading(None) == "–"
    assert numbers.percent(math.log10(0.612)) == "62 %"
    assert numbers.percent(math.log10(0.0471)) == "4.8 %"


def test_a_zero_has_no_minus() -> None:
    assert numbers.fixed(-0.0004, 3) == "0.000" and numbers.fixed(-0.0005001, 3) == "-0.001"
    assert numbers.shown(-0.0004) == "0.000" and numbers.shown(-0.0016) == "−0.002"
    assert numbers.ends((-0.0, 1.0)) == ["0", "1"]
