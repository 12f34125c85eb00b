"""Whether each row of one array is a multiple of that of another, each by a factor of its own."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_LEFT = 0.01  # of a row, beside its multiple: rounding to bfloat16 leaves 0.002
_MOST = 0.99  # of the rows
_SPREAD = 0.02  # of the factors, in terms of their mean: those of one factor differ by rounding
_FEWEST, _SHORTEST = 8, 3  # rows, and numbers in each


def row_factors(before: NDArray[np.float32], after: NDArray[np.float32]) -> NDArray[np.float64]:
    """Positive factors, one a row; none where rows are no multiples, or all have one factor."""
    nothing = np.zeros(0)
    if len(before) < _FEWEST or before.shape[1] < _SHORTEST:
        return nothing
    x, y = before.astype(np.float64), after.astype(np.float64)
    squares, products = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", x, y)
    sizes = np.einsum("ij,ij->i", y, y)
    if not np.isfinite(sizes).all() or not np.isfinite(products).all() or not squares.all():
        return nothing
    factors = products / squares
    left = sizes - factors * products
    alike = (left <= _LEFT**2 * sizes) & (factors > 0)
    if alike.mean() < _MOST or factors.std() < _SPREAD * abs(factors.mean()):
        return nothing
    return np.asarray(factors)
