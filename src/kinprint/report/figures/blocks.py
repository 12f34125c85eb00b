"""Pictures as blocks from top to bottom: title, what is drawn, keys and note.

A block knows its height before anything is drawn, so that nothing can overlap or be cut
off however long the words are. All measures are inches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from kinprint.records import Mark
from kinprint.report.figures.lettering import drawable, line_height, width_of, wrap
from kinprint.report.figures.style import (
    INK,
    LABEL,
    NOTE,
    PAPER,
    SOFT,
    STRONG,
    Kind,
    kind_named,
    look_of,
)
from kinprint.text import Words, say

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SWATCH = 0.34
_BETWEEN = 0.24
_HALF_CAPITAL = 0.36  # of a letter's size, so that capitals stand in the middle of their line


class Box(Struct, frozen=True):
    """A part of the picture; `bottom` counts upwards from the picture's lower edge."""

    left: float
    bottom: float
    width: float
    height: float

    @property
    def top(self) -> float:
        """The upper edge."""
        return self.bottom + self.height


class Block(Struct, frozen=True):
    """Something of known height that can be painted into a box."""

    height: float
    paint: Callable[[Figure, Box], None]


class Key(Struct, frozen=True):
    """A line of the legend: makes its sign for a box, and what it means."""

    label: str
    sign: Callable[[Box], Sequence[Artist]]


def spoken(words: Words | None, language: str) -> str:
    """Words in one language, ready to be drawn."""
    return "" if words is None else drawable(words[language])


def said(key: str, language: str, **fields: object) -> str:
    """A sentence of the catalogues, ready to be drawn."""
    return drawable(say(key, language, **fields))


def stack(blocks: Sequence[Block]) -> Block:
    """Blocks one under the other, as one."""

    def paint(figure: Figure, box: Box) -> None:
        top = box.top
        for block in blocks:
            block.paint(figure, Box(box.left, top - block.height, box.width, block.height))
            top -= block.height

    return Block(sum(block.height for block in blocks), paint)


def space(height: float) -> Block:
    """Nothing, for some height."""
    return Block(height, lambda figure, box: None)


def paragraph(
    text: str, width: float, size: float = NOTE, colour: str = SOFT, weight: int = 400
) -> Block:
    """Text broken into lines; no height at all where there is no text."""
    if not text:
        return space(0)
    lines = wrap(text, size, width, weight)

    def paint(figure: Figure, box: Box) -> None:
        write(figure, box.left, box.top, "\n".join(lines), size, colour, weight, va="top")

    return Block(line_height(size) * len(lines), paint)


def titled(
    title: Words, note: Words | None, width: float, language: str, size: float, body: Block,
    keys: Sequence[Key] = (), more: Sequence[Key] = (),
) -> Block:  # fmt: skip
    """What every chart is framed by: its title, `keys` in columns, `more` in a row, its note."""
    heading = paragraph(spoken(title, language), width, size, INK, STRONG)
    below = paragraph(spoken(note, language), width)
    parts = [heading, space(0.08), body]
    parts += [space(0.08)] if keys or more else []
    parts += [legend(keys, width)] if keys else []
    parts += [legend(more, width, columns=False)] if more else []
    if note is not None:
        parts += [space(0.08), below]
    return stack(parts)


def legend(keys: Sequence[Key], width: float, *, columns: bool = True) -> Block:
    """Keys in as many columns as fit, or one after the other; read from left to right."""
    size = NOTE
    texts = [wrap(key.label, size, width - _SWATCH) for key in keys]
    widths = [_SWATCH + max(width_of(line, size) for line in lines) + _BETWEEN for lines in texts]
    if columns:
        widths = [max(widths)] * len(keys)
    rows = _rows(widths, width + _BETWEEN)
    heights = [line_height(size) * max(len(texts[at]) for at in row) + 0.02 for row in rows]

    def paint(figure: Figure, box: Box) -> None:
        top = box.top
        for row, height in zip(rows, heights, strict=True):
            left = box.left
            for at in row:
                first = Box(left, top - line_height(size), _SWATCH - 0.08, line_height(size))
                for artist in keys[at].sign(first):
                    artist.set_transform(figure.dpi_scale_trans)
                    figure.add_artist(artist)
                write(figure, left + _SWATCH, top, "\n".join(texts[at]), size, INK, va="top")
                left += widths[at]
            top -= height

    return Block(sum(heights), paint)


