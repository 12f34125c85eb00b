"""What a stored tensor is made of: its parts, and where the rows of each part lie.

The records here are what the table of layouts becomes for one tensor; they know nothing of
families or files, so that cutting, showing and testing share one description.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

from msgspec import Struct

from kinprint.text import Message

OUT_IN = "out_in"
IN_OUT = "in_out"


class StoredPart(Struct, frozen=True):
    """One logical tensor inside a stored one, by its rows along the output axis.

    The part has `count` runs of `length` rows; the first begins at `offset`, each next one
    `period` later. `paired` is set where the rows of each head of that width are stored in
    pairs (2j, 2j + 1) instead of halves (j, j + width/2); rows are always counted in halves.
    """

    role: str
    offset: int
    length: int
    period: int
    count: int = 1
    paired: int = 0

    @property
    def rows(self) -> int:
        """Number of rows the part has in all."""
        return self.length * self.count

    def stored(self, row: int) -> int:
        """Index along the output axis where logical row `row` is stored."""
        if self.paired:
            head, inside = divmod(row, self.paired)
            half = self.paired // 2
            row = head * self.paired + 2 * (inside % half) + inside // half
        return row // self.length * self.period + self.offset + row % self.length

    def places(self, rows: Sequence[int]) -> Sequence[int]:
        """Where logical rows are stored: a range where they follow each other there too."""
        if isinstance(rows, range) and rows.step == 1 and rows and not self.paired:
            places = range(self.stored(rows[0]), self.stored(rows[-1]) + 1)
            if len(places) == len(rows):
                return places
        return [self.stored(row) for row in rows]


class Layout(Struct, frozen=True, dict=True):
    """How one tensor is stored, and how to read what it means.

    `shape` is that of the file, but where heads have an axis of their own it is folded into
    a matrix. `axis` is the axis of it that holds the outputs (rows of the logical matrix),
    along which parts lie. `experts` counts the matrices that are stacked, experts or heads of
    latent attention, 0 for none; with `flat` they lie one after another in a matrix instead
    of along an axis of their own. `norm_offset` is to be added to the stored numbers. `known`
    is false where the order is a habit of the field rather than a fact about the family.
    `warnings` are clauses on what contradicts; a tensor with a contradiction is left whole.
    """

    role: str
    shape: tuple[int, ...]
    orient: str
    axis: int
    parts: tuple[StoredPart, ...]
    experts: int = 0
    flat: bool = False
    norm_offset: float = 0.0
    known: bool = True
    warnings: tuple[Message, ...] = ()

    @property
    def fused(self) -> bool:
        """Whether several logical tensors are stored as one."""
        return len(self.parts) > 1

    @property
    def outputs(self) -> int:
        """Length of the output axis, of one expert where experts are stacked."""
        size = self.shape[self.axis] if self.shape else 1
        return size // self.experts if self.flat and self.orient == OUT_IN else size

    def part(self, role: str) -> StoredPart | None:
        """The part of that role, or None."""
        for part in self.parts:
            if part.role == role:
                return part
        return None

    def part_shape(self, role: str) -> tuple[int, ...]:
        """Outputs by inputs of the part of that role, or the length of a vector.

        Worked out once: tensors that are stored alike share a layout, and are asked often.
        """
        known = self._part_shapes
        if role not in known:
            known[role] = self._shape_of(self.part(role))
        return known[role]

    @cached_property
    def _part_shapes(self) -> dict[str, tuple[int, ...]]:
        return {}

    def _shape_of(self, part: StoredPart | None) -> tuple[int, ...]:
        rows = self.outputs if part is None else part.rows
        dimensions = len(self.shape) - (1 if self.experts and not self.flat else 0)
        if dimensions < 2:
            return (rows,)
        each = prod(self.shape) // max(self.experts, 1)
        return rows, each // max(self.outputs, 1)


def pattern_of(layout: Layout) -> str:
    """The order of the parts in words: `4 x (q:16, k:16, v:16)`; empty for a whole tensor.

    The notation reads from the first stored row to the last, so that a person can check it.
    """
    if layout.flat:
        units = layout.shape[0] // layout.experts
        return f"{layout.experts} experts x (ffn_hidden={units}), flattened [E*ffn,H]"
    if not layout.fused:
        return ""
    inner = ", ".join(f"{part.role}:{part.length}" for part in layout.parts)
    count = layout.parts[0].count
    return f"{count} x ({inner})" if count > 1 else inner


def interleave(sizes: list[tuple[str, int]], repeat: int) -> tuple[StoredPart, ...]:
    """Parts that take turns `repeat` times, each giving an equal share of its rows.

    One rule covers concatenation (once), heads, groups, blocks and single rows.
    """
    period = sum(rows for _, rows in sizes) // repeat
    parts: list[StoredPart] = []
    offset = 0
    for role, rows in sizes:
        length = rows // repeat
        parts.append(StoredPart(role, offset, length, period, repeat))
        offset += length
    return tuple(parts)
