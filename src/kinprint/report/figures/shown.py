"""Figures that a notebook shows whether or not it was told to draw inline."""

from __future__ import annotations

from io import BytesIO

from matplotlib.figure import Figure

from kinprint.report.figures.settings import drawing_settings
from kinprint.report.figures.style import DPI, WIDTH

_SHOWN = 800  # pixels across; the picture has more, for sharp screens


class ShownFigure(Figure):
    """A matplotlib figure that gives its own picture."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        stream = BytesIO()
        with drawing_settings():
            self.savefig(stream, format="png", dpi=DPI, metadata={"Software": None})
        height = round(_SHOWN * self.get_figheight() / WIDTH)
        return stream.getvalue(), {"width": _SHOWN, "height": height}
