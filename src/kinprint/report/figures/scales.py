"""Axes that say what they leave out: limits, ticks, baselines and marks of a cut-off zero."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kinprint import text
from kinprint.report.figures.blocks import Box, Key, said, spoken
from kinprint.report.figures.style import FAINT, INK, PAPER, SOFT
from kinprint.report.numbers import digits_for, ends, shown
from kinprint.studies.charts import Band, Values
from kinprint.text import Words

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_BAND_LOOKS = (("#e3e7ec", ""), ("#efe3d3", "//"), ("#dfe9e2", "\\\\"), ("#ebe2ee", ".."))
_BAND_DASHES = ((0, (4, 2)), (0, (1, 1.2)), (0, (7, 2, 1, 2)), (0, (2, 2)))


def gapless(values: Iterable[float | None]) -> list[float]:
    """Values with gaps as NaN, as matplotlib wants them."""
    return [math.nan if value is None else value for value in values]


def limits(
    values: Iterable[float | None], bands: Sequence[Band], wanted: tuple[float, float] | None
) -> tuple[float, float]:
    """Both ends of an axis: what was wished for, and never less than what there is to see."""
    known = [value for value in values if value is not None and math.isfinite(value)]
    for band in bands:
        known += [end for end in (band.low, band.middle, band.high) if math.isfinite(end)]
    known += wanted or ()
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    if wanted is not None and (low, high) == tuple(wanted):
        return low, high
    room = 0.06 * (high - low) or max(0.05 * abs(high), 1e-6)
    start = low if wanted is not None and low == wanted[0] else low - room
    end = high if wanted is not None and high == wanted[1] else high + room
    return start, end


def caption(label: Words, low: float, high: float, language: str) -> str:
    """The name of an axis, and where it runs if zero is not on it."""
    name = spoken(label, language)
    if low <= 0 <= high:
        return name
    start, end = ends((low, high))
    return text.say("report.chart.axis", language, label=name, low=start, high=end)


def mark_break(axes: Axes, *, along: str) -> None:
    """Two strokes across an axis near its lower end: zero lies further on."""
    size = {"markersize": 7, "linestyle": "none", "color": SOFT, "mew": 1.0, "clip_on": False}
    at, other = (0.022, 0.034), (0.0, 0.0)
    x, y = (at, other) if along == "x" else (other, at)
    marker = [(-0.35, -1), (0.35, 1)] if along == "x" else [(-1, -0.35), (1, 0.35)]
    axes.plot(x, y, marker=marker, transform=axes.transAxes, zorder=9, **size)  # type: ignore[arg-type]


def tidy(axes: Axes) -> None:
    """No more lines around a chart than it needs."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(length=3, width=0.7, pad=3)
    axes.set_axisbelow(True)
    axes.set_facecolor(PAPER)


def draw_bands(axes: Axes, bands: Sequence[Band], *, across: bool) -> None:
    """Baselines with their spread, behind the data."""
    span, line = (axes.axhspan, axes.axhline) if across else (axes.axvspan, axes.axvline)
    for at, band in enumerate(bands):
        colour, hatch = _BAND_LOOKS[at % len(_BAND_LOOKS)]
        if band.high > band.low:
            span(
                band.low, band.high, facecolor=colour, edgecolor="#b9c0c9", linewidth=0, zorder=0.5,
                hatch=hatch or None,
            )  # fmt: skip
        line(
            band.middle, color=INK, linewidth=1.1, zorder=0.6,
            linestyle=_BAND_DASHES[at % len(_BAND_DASHES)],
        )  # fmt: skip


def band_keys(bands: Sequence[Band], language: str) -> list[Key]:
    """What each baseline is, with its numbers."""
    return [
        Key(_band_words(band, language), lambda box, at=at: _band_sign(box, at))  # type: ignore[misc]
        for at, band in enumerate(bands)
    ]


def gap_key(label: str) -> Key:
    """What a cross at the foot of a chart means."""
    return Key(label, _gap_sign)


def mark_gaps(axes: Axes, x: Sequence[float], y: Values) -> bool:
    """A cross at the foot wherever a value is missing; whether there is any."""
    missing = [at for at, value in zip(x, y, strict=True) if value is None]
    if missing:
        axes.plot(
            missing, [0.0] * len(missing), "x", transform=axes.get_xaxis_transform(), color=SOFT,
            markersize=4.5, mew=1.1, clip_on=False, zorder=8,
        )  # fmt: skip
    return bool(missing)


def say_empty(axes: Axes, language: str) -> None:
    """Where there is nothing to see, say so, and show no scale of it."""
    axes.set_yticks([])
    axes.text(
        0.5, 0.5, said("report.chart.no-values", language), transform=axes.transAxes, ha="center",
        va="center", color=SOFT,
    )  # fmt: skip


def _band_words(band: Band, language: str) -> str:
    spread = band.high > band.low
    key = "report.chart.band" if spread else "report.chart.band-point"
    digits = max(3, digits_for((band.low, band.high)) if spread else 3)
    numbers = {
        name: shown(getattr(band, name), min(digits, 4)) for name in ("middle", "low", "high")
    }
    return said(key, language, label=band.label, **numbers)


def _band_sign(box: Box, at: int) -> list[Artist]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    colour, hatch = _BAND_LOOKS[at % len(_BAND_LOOKS)]
    middle = box.bottom + box.height / 2
    patch = Rectangle(
        (box.left, middle - 0.055), box.width, 0.11, facecolor=colour, edgecolor="#b9c0c9",
        linewidth=0, hatch=hatch or None,
    )  # fmt: skip
    line = Line2D(
        (box.left, box.left + box.width), (middle, middle), color=INK, linewidth=1.1,
        linestyle=_BAND_DASHES[at % len(_BAND_DASHES)],
    )  # fmt: skip
    return [patch, line]


def _gap_sign(box: Box) -> list[Artist]:
    from matplotlib.lines import Line2D

    middle = box.bottom + box.height / 2
    line = Line2D((box.left, box.left + box.width), (middle, middle), color=FAINT, linewidth=0.8)
    cross = Line2D(
        [box.left + box.width / 2], [middle], marker="x", color=SOFT, markersize=4.5, mew=1.1,
        linestyle="none",
    )  # fmt: skip
    return [line, cross]
