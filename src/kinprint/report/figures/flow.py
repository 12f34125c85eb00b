"""A presumed transformation, read from top to bottom: one model, steps, the other model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kinprint.report.figures.blocks import Block, Box, said, space, spoken, stack, titled, write
from kinprint.report.figures.lettering import drawable, line_height, width_of, wrap
from kinprint.report.figures.style import FAINT, INK, LABEL, PAPER, SOFT, STRONG
from kinprint.studies.charts import Flow, Step
from kinprint.text import knows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Colour and sign of each kind of step.
_SIGNS = {
    "kept": ("#0072b2", "="),
    "retrained": ("#d55e00", "~"),
    "added": ("#009e73", "+"),
    "removed": ("#6b7280", "−"),
    "changed": ("#b0578d", "≠"),
}
_BADGE = 0.24
_INSIDE = 0.14


def lay_out_flow(chart: Flow, width: float, language: str, size: float) -> Block:
    """The chart as a block of the picture."""
    kinds = [_kind(step, language) for step in chart.steps]
    column = max((width_of(word, LABEL, STRONG) for word in kinds), default=0.0)
    room = width - 2 * _INSIDE - _BADGE - column - 0.32
    texts = [wrap(spoken(step.text, language), LABEL, room) for step in chart.steps]
    heights = [max(0.34, line_height(LABEL) * len(lines) + 0.1) for lines in texts]

    def paint(figure: Figure, box: Box) -> None:
        _frame(figure, box, FAINT)
        top = box.top - _INSIDE / 2
        for step, word, lines, height in zip(chart.steps, kinds, texts, heights, strict=True):
            middle = top - height / 2
            colour, sign = _SIGNS.get(step.kind, (SOFT, "·"))
            left = box.left + _INSIDE
            badge = Box(left, middle - _BADGE / 2, _BADGE, _BADGE)
            _frame(figure, badge, colour, filled=True)
            write(figure, left + _BADGE / 2, middle, sign, LABEL + 2, PAPER, STRONG, ha="center")
            write(figure, left + _BADGE + 0.1, middle, word, LABEL, colour, STRONG)
            write(figure, left + _BADGE + column + 0.28, middle, "\n".join(lines))
            top -= height

    body = stack(
        [
            _model(chart.start, width),
            _arrow(),
            Block(sum(heights) + _INSIDE, paint) if chart.steps else space(0),
            _arrow() if chart.steps else space(0),
            _model(chart.end, width),
        ]
    )
    return titled(chart.title, chart.note, width, language, size, body)


def _kind(step: Step, language: str) -> str:
    key = f"report.step.{step.kind}"
    return said(key, language) if knows(key) else drawable(step.kind)


def _model(name: str, width: float) -> Block:
    lines = wrap(drawable(name), LABEL + 1, width - 2 * _INSIDE, STRONG)
    height = line_height(LABEL + 1) * len(lines) + 0.16

    def paint(figure: Figure, box: Box) -> None:
        _frame(figure, box, INK)
        middle = box.bottom + box.height / 2
        text = "\n".join(lines)
        write(figure, box.left + box.width / 2, middle, text, LABEL + 1, INK, STRONG, ha="center")

    return Block(height, paint)


def _arrow() -> Block:
    def paint(figure: Figure, box: Box) -> None:
        from matplotlib.patches import FancyArrowPatch

        middle = box.left + box.width / 2
        figure.add_artist(
            FancyArrowPatch(
                (middle, box.top - 0.03), (middle, box.bottom + 0.03), arrowstyle="-|>",
                mutation_scale=13, color=SOFT, linewidth=1.4, shrinkA=0, shrinkB=0,
                transform=figure.dpi_scale_trans,
            )
        )  # fmt: skip

    return Block(0.34, paint)


def _frame(figure: Figure, box: Box, colour: str, *, filled: bool = False) -> None:
    from matplotlib.patches import FancyBboxPatch

    figure.add_artist(
        FancyBboxPatch(
            (box.left + 0.01, box.bottom + 0.01), box.width - 0.02, box.height - 0.02,
            boxstyle="round,pad=0,rounding_size=0.05", facecolor=colour if filled else PAPER,
            edgecolor=colour, linewidth=1.2, transform=figure.dpi_scale_trans, zorder=0.5,
        )
    )  # fmt: skip
