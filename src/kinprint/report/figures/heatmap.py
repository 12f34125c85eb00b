"""A matrix as colours, with its numbers where they fit and its range of colours said in words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from kinprint import text
from kinprint.report.figures.blocks import (
    Block,
    Box,
    Key,
    axes_in,
    gap_label,
    mark_keys,
    paragraph,
    space,
    spoken,
    stack,
    titled,
    write,
)
from kinprint.report.figures.lettering import drawable, line_height, shorten, width_of
from kinprint.report.figures.scales import gapless
from kinprint.report.figures.style import (
    DIVERGING,
    FAINT,
    GAP,
    INK,
    LABEL,
    PAPER,
    SEQUENTIAL,
    SOFT,
    TICK,
)
from kinprint.report.numbers import digits_for, ends, shown
from kinprint.studies.charts import Heatmap

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap, Normalize
    from matplotlib.figure import Figure

_LONGEST = 2.1  # inches of a name below the matrix
_WIDEST, _TALLEST, _HIGHEST = 0.95, 0.42, 5.6  # of a cell, of a cell, of the matrix
_BAR, _SHORTEST = 0.16, 0.75  # width and least height of the bar of colours
_SHADES = 96
_SMALLEST = 5.8  # points
_STEPS = (1, 2, 4, 5, 8, 10, 16, 20, 25, 50, 100)
_SIZES = (8.6, 8.0, 7.4, 6.8)


class _Plan(Struct, frozen=True):
    """Sizes that follow from the words and numbers, in inches."""

    rows: list[str]
    columns: list[str]
    left: float
    below: float
    right: float
    cell: tuple[float, float]
    turned: bool
    digits: int
    size: float | None  # of the numbers in the cells, None if they do not fit

    @property
    def matrix(self) -> tuple[float, float]:
        """Width and height of all cells."""
        return self.cell[0] * len(self.columns), self.cell[1] * len(self.rows)


def lay_out_heatmap(chart: Heatmap, width: float, language: str, size: float) -> Block:
    """The chart as a block of the picture."""
    plan = _plan(chart, width)
    low, high = ends((chart.low, chart.high))
    label = spoken(chart.measure, language)
    caption = text.say("report.chart.colours", language, label=label, low=low, high=high)

    def paint(figure: Figure, box: Box) -> None:
        wide, tall = plan.matrix
        frame = Box(box.left + plan.left, box.top - tall, wide, tall)
        axes = axes_in(figure, frame)
        colours, scale = _colours(chart)
        _cells(axes, chart, plan, colours, scale)
        _names(figure, frame, plan)
        _axis_words(figure, box, frame, chart, language)
        _colour_bar(figure, frame, chart, colours, scale)

    body = stack(
        [
            paragraph(caption, width, LABEL),
            space(0.1),
            Block(max(plan.matrix[1] + plan.below, _SHORTEST + 0.1), paint),
        ]
    )
    gaps = any(value is None for row in chart.values for value in row)
    known = any(value is not None for row in chart.values for value in row)
    keys = mark_keys([chart.mark] if known else [], language)
    keys += [Key(gap_label([chart.mark], language), _gap_sign)] if gaps else []
    return titled(chart.title, chart.note, width, language, size, body, more=keys)


def _plan(chart: Heatmap, width: float) -> _Plan:
    rows = _distinct([drawable(name) for name in chart.rows], width * 0.36)
    columns = _distinct([drawable(name) for name in chart.columns], min(_LONGEST, width * 0.34))
    ticks = max(width_of(f"≥ {end}", TICK) for end in ends(_ticks(chart)))
    right = 0.16 + _BAR + 0.1 + ticks
    side = line_height(LABEL) + 0.04 if chart.row_label is not None else 0.0
    left = max((width_of(name, TICK) for name in rows), default=0) + 0.1 + side
    cell = min((width - left - right) / max(len(columns), 1), _WIDEST)
    tall = min(cell, _TALLEST, _HIGHEST / max(len(rows), 1))
    if len(rows) == len(columns) and len(rows) > 16:
        tall = cell = min(cell, _HIGHEST / len(rows))
    if not all(name.isdigit() for name in rows):  # of numbers some can be left out, not of names
        tall = max(tall, line_height(TICK) + 0.02)
    widest = max((width_of(name, TICK) for name in columns), default=0)
    # Short names of layers stand upright, with some left out; others lean where they must.
    turned = widest > cell - 0.06 and widest > 0.32
    below = 0.07 + (0.7072 * (widest + line_height(TICK)) if turned else line_height(TICK))
    if chart.column_label is not None:
        below += line_height(LABEL) + 0.03
    if turned:  # the first names lean out to the left
        lean = max(
            (0.7072 * width_of(name, TICK) - (at + 0.5) * cell for at, name in enumerate(columns)),
            default=0,
        )
        if lean > left:
            cell -= (lean - left) / max(len(columns), 1)
            left = lean
    digits, size = _annotation(chart, cell, tall)
    return _Plan(rows, columns, left, below, right, (cell, tall), turned, digits, size)


def _distinct(names: Sequence[str], width: float) -> list[str]:
    """Names that fit; numbered where shortening would make two of them the same."""
    short = [shorten(name, TICK, width) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    return [
        f"{at + 1} {shorten(name, TICK, width - width_of(f'{at + 1} ', TICK))}"
        for at, name in enumerate(names)
    ]


def _annotation(chart: Heatmap, cell: float, tall: float) -> tuple[int, float | None]:
    """The most decimals and the largest type with which every number fits its cell."""
    known = [value for row in chart.values for value in row if value is not None]
    best = digits_for((chart.low, chart.high))
    if not chart.annotate or not known:
        return best, None
    most = min(max(best, 3), 4)
    if all(round(value, 2) == value for value in known):  # nobody knows more of them
        most = min(most, 2)
    for digits in range(most, 1, -1):
        numbers = {shown(value, digits) for value in known}
        for size in _SIZES:
            fits = max(width_of(number, size) for number in numbers) <= cell - 0.05
            if fits and line_height(size) <= tall + 0.02:
                return digits, size
    return best, None


def _colours(chart: Heatmap) -> tuple[Colormap, Normalize]:
    from matplotlib.colors import LinearSegmentedColormap, Normalize

    low, high = chart.low, chart.high
    if chart.diverging:  # zero is the middle, whichever end is further away
        reach = max(abs(low), abs(high)) or 1.0
        low, high = -reach, reach
    colours = LinearSegmentedColormap.from_list(
        "kinprint", DIVERGING if chart.diverging else SEQUENTIAL
    )
    return colours.with_extremes(bad=GAP), Normalize(low, high if high > low else low + 1, True)


def _cells(axes: Axes, chart: Heatmap, plan: _Plan, colours: Colormap, scale: Normalize) -> None:
    rows, columns = len(plan.rows), len(plan.columns)
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(FAINT)  # the edge of a matrix whose values are all near white
    axes.pcolormesh(
        [gapless(values) for values in chart.values], cmap=colours, norm=scale,
        edgecolors="none" if plan.cell[0] < 0.2 else PAPER, linewidth=0.8,
    )  # fmt: skip
    for row, values in enumerate(chart.values):
        for column, value in enumerate(values):
            if value is None:
                _hatch(axes, column, row)
            elif plan.size is not None:
                dark = _lightness(colours(scale(value))) <= 0.48
                axes.text(
                    column + 0.5, row + 0.5, shown(value, plan.digits), ha="center",
                    va="center_baseline", fontsize=plan.size, color=PAPER if dark else INK,
                )  # fmt: skip


def _hatch(axes: Axes, column: int, row: int) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(
        Rectangle(
            (column, row), 1, 1, facecolor=GAP, edgecolor="#9aa2ad", linewidth=0, hatch="////"
        )
    )


def _lightness(colour: tuple[float, ...]) -> float:
    return sum(
        share * part for share, part in zip((0.2126, 0.7152, 0.0722), colour[:3], strict=True)
    )


def _names(figure: Figure, frame: Box, plan: _Plan) -> None:
    wide, tall = plan.cell
    step = _step(line_height(TICK), tall)
    for at in range(0, len(plan.rows), step):
        y = frame.top - (at + 0.5) * tall
        write(figure, frame.left - 0.07, y, plan.rows[at], TICK, INK, ha="right")
    if plan.turned:
        # Leaning lines of text lie closer together than the cells are wide.
        size = max(min(TICK, 0.7071 * wide * 72 / 1.12), _SMALLEST)
        step = _step(size / 72 * 1.12, 0.7071 * wide)
        for at in range(0, len(plan.columns), step):
            figure.text(
                frame.left + (at + 0.5) * wide + 0.04, frame.bottom - 0.06, plan.columns[at],
                fontsize=size, color=INK, rotation=45, ha="right", va="top",
                rotation_mode="anchor", transform=figure.dpi_scale_trans,
            )  # fmt: skip
        return
    widest = max((width_of(name, TICK) for name in plan.columns), default=0)
    step = _step(widest + 0.08, wide)
    for at in range(0, len(plan.columns), step):
        x = frame.left + (at + 0.5) * wide
        write(figure, x, frame.bottom - 0.05, plan.columns[at], TICK, INK, ha="center", va="top")


def _step(needed: float, cell: float) -> int:
    return next((step for step in _STEPS if step * cell >= needed), _STEPS[-1])


def _axis_words(figure: Figure, box: Box, frame: Box, chart: Heatmap, language: str) -> None:
    if chart.column_label is not None:
        name = spoken(chart.column_label, language)
        middle = max(frame.left + frame.width / 2, box.left + width_of(name, LABEL) / 2)
        write(figure, middle, box.bottom + line_height(LABEL) / 2, name, LABEL, SOFT, ha="center")
    if chart.row_label is not None:
        figure.text(
            box.left + line_height(LABEL) / 2, frame.bottom + frame.height / 2,
            shorten(spoken(chart.row_label, language), LABEL, max(frame.height, 0.8)),
            fontsize=LABEL, color=SOFT, rotation=90, ha="center", va="center",
            transform=figure.dpi_scale_trans,
        )  # fmt: skip


def _colour_bar(
    figure: Figure, frame: Box, chart: Heatmap, colours: Colormap, scale: Normalize
) -> None:
    """The colours from end to end in fine steps, with the numbers of both ends."""
    tall = min(max(frame.height, _SHORTEST), 3.0)
    bar = Box(frame.left + frame.width + 0.16, frame.top - tall, _BAR, tall)
    axes = axes_in(figure, bar)
    low, _, high = _ticks(chart)
    axes.set_xlim(0, 1)
    axes.set_ylim(low, high)
    edges = [low + (high - low) * at / _SHADES for at in range(_SHADES + 1)]
    middles = [[(start + end) / 2] for start, end in pairwise(edges)]
    axes.pcolormesh([0, 1], edges, middles, cmap=colours, norm=scale, antialiased=False)
    axes.set_xticks([])
    ticks = _ticks(chart)
    words = ends(ticks)
    known = [value for row in chart.values for value in row if value is not None]
    if any(value < low for value in known):
        words[0] = f"≤ {words[0]}"
    if any(value > high for value in known):
        words[-1] = f"≥ {words[-1]}"
    axes.yaxis.tick_right()
    axes.set_yticks(ticks, words)
    axes.tick_params(length=2.5, width=0.6, pad=2, labelsize=TICK)
    axes.spines[:].set_linewidth(0.6)


def _ticks(chart: Heatmap) -> tuple[float, float, float]:
    low, high = chart.low, chart.high if chart.high > chart.low else chart.low + 1
    return low, (low + high) / 2, high


def _gap_sign(box: Box) -> list[Artist]:
    from matplotlib.patches import Rectangle

    middle = box.bottom + box.height / 2
    return [
        Rectangle(
            (box.left, middle - 0.06), box.width, 0.12, facecolor=GAP, edgecolor="#9aa2ad",
            linewidth=0, hatch="////",
        )
    ]  # fmt: skip
