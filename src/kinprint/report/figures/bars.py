"""Values side by side, as rows: names of any length stand beside their bars.

A bar's length is its value, so bars start at zero. Where the axis does not, the values are
drawn as points, and the axis carries a mark of the cut.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from msgspec import Struct

from kinprint.report.figures.blocks import (
    Block,
    Box,
    Key,
    axes_in,
    gap_label,
    kind_keys,
    mark_keys,
    spoken,
    titled,
    write,
)
from kinprint.report.figures.lettering import drawable, line_height, width_of, wrap
from kinprint.report.figures.scales import (
    band_keys,
    caption,
    draw_bands,
    limits,
    mark_break,
    say_empty,
    tidy,
)
from kinprint.report.figures.style import (
    FAINT,
    INK,
    LABEL,
    NOTE,
    SOFT,
    STRONG,
    TICK,
    kind_named,
    look_of,
)
from kinprint.report.numbers import telling
from kinprint.studies.charts import Bar, Bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 0.27
_TICKS = 0.27  # what they take below the rows
_NARROW = 5.0  # below this width, names stand above their bars


class _Row(Struct, frozen=True):
    bar: Bar | None  # None for the heading of a group
    lines: tuple[str, ...]
    height: float
    number: str  # beside the bar; of a heading only where its group has no value


class _Look(Struct, frozen=True):
    above: bool  # names stand above their bars
    cut: bool  # zero is not on the axis: points instead of bars
    hatched: bool  # several kinds are told apart without colour
    most: float | None  # no spread is drawn beyond it


def lay_out_bars(chart: Bars, width: float, language: str, size: float) -> Block:
    """The chart as a block of the picture."""
    values = [bar.value for bar in chart.bars]
    ends = [end for bar in chart.bars for end in _ends(bar, chart.most)]
    cut = chart.y_range is not None and chart.y_range[0] > 0
    wanted = chart.y_range
    if wanted is None:  # bars start at zero
        high = max(ends, default=1.0)
        wanted = (0.0, 0.0 if high <= 0 else high * 1.04)
    low, high = limits([*values, *ends], chart.bands, wanted)
    widest = max((width_of(spoken(bar.label, language), TICK) for bar in chart.bars), default=0)
    above = width < _NARROW and widest > width / 4
    rows, names = _rows(chart, width if above else width * 0.42, language, above=above)
    beside = max((width_of(row.number, TICK) for row in rows), default=0.0) + 0.12
    left = 0.02 if above else names + 0.1
    name = caption(chart.y_label, low, high, language)
    # A long name of the axis starts further left than the axis, so that it has room.
    indent = left if width_of(name, LABEL) <= width - left else 0.0
    lines = wrap(name, LABEL, width - indent)
    total = sum(row.height for row in rows) or _ROW * 2
    look = _Look(above, cut, len({bar.kind for bar in chart.bars}) > 1, chart.most)

    def paint(figure: Figure, box: Box) -> None:
        frame = Box(box.left + left, box.top - total, box.width - left - beside, total)
        axes = axes_in(figure, frame)
        tidy(axes)
        axes.spines["left"].set_visible(False)
        axes.set_xlim(low, high)
        axes.set_ylim(total, 0)
        axes.set_yticks([])
        axes.grid(axis="x", color=FAINT, linewidth=0.6)
        draw_bands(axes, chart.bands, across=False)
        axes.axvline(0 if low <= 0 <= high else low, color=SOFT, linewidth=0.8, zorder=2)
        top = 0.0
        for row in rows:
            _paint_row(figure, axes, box, frame, row, top, look)
            top += row.height
        _scale(axes, frame.width)
        under = frame.bottom - _TICKS
        write(figure, box.left + indent, under, "\n".join(lines), LABEL, SOFT, va="top")
        if not low <= 0 <= high:
            mark_break(axes, along="x")
        if not rows:
            say_empty(axes, language)

    body = Block(total + _TICKS + line_height(LABEL) * len(lines), paint)
    keys: list[Key] = [
        *kind_keys([bar.kind for bar in chart.bars], language, hatched=not cut),
        *band_keys(chart.bands, language),
        *mark_keys((bar.mark for bar in chart.bars if bar.value is not None), language),
    ]
    return titled(chart.title, chart.note, width, language, size, body, more=keys)


def _paint_row(
    figure: Figure, axes: Axes, box: Box, frame: Box, row: _Row, top: float,
    look: _Look,
) -> None:  # fmt: skip
    text = "\n".join(row.lines)
    start = frame.top - top
    right = frame.left + frame.width + 0.1
    if row.bar is None:
        at = start - row.height / 2
        write(figure, box.left + 0.06, at, text, TICK, INK, STRONG, halo=True)
        write(figure, right, at, row.number, TICK, SOFT)
        return
    middle = top + (row.height - _ROW / 2 if look.above else row.height / 2)
    if look.above:
        write(figure, box.left + 0.06, start - 0.05, text, TICK, INK, va="top", halo=True)
    else:
        write(figure, frame.left - 0.08, frame.top - middle, text, TICK, INK, ha="right")
    colour = SOFT if row.bar.value is None else INK
    write(figure, right, frame.top - middle, row.number, TICK, colour)
    _draw(axes, row.bar, middle, look)


def _ends(bar: Bar, most: float | None) -> tuple[float, ...]:
    """Both ends of a bar's spread; the upper one not beyond what there can be."""
    if bar.value is None:
        return ()
    reach = bar.spread or 0.0
    high = bar.value + reach
    return bar.value - reach, high if most is None else max(bar.value, min(high, most))


