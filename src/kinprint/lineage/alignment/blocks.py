"""Rows of equal index in two lists, in blocks of the index: what block permutations relabel."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from kinprint.nulls.blocks import BLOCK
from kinprint.nulls.result import Floats, Ints

_GATHERED = 1 << 18  # numbers of either list that are laid together at a time


class Blocks(Struct, frozen=True):
    """Places of common indices in two lists, by contiguous blocks of the index.

    `first` and `second` are blocks × 4 with −1 where a block has no further member.
    """

    first: Ints
    second: Ints
    sizes: Ints

    def products(self, x: np.ndarray, y: np.ndarray) -> Floats:
        """Inner products of rows within blocks; zero where a member is missing."""
        found = np.empty((len(self.first), BLOCK, BLOCK))
        step = max(_GATHERED // max(BLOCK * x.shape[1], 1), 1)
        for start in range(0, len(found), step):
            some = slice(start, start + step)
            left, right = _gather(x, self.first[some]), _gather(y, self.second[some])
            np.matmul(left, right.swapaxes(1, 2), out=found[some])
        return found

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
    return _laid_out(index[order], some[at[order]], to[order])


def equal_blocks(usable: np.ndarray) -> Blocks:
    """The same where both lists have the same members in the order of their index."""
    index = np.flatnonzero(usable)
    return _laid_out(index, index, index)


def _laid_out(index: Ints, at: Ints, to: Ints) -> Blocks:
    """Places in two lists, by the blocks of their index, in whose order they are given."""
    block = index // BLOCK
    begins = np.flatnonzero(np.diff(block, prepend=-1))
    sizes = np.diff(begins, append=len(block))
    row = np.repeat(np.arange(len(begins)), sizes)
    column = np.arange(len(row)) - begins[row]
    left = np.full((len(begins), BLOCK), -1)
    right = np.full((len(begins), BLOCK), -1)
    left[row, column], right[row, column] = at, to
    return Blocks(left, right, sizes)


def _gather(rows: np.ndarray, places: Ints) -> Floats:
    gathered = rows[places].astype(np.float64, copy=False)
    gathered[places < 0] = 0.0
    return gathered
