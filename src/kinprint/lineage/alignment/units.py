"""Which basis and which layer of the other model: chosen by a quality blind to labels.

The quality of two feed-forwards is the mean over units of the first of the best score among
units of the second, s_ij = cos(gate) + |cos(up) + cos(down)|. Permuting units or flipping
them changes nothing, so choosing by it costs tests on units nothing.

Throughout, `first` is the model whose labels a test draws anew and `second` the other. `flips`
says that units of the first may be flipped, up and down together, so that only the size of their
common cosine may count; where they may not, its sign counts too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.device import Array, downloaded, uploaded
from kinprint.lineage.alignment.residual import ResidualMap
from kinprint.lineage.preparation import FeedForward
from kinprint.lineage.reading.sample import Floats
from kinprint.mapped import keep, let_go
from kinprint.measure.basis import spread

PROBES = 32
"""Units of a feed-forward that the quality looks at, at most."""
# Of many feed-forwards fewer units each are looked at, to make no more scores than these: it is
# the mean over all of them that decides.
_FEWEST, _SCORES = 8, 400_000
_ROWS = 128  # probes whose scores with all units are made at once
PROBED = 3
"""Feed-forwards or layers that a residual map is rated by."""


class RatedMap(Struct, frozen=True):
    """A residual map and its quality."""

    residual: ResidualMap
    quality: float


class Matching(Struct, frozen=True):
    """For each part of the first model the place of its partner in the second, −1 without one.

    `residual` is the map between the residual streams in which they were matched, `quality` how
    well they match there: NaN where parts were paired by number. `trusted` is false where widths
    differ and no map is clearly better than a random one: a copy might not match there.
    """

    residual: ResidualMap
    partners: tuple[int, ...]
    quality: float
    trusted: bool = True

    @property
    def by_number(self) -> bool:
        """Whether nothing was searched: the basis as it is, parts of equal number."""
        return math.isnan(self.quality)


class UnitStack(Struct, frozen=True):
    """All units of a model's feed-forwards, one below the other.

    `pair` has up and down side by side, so that one product gives the sum of their cosines;
    `starts` are the first units of the feed-forwards.
    """

    pair: Floats
    gate: Floats | None
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, parts: Sequence[FeedForward]) -> UnitStack:
        """Stack feed-forwards in their order."""
        gates = [part.gate for part in parts if part.gate is not None]
        starts = np.cumsum([0, *(len(part.up) for part in parts)])
        width = parts[0].width
        pair = np.empty((starts[-1], 2 * width), np.float32)
        for part, start, stop in zip(parts, starts, starts[1:], strict=False):
            pair[start:stop, :width], pair[start:stop, width:] = part.up, part.down
            let_go()
        return cls(
            keep(pair),
            keep(np.concatenate(gates)) if len(gates) == len(parts) else None,
            starts[:-1],
        )

    def best(self, scores: Floats) -> Floats:
        """The largest score with each feed-forward, from scores with all units."""
        count, units = len(self.starts), scores.shape[1]
        if units % count == 0 and np.array_equal(self.starts, np.arange(0, units, units // count)):
            return np.asarray(scores.reshape(len(scores), count, -1).max(axis=2))
        return np.maximum.reduceat(scores, self.starts, axis=1)


def match_feed_forwards(
    first: Sequence[FeedForward],
    second: Sequence[FeedForward],
    maps: Sequence[RatedMap],
    flips: bool,
    stack: UnitStack | None = None,
) -> Matching | None:
    """Take the best residual map, and a partner in `second` for every feed-forward of `first`.

    `stack` is that of the second where it is at hand.
    """
    if not first or not second or not maps:
        return None
    best = max(maps, key=lambda rated: rated.quality).residual
    table = _qualities(first, stack or UnitStack.of(second), best, flips)
    return Matching(best, tuple(table.argmax(axis=1).tolist()), float(table.max(axis=1).mean()))


def rate_map(
    first: Sequence[FeedForward], stack: UnitStack | None, residual: ResidualMap, flips: bool
) -> RatedMap:
    """Say how well a map makes units of the first model find their like in the second's stack."""
    if stack is None or not first:
        return RatedMap(residual, 0.0)
    table = _qualities(spread_parts(first, PROBED), stack, residual, flips)
    return RatedMap(residual, float(table.max(axis=1).mean()))


