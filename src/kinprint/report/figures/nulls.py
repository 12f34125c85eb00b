"""What chance gives and where the pair stands: one row for each test, each with its own scale.

The grey hill is a sample of the statistic under the test's null; the mark is the pair. How far
apart they may lie differs so much from test to test that a common axis would flatten most of
them, so each row runs from its least to its greatest value and names both.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from msgspec import Struct

from kinprint.report.figures.blocks import Block, Box, Key, axes_in, said, spoken, titled, write
from kinprint.report.figures.lettering import drawable, line_height, width_of, wrap
from kinprint.report.figures.style import FAINT, INK, NOTE, PAPER, SOFT, STRONG, TICK, kind_named
from kinprint.report.numbers import shown
from kinprint.text import Words

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

_NAMES = 0.38  # of the width
_STRIP = 0.3  # inches of a hill
_BINS = 48
_HILL, _EDGE = "#c3cad3", "#8b95a1"
_SOFTER = "#8a6d00"


class Null(Struct, frozen=True):
    """One test: its name and words, a sample of chance, the pair's value and what p says.

    `calibrated` ones rank the pair among known strangers and decide nothing; they have no p, and
    the value stands in its place.
    """

    test: str
    words: Words
    sample: tuple[float, ...]
    value: float | None
    p: str
    calibrated: bool = False


class Nulls(Struct, frozen=True):
    """A picture of several tests."""

    name: str
    title: Words
    rows: tuple[Null, ...]
    note: Words | None = None


def lay_out_nulls(chart: Nulls, width: float, language: str, size: float) -> Block:
    """The picture as a block."""
    names = width * _NAMES
    right = max((width_of(row.p, TICK, STRONG) for row in chart.rows), default=0.0) + 0.16
    texts = [wrap(spoken(row.words, language), NOTE, names - 0.12) for row in chart.rows]
    heights = [
        max(line_height(TICK) + line_height(NOTE) * len(lines), _STRIP + line_height(NOTE)) + 0.14
        for lines in texts
    ]

    def paint(figure: Figure, box: Box) -> None:
        top = box.top
        for row, lines, height in zip(chart.rows, texts, heights, strict=True):
            write(figure, box.left, top, drawable(row.test), TICK, INK, STRONG, va="top")
            under = top - line_height(TICK)
            write(figure, box.left, under, "\n".join(lines), NOTE, SOFT, va="top")
            strip = Box(box.left + names, top - _STRIP, box.width - names - right, _STRIP)
            _paint_strip(figure, strip, row)
            middle = top - _STRIP / 2
            ink = _SOFTER if row.calibrated else INK
            write(figure, box.left + box.width, middle, row.p, TICK, ink, STRONG, ha="right")
            top -= height
        if not chart.rows:
            write(
                figure,
                box.left,
                top,
                said("report.chart.no-values", language),
                TICK,
                SOFT,
                va="top",
            )

    body = Block(sum(heights) or line_height(TICK) * 1.5, paint)
    keys = [
        Key(said("report.picture.chance", language), _hill_sign),
        Key(said("report.picture.pair", language), partial(_pair_sign, calibrated=False)),
    ]
    if any(row.calibrated for row in chart.rows):
        sign = partial(_pair_sign, calibrated=True)
        keys.append(Key(said("page.mark.calibrated", language), sign))
    return titled(chart.title, chart.note, width, language, size, body, more=keys)


def _paint_strip(figure: Figure, box: Box, row: Null) -> None:
    known = [*row.sample, *(() if row.value is None else (row.value,))]
    low, high = min(known, default=0.0), max(known, default=1.0)
    span = high - low or 1.0
    axes = axes_in(figure, box)
    axes.set_xlim(low - 0.02 * span, high + 0.02 * span)
    axes.set_ylim(0, 1.15)
    axes.set_yticks([])
    axes.set_xticks([])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(FAINT)
    if row.sample:
        counts, edges = _hill(row.sample, low, span)
        axes.stairs(counts, edges, fill=True, facecolor=_HILL, edgecolor=_EDGE, linewidth=0.5)
    for value in sorted({low, high}):
        x = box.left + box.width * (value - low + 0.02 * span) / (1.04 * span)
        side = "left" if value == low else "right"
        write(figure, x, box.bottom, shown(value, 2), NOTE - 1, SOFT, ha=side, va="top")
    if row.value is None:
        return
    colour, marker = _mark(row.calibrated)
    axes.axvline(row.value, color=colour, linewidth=1.4, zorder=3)
    axes.plot(
        [row.value], [0.62], marker=marker, color=colour, markersize=6,
        markeredgecolor=PAPER, markeredgewidth=0.7, zorder=4, clip_on=False,
    )  # fmt: skip


def _mark(calibrated: bool) -> tuple[str, str]:
    """The colour and marker of a pair."""
    return (_SOFTER, "s") if calibrated else (kind_named("pair").colour, "D")


def _hill(sample: tuple[float, ...], low: float, span: float) -> tuple[list[float], list[float]]:
    """Shares of the sample by place, the greatest of them one."""
    counts = [0] * _BINS
    for value in sample:
        counts[min(int((value - low) / span * _BINS), _BINS - 1)] += 1
    most = max(counts)
    return [count / most for count in counts], [low + span * at / _BINS for at in range(_BINS + 1)]


def _hill_sign(box: Box) -> list[Artist]:
    from matplotlib.patches import Rectangle

    middle = box.bottom + box.height / 2
    return [
        Rectangle(
            (box.left, middle - 0.055), box.width, 0.11, facecolor=_HILL, edgecolor=_EDGE,
            linewidth=0.5,
        )
    ]  # fmt: skip


def _pair_sign(box: Box, calibrated: bool) -> list[Artist]:
    from matplotlib.lines import Line2D

    middle, centre = box.bottom + box.height / 2, box.left + box.width / 2
    colour, marker = _mark(calibrated)
    return [
        Line2D((centre, centre), (middle - 0.08, middle + 0.08), color=colour, linewidth=1.4),
        Line2D(
            [centre], [middle], color=colour, marker=marker, markersize=6, linestyle="none",
            markeredgecolor=PAPER, markeredgewidth=0.7,
        ),
    ]  # fmt: skip
