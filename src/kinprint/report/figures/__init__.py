"""Chart records as pictures. Each kind of chart has a module; `drawing` chooses among them."""

from kinprint.report.figures.drawing import draw, picture

__all__ = ["draw", "picture"]
