"""How far training has carried a matrix: its size, which grows with it, whatever its gauge.

A matrix starts as independent numbers of one spread, read through a gain of one. Its size is
measured on the matrix times the gain that feeds it, since a gain can be divided by any number if
the columns that read it are multiplied by the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def log_size(rows: Floats, gain: Floats | None = None) -> float | None:
    """The logarithm of the mean square of rows that read a stream behind a gain.

    None where they are degenerate: a column is zero, or the mean is no finite number.
    """
    values = rows.astype(np.float64) * (1.0 if gain is None else gain.astype(np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.square(values)
        size = float(squares.mean())
    sound = np.isfinite(size) and size > 0 and bool((squares > 0).any(axis=0).all())
    return float(np.log(size)) if sound else None
