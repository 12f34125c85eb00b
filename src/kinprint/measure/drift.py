"""How far training has carried a matrix: sizes that grow or shrink with it, whatever its gauge.

A matrix starts as independent numbers of one spread, read through a gain of one. Training makes
some channels matter more than others, some numbers larger than the rest, and a few directions
larger than chance makes them. Each is measured on the matrix times the gain that feeds it, since a
gain can be divided by any number if the columns that read it are multiplied by the same.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.measure.spectra import noise_ratio

Floats = NDArray[np.float32]
_MOST = 256  # rows and columns that tell a spectrum


class Drift(Struct, frozen=True):
    """What training has made of one matrix.

    Attributes
    ----------
    gains : the spread of the logarithms of its columns' lengths.
    kurtosis : the logarithm of the mean fourth power over the squared mean square.
    size : the logarithm of the mean square.
    spectrum : the largest singular value, as a share of what independent numbers have.
    """

    gains: float
    kurtosis: float
    size: float
    spectrum: float


def drift_of(rows: Floats, gain: Floats | None = None) -> Drift | None:
    """Measure rows that read a stream behind a gain; None where they are degenerate."""
    values = rows.astype(np.float64) * (1.0 if gain is None else gain.astype(np.float64))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        squares = np.square(values)
        size = float(squares.mean())
        columns = squares.mean(axis=0)
        fourth = float(np.square(squares).mean())
    if not (np.isfinite(fourth) and size > 0 and (columns > 0).all()):
        return None
    height, width = (max(1, length // _MOST) for length in values.shape)
    return Drift(
        gains=float(np.log(columns).std() / 2),
        kurtosis=float(np.log(fourth / size**2)),
        size=float(np.log(size)),
        spectrum=noise_ratio(values[::height, ::width][:_MOST, :_MOST]),
    )
