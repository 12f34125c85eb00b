"""Which basis and which layer of the other model: chosen by a quality blind to labels.

The quality of two feed-forwards is the mean over units of the first of the best score among
units of the second, s_ij = cos(gate) + |cos(up) + cos(down)|. Permuting units or flipping
them changes nothing, so choosing by it costs tests on units nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.alignment.residual import Residual
from kinprint.lineage.preparation import Forward
from kinprint.lineage.reading.sample import Floats

PROBES = 32
"""Units of a feed-forward that the quality looks at, at most."""
# Of many feed-forwards fewer units each are looked at, to make no more scores than these: it is
# the mean over all of them that decides.
_FEWEST, _SCORES = 8, 400_000
_ROWS = 128  # probes whose scores with all units are made at once
PROBED = 3
"""Feed-forwards or layers that a residual map is judged by."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A residual map and its quality."""

    residual: Residual
    quality: float


@dataclass(frozen=True, slots=True)
class Aligned:
    """The residual map that was chosen and, for each part of the first model, its partner.

    `quality` is that of the search; NaN where parts are taken as they are numbered.
    """

    residual: Residual
    partners: tuple[int, ...]
    quality: float

    @property
    def by_number(self) -> bool:
        """Whether nothing was searched: the basis as it is, parts of equal number."""
        return math.isnan(self.quality)


@dataclass(frozen=True, slots=True)
class Stack:
    """All units of a model's feed-forwards, one below the other.

    `pair` has up and down side by side, so that one product gives the sum of their cosines.
    """

    pair: Floats
    gate: Floats | None
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, parts: Sequence[Forward]) -> Stack:
        """Stack feed-forwards in their order."""
        gates = [one.gate for one in parts if one.gate is not None]
        sizes = [len(one.up) for one in parts]
        return cls(
            np.concatenate([np.concatenate([one.up, one.down], axis=1) for one in parts]),
            np.concatenate(gates) if len(gates) == len(parts) else None,
            np.cumsum([0, *sizes[:-1]]),
        )

    def best(self, scores: Floats) -> Floats:
        """The largest score with each feed-forward, from scores with all units."""
        count, units = len(self.starts), scores.shape[1]
        if units % count == 0 and np.array_equal(self.starts, np.arange(0, units, units // count)):
            return np.asarray(scores.reshape(len(scores), count, -1).max(axis=2))
        return np.maximum.reduceat(scores, self.starts, axis=1)


def align_units(
    first: Sequence[Forward],
    second: Sequence[Forward],
    judged: Sequence[Judged],
    odd: bool,
    whole: Stack | None = None,
) -> Aligned | None:
    """Take the best residual map, and a partner in `second` for every feed-forward of `first`.

    `odd` says that up and down may be flipped together, so that only the size of their common
    cosine counts; `whole` is the stack of the second where it is at hand.
    """
    if not first or not second or not judged:
        return None
    best = max(judged, key=lambda one: one.quality).residual
    known = whole or Stack.of(second)
    table = _qualities(first, known, best, odd)
    return Aligned(best, tuple(table.argmax(axis=1).tolist()), float(table.max(axis=1).mean()))


def judge(first: Sequence[Forward], whole: Stack | None, residual: Residual, odd: bool) -> Judged:
    """Say how well a map makes units of the first model find their like in the second."""
    if whole is None or not first:
        return Judged(residual, 0.0)
    table = _qualities(some_parts(first, PROBED), whole, residual, odd)
    return Judged(residual, float(table.max(axis=1).mean()))


def partners(
    first: Sequence[Forward], whole: Stack, residual: Residual, odd: bool
) -> tuple[int, ...]:
    """The best partner of every feed-forward of the first model."""
    return tuple(_qualities(first, whole, residual, odd).argmax(axis=1).tolist())


def fitted_units(one: Forward) -> NDArray[np.int64]:
    """The units that residual maps may be fitted to: every second one in the order of size."""
    return np.argsort(one.size, kind="stable")[::2]


def some_parts(parts: Sequence[Forward], most: int) -> list[Forward]:
    """Feed-forwards over the depth, experts of a layer by their sizes: no number of theirs counts.

    Maps are chosen and fitted by these, and numbers of experts are labels that are tested.
    """
    order = sorted(parts, key=lambda one: (one.layer, float(one.size.sum())))
    return [order[at] for at in spread(len(order), most)]


def spread(n: int, most: int) -> list[int]:
    """At most so many of n places, evenly spaced."""
    return sorted(set(np.linspace(0, n - 1, min(n, most)).round().astype(int).tolist()))


@dataclass(frozen=True, slots=True)
class UnitScores:
    """All units of one feed-forward with all of another: what matches them, what is tested.

    `match` is blind to flips where the feed-forward is odd; `both` is cos(up) + cos(down).
    """

    match: Floats
    both: Floats

    def best(self) -> Floats:
        """For each unit of the first, `both` at the partner that matches best."""
        rows = np.arange(len(self.match))
        found: Floats = self.both[rows, self.match.argmax(axis=1)]
        return found


def unit_scores(one: Forward, other: Forward, residual: Residual, odd: bool) -> UnitScores:
    """Scores of all units of one feed-forward with all of another."""
    both = residual.carry(one.up) @ other.up.T + residual.carry(one.down) @ other.down.T
    match = np.abs(both) if odd else both
    if one.gate is not None and other.gate is not None:
        match = match + residual.carry(one.gate) @ other.gate.T
    return UnitScores(np.asarray(match, np.float32), np.asarray(both, np.float32))


def _qualities(
    first: Sequence[Forward], whole: Stack, residual: Residual, odd: bool
) -> NDArray[np.float64]:
    """Quality of every feed-forward of the first with every one of the second."""
    most = max(_SCORES // (len(first) * len(whole.pair)), _FEWEST)
    probes = [_probes(one, min(most, PROBES)) for one in first]

    def carried(role: str) -> Floats:
        parts = [getattr(one, role)[at] for one, at in zip(first, probes, strict=True)]
        return np.asarray(residual.carry(np.concatenate(parts)))

    pair = np.concatenate([carried("up"), carried("down")], axis=1)
    gated = whole.gate is not None and all(one.gate is not None for one in first)
    gate = carried("gate") if gated else None
    best = np.empty((len(pair), len(whole.starts)), np.float32)
    for start in range(0, len(pair), _ROWS):
        rows = slice(start, start + _ROWS)
        scores = pair[rows] @ whole.pair.T
        if odd:
            np.abs(scores, out=scores)
        if gate is not None and whole.gate is not None:
            scores += gate[rows] @ whole.gate.T
        best[rows] = whole.best(scores)
    ends = np.cumsum([len(at) for at in probes])[:-1]
    found = [part.mean(axis=0, dtype=np.float64) for part in np.split(best, ends)]
    return np.asarray(found)


def _probes(one: Forward, most: int) -> NDArray[np.int64]:
    """Units that no map was fitted to, evenly spaced in the order of size: it sees no index."""
    order = np.argsort(one.size, kind="stable")
    rest = order[1::2] if len(order) > 1 else order
    return rest[spread(len(rest), most)]
