"""Numbers as people read them; p-values are rounded up, wherever they are shown."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinprint import text
from kinprint.report import numbers
from kinprint.report.numbers import SENTENCE, SHORT, PStyle, RoundedP, likeness_in_words, rounded_p
from kinprint.report.results.html import fragment
from kinprint.report.views.markdown.escape import table as markdown
from kinprint.report.views.terminal.study import table_lines
from kinprint.studies.results import Cell, Table
from kinprint.text import words

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


@pytest.mark.parametrize(
    ("share", "english", "korean"),
    [
        (0.0, "0 %", "0 %"),
        (0.0004, "< 0.1 %", "0.1 % 미만"),
        (0.25, "25 %", "25 %"),
        (2 / 3, "66 %", "66 %"),
        (0.0199, "1.9 %", "1.9 %"),
        (0.29, "29 %", "29 %"),
        (0.9996, "99.9 %", "99.9 %"),
        (1.0, "100 %", "100 %"),
    ],
)
def test_a_share_in_a_sentence_is_said_in_its_language(
    share: float, english: str, korean: str
) -> None:
    said = numbers.share_said(share)
    for language, shown in (("en", english), ("ko", korean)):
        told = text.say("verdict.coverage.share", language, share=said)
        assert shown in told
        assert "를" not in told.split(".")[0] or language == "en"


@pytest.mark.parametrize(
    ("likeness", "told"),
    [
        (0.746, "0.75"),
        (0.9949, "0.99"),
        (0.9951, "0.995"),
        (0.9969, "0.996"),
        (0.9994, "0.999"),
        (0.99959, "0.9995"),
        (0.999989, "0.9999"),
        (1.0, "0.9999"),
        (math.nan, "nan"),
    ],
)
def test_what_is_nearly_equal_is_not_called_a_tune(likeness: float, told: str) -> None:
    assert likeness_in_words(likeness, equal=False) == told
    assert likeness_in_words(likeness, equal=True) == "1.00"


@pytest.mark.parametrize(
    "key", ["page.again.cost-of", "report.cost", "report.notebook.cost", "report.plan.stage"]
)
def test_one_request_is_no_requests(key: str) -> None:
    fields = dict.fromkeys(text.field_names(key) - {"count"}, "1 kB")
    assert "1 request" in text.say(key, "en", count=1, **fields)
    assert "requests" not in text.say(key, "en", count=1, **fields)
    assert "2,000 requests" in text.say(key, "en", count=2000, **fields)


@pytest.mark.parametrize("seed", range(10))
def test_no_particle_follows_the_seed(seed: int) -> None:
    assert f"시드는 {seed}입니다" in text.say("verdict.coverage.rule", "ko", seed=seed)


CELLS: list[tuple[Cell, str]] = [
    (None, "–"),
    (True, "yes"),
    (-0.25, "−0.2500"),
    (math.nan, "–"),
    (1e-9, "1.0e−9"),
    (99_999, "99999"),
    (-1_234_567, "-1,234,567"),
    ("a – b", "a – b"),
]


@pytest.mark.parametrize(("value", "shown"), CELLS)
def test_all_views_show_a_cell_in_the_same_words(value: Cell, shown: str) -> None:
    """A terminal has plain dashes in place of a minus, and text keeps its own."""
    assert numbers.cell_words(value, "en") == shown
    table = Table("told", words("report.yes"), ("name", "value"), (("one", value),))
    assert markdown(table.columns, table.rows, "en")[-1] == f"| one | {shown} |"
    assert f"<td>{shown}</td>" in fragment("", (), table, "en")
    plain = shown if isinstance(value, str) else shown.replace("−", "-").replace("–", "-")
    if value is not None:  # a column of nothing is left out
        assert list(table_lines(table, 5, "en"))[-1].text.endswith(plain)
