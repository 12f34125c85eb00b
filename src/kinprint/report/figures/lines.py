"""Values over layers: a line for each series, gaps left open, baselines behind."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from kinprint.records import Mark
from kinprint.report.figures.blocks import (
    Block,
    Box,
    Key,
    axes_in,
    fit,
    gap_label,
    kind_keys,
    mark_keys,
    paragraph,
    said,
    spoken,
    stack,
    titled,
)
from kinprint.report.figures.scales import (
    band_keys,
    caption,
    draw_bands,
    gap_key,
    gapless,
    limits,
    mark_break,
    mark_gaps,
    say_empty,
    tidy,
)
from kinprint.report.figures.style import FAINT, LABEL, SOFT, Stroke, kind_named, look_of, strokes
from kinprint.studies.charts import Lines, Series

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HEIGHT = 3.1  # inches of a chart at full width
_NARROW = 5.0
_MANY = 24  # series of one kind; more than these no look can tell apart
_CROWD = 8  # series; more than these are drawn more finely
_LONG = 60  # from here on, a mark at every value would hide the line


def lay_out_lines(chart: Lines, width: float, language: str, size: float) -> Block:
    """The chart as a block of the picture."""
    told, rest = _part(chart.series)
    looks = strokes([one.kind for one in told])
    crowded = len(told) > _CROWD or width < _NARROW
    low, high = limits(_values(chart.series), chart.bands, chart.y_range)

    def paint(figure: Figure, box: Box) -> None:
        axes = axes_in(figure, box)
        tidy(axes)
        axes.grid(axis="y", color=FAINT, linewidth=0.6)
        draw_bands(axes, chart.bands, across=True)
        for series in rest:
            colour = kind_named(series.kind).colour
            axes.plot(series.x, gapless(series.y), color=colour, linewidth=0.7, alpha=0.45)
        for series, look in zip(told, looks, strict=True):
            _draw(axes, series, look, dots=chart.points, crowded=crowded)
        for series in chart.series:
            mark_gaps(axes, series.x, series.y)
        axes.set_ylim(low, high)
        if low <= 0 <= high and low < 0:
            axes.axhline(0, color=SOFT, linewidth=0.8, zorder=1)
        _scale_x(axes, chart.series)
        axes.set_xlabel(spoken(chart.x_label, language), fontsize=LABEL)
        if not low <= 0 <= high:
            mark_break(axes, along="y")
        if not any(value is not None for value in _values(chart.series, bounds=False)):
            say_empty(axes, language)
        fit(axes, box)

    keys = [
        Key(spoken(series.label, language), _sign(look, dots=chart.points))
        for series, look in zip(told, looks, strict=True)
    ]
    for kind, count in Counter(series.kind for series in rest).items():
        label = said("report.chart.more-series", language, count=count)
        keys.append(Key(label, _thin_sign(kind_named(kind).colour)))
    more = kind_keys([one.kind for one in chart.series], language, hatched=False)
    more += band_keys(chart.bands, language)
    marks = [one.mark for one in chart.series]
    more += mark_keys(marks, language)
    if any(value is None for series in chart.series for value in series.y):
        more.append(gap_key(gap_label(marks, language)))
    body = stack(
        [
            paragraph(caption(chart.y_label, low, high, language), width, LABEL),
            Block(_HEIGHT * min(1.0, 0.35 + width / 12), paint),
        ]
    )
    return titled(chart.title, chart.note, width, language, size, body, keys, more)


def _part(series: Sequence[Series]) -> tuple[list[Series], list[Series]]:
    """Series with a look of their own, and those too many to tell apart by looks.

    Of a kind with very many, only those with an interval, which sum up others, are told.
    """
    counts = Counter(one.kind for one in series)
    rest = [one for one in series if counts[one.kind] > _MANY and not one.low]
    return [one for one in series if one not in rest], rest


def _values(series: Sequence[Series], *, bounds: bool = True) -> list[float | None]:
    found: list[float | None] = []
    for one in series:
        found += one.y
        if bounds:
            found += (*one.low, *one.high)
    return found


def _draw(axes: Axes, series: Series, look: Stroke, *, dots: bool, crowded: bool) -> None:
    y, low, high = gapless(series.y), gapless(series.low), gapless(series.high)
    known = bool(low) and bool(high)
    if known and dots:
        pairs = list(zip(y, low, high, strict=True))
        below = [max(value - bottom, 0) for value, bottom, _ in pairs]
        above = [max(top - value, 0) for value, _, top in pairs]
        axes.errorbar(
            series.x, y, [below, above], fmt="none", ecolor=look.colour, elinewidth=1, capsize=2
        )
    elif known:
        axes.fill_between(
            series.x, low, high, color=look.colour, alpha=0.08 if crowded else 0.16, linewidth=0
        )
    many = len(series.x) > _LONG
    mark = 2.2 if many else 3.4 if crowded else 4.6
    axes.plot(
        series.x, y, color=look.colour, marker=look.marker, zorder=3,
        linestyle="none" if dots else look.dash, linewidth=1.1 if crowded else 1.7, markersize=mark,
        **_face(series.mark, look.colour, 0.0 if many else 0.5),
    )  # fmt: skip


def _face(mark: Mark, colour: str, edge: float) -> dict[str, Any]:
    """How a point looks: full where it was measured, else as the legend of marks has it."""
    found = look_of(mark, colour).patch
    if mark is Mark.MEASURED:
        return {"markeredgecolor": "white", "markeredgewidth": edge}
    return {"markerfacecolor": found["facecolor"], "markeredgewidth": 0.9}


def _scale_x(axes: Axes, series: Sequence[Series]) -> None:
    from matplotlib.ticker import MaxNLocator

    places = [x for one in series for x in one.x if math.isfinite(x)]
    if not places:
        axes.set_xlim(0, 1)
        return
    low, high = min(places), max(places)
    room = 0.02 * (high - low) or 0.5
    axes.set_xlim(low - room, high + room)
    if low == high:
        axes.set_xticks([low], [f"{low:g}"])
        return
    whole = all(float(x).is_integer() for x in places)
    axes.xaxis.set_major_locator(MaxNLocator(12, integer=whole, steps=[1, 2, 5, 10]))


def _thin_sign(colour: str) -> Callable[[Box], Sequence[Artist]]:
    def sign(box: Box) -> list[Artist]:
        from matplotlib.lines import Line2D

        middle = box.bottom + box.height / 2
        ends = (box.left, box.left + box.width)
        return [Line2D(ends, (middle, middle), color=colour, linewidth=0.7, alpha=0.6)]

    return sign


def _sign(look: Stroke, *, dots: bool) -> Callable[[Box], Sequence[Artist]]:
    def sign(box: Box) -> list[Artist]:
        from matplotlib.lines import Line2D

        middle = box.bottom + box.height / 2
        ends = (box.left, box.left + box.width)
        line = Line2D(
            ends, (middle, middle), color=look.colour, linestyle="none" if dots else look.dash
        )
        mark = Line2D(
            [sum(ends) / 2], [middle], color=look.colour, marker=look.marker, markersize=5,
            linestyle="none", markeredgecolor="white", markeredgewidth=0.5,
        )  # fmt: skip
        return [line, mark]

    return sign
