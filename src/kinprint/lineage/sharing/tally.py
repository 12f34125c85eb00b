"""How alike two sets of rows are, with the deviation that chance would give: closed forms.

Two kinds of chance, both exact for a model whose labels are independent of the other's:

- *Labels.* Rows X and Y are paired by index. With columns centred over the rows, the likeness
  is T / (‖X‖·‖Y‖) for T = Σ_i x_i·y_i. Over all relabellings of one model T has mean zero and
  variance Σ_ij (x_i·y_j)² / (n − 1) (Hoeffding's combinatorial variance of a table whose rows
  and columns add up to zero).
- *Coins.* Rows were paired by a search that knows no signs. The likeness is the mean of the
  signed cosines t_i; flipping each by a fair coin leaves mean zero and variance Σ t_i² / n².
  The search makes |t_i| large; it cannot make their signs agree.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Rows = NDArray[Any]


class Tally(Struct):
    """A likeness put together from independent parts: their sums, variances and sizes."""

    total: float = 0.0
    variance: float = 0.0
    size: float = 0.0
    count: int = 0

    def add_labelled(self, first: Rows, second: Rows) -> None:
        """Add finite rows that are paired by index; at least three, since centring takes one."""
        if len(first) < 3 or first.shape != second.shape:
            return
        x, y = _centred(first), _centred(second)
        size = math.sqrt(_sum(x, x) * _sum(y, y))
        if not size > 0:
            return
        flat = x.shape[1] < len(x)  # Σ_ij (x_i·y_j)² is also the inner product of XᵀX and YᵀY
        squares = _sum(x.T @ x, y.T @ y) if flat else float(np.square(x @ y.T).sum(dtype=float))
        self.total += _sum(x, y)
        self.variance += squares / (len(x) - 1)
        self.size += size
        self.count += len(x)

    def add_signed(self, cosines: NDArray[Any], each: int = 1) -> None:
        """Add signed cosines, one a coin; each is the sum of so many, of rows with one coin."""
        values = np.asarray(cosines, np.float64)
        good = values[np.isfinite(values)]
        self.total += float(good.sum())
        self.variance += float(np.square(good).sum())
        self.size += len(good) * each
        self.count += len(good) * each

    @property
    def likeness(self) -> float | None:
        """The mean correlation; None where nothing was compared."""
        mean = self.total / self.size if self.size > 0 else math.nan
        return mean if math.isfinite(mean) else None

    @property
    def chance(self) -> float | None:
        """The standard deviation of the likeness under relabelling or flipping."""
        deviation = math.sqrt(self.variance) / self.size if self.size > 0 else math.nan
        return deviation if math.isfinite(deviation) else None


def row_cosines(first: Rows, second: Rows) -> NDArray[np.float64]:
    """Inner products of rows of length one, pair by pair; the real part for planes."""
    return np.asarray(np.einsum("...d,...d->...", first, second.conj()).real, np.float64)


def _centred(rows: Rows) -> Rows:
    centred: Rows = rows - rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    return centred


def _sum(x: Rows, y: Rows) -> float:
    return float(np.vdot(x, y))
