"""Where two models are alike: cells by layer and role, ties of layers, the dispute's metrics."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup
from msgspec import Struct

from kinprint.errors import printable
from kinprint.report.numbers import NOTHING, finite, fixed, reading
from kinprint.report.schema import ComparisonDocument, MapCell, SeedMetric, SharedMap
from kinprint.report.translation import translated
from kinprint.report.views.html import drawings, shapes
from kinprint.report.views.html.words import Say
from kinprint.titles import role_title

_ROWS = 128
_COLUMNS = 24
_PANELS = 4
_VALUES = 200
_NAME = 40  # letters of a role that nobody named
_ORDER = (
    "embed", "norm_in", "q", "k", "v", "o", "qkv", "norm_post_attn", "norm_pre_ffn", "router",
    "gate", "up", "down", "expert_gate", "expert_up", "expert_down", "shared_gate", "shared_up",
    "shared_down", "norm_post_ffn", "norm_final", "lm_head",
)  # fmt: skip
"""Roles in the order in which data pass through them."""


class CellView(Struct, frozen=True):
    """One cell: its colour, its number, and what else is known about it."""

    heat: str
    value: str
    more: Markup | str


class HeatView(Struct, frozen=True):
    """How alike each role is in each pair of layers; rows are layers, columns roles."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Markup | str, tuple[CellView, ...]], ...]
    more: int
    alignment: str


class TiesView(Struct, frozen=True):
    """Which layer answers to which."""

    picture: Markup | None
    says: Markup
    poor: bool


class Panel(Struct, frozen=True):
    """One norm of all layers, as a picture."""

    role: str
    picture: Markup
    readout: str


class DisputeView(Struct, frozen=True):
    """Raw cosine and Pearson by layer, as pictures and as rows."""

    panels: tuple[Panel, ...]
    rows: tuple[tuple[str, str, str, str, str], ...]
    more: int


def heat(document: ComparisonDocument, language: str, say: Say) -> HeatView | None:
    """The grid of likeness; None where there is none."""
    shared = document.shared
    if shared is None or not shared.cells:
        return None
    found = {(one.a, one.b, one.role): one for one in shared.cells}
    lines = sorted({(one.a, one.b) for one in shared.cells})
    roles = sorted({one.role for one in shared.cells}, key=_place)[:_COLUMNS]
    rows = tuple(
        (_layers(a, b, say), tuple(_cell(found.get((a, b, role)), say) for role in roles))
        for a, b in lines[:_ROWS]
    )
    columns = tuple(_role(role, language) for role in roles)
    how = (translated(document, one, language) for one in shared.alignment.split(", "))
    return HeatView(columns, rows, max(len(lines) - _ROWS, 0), ", ".join(how))


def ties(
    shared: SharedMap | None, names: tuple[str, str], language: str, say: Say
) -> TiesView | None:
    """The picture of layers that correspond, and what it comes to."""
    if shared is None or not shared.layers:
        return None
    if all(one.quality is None and one.a == one.b for one in shared.layers):
        return TiesView(None, say("page.shared.ties-numbered"), False)
    drawn = drawings.layer_ties(f"{language}-ties", shared.layers, shared.depths, names, say)
    if drawn is None:
        return None
    moved = sum(one.a != one.b for one in shared.layers)
    says = (
        say("page.shared.ties-moved", moved=moved, count=len(shared.layers))
        if moved
        else say("page.shared.ties-same")
    )
    return TiesView(drawn, says, any(drawings.is_poor(one.quality) for one in shared.layers))


def dispute(seeds: Sequence[SeedMetric], language: str, say: Say) -> DisputeView | None:
    """The norms as the disputes measured them; None where there are none."""
    roles = list(dict.fromkeys(one.role for one in seeds))
    panels = []
    for at, role in enumerate(roles):
        rows = [(one.a, one.cosine, one.pearson) for one in seeds if one.role == role]
        name, readout = _role(role, language), f"{language}-d{at}-told"
        drawn = drawings.two_lines(f"{language}-d{at}", rows, name, readout, say)
        if drawn is not None and len(rows) > 1:
            panels.append(Panel(name, drawn, readout))
    if not seeds:
        return None
    listed = tuple(
        (
            _role(one.role, language),
            str(_layers(one.a, one.b, say)),
            reading(one.cosine),
            reading(one.pearson),
            reading(one.relative_l2),
        )
        for one in seeds[:_VALUES]
    )
    return DisputeView(tuple(panels[:_PANELS]), listed, max(len(seeds) - _VALUES, 0))


def _place(role: str) -> tuple[int, str]:
    return (_ORDER.index(role), role) if role in _ORDER else (len(_ORDER), role)


def _role(role: str, language: str) -> str:
    words = role_title(role)
    return printable(words[language], _NAME)


def _layers(a: int, b: int, say: Say) -> Markup | str:
    if a < 0 and b < 0:
        return say("page.shared.outside")
    return str(a) if a == b else f"{a} → {b}"


def _cell(one: MapCell | None, say: Say) -> CellView:
    if one is None:
        return CellView("empty", NOTHING, "")
    count = f"{one.count:,}"
    known = finite(one.chance)
    more = (
        say("page.shared.cell-count", count=count)
        if known is None
        else say("page.shared.cell", chance=reading(known), count=count)
    )
    value = finite(one.likeness)
    text = NOTHING if value is None else fixed(value, 2).replace("-", "−").replace("0.", ".", 1)
    return CellView(shapes.heat(value), text.replace("−.00", ".00"), more)
