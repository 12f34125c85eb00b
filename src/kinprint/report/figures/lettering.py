"""Text in pictures: which characters can be drawn, how wide they are, where lines break.

Everything that comes from models passes through `drawable`: what no font has is written as
its code, so that a picture never shows an empty box.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from kinprint.errors import printable
from kinprint.report.figures.style import FAMILIES, LINE

if TYPE_CHECKING:
    from matplotlib.ft2font import FT2Font

_FILES = ("kinprint-sans-regular.otf", "kinprint-sans-bold.otf")
# Lines may break after spaces and after what joins the parts of names.
_PIECES = re.compile(r"[^\s/_\-·,:]*[/_\-·,:]*\s*")
_POINTS = 72
_EM = 64  # points; letters are measured at this size


@cache
def load_fonts() -> frozenset[int]:
    """Make the shipped fonts known to matplotlib; the characters that can be drawn."""
    return frozenset(code for font in _fonts(400) for code in font.get_charmap())


def drawable(text: str) -> str:
    """Text with codes in place of what cannot be drawn; lines stay lines."""
    known = load_fonts()
    shown = "\n".join(printable(line) for line in text.split("\n"))
    return "".join(c if c == "\n" or ord(c) in known else f"U+{ord(c):04X}" for c in shown)


def width_of(text: str, size: float, weight: int = 400) -> float:
    """The width of one line of drawable text, in inches; kerning makes it a trifle less."""
    return sum(_advance(letter, weight) for letter in text) * size / _POINTS


def line_height(size: float) -> float:
    """What a line of text takes from top to bottom, in inches."""
    return size * LINE / _POINTS


def wrap(text: str, size: float, width: float, weight: int = 400) -> list[str]:
    """Lines of at most `width` inches; only a word that is too long alone is broken inside."""
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for piece in _PIECES.findall(paragraph):
            if not line or width_of((line + piece).rstrip(), size, weight) <= width:
                line += piece
            else:
                lines.append(line.rstrip())
                line = piece
            while len(line) > 1 and width_of(line.rstrip(), size, weight) > width:
                cut = _fitting(line, size, width, weight)
                lines.append(line[:cut])
                line = line[cut:]
        lines.append(line.rstrip())
    return lines


def shorten(text: str, size: float, width: float) -> str:
    """The text, or its two ends around an ellipsis where it is too wide."""
    if width_of(text, size) <= width:
        return text
    for kept in range(len(text) - 1, 1, -1):
        head = (kept + 1) // 2
        tried = f"{text[:head].rstrip()}…{text[len(text) - (kept - head) :].lstrip()}"
        if width_of(tried, size) <= width:
            return tried
    return "…"


def _fitting(line: str, size: float, width: float, weight: int) -> int:
    cut = len(line) - 1
    while cut > 1 and width_of(line[:cut], size, weight) > width:
        cut -= 1
    return cut


@cache
def _advance(letter: str, weight: int) -> float:
    """How far a letter moves the pen, as a share of the letters' size."""
    for font in _fonts(weight):
        if font.get_char_index(ord(letter)):
            return font.load_char(ord(letter)).linearHoriAdvance / 65536 / _EM
    return 1.0


@cache
def _fonts(weight: int) -> tuple[FT2Font, ...]:
    """The shipped font, and the one that stands in for what it has not."""
    from matplotlib.font_manager import FontProperties, findfont
    from matplotlib.ft2font import FT2Font

    _register()
    found = []
    for family in FAMILIES:
        wanted = FontProperties(family=family, weight=weight)
        font = FT2Font(findfont(wanted, fallback_to_default=False))
        font.set_size(_EM, _POINTS)
        found.append(font)
    return tuple(found)


@cache
def _register() -> None:
    from matplotlib.font_manager import fontManager

    for name in _FILES:
        with as_file(files("kinprint.report.fonts") / name) as path:
            fontManager.addfont(str(path))
