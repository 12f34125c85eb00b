"""Preparation that keeps the null exact: every unit, row or vector is treated alike.

Each function commutes with the relabellings named in its docstring, so that relabelled data
give relabelled scores and nothing else changes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinprint.nulls.result import Floats

COMMON_SHARE = 0.5
"""A vector is degenerate when one value fills this share of it."""


def degenerate(values: ArrayLike, share: float = COMMON_SHARE) -> str:
    """Why a vector cannot speak, or an empty string: too short, not finite, constant, mostly equal.

    Depends on the values as a set, so on no label.
    """
    x = np.asarray(values, np.float64).reshape(-1)
    if x.size < 2:
        return "too short"
    if not np.isfinite(x).all():
        return "not finite"
    _, counts = np.unique(x, return_counts=True)
    if len(counts) == 1:
        return "constant"
    return "mostly one value" if counts.max() > share * x.size else ""


def one_valued(rows: ArrayLike) -> NDArray[np.bool_]:
    """Which rows hold one value but for two elements or a fiftieth: constants, identities.

    Such a row says where it lies and nothing else, and a pattern is no chance. Each row is
    judged by itself and a flip of it changes nothing.
    """
    x = np.asarray(rows)
    found = np.zeros(len(x), bool)
    width = x.shape[1]
    if not width:
        return ~found
    few = max(2, width // 50)
    # A value that fills so much of a row has itself for a neighbour nearly everywhere.
    at = np.flatnonzero((x[:, 1:] != x[:, :-1]).sum(axis=1) <= 2 * few)
    if len(at):
        middle = np.partition(x[at], width // 2, axis=1)[:, width // 2, None]
        found[at] = (x[at] != middle).sum(axis=1) <= few
    return found


def average_ranks(values: ArrayLike) -> Floats:
    """Ranks from one to n; tied values share the mean of theirs."""
    x = np.asarray(values, np.float64).reshape(-1)
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    found: Floats = (last - (counts - 1) / 2.0)[inverse]
    return found


def normal_scores(vectors: ArrayLike) -> Floats:
    """Replace each vector's values (along the last axis) by normal quantiles of their ranks.

    Gains are skewed and a few channels are huge; ranks make all vectors count alike. Ties share
    one score, degenerate vectors become zeros. Commutes with permutations of the elements.
    """
    from scipy.special import ndtri

    given = np.asarray(vectors, np.float64)
    flat = given.reshape(-1, given.shape[-1])
    found = np.zeros_like(flat)
    for at, vector in enumerate(flat):
        if not degenerate(vector):
            scores = ndtri((average_ranks(vector) - 0.5) / vector.size)
            found[at] = scores - scores.mean()
    return found.reshape(given.shape)


def standardise_columns(table: ArrayLike) -> Floats:
    """Columns with mean zero and length one over the rows (tokens); constant ones become zero.

    Commutes with permutations and flips of the columns, because each is treated by itself.
    """
    # One contiguous row a channel, so that the order of its sums does not depend on its place.
    x = np.ascontiguousarray(np.asarray(table, np.float64).T)
    if not x.size:
        return x.T
    constant = (x == x[:, :1]).all(axis=1, keepdims=True)
    centred = np.where(constant, 0.0, x - x.mean(axis=1, keepdims=True))
    return normalise_rows(centred).T


def normalise_rows(rows: ArrayLike) -> Floats:
    """Rows of length one; zero rows and rows with what is no number become zero.

    Commutes with permutations and flips of the rows. Division by the largest value first keeps
    squares within range.
    """
    x = np.asarray(rows, np.float64)
    if not x.size:
        return x.copy()
    good = np.isfinite(x).all(axis=1, keepdims=True)
    x = np.where(good, x, 0.0)
    peak = np.abs(x).max(axis=1, keepdims=True)
    scaled = x / np.where(peak > 0, peak, 1.0)
    length = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    found: Floats = scaled / np.where(length > 0, length, 1.0)
    return found


def centre_over_units(rows: ArrayLike) -> Floats:
    """Take the mean row off every row: for labels only.

    The mean over all units commutes with their permutations but not with flips: never before a
    sign test.
    """
    x = np.asarray(rows, np.float64)
    found: Floats = x - x.mean(axis=0, keepdims=True)
    return found
