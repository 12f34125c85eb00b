"""All pairs of some models as a matrix, with the tree that orders it.

Colour is how alike the weights are, a letter the relation that the tests support, so that
neither colour alone nor size alone carries the answer. The tree joins the most alike first: it
shows closeness of weights and says nothing of who came first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kinprint.report.figures.blocks import Block, Box, Key, axes_in, said, spoken, titled, write
from kinprint.report.figures.lettering import drawable, line_height, shorten, width_of
from kinprint.report.figures.style import (
    FAINT,
    GAP,
    INK,
    NOTE,
    PAPER,
    SEQUENTIAL,
    SOFT,
    STRONG,
    TICK,
)
from kinprint.report.matrix import Joint
from kinprint.text import Words

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

_LARGEST, _TALL = 0.34, 5.9  # inches of a cell, of the matrix
_NAMES = 2.3
_FAINT = "#9aa2ad"
_DOT = "·"  # nothing was found
_SMALLEST = 3.4  # points of a name or letter; with more models they are left out


class Kinship(Struct, frozen=True):
    """Models in the order of the tree, and what was found of each pair of them.

    `values` holds how alike two are, None where nothing was compared; `marks` their relations.
    """

    name: str
    title: Words
    names: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    marks: tuple[tuple[str, ...], ...]
    meanings: tuple[tuple[str, Words], ...]
    tree: tuple[Joint, ...] = ()
    note: Words | None = None


def lay_out_kinship(chart: Kinship, width: float, language: str, size: float) -> Block:
    """The picture as a block."""
    count = max(len(chart.names), 1)
    crown = 1.1 if chart.tree else 0.0
    named = [drawable(name) for name in chart.names]
    widest = min(max((width_of(f"{name}   {count}", TICK) for name in named), default=0.5), _NAMES)
    cell = min((width - crown - widest - 0.2) / count, _LARGEST, _TALL / count)
    letters = min(cell * 72 * 0.62, TICK)
    words = min(cell * 72 / 1.2, TICK)
    widest = widest * words / TICK if words >= _SMALLEST else 0.0
    side = cell * count
    numbers = line_height(max(words, _SMALLEST)) + 0.04

    def paint(figure: Figure, box: Box) -> None:
        frame = Box(box.left + crown + widest + 0.1, box.top - numbers - side, side, side)
        _paint_cells(figure, frame, chart, letters)
        for at, name in enumerate(named if words >= _SMALLEST else ()):
            y = frame.top - (at + 0.5) * cell
            room = widest - width_of(f"  {count}", words)
            write(figure, box.left + crown, y, shorten(name, words, room), words, INK)
            write(figure, frame.left - 0.05, y, f"{at + 1}", words, SOFT, ha="right")
            if width_of(f"{count}", words) < cell:
                x = frame.left + (at + 0.5) * cell
                write(figure, x, box.top - numbers / 2, f"{at + 1}", words, SOFT, ha="center")
        if chart.tree:
            _paint_tree(figure, Box(box.left, frame.bottom, crown - 0.08, side), chart.tree, count)

    body = Block(numbers + side + 0.04, paint)
    keys = [_letter_key(mark, spoken(meaning, language)) for mark, meaning in chart.meanings]
    scale = said("report.picture.matrix-scale", language)
    return titled(
        chart.title, chart.note, width, language, size, body,
        more=[*keys, Key(scale, _scale_sign)],
    )  # fmt: skip


def _paint_cells(figure: Figure, frame: Box, chart: Kinship, letters: float) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    colours = LinearSegmentedColormap.from_list("kinprint", SEQUENTIAL[:5])
    count = len(chart.names)
    axes = axes_in(figure, frame)
    axes.set_xlim(0, count)
    axes.set_ylim(count, 0)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.spines[:].set_color(FAINT)
    shades = [
        [GAP if value is None else colours(min(max(value, 0.0), 1.0)) for value in row]
        for row in chart.values
    ]
    from matplotlib.colors import to_rgb

    axes.imshow(
        [[to_rgb(shade) for shade in row] for row in shades],
        extent=(0, count, count, 0), interpolation="nearest", aspect="auto",
    )  # fmt: skip
    if frame.width / count > 0.08:
        for at in range(1, count):
            axes.axhline(at, color=PAPER, linewidth=0.6)
            axes.axvline(at, color=PAPER, linewidth=0.6)
    if letters < _SMALLEST:
        return
    dots: list[tuple[float, float]] = []
    for row, marks in enumerate(chart.marks):
        for column, mark in enumerate(marks):
            if mark == _DOT:
                dots.append((column + 0.5, row + 0.5))
                continue
            value = chart.values[row][column]
            dark = value is not None and value > 0.55
            axes.text(
                column + 0.5, row + 0.5, mark, ha="center", va="center_baseline",
                fontsize=letters, color=PAPER if dark else INK, weight=STRONG,
            )  # fmt: skip
    if dots:  # most cells of a large matrix; as letters they would take most of the time
        x, y = zip(*dots, strict=True)
        axes.plot(x, y, "o", color=_FAINT, markersize=letters * 0.22, markeredgewidth=0)


def _paint_tree(figure: Figure, box: Box, tree: Sequence[Joint], count: int) -> None:
    highest = max(joint.height for joint in tree) or 1.0
    axes = axes_in(figure, box)
    axes.set_axis_off()
    axes.set_ylim(count, 0)
    axes.set_xlim(highest * 1.02, 0)
    for joint in tree:
        (one, other), (low, high) = joint.places, joint.heights
        axes.plot(
            (low, joint.height, joint.height, high), (one, one, other, other), color=SOFT,
            linewidth=0.9, solid_joinstyle="miter",
        )  # fmt: skip


def _letter_key(mark: str, meaning: str) -> Key:
    def sign(box: Box) -> list[Artist]:
        from matplotlib.text import Text

        middle = box.bottom + 0.03
        return [
            Text(
                box.left + box.width / 2, middle, mark, ha="center", va="baseline", fontsize=NOTE,
                color=INK, weight=STRONG,
            )
        ]  # fmt: skip

    return Key(meaning, sign)


def _scale_sign(box: Box) -> list[Artist]:
    from matplotlib.patches import Rectangle

    middle, step = box.bottom + box.height / 2, box.width / 5
    return [
        Rectangle((box.left + at * step, middle - 0.055), step, 0.11, facecolor=colour, linewidth=0)
        for at, colour in enumerate(SEQUENTIAL[:5])
    ]
