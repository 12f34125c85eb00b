"""Preparation that keeps the null exact: every unit, row or vector is treated alike.

Each function commutes with the relabellings named in its docstring, so that relabelled data
give relabelled scores and nothing else changes.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kinprint.nulls.result import Floats

COMMON_SHARE = 0.5
"""A vector is degenerate when one value fills this share of it."""
FAR = 5.0
"""Robust deviations above the median from which on a channel is massive."""
_ROWS = 64  # of a table that are laid out along its columns at a time
_LEAST = 1e-200  # squared lengths between this and its inverse have lost nothing


def degenerate(values: ArrayLike, share: float = COMMON_SHARE) -> str:
    """Why a vector cannot speak, or an empty string: too short, not finite, constant, mostly equal.

    Depends on the values as a set, so on no label.
    """
    x = np.asarray(values, np.float64).reshape(-1)
    if x.size < 2:
        return "too short"
    if not np.isfinite(x).all():
        return "not finite"
    counts = _tied(np.sort(x))
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
    # A value that fills so much of a row has itself for a neighbour nearly everywhere; most
    # rows show in their first elements that they have none.
    first = x[:, : 4 * few + 2]
    at = np.flatnonzero((first[:, 1:] != first[:, :-1]).sum(axis=1) <= 2 * few)
    if not len(at):
        return found
    likely = x if len(at) == len(x) else x[at]
    constant = ~(likely[:, 1:] != likely[:, :-1]).any(axis=1)
    found[at[constant]] = True
    at = at[~constant]
    at = at[(x[at, 1:] != x[at, :-1]).sum(axis=1) <= 2 * few]
    if len(at):
        middle = np.partition(x[at], width // 2, axis=1)[:, width // 2, None]
        found[at] = (x[at] != middle).sum(axis=1) <= few
    return found


def average_ranks(values: ArrayLike) -> Floats:
    """Ranks from one to n; tied values share the mean of theirs."""
    x = np.asarray(values, np.float64).reshape(-1)
    order = np.argsort(x, kind="stable")
    counts = _tied(x[order])
    last = np.cumsum(counts)
    found: Floats = np.empty(x.size)
    found[order] = np.repeat(last - (counts - 1) / 2.0, counts)
    return found


def normal_scores(vectors: ArrayLike) -> Floats:
    """Replace each vector's values (along the last axis) by normal quantiles of their ranks.

    Gains are skewed and a few channels are huge; ranks make all vectors count alike. Ties share
    one score, degenerate vectors become zeros. Commutes with permutations of the elements.
    """
    given = np.asarray(vectors, np.float64)
    n = given.shape[-1]
    if n < 2:
        return np.zeros_like(given)
    flat = given.reshape(-1, n)
    order = np.argsort(flat, axis=1)
    ordered = np.take_along_axis(flat, order, axis=1)
    first = np.ones(flat.shape, bool)  # of equal values
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = np.flatnonzero(first)
    counts = np.diff(starts, append=flat.size)
    places = np.repeat(2 * (starts % n) + counts - 1, counts).reshape(flat.shape)
    often = np.repeat(counts, counts).reshape(flat.shape).max(axis=1)
    found = np.empty_like(flat)
    np.put_along_axis(found, order, _quantiles(n)[places], axis=1)
    found -= found.mean(axis=1, keepdims=True)
    found[~np.isfinite(flat).all(axis=1) | (often > COMMON_SHARE * n)] = 0.0
    return found.reshape(given.shape)


@lru_cache(maxsize=16)
def _quantiles(n: int) -> Floats:
    """Normal quantiles of (r − ½)/n for the ranks r = 1, 1½, 2, … n.

    All vectors of one length share them, and the standard library has them without the second
    that a larger one takes to load.
    """
    quantile = NormalDist().inv_cdf
    lower = [quantile((at + 1) / (2 * n)) for at in range(n - 1)]
    return np.array([*lower, 0.0, *(-value for value in reversed(lower))])


def _tied(ordered: Floats) -> NDArray[np.int64]:
    """How often each value of a sorted vector occurs."""
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return np.diff(starts, append=len(ordered))


def massive(sizes: ArrayLike) -> NDArray[np.bool_]:
    """Which of many channels are far larger than the rest: a few, in most of the vectors given.

    Sizes (vectors, channels). Massive channels may lie at the same places in strangers, and their
    place is then no chance: leaving them out leaves the labels of all others free. Far means
    `FAR` robust deviations above the median. At most a fiftieth are left out, the largest first;
    more would be a heavy tail, which ranks deal with. Commutes with permutations of channels.
    """
    x = np.atleast_2d(np.asarray(sizes, np.float64))
    found = np.zeros(x.shape[1], bool)
    above, spread = _heights(x)
    known = spread[:, 0] > 0
    far = (above > FAR * spread)[known]
    if not far.any():
        return found
    most = max(2, x.shape[1] // 50)
    candidates = np.flatnonzero(far.mean(axis=0) > 0.5)
    if len(candidates) > most:
        height = np.median(above[known] / spread[known], axis=0)[candidates]
        least = np.sort(height)[-most]
        candidates = candidates[height >= least]
    found[candidates] = True
    return found


def each_massive(sizes: ArrayLike) -> NDArray[np.bool_]:
    """`massive` of each vector (along the last axis) by itself; most have no such channel."""
    x = np.asarray(sizes, np.float64)
    found = np.zeros(x.shape, bool)
    above, spread = _heights(x.reshape(-1, x.shape[-1]))
    for at in np.flatnonzero((above > FAR * spread).any(axis=1)):
        found.reshape(above.shape)[at] = massive(x.reshape(above.shape)[at])
    return found


def _heights(x: Floats) -> tuple[Floats, Floats]:
    """How far the elements of each row lie above their median, and a robust deviation of them."""
    if not x.size:
        return x, np.zeros((len(x), 1))
    finite = np.isfinite(x)
    above = x if finite.all() else np.where(finite, x, 0.0)
    above = above - _medians(above)
    return above, 1.4826 * _medians(np.abs(above))


def _medians(x: Floats) -> Floats:
    """The median of each row, as a column; NumPy's own takes ten times as long for short rows."""
    below, above = (x.shape[1] - 1) // 2, x.shape[1] // 2
    ordered = np.partition(x, (below, above), axis=1)
    return np.asarray((ordered[:, below] + ordered[:, above])[:, None] / 2.0)


