"""Matrices compared row by row: one cosine or correlation a row, and their mean.

Rows are neurons, tokens or experts; a mean over rows does not let a few long ones decide,
as the cosine of the whole matrix does. Where some rows are copies and the others are strangers, the
mean is true of none: `copied_rows` tells these apart.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from kinprint.measure import blocks
from kinprint.measure.blocks import BLOCK, Floats

_COPY, _SPLIT = 0.75, 0.5  # likeness of copies on average, and of the least of them
_NOTHING, _ERRORS = 0.02, 3.0  # likeness of strangers on average, and standard errors of it
_BEYOND = 1.0  # deviations above the best of many strangers
_WHOLE = 1.0 - 1e-6  # where correlations end


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


@blocks.quiet
def partner_cosines(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> tuple[Floats, Floats]:
    """`row_cosines` of rows of equal number, and of each row with the one before its partner.

    The latter are strangers: the last row stands before the first.
    """
    x, y = blocks.matrix(a), blocks.matrix(b)
    same, others = np.empty((2, len(x)))
    for part in blocks.row_blocks(x, block):
        there = y.take(np.arange(part.start - 1, part.stop), axis=0, mode="wrap")
        p, q = (_prepare(blocks.cast(rows), False) for rows in (x[part], there))
        ours, theirs = (np.sqrt(np.einsum("ij,ij->i", rows, rows)) for rows in (p, q))
        same[part] = np.einsum("ij,ij->i", p, q[1:]) / (ours * theirs[1:])
        others[part] = np.einsum("ij,ij->i", p, q[:-1]) / (ours * theirs[:-1])
    return np.clip(same, -1.0, 1.0), np.clip(others, -1.0, 1.0)


_ONE_ROW = 0.01  # of their size that rows which are one may differ by: rounding leaves 0.002


def row_pearsons(a: ArrayLike, b: ArrayLike, block: int = BLOCK) -> Floats:
    """Pearson correlation of each pair of rows; NaN also where a row is constant."""
    return row_cosines(a, b, centred=True, block=block)


def row_cosine_mean(a: ArrayLike, b: ArrayLike) -> float:
    """Mean of the row cosines over the rows that have one."""
    return _mean(row_cosines(a, b))


def row_pearson_mean(a: ArrayLike, b: ArrayLike) -> float:
    """Mean of the row correlations over the rows that have one."""
    return _mean(row_pearsons(a, b))


def copied_rows(likeness: Floats, noise: float) -> tuple[float, float] | None:
    """The share of rows that are copies, and their mean likeness; None if it is not some of them.

    Some are where the others have nothing in common. Models that were trained, from one start or
    one from the other, have all rows alike, more or less.

    Parameters
    ----------
    likeness : the likeness of each row with its partner.
    noise : standard deviation of the likeness of strangers.
    """
    copied = likeness >= _SPLIT
    if not copied.any() or copied.all():
        return None
    others, mean = likeness[~copied], float(likeness[copied].mean())
    chance = max(_NOTHING, _ERRORS * noise / math.sqrt(len(others)))
    if mean < _COPY or abs(float(others.mean())) > chance:
        return None
    return float(copied.mean()), mean


def alike_share(likeness: Floats, others: Floats) -> float:
    """The least share of rows that are alike, where chance has numbered the rows of strangers.

    The likeness of strangers then lies above that of `others`, rows of other numbers, as often as
    below. So of n rows of which m lie below, no more than 2m are strangers, give or take what
    chance adds to m coins. And rows that are more alike than any stranger are none.
    """
    middle = float(others.mean()) if len(others) else 0.0
    below = int(np.count_nonzero(likeness <= middle))
    strangers = 2.0 * (below + _ERRORS * math.sqrt(below))
    by_coins = 1.0 - strangers / max(len(likeness), 1)
    return max(by_coins, clear_share(likeness, others, len(likeness)))


def clear_share(likeness: Floats, others: Floats, count: int) -> float:
    """The share of rows that are more alike than the best of so many strangers.

    The best of n normal numbers is about √(2 ln n) deviations above their mean, here of `others`.
    The inverse hyperbolic tangent makes correlations about normal (Fisher 1915), where rows of few
    numbers would not be.
    """
    if not len(others) or not len(likeness):
        return 0.0
    strangers = np.arctanh(np.clip(others, -_WHOLE, _WHOLE))
    deviations = _BEYOND + math.sqrt(2.0 * math.log(max(count, 2)))
    least = math.tanh(float(strangers.mean() + deviations * strangers.std()))
    return float((likeness > least).mean()) if least < _WHOLE else 0.0


def _mean(values: Floats) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan


def _prepare(rows: Floats, centred: bool) -> Floats:
    """Rows with a largest absolute value of one, in place; so a constant row is centred to zero."""
    if not rows.shape[1]:
        return rows
    rows /= _largest(rows)
    if not centred:
        return rows
    for _ in range(2):  # the second time takes off what the rounded mean left
        rows -= rows.mean(axis=1, keepdims=True)
    rows /= _largest(rows)
    return rows


def _largest(rows: Floats) -> Floats:
    """The largest absolute value of each row, as a column."""
    return np.asarray(np.maximum(rows.max(axis=1), -rows.min(axis=1))[:, None])


def are_filled(rows: ArrayLike) -> bool:
    """Whether rows hold no numbers of their own: each is one number, or all are nearly one row.

    Tables are padded with zeros, with a constant, or with the mean of all rows, to which some
    tools add a little noise.

    Examples
    --------
    >>> are_filled(np.zeros((3, 8))), are_filled(np.tile(np.arange(8.0), (3, 1)))
    (True, True)
    >>> are_filled(np.eye(8)[:3])
    False
    """
    values = np.asarray(rows, np.float64)
    constant = np.ptp(values, axis=1) == 0
    if len(values) < 2 or constant.all():
        return bool(constant.all())
    apart = np.linalg.norm(values - values.mean(axis=0))
    return bool(apart <= _ONE_ROW * np.linalg.norm(values))
