"""Equal stored numbers at equal places, against the same numbers at permuted places.

Numbers of eight or four bits are often equal by chance, and whole columns may be constant, so a
share of equal elements means nothing by itself. Which unit has which row is what chance decides.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinprint.measure.stored import stored_words
from kinprint.nulls.blocks import BLOCK, blocked
from kinprint.nulls.result import Floats

_AT_ONCE = 1 << 20  # words that are compared together


def equal_counts(a: NDArray[Any], b: NDArray[Any]) -> Floats:
    """How many elements of row i and row j have equal stored bits and are not zero, by block.

    Rows (n, d) as they are stored, undecoded. Gives (B, m, m) for blocks of m = `BLOCK` rows; a
    ragged last one is filled up with zeros, and `block_sizes` says how much of it is real. A zero
    in both is no equal weight: masks and padding put it there.
    """
    if a.dtype != b.dtype or a.shape != b.shape or a.ndim != 2:
        raise ValueError(f"cannot compare bits of {a.dtype}{a.shape} and {b.dtype}{b.shape}")
    x, y, some = (blocked(rows) for rows in (stored_words(a), stored_words(b), a != 0))
    counts = np.zeros((len(x), BLOCK, BLOCK))
    step = max(1, _AT_ONCE // max(1, BLOCK * math.prod(x.shape[1:])))
    for blocks in (slice(start, start + step) for start in range(0, len(x), step)):
        same = x[blocks, :, None] == y[blocks, None]
        whole = same[..., 0] if same.shape[-1] == 1 else same.all(axis=-1)
        whole &= some[blocks, :, None]
        counts[blocks] = np.bitwise_count(np.packbits(whole, axis=-1)).sum(axis=-1)
    return counts