def best_partners(
    first: Sequence[FeedForward], stack: UnitStack, residual: ResidualMap, flips: bool
) -> tuple[int, ...]:
    """The best partner of every feed-forward of the first model."""
    return tuple(_qualities(first, stack, residual, flips).argmax(axis=1).tolist())


def fitted_units(part: FeedForward) -> NDArray[np.int64]:
    """The units that residual maps may be fitted to: every second one in the order of size."""
    return np.argsort(part.size, kind="stable")[::2]


def spread_parts(parts: Sequence[FeedForward], most: int) -> list[FeedForward]:
    """Feed-forwards over the depth, experts of a layer by their sizes: no number of theirs counts.

    Maps are chosen and fitted by these, and numbers of experts are labels that are tested.
    """
    order = sorted(parts, key=lambda part: (part.layer, float(part.size.sum(dtype=np.float64))))
    return [order[at] for at in spread(len(order), most)]


class UnitScores(Struct, frozen=True):
    """All units of one feed-forward with all of another: what matches them, what is tested.

    `match` is blind to flips where units may be flipped; `both` is cos(up) + cos(down).
    """

    match: Floats
    both: Floats

    def best(self) -> Floats:
        """For each unit of the first, `both` at the partner that matches best."""
        rows = np.arange(len(self.match))
        best: Floats = self.both[rows, self.match.argmax(axis=1)]
        return best


def unit_scores(
    first: FeedForward, second: FeedForward, residual: ResidualMap, flips: bool
) -> UnitScores:
    """Scores of all units of one feed-forward with all of another."""

    def cosines(one: Floats, other: Floats) -> Array:
        return uploaded(residual.carry(one)) @ uploaded(other).T

    both = cosines(first.up, second.up) + cosines(first.down, second.down)
    match = abs(both) if flips else both
    if first.gate is not None and second.gate is not None:
        match = match + cosines(first.gate, second.gate)
    match, both = (np.asarray(downloaded(one), np.float32) for one in (match, both))
    return UnitScores(keep(match), keep(both))


def _qualities(
    first: Sequence[FeedForward], stack: UnitStack, residual: ResidualMap, flips: bool
) -> NDArray[np.float64]:
    """Quality of every feed-forward of the first with every one of the second."""
    most = max(_SCORES // (len(first) * len(stack.pair)), _FEWEST)
    probes = [_probes(part, min(most, PROBES)) for part in first]

    def carried(role: str) -> Floats:
        rows = [getattr(part, role)[units] for part, units in zip(first, probes, strict=True)]
        return np.asarray(residual.carry(np.concatenate(rows)))

    pair = np.concatenate([carried("up"), carried("down")], axis=1)
    gated = stack.gate is not None and all(part.gate is not None for part in first)
    gate = carried("gate") if gated else None
    let_go()
    best = np.empty((len(pair), len(stack.starts)), np.float32)
    for start in range(0, len(pair), _ROWS):
        rows = slice(start, start + _ROWS)
        scores = pair[rows] @ stack.pair.T
        if flips:
            np.abs(scores, out=scores)
        if gate is not None and stack.gate is not None:
            scores += gate[rows] @ stack.gate.T
        best[rows] = stack.best(scores)
    ends = np.cumsum([len(units) for units in probes])[:-1]
    return np.asarray([part.mean(axis=0, dtype=np.float64) for part in np.split(best, ends)])


def _probes(part: FeedForward, most: int) -> NDArray[np.int64]:
    """Units that no map was fitted to, evenly spaced in the order of size: it sees no index."""
    order = np.argsort(part.size, kind="stable")
    rest = order[1::2] if len(order) > 1 else order
    return rest[spread(len(rest), most)]
