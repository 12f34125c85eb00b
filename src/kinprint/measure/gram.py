"""Similarity of what rows are to each other: kernel alignment and Gram matrices.

These forget labels and bases, which makes them blind to laundering and inflated by shared
features. Each needs three sums of squared products, which can be had from products of rows
or of columns; the cheaper side is taken.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

from kinprint.measure import blocks
from kinprint.measure.blocks import Floats

PANEL = 1 << 22
"""Elements a panel: 32 MiB of float64, for matrix products want more than a cache full."""

FLOOR = 1e-13
"""Below this share of what it was taken from, a difference is rounding."""


class Products(Struct, frozen=True):
    """Sums over a pair of matrices with the same rows, X and Y, their columns centred or not.

    `cross` is ‖XᵀY‖², `own_x` ‖XᵀX‖², `own_y` ‖YᵀY‖² (Frobenius); `squares` and `totals` are,
    for each row, its squared length and its product with the sum of all rows.
    """

    cross: float
    own_x: float
    own_y: float
    squares: tuple[Floats, Floats]
    totals: tuple[Floats, Floats]


def linear_cka(a: ArrayLike, b: ArrayLike, block: int = PANEL) -> float:
    """Linear centred kernel alignment, ‖XᵀY‖² / (‖XᵀX‖·‖YᵀY‖) of column-centred matrices.

    Kornblith et al. 2019. Rows must correspond, columns need not. Biased upwards when there
    are few rows for the number of columns: independent noise then gives values near one.
    """
    found = products(a, b, centred=True, block=block)
    return _quotient(found.cross, found.own_x, found.own_y) if found else math.nan


def unbiased_cka(a: ArrayLike, b: ArrayLike, block: int = PANEL) -> float:
    """Linear kernel alignment from the unbiased estimate of HSIC (Song et al. 2012).

    With K and L the kernels without their diagonals, HSIC = (tr KL + ΣK·ΣL/((n−1)(n−2)) −
    2·1ᵀKL1/(n−2)) / (n(n−3)); the quotient of three such. Independent rows give zero on
    average, values below zero occur, and fewer than four rows give nothing.
    """
    found = products(a, b, centred=True, block=block)
    if found is None or len(found.squares[0]) < 4:
        return math.nan
    cross = _hsic(found.cross, found, 0, 1)
    own_x, own_y = _hsic(found.own_x, found, 0, 0), _hsic(found.own_y, found, 1, 1)
    if own_x <= FLOOR * found.own_x or own_y <= FLOOR * found.own_y:
        return math.nan
    return _quotient(cross, own_x, own_y)


def gram_similarity(a: ArrayLike, b: ArrayLike, block: int = PANEL) -> float:
    """Cosine of the traceless Gram matrices of the columns, AᵀA − tr/d and BᵀB − tr/d.

    Columns must correspond, rows need not, nor be equally many: reordering or rotating rows
    changes nothing. The trace is taken off since all Gram matrices share it.
    """
    x, y = blocks.matrix(a), blocks.matrix(b)
    found = products(x.T, y.T, centred=False, block=block)
    if found is None:
        return math.nan
    width = len(found.squares[0])
    trace_x, trace_y = (float(one.sum()) for one in found.squares)
    own_x, own_y = found.own_x - trace_x**2 / width, found.own_y - trace_y**2 / width
    if own_x <= FLOOR * found.own_x or own_y <= FLOOR * found.own_y:
        return math.nan
    return _quotient(found.cross - trace_x * trace_y / width, own_x, own_y)


@blocks.quiet
def products(
    a: ArrayLike, b: ArrayLike, centred: bool, side: str = "cheaper", block: int = PANEL
) -> Products | None:
    """The sums, from the products of rows ("gram"), of columns ("covariance") or the cheaper.

    None if there is nothing to sum or a value is no finite number.
    """
    x, y = blocks.matrix(a), blocks.matrix(b)
    if x.shape[0] != y.shape[0]:
        raise ValueError(f"{x.shape[0]} and {y.shape[0]} rows do not correspond")
    scans = blocks.scan(x), blocks.scan(y)
    if not (x.size and y.size) or not all(one.finite for one in scans):
        return None
    one, other = (
        _Panels.of(m, seen.peak, centred, block) for m, seen in zip((x, y), scans, strict=True)
    )
    n, p, q = x.shape[0], x.shape[1], y.shape[1]
    if side == "cheaper":
        side = "gram" if n * (p + q) < p * q + p * p + q * q else "covariance"
    if side == "gram":
        k, m = one.row_products(), other.row_products()
        three = float(np.vdot(k, m)), float(np.vdot(k, k)), float(np.vdot(m, m))
    else:
        three = (
            _squared_column_products(one, other),
            _squared_column_products(one, one),
            _squared_column_products(other, other),
        )
    squares = one.row_squares(), other.row_squares()
    return Products(*three, squares, (one.row_totals(), other.row_totals()))


class _Panels(Struct, frozen=True):
    """A matrix that is handed out in float64 panels, scaled and with its column means off."""

    matrix: NDArray[Any]
    power: int
    means: Floats
    block: int

    @classmethod
    def of(cls, m: NDArray[Any], peak: float, centred: bool, block: int) -> _Panels:
        exponent = math.frexp(peak)[1] if peak else 0
        # Fourth powers are summed here: half the exponent that squares could bear.
        power = exponent if abs(exponent) > 200 else 0
        bare = cls(m, power, np.zeros(m.shape[1]), block)
        return cls(m, power, bare.column_means(), block) if centred else bare

    def rows(self, part: slice) -> Floats:
        shifted: Floats = blocks.cast(self.matrix[part], self.power) - self.means
        return shifted

    def parts(self) -> Iterator[slice]:
        return blocks.row_blocks(self.matrix, self.block)

    def column_means(self) -> Floats:
        """Means; for a constant column the constant itself, so that it vanishes exactly."""
        first = self.rows(slice(0, 1))[0]
        total, same = np.zeros(len(first)), np.ones(len(first), bool)
        for part in self.parts():
            rows = self.rows(part)
            total += rows.sum(axis=0)
            same &= (rows == first).all(axis=0)
        means: Floats = np.where(same, first, total / self.matrix.shape[0])
        return means

    def row_squares(self) -> Floats:
        """Squared length of each row."""
        found = np.empty(self.matrix.shape[0])
        for part in self.parts():
            rows = self.rows(part)
            found[part] = np.einsum("ij,ij->i", rows, rows)
        return found

    def row_totals(self) -> Floats:
        """Product of each row with the sum of all rows."""
        total = np.zeros(self.matrix.shape[1])
        for part in self.parts():
            total += self.rows(part).sum(axis=0)
        found = np.empty(self.matrix.shape[0])
        for part in self.parts():
            found[part] = self.rows(part) @ total
        return found

    def row_products(self) -> Floats:
        """Products of all pairs of rows, summed over panels of columns."""
        found = np.zeros((self.matrix.shape[0],) * 2)
        for part in blocks.row_blocks(self.matrix.T, self.block):
            columns = blocks.cast(self.matrix[:, part], self.power) - self.means[part]
            found += columns @ columns.T
        return found


def _squared_column_products(one: _Panels, other: _Panels) -> float:
    """Sum of squared products of all pairs of columns, summed over panels of rows."""
    found = np.zeros((one.matrix.shape[1], other.matrix.shape[1]))
    wider = max(one, other, key=lambda panels: panels.matrix.shape[1])
    for part in wider.parts():
        found += one.rows(part).T @ other.rows(part)
    return float(np.vdot(found, found))


def _hsic(inner: float, found: Products, i: int, j: int) -> float:
    """The unbiased estimate times n(n−3), from sums that still contain the diagonals."""
    n = len(found.squares[i])
    rest_i, rest_j = (found.totals[one] - found.squares[one] for one in (i, j))
    trace = inner - float(found.squares[i] @ found.squares[j])
    grand = float(rest_i.sum()) * float(rest_j.sum()) / ((n - 1) * (n - 2))
    return trace + grand - 2 * float(rest_i @ rest_j) / (n - 2)


def _quotient(cross: float, own_x: float, own_y: float) -> float:
    if own_x <= 0 or own_y <= 0:
        return math.nan
    return blocks.clip(cross / (math.sqrt(own_x) * math.sqrt(own_y)))
