"""Which basis and which layer of the other model: chosen by a quality blind to labels.

The quality of two feed-forwards is the mean over units of the first of the best score among
units of the second, s_ij = cos(gate) + |cos(up) + cos(down)|. Permuting units or flipping
them changes nothing, so choosing by it costs tests on units nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kinprint.studies.lineage.portrait import Floats
from kinprint.studies.lineage.preparation import Forward
from kinprint.studies.lineage.residual import Residual

PROBES = 32
"""Units of a feed-forward that the quality looks at."""
PROBED = 3
"""Feed-forwards or layers that a residual map is judged by."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A residual map and its quality."""

    residual: Residual
    quality: float


@dataclass(frozen=True, slots=True)
class Aligned:
    """The residual map that was chosen and, for each part of the first model, its partner."""

    residual: Residual
    partners: tuple[int, ...]
    quality: float


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


def align_units(
    first: Sequence[Forward], second: Sequence[Forward], judged: Sequence[Judged], odd: bool
) -> Aligned | None:
    """Take the best residual map, and a partner in `second` for every feed-forward of `first`.

    `odd` says that up and down may be flipped together, so that only the size of their
    common cosine counts.
    """
    if not first or not second or not judged:
        return None
    best = max(judged, key=lambda one: one.quality).residual
    table = _qualities(first, Stack.of(second), best, odd)
    return Aligned(best, tuple(table.argmax(axis=1).tolist()), float(table.max(axis=1).mean()))


def judge(first: Sequence[Forward], whole: Stack | None, residual: Residual, odd: bool) -> Judged:
    """Say how well a map makes units of the first model find their like in the second."""
    if whole is None or not first:
        return Judged(residual, 0.0)
    some = [first[at] for at in spread(len(first), PROBED)]
    return Judged(residual, float(_qualities(some, whole, residual, odd).max(axis=1).mean()))


def partners(
    first: Sequence[Forward], whole: Stack, residual: Residual, odd: bool
) -> tuple[int, ...]:
    """The best partner of every feed-forward of the first model."""
    return tuple(_qualities(first, whole, residual, odd).argmax(axis=1).tolist())


def fitted_units(one: Forward) -> NDArray[np.int64]:
    """The units that residual maps may be fitted to: every second one in the order of size."""
    return np.argsort(one.size, kind="stable")[::2]


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
    probes = [_probes(one) for one in first]
    up, down = (
        residual.carry(np.concatenate([part[at] for part, at in zip(rows, probes, strict=True)]))
        for rows in ([one.up for one in first], [one.down for one in first])
    )
    scores = np.concatenate([up, down], axis=1) @ whole.pair.T
    if odd:
        np.abs(scores, out=scores)
    gates = [one.gate for one in first]
    if whole.gate is not None and all(gate is not None for gate in gates):
        rows = [gate[at] for gate, at in zip(gates, probes, strict=True) if gate is not None]
        scores += residual.carry(np.concatenate(rows)) @ whole.gate.T
    best = np.maximum.reduceat(scores, whole.starts, axis=1)
    ends = np.cumsum([len(at) for at in probes])[:-1]
    found = [part.mean(axis=0, dtype=np.float64) for part in np.split(best, ends)]
    return np.asarray(found)


def _probes(one: Forward) -> NDArray[np.int64]:
    """Units that no map was fitted to, evenly spaced in the order of size: it sees no index."""
    order = np.argsort(one.size, kind="stable")
    rest = order[1::2] if len(order) > 1 else order
    return rest[spread(len(rest), PROBES)]
