"""From a chart record to a picture file: the same record gives the same bytes.

matplotlib is imported when the first picture is drawn, its user's settings are set aside
while it draws, and nothing of what is set here outlives the call.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from kinprint.report.figures.bars import lay_out_bars
from kinprint.report.figures.blocks import Block, Box, paragraph, space, spoken, stack
from kinprint.report.figures.flow import lay_out_flow
from kinprint.report.figures.heatmap import lay_out_heatmap
from kinprint.report.figures.kinship import Kinship, lay_out_kinship
from kinprint.report.figures.lettering import drawable
from kinprint.report.figures.lines import lay_out_lines
from kinprint.report.figures.nulls import Nulls, lay_out_nulls
from kinprint.report.figures.panels import lay_out_panels
from kinprint.report.figures.settings import drawing_settings
from kinprint.report.figures.style import DPI, MARGIN, NOTE, STRONG, TITLE, WARNING, WIDTH
from kinprint.studies.charts import Bars, Chart, Flow, Heatmap, Lines, Panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = ("png", "svg")
Picture = Chart | Nulls | Kinship  # of studies, and of comparisons


def picture(chart: Picture, form: str, language: str = "en") -> bytes:
    """A chart as the bytes of a PNG or SVG file."""
    return pictures(chart, (form,), language)[0]


def pictures(
    chart: Picture, forms: tuple[str, ...] = FORMATS, language: str = "en", warning: str = ""
) -> list[bytes]:
    """A chart in several formats, laid out once; a warning stands above its title."""
    with drawing_settings():
        figure = _figure(chart, language, warning)
        return [_save(figure, form, spoken(chart.title, language)) for form in forms]


def draw(chart: Picture, language: str = "en", warning: str = "") -> Figure:
    """A chart as a matplotlib figure of its own, for notebooks."""
    with drawing_settings():
        return _figure(chart, language, warning)


def _figure(chart: Picture, language: str, warning: str = "") -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from kinprint.report.figures.shown import ShownFigure

    inside = WIDTH - 2 * MARGIN
    above = paragraph(drawable(warning), inside, NOTE, WARNING, STRONG)
    block = stack([above, space(0.05 if warning else 0), _lay_out(chart, inside, language, TITLE)])
    height = block.height + 2 * MARGIN
    figure = ShownFigure(figsize=(WIDTH, height), dpi=DPI)
    FigureCanvasAgg(figure)
    block.paint(figure, Box(MARGIN, MARGIN, inside, block.height))
    return figure


def _lay_out(chart: Picture, width: float, language: str, size: float) -> Block:
    match chart:
        case Lines():
            return lay_out_lines(chart, width, language, size)
        case Bars():
            return lay_out_bars(chart, width, language, size)
        case Heatmap():
            return lay_out_heatmap(chart, width, language, size)
        case Flow():
            return lay_out_flow(chart, width, language, size)
        case Panels():
            return lay_out_panels(chart, width, language, size, _lay_out)
        case Nulls():
            return lay_out_nulls(chart, width, language, size)
        case Kinship():
            return lay_out_kinship(chart, width, language, size)


def _save(figure: Figure, form: str, title: str) -> bytes:
    stream = BytesIO()
    # No dates and no versions: the same numbers give the same file.
    metadata: dict[str, Any] = {"Software": None}
    if form == "svg":
        metadata = {"Date": None, "Creator": None, "Title": title}
    figure.savefig(stream, format=form, dpi=DPI, metadata=metadata)
    return stream.getvalue()
