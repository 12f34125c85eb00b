"""What matplotlib is told while it draws; its user's own settings are set aside meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kinprint.report.figures.lettering import load_fonts
from kinprint.report.figures.style import FAMILIES, INK, LABEL, PAPER, SOFT, TICK


@contextmanager
def drawing_settings() -> Iterator[None]:
    """One's own settings while something is drawn, and the user's afterwards."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_settings())  # type: ignore[arg-type]
        load_fonts()
        yield


def _settings() -> dict[str, object]:
    """Everything that is set; text from models is never read as formulas."""
    return {
        "font.family": list(FAMILIES),
        "font.size": LABEL,
        "text.color": INK,
        "text.parse_math": False,
        "text.hinting": "none",
        "axes.edgecolor": SOFT,
        "axes.labelcolor": SOFT,
        "axes.linewidth": 0.8,
        "axes.unicode_minus": True,
        "xtick.color": SOFT,
        "ytick.color": SOFT,
        "xtick.labelsize": TICK,
        "ytick.labelsize": TICK,
        "hatch.linewidth": 0.7,
        "lines.linewidth": 1.7,
        "svg.fonttype": "path",
        "svg.hashsalt": "kinprint",
        "figure.facecolor": PAPER,
        "savefig.facecolor": PAPER,
        "path.simplify": False,
    }
