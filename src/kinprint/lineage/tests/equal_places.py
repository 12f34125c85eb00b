"""Rows at equal places of two models: for tests that take channels as they are numbered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.alignment.units import spread
from kinprint.lineage.preparation import Prepared
from kinprint.lineage.reading.sample import Sample, Units
from kinprint.nulls.preparation import normalise_rows, one_valued
from kinprint.nulls.result import Ints

Doubles = NDArray[np.float64]
Rows = NDArray[np.float32]
_ROWS = 1024


def equal_places(mine: Prepared, theirs: Prepared) -> tuple[Doubles, Doubles, int]:
    """Rows of length one that lie at equal places in both models, and how many there were.

    At most so many, evenly spaced. Rows keep their mean here, since a flip of channels would
    change it; rows that hold one size of number say nothing and are left out.
    """
    left = list(_same_rows(mine, theirs))
    total = sum(len(one.at) for one in left)
    if not total:
        return np.empty((0, mine.width)), np.empty((0, mine.width)), 0
    some, start = np.array(spread(total, _ROWS)), 0
    parts: list[tuple[Rows, Rows]] = []
    for one in left:
        here = some[(some >= start) & (some < start + len(one.at))] - start
        parts.append((one.x[one.at[here]] * one.own, one.y[one.to[here]] * one.their))
        start += len(one.at)
    x, y = (np.concatenate(side) for side in zip(*parts, strict=True))
    good = ~one_valued(np.abs(x)) & ~one_valued(np.abs(y))
    return normalise_rows(x[good]), normalise_rows(y[good]), len(good)


@dataclass(frozen=True, slots=True)
class _Places:
    """Two matrices with the rows of each that answer to each other, and the norms before them."""

    x: Rows
    y: Rows
    at: Ints
    to: Ints
    own: Rows | float
    their: Rows | float


def _same_rows(mine: Prepared, theirs: Prepared) -> Iterator[_Places]:
    """Every matrix that both models have, inputs to be scaled by the norm before."""
    for one, other, layer in _same_units(mine.sample, theirs.sample):
        _, at, to = np.intersect1d(one.index, other.index, return_indices=True)
        gains = [side.gain("norm_mlp", layer) for side in (mine, theirs)]
        for role in ("gate", "up", "down"):
            x, y = getattr(one, role), getattr(other, role)
            if x is not None and y is not None:
                yield _Places(x, y, at, to, *((1.0, 1.0) if role == "down" else gains))
    for layer, heads in sorted(mine.sample.attention.items()):
        others = theirs.sample.attention.get(layer)
        gains = [side.gain("norm_in", layer) for side in (mine, theirs)]
        for role in ("q", "k", "v", "o"):
            x, y = getattr(heads, role), getattr(others, role, None)
            if x is not None and y is not None and x.shape == y.shape:
                x, y = (part.reshape(-1, mine.width) for part in (x, y))
                every = np.arange(len(x))
                scales = (1.0, 1.0) if role == "o" else gains
                yield _Places(x, y, every, every, *scales)


def _same_units(one: Sample, other: Sample) -> Iterator[tuple[Units, Units, int]]:
    for layer in sorted(one.units.keys() & other.units.keys()):
        yield one.units[layer], other.units[layer], layer
    for at in sorted(one.experts.keys() & other.experts.keys()):
        yield one.experts[at], other.experts[at], at[0]
