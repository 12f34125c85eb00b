"""Equal stored numbers at equal places, against the same numbers at permuted places.

Numbers of eight or four bits are often equal by chance, and whole columns may be constant, so a
share of equal elements means nothing by itself. Which unit has which row is what chance decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from kinprint.measure.stored import stored_words
from kinprint.nulls.blocks import BLOCK
from kinprint.nulls.result import Floats


def equal_counts(a: NDArray[Any], b: NDArray[Any], m: int = BLOCK) -> Floats:
    """How many elements of row i and row j have equal stored bits and are not zero, by block.

    Rows (n, d) as they are stored, undecoded. Gives (B, m, m); a ragged last block is filled
    up with zeros, and `block_sizes` says how much of it is real. A zero in both is no equal weight:
    masks and padding put it there.
    """
    if a.dtype != b.dtype or a.shape != b.shape or a.ndim != 2:
        raise ValueError(f"cannot compare bits of {a.dtype}{a.shape} and {b.dtype}{b.shape}")
    x, y = stored_words(a), stored_words(b)
    some = a != 0
    n = len(x)
    counts = np.zeros((-(-n // m), m, m))
    for i in range(m):
        for j in range(m):
            left, right = x[i::m], y[j::m]
            both = min(len(left), len(right))
            same = left[:both] == right[:both]
            whole = same[..., 0] if same.shape[-1] == 1 else same.all(axis=-1)
            counts[:both, i, j] = np.count_nonzero(whole & some[i::m][:both], axis=-1)
    return counts