def standardise_columns(table: ArrayLike) -> Floats:
    """Columns with mean zero and length one over the rows (tokens); constant ones become zero.

    Commutes with permutations and flips of the columns, because each is treated by itself.
    """
    return standardise_in_place(_channels(np.asarray(table))).T


def _channels(table: NDArray[Any]) -> Floats:
    """One contiguous row a channel, so that the order of its sums does not depend on its place.

    A few rows of the table at a time, which lie in the processor's memory together.
    """
    channels = np.empty(table.shape[::-1])
    for start in range(0, len(table), _ROWS):
        channels[:, start : start + _ROWS] = table[start : start + _ROWS].T
    return channels


def standardise_in_place(channels: Floats) -> Floats:
    """`standardise_columns` of contiguous rows, a channel each; overwrites what it is given.

    Columns of wide models are long.
    """
    if not channels.size:
        return channels
    constant = channels.max(axis=1) == channels.min(axis=1)
    channels -= channels.mean(axis=1, keepdims=True)
    channels[constant] = 0.0
    return _normalised(channels)


def normalise_rows(rows: ArrayLike) -> Floats:
    """Rows of length one; zero rows and rows with what is no number become zero.

    Commutes with permutations and flips of the rows.
    """
    return _normalised(np.array(rows, np.float64, order="C"))


def _normalised(x: Floats) -> Floats:
    """Rows of length one, in place; those whose squares leave the range are scaled first."""
    if not x.size:
        return x
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.vecdot(x, x)
    odd = np.flatnonzero(~((squares > _LEAST) & (squares < 1 / _LEAST)))
    if len(odd):
        rest = np.where(np.isfinite(x[odd]).all(axis=1, keepdims=True), x[odd], 0.0)
        peak = np.abs(rest).max(axis=1, keepdims=True)
        x[odd] = rest / np.where(peak > 0, peak, 1.0)
        squares[odd] = np.vecdot(x[odd], x[odd])
    x /= np.sqrt(np.where(squares > 0, squares, 1.0))[:, None]
    return x
