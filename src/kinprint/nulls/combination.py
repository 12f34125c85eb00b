"""Several tests as one: independent p-values, and shares of an error for a menu fixed in advance.

Everything runs in log10, because p-values of 1e-400 are ordinary here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from kinprint.nulls.result import LN10


def fisher(log10_ps: Sequence[float]) -> float:
    """Combine independent p-values by their product (Fisher 1932), exactly.

    For L uniform and independent p, x = −Σ ln p has the tail e^{−x} Σ_{j<L} x^j / j!. p-values
    that are larger than uniform only make the tail smaller, so bounds may be combined too.
    """
    if not len(log10_ps):
        return 0.0
    x = -LN10 * math.fsum(log10_ps)
    if x < 0 or max(log10_ps) > 0:
        raise ValueError("p-values lie between zero and one")
    if x == 0:
        return 0.0
    j = np.arange(len(log10_ps))
    logs = j * math.log(x) - np.concatenate([[0.0], np.cumsum(np.log(j[1:]))])
    top = float(logs.max())
    total = top + math.log(float(np.exp(logs - top).sum()))
    return min(0.0, (total - x) / LN10)


def equal_weights(menu: int) -> tuple[float, ...]:
    """The same share for every test of a menu."""
    return (1.0 / menu,) * menu
