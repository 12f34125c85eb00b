"""One visual language: colours, marks and sizes of everything that is drawn.

Colours are those of Okabe and Ito, which the colour-blind can tell apart; marks, dashes and
hatches say the same again for whoever prints in grey. A colour means a kind of comparison
wherever several kinds meet in one picture, and a single series wherever there is one kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from kinprint.records import Mark

WIDTH = 8.0  # inches; shown at 800 pixels, a point of type is then 1.4 pixels
MARGIN = 0.16
DPI = 150  # twice as sharp as it is shown

TITLE, PANEL_TITLE, LABEL, TICK, NOTE = 12.0, 10.5, 9.5, 8.8, 8.6  # points
LINE = 1.32  # a line of text takes this many times its size

INK, SOFT, FAINT, PAPER, GAP = "#16191d", "#4c5560", "#d5d9df", "#ffffff", "#eceef1"
FAMILIES = ("Kinprint Sans", "DejaVu Sans")  # the second comes with matplotlib
WARNING = "#a63c00"
STRONG = 700  # weight of titles

Dash = Literal["-"] | tuple[float, tuple[float, ...]]


class Kind(Struct, frozen=True):
    """How one kind of comparison looks, and the key of what it is called."""

    key: str
    colour: str
    marker: str
    hatch: str


class Stroke(Struct, frozen=True):
    """How one series looks."""

    colour: str
    marker: str
    dash: Dash


KINDS = {
    "pair": Kind("report.series.pair", "#0072b2", "o", ""),
    "related": Kind("report.series.related", "#009e73", "s", "//"),
    "control": Kind("report.series.control", "#d55e00", "D", "\\\\"),
    "other": Kind("report.series.other", "#b8860b", "X", "--"),
    "within": Kind("report.series.within", "#b0578d", "^", ".."),
    "random": Kind("report.series.random", "#6b7280", "v", "xx"),
}
_OTHER = Kind("report.series.unknown", "#8a6d00", "P", "++")
_CYCLE = ("#0072b2", "#d55e00", "#009e73", "#b0578d", "#3fa3d6", "#b8860b", "#16191d", "#7a7f87")
_MARKERS = "osD^vPX<>ph*"
_DASHES: tuple[Dash, ...] = ("-", (0, (5, 1.6)), (0, (1.4, 1.4)), (0, (6, 1.5, 1.4, 1.5)))

SEQUENTIAL = ("#fbfcfd", "#cfe3f2", "#7fb8dc", "#2b83ba", "#0b4f86", "#08244a")
DIVERGING = ("#7a2e00", "#d55e00", "#f6c59c", "#fbfbfb", "#a8cfe8", "#0072b2", "#06304f")


def kind_named(name: str) -> Kind:
    """How a kind looks; one that is not known looks like none of the others."""
    return KINDS.get(name, _OTHER)


def strokes(kinds: Sequence[str]) -> list[Stroke]:
    """A look for each of several series, no two of them alike up to a great number."""
    if len(set(kinds)) == 1:
        return [
            Stroke(
                _CYCLE[at % len(_CYCLE)],
                _MARKERS[at % len(_MARKERS)],
                _DASHES[at // len(_CYCLE) % len(_DASHES)],
            )
            for at in range(len(kinds))
        ]
    counts, seen = Counter(kinds), Counter[str]()
    found = []
    for name in kinds:
        kind, at = kind_named(name), seen[name]
        seen[name] += 1
        first = _MARKERS.index(kind.marker)
        found.append(
            Stroke(
                _shade(kind.colour, at, counts[name]),
                _MARKERS[(first + at * 5) % len(_MARKERS)],
                _DASHES[at % len(_DASHES)],
            )
        )
    return found


def _shade(colour: str, at: int, count: int) -> str:
    """A lighter or darker variant of a colour for the one of several that share it."""
    if count == 1 or at == 0:
        return colour
    towards = 255 if at % 2 else 0
    share = (0.42 if at % 2 else 0.35) * ((at + 1) // 2) / ((count + 1) // 2)
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round(part + (towards - part) * share):02x}" for part in parts)


class MarkLook(Struct, frozen=True):
    """How a value looks by where it comes from: full, pale with an edge, or an empty outline."""

    colour: str
    alpha: float
    dash: Dash | None

    @property
    def patch(self) -> dict[str, Any]:
        """For a bar or a sign of the legend."""
        if self.dash is None:
            return {"facecolor": self.colour, "edgecolor": PAPER, "linewidth": 0}
        face = f"{self.colour}{round(255 * self.alpha):02x}"
        return {
            "facecolor": face, "edgecolor": self.colour, "linewidth": 1.1, "linestyle": self.dash,
        }  # fmt: skip


def look_of(mark: Mark, colour: str) -> MarkLook:
    """The look of a value of that mark in that colour."""
    match mark:
        case Mark.MEASURED:
            return MarkLook(colour, 1.0, None)
        case Mark.RECONSTRUCTED:
            return MarkLook(colour, 0.35, "-")
        case Mark.INVENTED:
            return MarkLook(colour, 0.0, (0, (2, 1.2)))
