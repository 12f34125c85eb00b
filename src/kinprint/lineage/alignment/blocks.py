"""Rows of equal index in two lists, in blocks of the index: what block permutations relabel."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from kinprint.nulls.blocks import BLOCK
from kinprint.nulls.result import Floats, Ints


class Blocks(Struct, frozen=True):
    """Places of common indices in two lists, by contiguous blocks of the index.

    `first` and `second` are blocks × 4 with −1 where a block has no further member.
    """

    first: Ints
    second: Ints
    sizes: Ints

    def products(self, x: np.ndarray, y: np.ndarray) -> Floats:
        """Inner products of rows within blocks; zero where a member is missing."""
        return _gather(x, self.first) @ _gather(y, self.second).swapaxes(1, 2)

    def single(self) -> Blocks:
        """Every member in a block of its own: nothing is permuted, and coins are left."""
        some = self.first >= 0
        alone = np.full((int(some.sum()), BLOCK), -1)
        left, right = alone, alone.copy()
        left[:, 0], right[:, 0] = self.first[some], self.second[some]
        return Blocks(left, right, np.ones(len(alone), np.int64))


def common_blocks(first: Ints, second: Ints, usable: np.ndarray | None = None) -> Blocks:
    """Blocks of the indices that both lists have; `usable` leaves out members of the first."""
    usable = np.ones(len(first), bool) if usable is None else usable
    some = np.flatnonzero(usable)
    index, at, to = np.intersect1d(first[some], second, assume_unique=True, return_indices=True)
    order = np.lexsort((at, index // BLOCK))  # in a block, as in the first list
    index, at, to = index[order], some[at[order]], to[order]
    numbers, row, sizes = np.unique(index // BLOCK, return_inverse=True, return_counts=True)
    column = np.arange(len(row)) - (np.cumsum(sizes) - sizes)[row]
    left = np.full((len(numbers), BLOCK), -1)
    right = np.full((len(numbers), BLOCK), -1)
    left[row, column], right[row, column] = at, to
    return Blocks(left, right, sizes)


def _gather(rows: np.ndarray, places: Ints) -> Floats:
    gathered = np.asarray(rows, np.float64)[places]
    gathered[places < 0] = 0.0
    return gathered