def _number(bar: Bar, digits: int, language: str) -> str:
    if bar.value is None:
        return gap_label([bar.mark], language)
    spread = "" if bar.spread is None else f" ± {telling(bar.spread, digits)}"
    return telling(bar.value, digits) + spread


def _rows(chart: Bars, room: float, language: str, *, above: bool) -> tuple[list[_Row], float]:
    """Bars with their names, a heading wherever a group begins; the widest name.

    A group without any value is its heading alone.
    """
    rows: list[_Row] = []
    widest = 0.0
    for group, members in groupby(chart.bars, key=lambda bar: bar.group):
        mine = list(members)
        empty = all(bar.value is None for bar in mine)
        if group:
            heading = (drawable(group),)
            number = gap_label([bar.mark for bar in mine], language) if empty else ""
            rows.append(_Row(None, heading, _ROW + (0.06 if rows else 0), number))
        for bar in () if group and empty else mine:
            lines = wrap(spoken(bar.label, language), TICK, room)
            widest = max([widest, *(width_of(line, TICK) for line in lines)])
            tall = line_height(TICK) * len(lines)
            height = tall + _ROW + 0.05 if above else max(_ROW, tall + 0.08)
            rows.append(_Row(bar, tuple(lines), height, _number(bar, chart.digits, language)))
    return rows, max(widest, 1.0 if not above else 0.0)


def _draw(axes: Axes, bar: Bar, middle: float, look: _Look) -> None:
    kind = kind_named(bar.kind)
    if bar.value is None:
        return
    if look.cut:
        axes.plot(bar.value, middle, kind.marker, color=kind.colour, markersize=7, zorder=4)
    else:
        axes.barh(
            middle, bar.value, height=_ROW * 0.66, zorder=3,
            hatch=(kind.hatch or None) if look.hatched else None,
            **look_of(bar.mark, kind.colour).patch,
        )  # fmt: skip
    if bar.spread:
        low, high = _ends(bar, look.most)
        axes.errorbar(
            bar.value, middle, xerr=[[bar.value - low], [high - bar.value]], fmt="none",
            ecolor=INK, elinewidth=1.1, capsize=2.6, zorder=5,
        )  # fmt: skip


def _scale(axes: Axes, width: float) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.xaxis.set_major_locator(
        MaxNLocator(max(2, min(7, int(width / 0.75))), steps=[1, 2, 2.5, 5, 10])
    )
    axes.tick_params(axis="x", labelsize=NOTE)
