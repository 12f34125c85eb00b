"""Keys that say what a colour means, where a picture has several kinds of comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kinprint.report.figures.blocks import Box, Key, said
from kinprint.report.figures.style import PAPER, Kind, kind_named

if TYPE_CHECKING:
    from matplotlib.artist import Artist


def kind_keys(kinds: Sequence[str], language: str, *, hatched: bool) -> list[Key]:
    """One key for each kind; none where there is only one, which needs no telling apart."""
    several = list(dict.fromkeys(kinds))
    if len(several) < 2:
        return []
    return [_key(kind_named(name), language, hatched) for name in several]


def _key(kind: Kind, language: str, hatched: bool) -> Key:
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
