"""Pictures: everything is drawn, inside the picture, in both languages, the same every time."""

from __future__ import annotations

import logging
import struct
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.container import BarContainer
from matplotlib.text import Text
from msgspec.structs import replace

from kinprint.report.figures import draw, picture
from kinprint.report.figures.drawing import pictures
from kinprint.report.figures.lettering import drawable, load_fonts, shorten, width_of, wrap
from kinprint.report.figures.style import KINDS, strokes
from kinprint.studies.charts import Bar, Bars, Chart, Lines
from kinprint.text import known_keys, languages
from kinprint.text.catalogue import template
from tests.report import samples
from tests.report.samples import words

CHARTS = samples.charts()


def texts(chart: Chart, language: str = "en") -> list[str]:
    figure = draw(chart, language)
    found = [each for each in figure.findobj(Text) if isinstance(each, Text)]
    return [each.get_text() for each in found if each.get_visible() and each.get_text()]


@pytest.mark.parametrize("language", [pytest.param("en", marks=pytest.mark.slow), "ko"])
@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_everything_lies_inside_the_picture(
    chart: Chart, language: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):  # a missing glyph or font would be said here
        figure = draw(chart, language)
        figure.canvas.draw()
    assert caplog.records == []
    width, height = figure.get_size_inches() * figure.dpi
    parts = [(each.get_text(), each.get_window_extent()) for each in figure.texts]
    parts += [("axes", box) for each in figure.axes if (box := each.get_tightbbox()) is not None]
    for name, box in parts:
        assert box.x0 >= -1 and box.y0 >= -1, name
        assert box.x1 <= width + 1 and box.y1 <= height + 1, name


@pytest.mark.parametrize("chart", [samples.lines(20), samples.heatmap(), samples.panels()])
def test_texts_do_not_overlap(chart: Chart) -> None:
    figure = draw(chart)
    figure.canvas.draw()
    own = [each for each in figure.texts if each.get_text() and not each.get_rotation()]
    boxes = [(each.get_text(), each.get_window_extent()) for each in own]
    for at, (one, box) in enumerate(boxes):
        for other, against in boxes[at + 1 :]:
            wide = min(box.x1, against.x1) - max(box.x0, against.x0)
            tall = min(box.y1, against.y1) - max(box.y0, against.y0)
            assert wide < 1 or tall < 2, (one, other)


def test_files_are_sound_and_the_same_every_time(tmp_path: Path) -> None:
    chart = samples.heatmap(3)
    png, svg = pictures(chart)
    assert struct.unpack(">I", png[16:20]) == (1200,)
    assert b"matplotlib" not in png.lower()
    ET.fromstring(svg)
    assert b"<dc:date>" not in svg
    assert pictures(chart) == [png, svg]
    code = (
        "import sys; from tests.report import samples; from kinprint.report.figures import picture;"
        "sys.stdout.buffer.write(picture(samples.heatmap(3), 'svg'))"
    )
    again = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parents[2], capture_output=True, check=True
    )
    assert again.stdout == svg


def test_a_users_settings_change_nothing_and_are_left_alone() -> None:
    chart = samples.lines()
    plain = picture(chart, "svg")
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "none"}):
        before = dict(mpl.rcParams)
        assert picture(chart, "svg") == plain
        assert dict(mpl.rcParams) == before


def test_hostile_text_is_text() -> None:
    svg = picture(samples.flow(), "svg")
    assert b"<script" not in svg
    shown = " ".join(texts(samples.flow()))
    assert "$x$" in shown  # no formula
    assert "U+4E2D" in shown  # no empty box
    assert "\x1b" not in shown and "\u202e" not in shown


def test_axes_and_colours_say_where_they_run() -> None:
    assert any("colours run from 0.9 to 1.0" in each for each in texts(samples.heatmap()))
    assert any("색 범위 0.9~1.0" in each for each in texts(samples.heatmap(), "ko"))
    assert any("axis from 0.9 to 1.0" in each for each in texts(samples.bars(0.9)))
    assert not any("zero is not" in each for each in texts(samples.bars()))


