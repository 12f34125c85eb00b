import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinprint.report.schema import LayerPair
from kinprint.report.views.html import drawings, frame, shapes
from kinprint.report.views.html.words import speaker

SAY = speaker("en")
NUMBERS = st.floats(-1e12, 1e12)


def test_a_pair_inside_chance_stands_on_the_axis_and_one_far_off_behind_a_break() -> None:
    null = [float(at) for at in range(-100, 101)]
    near = drawings.histogram("k", null, 50.0, SAY)
    far = drawings.histogram("k", null, 5000.0, SAY)
    assert near is not None and far is not None
    assert "gap" not in near and 'class="gap"' in far
    assert "s.d." not in far + near


def test_whole_numbers_get_a_bar_each() -> None:
    drawn = drawings.histogram("k", [0, 0, 1, 3], 2.0, SAY)
    assert drawn is not None and drawn.count("bar-null") == 3


def test_nothing_is_drawn_without_a_sample_or_a_score() -> None:
    assert drawings.histogram("k", [], 1.0, SAY) is None
    assert drawings.histogram("k", [None, math.nan], 1.0, SAY) is None
    assert drawings.histogram("k", [1.0], None, SAY) is None


@given(st.lists(NUMBERS, min_size=1, max_size=60), NUMBERS)
def test_every_bar_and_mark_is_inside_the_picture(null: list[float], at: float) -> None:
    drawn = drawings.histogram("k", null, at, SAY)
    assert drawn is not None
    assert "nan" not in drawn.lower().replace("kinprint", "")
    places = [float(x) for x in re.findall(r' (?:x|cx|x1|x2)="([-\d.]+)"', drawn)]
    assert min(places) >= 0 and max(places) <= 320


@given(st.lists(NUMBERS, min_size=2, max_size=60))
def test_bars_hold_every_value_once(null: list[float]) -> None:
    bars, low, high = drawings._bins(null)
    assert sum(count for _, _, count in bars) == len(null)
    assert low <= min(null) and high >= max(null)


@pytest.mark.parametrize("log10_p", [0.0, -0.3, -2.0, -6.0, -9.0, -40.0, -5085.8])
@pytest.mark.parametrize("alpha", [1e-6, 0.05, 1e-30])
def test_the_ruler_has_the_pair_on_it(log10_p: float, alpha: float) -> None:
    drawn = drawings.ruler("k", log10_p, alpha, SAY)
    assert drawn is not None
    (at,) = re.findall(r'<circle cx="([\d.]+)"', drawn)
    assert 8 <= float(at) <= 392
    assert (log10_p < math.log10(alpha) * 1.4 - 9) <= ("gap" in drawn)


def test_a_ruler_without_a_probability_is_none() -> None:
    assert drawings.ruler("k", None, 1e-6, SAY) is None
    assert drawings.ruler("k", -3.0, 0.0, SAY) is None


def test_ties_of_thousands_of_layers_stay_few() -> None:
    pairs = [LayerPair(a=at, b=at) for at in range(5000)]
    drawn = drawings.layer_ties("k", pairs, (5000, 5000), ("a", "b"), SAY)
    assert drawn is not None and drawn.count("<line") <= 240
    assert drawings.layer_ties("k", [LayerPair(a=9, b=9)], (3, 3), ("a", "b"), SAY) is None


def test_lines_through_many_layers_are_whole() -> None:
    rows = [(at, 0.99, 0.01) for at in range(200)]
    drawn = drawings.two_lines("k", rows, "norm", "told", SAY)
    assert drawn is not None and len(re.findall(r"[\d.]+,[\d.]+[ \"]", drawn)) == 400


def test_text_in_pictures_has_no_html() -> None:
    drawn = shapes.label(0, 0, shapes.ten_to("-12") + "<i>")
    assert drawn == '<text x="0" y="0" text-anchor="middle">10⁻¹²&lt;i&gt;</text>'


def test_p_values_are_rounded_towards_the_weaker_claim() -> None:
    assert shapes.chance(-44.9) == "10<sup>−44</sup>"
    assert shapes.chance(-0.5) == "0.32"
    assert shapes.chance(None) == "–" == shapes.chance(math.nan)
    assert shapes.claim(-7.2) == "p ≤ 10<sup>−7</sup>"


def test_heat_has_a_class_for_every_likeness() -> None:
    assert [shapes.heat(value) for value in (0.0, 0.04, 0.5, 1.0, 7.0)] == [
        "h0",
        "h0",
        "h5",
        "h10",
        "h10",
    ]
    assert [shapes.heat(value) for value in (-0.1, -0.2, -0.9, None, math.nan)] == [
        "m1",
        "m2",
        "m3",
        "empty",
        "empty",
    ]


def test_every_class_of_heat_can_be_read_in_both_schemes() -> None:
    style = (Path(frame.__file__).parent / "assets" / "page.css").read_text()
    light, dark = style.split("@media screen and (prefers-color-scheme: dark)")[:2]
    for scheme in (light, dark):
        colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", scheme))
        for name in [*(f"h{at}" for at in range(11)), "m1", "m2", "m3"]:
            ink = (
                "middle"
                if name == "h6"
                else "under"
                if name in ("h7", "h8", "h9", "h10", "m3")
                else "over"
            )
            assert _contrast(colours[name], colours[ink]) >= 4.5, name


def _contrast(one: str, two: str) -> float:
    low, high = sorted((_luminance(one), _luminance(two)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
