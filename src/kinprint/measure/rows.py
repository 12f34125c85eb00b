"""Matrices compared row by row: one cosine or correlation a row, and their mean.

Rows are neurons, tokens or experts; a mean over rows does not let a few long ones decide,
as the cosine of the whole matrix does.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from kinprint.measure import blocks
from kinprint.measure.blocks import BLOCK, Floats


@blocks.quiet
def row_cosines(a: ArrayLike, b: ArrayLike, centred: bool = False, block: int = BLOCK) -> Floats:
    """Cosine of each pair of rows; NaN where a row is zero or holds what is no number.

    Each row is first divided by its largest absolute value, so that no square leaves
    float64's range. With `centred` each row's own mean is taken off.
    """
    x, y = blocks.matrix(a), blocks.matrix(b)
    if x.shape != y.shape:
        raise ValueError(f"matrices of shape {x.shape} and {y.shape} have no rows in common")
    found = np.full(x.shape[0], math.nan)
    for part in blocks.row_blocks(x, block):
        p, q = (_prepare(blocks.cast(side[part]), centred) for side in (x, y))
        lengths = np.sqrt(np.einsum("ij,ij->i", p, p)) * np.sqrt(np.einsum("ij,ij->i", q, q))
        found[part] = np.clip(np.einsum("ij,ij->i", p, q) / lengths, -1.0, 1.0)
    return found


def row_pearsons(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> Floats:
    """Pearson correlation of each pair of rows; NaN also where a row is constant."""
    return row_cosines(a, b, centred=True, block=block)


def row_cosine_mean(a: ArrayLike, b: ArrayLike) -> float:
    """Mean of the row cosines over the rows that have one."""
    return _mean(row_cosines(a, b))


def row_pearson_mean(a: ArrayLike, b: ArrayLike) -> float:
    """Mean of the row correlations over the rows that have one."""
    return _mean(row_pearsons(a, b))


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan


def _prepare(rows: Floats, centred: bool) -> Floats:
    """Rows with a largest absolute value of one, so that a constant row is centred to zero."""
    if not rows.shape[1]:
        return rows
    scaled: Floats = rows / np.abs(rows).max(axis=1, keepdims=True)
    if not centred:
        return scaled
    for _ in range(2):  # the second time takes off what the rounded mean left
        scaled -= scaled.mean(axis=1, keepdims=True)
    scaled /= np.abs(scaled).max(axis=1, keepdims=True)
    return scaled