def test_bars_start_at_zero_and_points_do_not() -> None:
    drawn = draw(samples.bars()).axes[0].containers
    assert any(isinstance(each, BarContainer) for each in drawn)
    cut = draw(samples.bars(0.9)).axes[0]
    assert not cut.containers or all(not isinstance(each, BarContainer) for each in cut.containers)
    assert cut.get_xlim()[0] == 0.9


def test_a_spread_ends_at_the_largest_value_there_can_be() -> None:
    """0.949 ± 0.156 is no cosine of 1.1."""
    bar = Bar(words("norm"), 0.949, 0.156)
    for most, end in ((None, 1.105), (1.0, 1.0)):
        chart = Bars("spread", words("Spread"), words("cosine"), (bar,), most=most)
        (axes,) = draw(chart).axes
        drawn = [each for each in axes.collections if isinstance(each, LineCollection)]
        ends = [point[0] for each in drawn for path in each.get_segments() for point in path]
        assert max(ends) == pytest.approx(end) and min(ends) == pytest.approx(0.793)


def test_values_beyond_the_wished_range_are_shown_all_the_same() -> None:
    chart = samples.lines()
    narrow = Lines(
        "n", chart.title, chart.x_label, chart.y_label, chart.series, y_range=(0.89, 0.9)
    )
    low, high = draw(narrow).axes[0].get_ylim()
    values = [value for series in chart.series for value in series.y if value is not None]
    assert low <= min(values) and high >= max(values)


def test_numbers_in_the_picture_stand_in_the_data() -> None:
    chart = samples.heatmap(4)
    known = {f"{value:.4f}" for row in chart.values for value in row if value is not None}
    known |= {text[:-1] for text in known} | {f"{float(text):.3f}" for text in known}
    cells = {text for each in draw(chart).axes for text in (t.get_text() for t in each.texts)}
    assert cells and cells <= known
    assert any("0.377 (from 0.300 to 0.450)" in each for each in texts(samples.lines()))


def test_gaps_can_be_seen() -> None:
    assert "no value" in texts(samples.lines())
    assert "값 없음" in texts(samples.heatmap(), "ko")
    crosses = [line for line in draw(samples.lines()).axes[0].lines if line.get_marker() == "x"]
    assert {tuple(np.asarray(line.get_xdata())) for line in crosses} == {(3.0, 17.0)}


def test_very_many_series_are_summed_up_in_the_legend() -> None:
    one = samples.lines(1, 5).series[0]
    bare = tuple(replace(one, label=samples.words(f"s{at}"), low=(), high=()) for at in range(30))
    chart = replace(samples.lines(1, 5), series=(*bare, one))
    shown = texts(chart)
    assert "30 more, named in the table" in shown
    assert not any(text == "s3" for text in shown)
    assert len(draw(chart).axes[0].lines) >= 31


def test_looks_differ() -> None:
    for kinds in (["pair"] * 24, ["pair", "control"] * 6, list(KINDS)):
        looks = strokes(kinds)
        assert len(set(looks)) == len(looks)


def test_every_korean_word_can_be_drawn() -> None:
    """All words of the catalogues, wherever they are said."""
    known = load_fonts()
    texts = [template(key, language) for key in known_keys() for language in languages()]
    letters = {letter for text in texts for letter in text if letter.isprintable()}
    assert len({letter for letter in letters if "가" <= letter <= "힣"}) > 200
    assert {letter for letter in letters if ord(letter) not in known} == set()
    assert drawable("유사도 값 ± ↔ ≠") == "유사도 값 ± ↔ ≠"


def test_lines_break_where_they_must() -> None:
    for text in (samples.LONG, "여러 낱말로 된 긴 한국어 문장입니다 " * 5, "x" * 200):
        broken = wrap(text, 9, 1.5)
        assert all(width_of(line, 9) <= 1.5 for line in broken)
        assert "".join(broken).replace(" ", "") == text.replace(" ", "")
    assert width_of(shorten(samples.LONG, 9, 1.0), 9) <= 1.0
    assert shorten("short", 9, 1.0) == "short"
