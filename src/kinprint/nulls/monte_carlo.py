"""What drawing relabellings says: a p-value that is coarse and beyond doubt."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike


def drawn_log10_p(observed: float, draws: ArrayLike) -> float:
    """Log10 of (1 + #{draw ≥ observed}) / (draws + 1).

    The observed labelling is one more draw under the null, so the rank of the observed value
    among all of them is uniform; ties, and draws short of it by rounding only, count against
    the finding.
    """
    null = np.asarray(draws, np.float64).reshape(-1)
    slack = 1e-9 * max(abs(observed), float(np.abs(null).max(initial=0.0)))
    return math.log10((1 + int((null >= observed - slack).sum())) / (null.size + 1))
