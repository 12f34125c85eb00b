"""What two models share beyond a base, on the pages of a comparison and of a diff."""

from __future__ import annotations

from markupsafe import Markup
from msgspec import Struct

from kinprint.errors import printable
from kinprint.records import BeyondState, PartState
from kinprint.report.grids import Cell, part_grids
from kinprint.report.numbers import finite
from kinprint.report.schema import BeyondRow, ComparisonDocument, DiffDocument
from kinprint.report.translation import translated
from kinprint.report.views.html.words import NAME, Say, kept

TOWERS, LAYERS = 8, 200
"""Tables of parts, and their rows."""
Heads = tuple[Markup, ...]
Rows = tuple[tuple[Markup | str, tuple[tuple[str, Markup | str], ...]], ...]


class BeyondView(Struct, frozen=True):
    """What the models share beyond a base: a sentence, and a table of layers and components."""

    title: Markup
    says: str
    grids: tuple[tuple[str, Heads, Rows], ...]


def beyond_view(
    document: ComparisonDocument | DiffDocument, language: str, say: Say
) -> BeyondView | None:
    """What a page shows of it; None where no base was given."""
    part = document.beyond
    if part is None:
        return None
    grids = []
    for grid in part_grids(part.parts)[:TOWERS]:
        rows = tuple(
            (
                say("report.parts.outside") if layer is None else f"{layer}",
                tuple(_beyond_cell(cell, say) for cell in cells),
            )
            for layer, cells in grid.rows[:LAYERS]
        )
        heads = tuple(say(f"verdict.part.{component}") for component in grid.components)
        grids.append((printable(grid.tower, NAME), heads, rows))
    title = say("report.beyond.title", base=kept(part.title))
    says = printable(translated(document, part.summary, language), 2000)
    return BeyondView(title, says, tuple(grids))


_LOOKS = {
    BeyondState.EQUAL: PartState.EQUAL,
    BeyondState.NEAR: PartState.SHARED,
    BeyondState.SHARED: PartState.SHARED,
    BeyondState.SUBSPACE: PartState.SHARED,
    BeyondState.ALIKE: PartState.NOT_COMPARABLE,
    BeyondState.APART: PartState.NO_TRACE,
    BeyondState.UNCHANGED: PartState.NOT_COMPARABLE,
    BeyondState.NOT_COMPARABLE: PartState.NOT_COMPARABLE,
    BeyondState.NOT_READ: PartState.NOT_READ,
}
"""Which state of a part in two models each is drawn like."""


def _beyond_cell(cell: Cell[BeyondRow] | None, say: Say) -> tuple[str, Markup | str]:
    if cell is None:
        return "", ""
    state = BeyondState(cell.state)
    word, known = say(f"report.beyond.state.{state}"), finite(cell.rows[0].cosine)
    if known is None or len(cell.rows) > 1 or state in (BeyondState.EQUAL, BeyondState.UNCHANGED):
        return _LOOKS[state], word
    return _LOOKS[state], Markup("{} {}").format(word, f"{known:.2f}")
