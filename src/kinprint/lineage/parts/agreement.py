"""How the numbers of two tensors agree: all of them, some rows, or single ones.

What a formula gives is equal in strangers too, and tells nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.lineage.parts.tensors import Rows, at_equal_numbers
from kinprint.lineage.reading.sample import Floats
from kinprint.measure.computed import computed, tabulated
from kinprint.measure.courses import on_course
from kinprint.measure.equal_rows import constant, equal_places, equal_rows, found_in
from kinprint.measure.rounding import equality
from kinprint.records import SINGLE

_RUN, _LOOKED_AT = 8, 32  # rows and columns that tell a computed table
_LOG = 16.0  # no logarithm of a rate is larger


class Agreement(Struct, frozen=True):
    """How one tensor agrees: whether all of it does, if need be after rounding to so many bits,
    and the share of its rows, or of its numbers other than zero where single ones were spared;
    whether no other arrangement of the numbers would; how many numbers these rows stand for; how
    alike equal numbers make the whole; whether nothing but a constant is left of it after rounding.
    """

    same: bool
    bits: int | None
    information: float
    exact: bool
    rows: float
    numbers: int
    alike: float
    lost: bool = False
    spared: bool = False

    def as_read(self) -> Agreement:
        """The same where numbers were rounded to single precision when they were read."""
        coarsest = SINGLE if self.bits is None else min(self.bits, SINGLE)
        return replace(self, bits=coarsest) if self.same else self


class Agreements(Struct, frozen=True):
    """How the tensors of two parts agree, how many numbers each has in either, and whether both
    parts have the same tensors and most of them were compared: a small budget leaves some unread in
    one model. Tensors that tell nothing, such as constants, have no sizes."""

    tensors: Mapping[str, Agreement]
    sizes: tuple[tuple[int, int], ...]
    complete: bool

    @property
    def shares(self) -> tuple[float, float]:
        """The share of the numbers that agrees, of the smaller tensors and of the larger.

        A tensor that only one part has counts in both.
        """
        equal = sum(one.rows * one.numbers for one in self.tensors.values())
        fewest, most = sum(min(one) or max(one) for one in self.sizes), sum(map(max, self.sizes))
        return min(1.0, equal / max(fewest, 1)), equal / max(most, 1)


def both_sizes(ours: Mapping[str, int], theirs: Mapping[str, int]) -> dict[str, tuple[int, int]]:
    """How many numbers tensors have in two parts, none where a part has no such tensor."""
    return {name: (ours.get(name, 0), theirs.get(name, 0)) for name in ours.keys() | theirs.keys()}


def compare_rows(ours: Rows, theirs: Rows, least: float, often: bool = False) -> Agreement | None:
    """Rows of equal number; None where there is none, or where they have different lengths.

    Where a formula may have given what is equal, it counts for nothing. `often` says that the part
    is one whose tensors are often computed.
    """
    x, y = map(as_vector, at_equal_numbers(ours, theirs))
    if not x.size or x.shape != y.shape:
        return None
    whole = equality(x, y)
    if whole.same:
        lost = not whole.equal and (constant(x) or constant(y))
        share = 0.0 if lost else 1.0
        told = whole.bits, whole.information, whole.exact
        return Agreement(True, *told, share, x.size, alike=share, lost=lost)
    rows, of_row = equal_rows(x, y, least)
    if rows and often and is_computed(x[found_in(x, y)]):
        rows, of_row = 0.0, 0.0
    share, of_all, information = equal_places(x, y)
    if information >= least and _may_be_computed(x, (x == y) & (x != 0), often):
        information = 0.0
    if information < least or share <= rows:
        return Agreement(False, None, of_row, True, rows, x.size, alike=rows)
    return Agreement(False, None, information, True, share, x.size, alike=of_all, spared=True)


def is_computed(rows: Floats) -> bool:
    """Whether neighbouring rows somewhere in a table are what a formula gives.

    The first may be that of a token that stands before all positions. State spaces decay at rates
    whose logarithms are stored.
    """
    starts = {0, 1, len(rows) // 2}
    some = (rows[start : start + _RUN, :_LOOKED_AT] for start in sorted(starts))
    if any(computed(one) or computed(np.exp(np.minimum(one, _LOG))) for one in some):
        return True
    rows = as_vector(rows)
    return tabulated(rows) or (len(rows) == 1 and on_course(rows, np.ones(rows.shape, np.bool_)))


def _may_be_computed(rows: Floats, equal: NDArray[np.bool_], often: bool) -> bool:
    """Whether a formula may have given the numbers of a table that are equal in another one."""
    return on_course(rows, equal) or (often and tabulated(rows[equal][None]))


def as_vector(rows: Floats) -> Floats:
    """Rows of one number each, as those of a bias, as one row: alone they tell nothing."""
    return rows.T if rows.shape[1] == 1 else rows
