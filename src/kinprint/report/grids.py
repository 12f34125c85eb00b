"""Parts of two models as a grid: layers down, components across, one grid a tower."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from kinprint.records import BeyondState, Component, PartState
from kinprint.report.schema import BeyondRow, PartRow

Row = TypeVar("Row", PartRow, BeyondRow)

_ORDER = (
    Component.EMBEDDING, Component.NORMS, Component.ATTENTION, Component.FEED_FORWARD,
    Component.EXPERT, Component.ROUTER, Component.MIXER, Component.HEAD, Component.PROJECTOR,
    Component.OTHER,
)  # fmt: skip


class Cell(Struct, Generic[Row], frozen=True):
    """What is known of a component in a layer.

    Attributes
    ----------
    state : the state of most of its weights.
    rows : its parts; several where a layer has experts.
    """

    state: PartState | BeyondState
    rows: tuple[Row, ...]


class PartGrid(Struct, Generic[Row], frozen=True):
    """The parts of a tower; a row has its layer, None outside the layers, and a cell a component.

    Attributes
    ----------
    tower : what it is called; empty for the text model.
    components : the columns.
    rows : layers and their cells; None where a layer has no such part.
    """

    tower: str
    components: tuple[Component, ...]
    rows: tuple[tuple[int | None, tuple[Cell[Row] | None, ...]], ...]


def part_grids(parts: Sequence[Row]) -> list[PartGrid[Row]]:
    """A grid for each tower, in the order of the document."""
    return [
        _grid(tower, [one for one in parts if one.tower == tower])
        for tower in dict.fromkeys(one.tower for one in parts)
    ]


def _grid(tower: str, parts: Sequence[Row]) -> PartGrid[Row]:
    found: dict[tuple[int | None, Component], list[Row]] = {}
    for one in parts:
        found.setdefault((one.layer, one.component), []).append(one)
    components = tuple(one for one in _ORDER if any(one == component for _, component in found))
    layers = sorted({layer for layer, _ in found}, key=lambda one: -1 if one is None else one)
    return PartGrid(
        tower,
        components,
        tuple(
            (layer, tuple(_cell(found.get((layer, component))) for component in components))
            for layer in layers
        ),
    )


def _cell(rows: Sequence[Row] | None) -> Cell[Row] | None:
    if not rows:
        return None
    weights: dict[PartState | BeyondState, int] = {}
    for one in rows:
        weights[one.state] = weights.get(one.state, 0) + one.weights + 1
    return Cell(max(weights, key=lambda state: weights[state]), tuple(rows))