def _rows(widths: Sequence[float], room: float) -> list[list[int]]:
    rows: list[list[int]] = []
    used = room
    for at, width in enumerate(widths):
        if used + width > room + 1e-6:
            rows.append([])
            used = 0.0
        rows[-1].append(at)
        used += width
    return rows


def write(
    figure: Figure, x: float, y: float, text: str, size: float = LABEL, colour: str = INK,
    weight: int = 400, *, ha: str = "left", va: str = "center", halo: bool = False,
) -> None:  # fmt: skip
    """Put lines of text at a place given in inches, each on a baseline of its own.

    `halo` keeps it readable where lines run behind it.
    """
    from matplotlib.patheffects import withStroke

    effects = [withStroke(linewidth=3, foreground=PAPER)] if halo else None
    step = line_height(size)
    lines = text.split("\n")
    top = y if va == "top" else y + step * len(lines) / 2
    for number, line in enumerate(lines):
        figure.text(
            x, top - step * (number + 0.5) - _HALF_CAPITAL * size / 72, line, fontsize=size,
            color=colour, weight=weight, ha=ha, va="baseline", transform=figure.dpi_scale_trans,
            path_effects=effects,
        )  # fmt: skip


def axes_in(figure: Figure, box: Box) -> Axes:
    """Axes whose frame is the box."""
    axes = figure.add_axes((0, 0, 1, 1))
    place(axes, box)
    return axes


def place(axes: Axes, box: Box) -> None:
    """Move axes so that their frame is the box."""
    width, height = _figure_of(axes).get_size_inches()
    axes.set_position(
        (box.left / width, box.bottom / height, box.width / width, box.height / height)
    )


def fit(axes: Axes, box: Box) -> None:
    """Shrink axes until all that belongs to them, labels too, lies inside the box."""
    dpi = _figure_of(axes).dpi
    frame = box
    for _ in range(3):
        place(axes, frame)
        taken = axes.get_tightbbox()
        if taken is None:
            return
        left = frame.left + box.left - taken.x0 / dpi
        bottom = frame.bottom + box.bottom - taken.y0 / dpi
        right = frame.left + frame.width - (taken.x1 / dpi - (box.left + box.width))
        top = frame.top - (taken.y1 / dpi - box.top)
        frame = Box(left, bottom, max(right - left, 0.3), max(top - bottom, 0.3))
    place(axes, frame)


def _figure_of(axes: Axes) -> Figure:
    from matplotlib.figure import Figure

    figure = axes.figure
    assert isinstance(figure, Figure)
    return figure


def kind_keys(kinds: Sequence[str], language: str, *, hatched: bool) -> list[Key]:
    """One key for each kind; none where there is only one, which needs no telling apart."""
    several = list(dict.fromkeys(kinds))
    if len(several) < 2:
        return []
    return [_kind_key(kind_named(name), language, hatched) for name in several]


def _kind_key(kind: Kind, language: str, hatched: bool) -> Key:
    def sign(box: Box) -> list[Artist]:
        from matplotlib.patches import Rectangle

        middle = box.bottom + box.height / 2
        return [
            Rectangle(
                (box.left, middle - 0.055), box.width, 0.11, facecolor=kind.colour,
                edgecolor=PAPER, linewidth=0, hatch=(kind.hatch or None) if hatched else None,
            )
        ]  # fmt: skip

    return Key(said(kind.key, language), sign)


def mark_keys(marks: Iterable[Mark], language: str) -> list[Key]:
    """What the looks of values that were not measured mean, for the marks that are there."""
    there = set(marks)
    return [
        Key(said(f"report.mark.{mark}", language), _mark_sign(mark))
        for mark in (Mark.RECONSTRUCTED, Mark.INVENTED)
        if mark in there
    ]


def gap_label(marks: Iterable[Mark], language: str) -> str:
    """What a gap is called: replicas do not have everything."""
    measured = set(marks) <= {Mark.MEASURED}
    return said("report.no-value" if measured else "report.mark.absent", language)


def _mark_sign(mark: Mark) -> Callable[[Box], Sequence[Artist]]:
    def sign(box: Box) -> list[Artist]:
        from matplotlib.patches import Rectangle

        middle = box.bottom + box.height / 2
        return [Rectangle((box.left, middle - 0.055), box.width, 0.11, **look_of(mark, SOFT).patch)]

    return sign
