"""Which numbers of a task vector did a merge keep? By rank of magnitude, or at random.

Trimming keeps the largest numbers of a whole tensor. Their ranks come from counts of magnitudes by
the upper sixteen bits of float32, which one pass fills in little memory; numbers that share these
bits share a range of ranks. All differences of neighbouring bfloat16 numbers are told apart.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]

_BINS = 1 << 15
_NARROW = 0.01  # width of a bin of log ratios
_RANGE = (-4.0, 4.0)  # natural logarithms of ratios that are looked at
_NEAR = 0.03  # of a ratio: what belongs to its peak


class MagnitudeCounts:
    """Counts the magnitudes of a tensor's numbers, block by block."""

    def __init__(self) -> None:
        self._counts = np.zeros(_BINS, np.int64)

    def add(self, values: Floats) -> None:
        """Count some numbers."""
        self._counts += np.bincount(_keys(values), minlength=_BINS)

    def done(self) -> Magnitudes:
        """What was counted."""
        keys = np.flatnonzero(self._counts)
        return Magnitudes(keys, np.cumsum(self._counts[keys][::-1])[::-1])


class Magnitudes(Struct, frozen=True):
    """The magnitudes of a tensor: sorted, and how many numbers are as large or larger."""

    keys: NDArray[np.int64]
    as_large: NDArray[np.int64]

    def ranks(self, values: Floats) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """How many numbers of the tensor come before each in magnitude, at least and at most."""
        at = np.searchsorted(self.keys, _keys(values))
        first = np.append(self.as_large, 0)[at + 1]
        return first.reshape(values.shape), (self.as_large[at] - 1).reshape(values.shape)

    @property
    def size(self) -> int:
        """How many numbers were counted."""
        return int(self.as_large[0]) if len(self.as_large) else 0


class Trimmed(Struct, frozen=True):
    """The numbers that trimming keeps for sure, and those at its limit of which it keeps some."""

    kept: Mask
    either: Mask


def trimmed(magnitudes: Magnitudes, values: Floats, density: float) -> Trimmed:
    """Which numbers are among the share of largest ones."""
    if density >= 1:
        return Trimmed(np.ones(values.shape, bool), np.zeros(values.shape, bool))
    kept = max(1, int(density * magnitudes.size))
    low, high = magnitudes.ranks(values)
    return Trimmed(high < kept, (low < kept) & (high >= kept))


def choices(count: int) -> Iterator[tuple[bool, ...]]:
    """Every choice of some of `count` things, all of them first."""
    return itertools.product((True, False), repeat=count)


def subset_sums(vectors: Sequence[Floats], factors: Sequence[float]) -> Doubles:
    """Sums of every choice of the vectors, each times its factor; a row a choice."""
    scaled = np.stack(
        [np.float64(factor) * vector for vector, factor in zip(vectors, factors, strict=True)]
    )
    chosen = np.array(list(choices(len(vectors))), np.float64)
    return np.asarray(np.tensordot(chosen, scaled, axes=1))


def usual_ratio(numerator: Floats, denominator: Floats) -> float | None:
    """The ratio that most pairs of numbers have; None where there is none of the same sign.

    Numbers of which the denominator is made alone have one ratio, all others spread.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = numerator.astype(np.float64) / denominator
        logs = np.log(ratios[np.isfinite(ratios) & (ratios > 0)])
    logs = logs[(logs > _RANGE[0]) & (logs < _RANGE[1])]
    if not logs.size:
        return None
    counts, edges = np.histogram(logs, bins=round((_RANGE[1] - _RANGE[0]) / _NARROW), range=_RANGE)
    smooth = np.convolve(counts, np.ones(3), "same")
    centre = float(edges[int(np.argmax(smooth))] + _NARROW / 2)
    for _ in range(3):
        near = logs[np.abs(logs - centre) < _NEAR]
        if near.size:
            centre = float(np.median(near))
    return float(np.exp(centre))


def _keys(values: Floats) -> NDArray[np.int64]:
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).ravel()
    return ((bits >> 16) & (_BINS - 1)).astype(np.int64)
