"""The same role at the same layer in two models: what is read, and one row for each.

Several studies differ only in what they make of these rows; the rule for which tensors are
asked for, and which gaps are worth a row, is here once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kinprint.model.places import Address
from kinprint.studies.pairing import Compared, Spread, compare, own, spread
from kinprint.studies.results import Cell
from kinprint.studies.scene import MISSING, Item, Scene, Taken

A, B = 0, 1  # the first model, which may be the derived one, and the second
NORMS = ("norm_in", "norm_post_attn")
OUTSIDE = ("embed", "lm_head", "norm_final", "pos_embed")  # roles that no layer has


@dataclass(frozen=True, slots=True)
class Row:
    """One tensor of the first model against one of the second."""

    role: str
    first: Item
    second: Item
    a: Taken
    b: Taken
    found: Compared

    @property
    def layer(self) -> int | None:
        """The layer in the first model."""
        return self.first.address.layer

    @property
    def keys(self) -> tuple[str, str]:
        """Names of the two tensors, empty where there is none."""
        return name_of(self.a), name_of(self.b)

    @property
    def raw_equal(self) -> bool | None:
        """Whether all that was read of both is stored alike, bit by bit."""
        if not self.found.ok or self.a.values is None or self.b.values is None:
            return None
        same = stored_type(self.a) == stored_type(self.b)
        return same and self.a.values.tobytes() == self.b.values.tobytes()

    @property
    def both_missing(self) -> bool:
        """Whether neither model has such a tensor, so that there is nothing to say."""
        return self.a.status == self.b.status == MISSING


def addresses(scene: Scene, roles: Iterable[str], layers: Iterable[int]) -> Iterator[Address]:
    """Every address that roles and layers span; of experts, the first and the middle one.

    Roles outside the layers (embedding, head, last norm) have one address each.
    """
    roles = tuple(roles)
    experts = sampled_experts(scene)
    yield from (Address(role) for role in roles if role in OUTSIDE)
    for layer in layers:
        for role in roles:
            if role.startswith("expert_"):
                yield from (Address(role, layer, expert) for expert in experts)
            elif role not in OUTSIDE:
                yield Address(role, layer)


def sampled_experts(scene: Scene) -> tuple[int, ...]:
    """Two experts that stand for all: the first, and the middle one of the smaller model."""
    counts = [
        model.geometry.experts
        or 1 + max((one.expert for one in model.places if one.expert is not None), default=-1)
        for model in scene.models
    ]
    least = min(filter(None, counts), default=1)
    return tuple(dict.fromkeys((0, least // 2)))


def items_for(scene: Scene, found: Iterable[Address]) -> list[Item]:
    """Both models' tensors at each address."""
    return [item for address in found for item in pair_items(scene, address)]


def pair_items(scene: Scene, address: Address) -> tuple[Item, Item]:
    """One tensor of both models; of shapes that differ nothing is read but that."""
    first, second = (scene.models[model].places.get(address) for model in (A, B))
    apart = first is not None and second is not None and first.shape != second.shape
    rows = () if apart else None
    return Item(A, address, rows), Item(B, address, rows)


def rows_for(scene: Scene, found: Iterable[Address], names: Sequence[str]) -> list[Row]:
    """One row for each address that at least one of the models has.

    A role that was asked for and that neither has anywhere keeps one row, as an answer.
    """
    rows = [row_of(scene, *pair_items(scene, one), names) for one in found]
    answered = {row.role for row in rows if not row.both_missing}
    asked = scene.request.roles is not None
    kept: list[Row] = []
    for row in rows:
        if not row.both_missing or (asked and row.role not in answered):
            answered.add(row.role)
            kept.append(row)
    return kept


def row_of(
    scene: Scene, first: Item, second: Item, names: Sequence[str], *, any_rows: bool = False
) -> Row:
    """Compare two items that were read."""
    a, b = own(scene, first), own(scene, second)
    found = compare(a, b, names, any_rows=any_rows)
    return Row(first.address.role, first, second, a, b, found)


def name_of(taken: Taken) -> str:
    """What the tensor is called where it is stored."""
    return "" if taken.place is None else taken.place.weight.name


def stored_type(taken: Taken) -> str:
    """The number format it is stored in."""
    return "" if taken.place is None else taken.place.weight.spec.dtype


def file_of(taken: Taken) -> str:
    """The weight file it lies in."""
    return "" if taken.place is None else taken.place.weight.spec.file


def by_role(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows grouped by role, in their order."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row.role, []).append(row)
    return groups


def spread_of(rows: Iterable[Row], name: str) -> Spread:
    """Sum up one measure over rows."""
    return spread(row.found.value(name) for row in rows)


def rounded(value: float | None, digits: int = 3) -> str:
    """A number for a sentence; a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def extra_columns(asked: Sequence[str], own: Sequence[str]) -> tuple[str, ...]:
    """Measures that were asked for beyond the columns a table has anyway."""
    return tuple(name for name in asked if name not in own)


def cells(row: Row, names: Iterable[str]) -> tuple[Cell, ...]:
    """Values of measures, in order."""
    return tuple(row.found.value(name) for name in names)
