"""Several charts in one picture, side by side, each with a letter to speak of it by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kinprint.report.figures.blocks import Block, Box, space, stack, titled
from kinprint.report.figures.style import PANEL_TITLE
from kinprint.studies.charts import Bars, Heatmap, Lines, Panels
from kinprint.text import Words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GUTTER, _LETTERS = 0.4, "abcdefghijklmnopqrstuvwxyz"
Painter = Callable[[Lines | Bars | Heatmap, float, str, float], Block]


def lay_out_panels(
    chart: Panels, width: float, language: str, size: float, painter: Painter
) -> Block:
    """The picture as a block of rows of charts."""
    across = max(1, min(chart.across, len(chart.charts)))
    each = (width - _GUTTER * (across - 1)) / across
    blocks = [
        painter(_lettered(one, at), each, language, PANEL_TITLE)
        for at, one in enumerate(chart.charts)
    ]
    rows = [blocks[at : at + across] for at in range(0, len(blocks), across)]
    parts: list[Block] = []
    for row in rows:
        parts += [space(0.22 if parts else 0.1), _row(row, each)]
    return titled(chart.title, chart.note, width, language, size, stack(parts))


def _row(blocks: list[Block], each: float) -> Block:
    def paint(figure: Figure, box: Box) -> None:
        for at, block in enumerate(blocks):
            left = box.left + at * (each + _GUTTER)
            block.paint(figure, Box(left, box.top - block.height, each, block.height))

    return Block(max(block.height for block in blocks), paint)


def _lettered(chart: Lines | Bars | Heatmap, at: int) -> Lines | Bars | Heatmap:
    mark = _LETTERS[at] if at < len(_LETTERS) else str(at + 1)
    title = Words({language: f"{mark}  {said}" for language, said in chart.title.items()})
    return replace(chart, title=title)
