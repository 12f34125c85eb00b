"""What a user asks of a study, from the options: layers, roles, measures, rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kinprint.errors import BadOption

if TYPE_CHECKING:
    from kinprint.model.model import Model
    from kinprint.studies.study import Request

_MOST_LAYERS = 10_000


def request_of(
    layers: str | None,
    roles: str | None,
    measures: str | None,
    rows: int | None,
    full: bool,
    seed: int,
) -> Request:
    """What the options ask for; values that make no sense are refused with a hint."""
    from kinprint.studies.study import Request

    if full and rows is not None:
        raise BadOption(
            option="--rows", value=rows, cause="--full reads all rows; give one of them"
        )
    named = None if measures is None else _names(measures, "--measures")
    if named is not None:
        from kinprint.measure.measures import measures as known

        _check(named, known(), "--measures")
    sampled = None if full else rows if rows is not None else Request().rows
    return Request(
        layers=None if layers is None else _layers(layers),
        roles=None if roles is None else _names(roles, "--roles"),
        measures=named,
        rows=sampled,
        seed=seed,
    )


def check_against(request: Request, models: Sequence[Model]) -> None:
    """Refuse roles and layers that no model has; what some have is a matter of rows."""
    if not models:
        return
    if request.roles is not None:
        _check(request.roles, sorted({one.role for m in models for one in m.places}), "--roles")
    if request.layers is not None:
        known = sorted({layer for model in models for layer in model.layers()})
        none = [layer for layer in request.layers if layer not in known]
        if known and len(none) == len(request.layers):
            cause = f"no model has such a layer; they have {known[0]} to {known[-1]}"
            raise BadOption(option="--layers", value=none[0], cause=cause)


def _check(names: Sequence[str], known: Iterable[str], option: str) -> None:
    import difflib

    possible = list(known)
    for name in names:
        if name not in possible:
            near = difflib.get_close_matches(name, possible, n=1)
            listed = ", ".join(possible[:12]) + (", …" if len(possible) > 12 else "")
            hint = f"the nearest is '{near[0]}'" if near else f"choose from {listed}"
            raise BadOption(option=option, value=name, cause=f"there is no such name; {hint}")


def _names(text: str, option: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise BadOption(option=option, value=text, cause="write names with commas between them")
    return found


def _layers(text: str) -> tuple[int, ...]:
    """Layers in a list of numbers and ranges, both ends included."""
    found: dict[int, None] = {}
    for part in text.split(","):
        first, dash, last = (piece.strip() for piece in part.partition("-"))
        ends = [first, last] if dash else [first, first]
        if not all(end.isascii() and end.isdigit() and len(end) < 6 for end in ends):
            _refuse_layers(text)
        low, high = map(int, ends)
        if low > high or high - low > _MOST_LAYERS:
            _refuse_layers(text)
        found.update(dict.fromkeys(range(low, high + 1)))
    return tuple(found)


def _refuse_layers(text: str) -> None:
    raise BadOption(option="--layers", value=text, cause="write layers such as 0-45 or 10,20,30")
