"""Whether what one model learnt is still there in the other: descent, or one initialisation?

Two models with one initialisation share its noise, which is spread evenly over all directions
of a matrix; what training adds is concentrated in few. So the leading singular directions of
an ancestor's feed-forwards live on in a descendant at nearly full strength, however long it was
trained, while those of a model that was trained apart are weaker in its twin than the bulk.
This is a size, not a p-value: it tells two kinds of relation apart once there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.alignment.units import Matching, spread
from kinprint.lineage.pair import Alignment, FeedForwardPair, Pair
from kinprint.lineage.preparation import FeedForward
from kinprint.lineage.reading.sample import Floats
from kinprint.lineage.side import Side
from kinprint.lineage.tests.registry import Likeness, LineageTest, look, registered_test
from kinprint.nulls.result import Ints
from kinprint.records import Component, Evidence, Group, Reason, Status, Tier

LEADING = 8
"""Singular directions that count as leading."""
_LAYERS = 2
_MOST = 1.2  # beyond this a weak bulk says nothing more
_FEWEST = 64  # matched units below which a spectrum has no bulk
_FOUND = -7.0  # log10 p of a test, below which there may be something to tell apart
_CLEAR = 0.85
# Between matrices of one size, the strength below which a large one only grew over a small one.
_OF_ONE_SIZE = 0.7
# Mean of the leading eigenvalues over the largest of noise: optimisers that even out their updates
# stay below, and so do models that were trained a little.
_STANDS_OUT = 1.0


@look(
    "L.leading", tier=Tier.RULE, group=Group.RULE, component=Component.FEED_FORWARD,
    likeness=Likeness.LEADING_DIRECTIONS,
)  # fmt: skip
def leading_directions(pair: Pair, test: LineageTest, evidence: Sequence[Evidence]) -> Evidence:
    """Strength of one model's leading directions in the other, the larger of the two ways.

    It needs all units of some layers, and is asked only where feed-forwards are no strangers.
    """
    if not any(_depend(one) for one in evidence):
        return _no_result(test, Reason.DEPENDENT_UNITS)
    alignment = pair.alignment(Group.UNIT_SIGN)
    ways: list[_Way] = []
    for matching in _matchings(alignment):
        ways += _ways(alignment, matching)
        if ways and _strength(ways) >= _CLEAR:
            break
    if not ways:
        return _no_result(test, Reason.WHOLE_LAYERS)
    if all(way.outstanding < _STANDS_OUT for way in ways):
        return _no_result(test, Reason.NO_LEADING_DIRECTION, Status.UNDEFINED)
    best = max(ways, key=lambda way: way.score)
    return Evidence(
        test.name, test.tier, test.group, Status.OK, effect=_strength(ways), bound="none",
        roles=("gate", "up", "down"), one_to_one=_one_to_one(alignment),
        details=(("leading", best.leading), ("bulk", best.bulk)),
    )  # fmt: skip


def _depend(evidence: Evidence) -> bool:
    """Whether a test has found that units of two models depend on each other."""
    of_units = registered_test(evidence).group in (Group.UNIT, Group.UNIT_SIGN)
    return of_units and evidence.status is Status.OK and evidence.log10_p <= _FOUND


def _no_result(test: LineageTest, reason: Reason, status: Status = Status.NEEDS) -> Evidence:
    return replace(test.no_result(reason, status), bound="none")


@dataclass(frozen=True, slots=True)
class _Way:
    """How strongly leading and weak (`bulk`) directions of one model are in the other.

    `scale` is the other's size over its own; `outstanding` compares its leading eigenvalues with
    the largest one of noise.
    """

    leading: float
    bulk: float
    scale: float
    outstanding: float

    @property
    def score(self) -> float:
        return _score(self.leading, self.bulk)

    @property
    def score_of_one_size(self) -> float:
        return _score(self.leading / self.scale, self.bulk / self.scale)


def _strength(ways: Sequence[_Way]) -> float:
    """The larger strength of the two ways, unless it is there only because one model is larger."""
    score = max(way.score for way in ways)
    of_one_size = max(way.score_of_one_size for way in ways)
    return score if of_one_size >= _OF_ONE_SIZE else min(score, of_one_size)


def _score(leading: float, bulk: float) -> float:
    """The strength of the leading directions, weighed by how much of the bulk is left.

    A bulk that is stronger than they are is a shared initialisation; one that is weaker was
    washed out by training or noise, which the leading directions withstood.
    """
    if leading <= 0:
        return 0.0
    return leading * (min(_MOST, leading / bulk) if bulk > 0 else _MOST)


def _one_to_one(alignment: Alignment) -> bool:
    """Whether layers have as many feed-forwards in both models: experts may have been merged."""
    first, second = (
        {part.expert for part in side.prepared.feed_forwards}
        for side in (alignment.first, alignment.second)
    )
    return first == second


def _matchings(alignment: Alignment) -> Iterator[Matching]:
    """By number where that is possible, then by search, if it is asked for."""
    if alignment.numbered_feed_forwards is not None:
        yield alignment.numbered_feed_forwards
    if alignment.feed_forwards is not None:
        yield alignment.feed_forwards


def _ways(alignment: Alignment, matching: Matching) -> list[_Way]:
    """Both ways, averaged over the matrices of some layers; none where no layer was read whole."""
    matrices = list(_matrices(alignment, matching))
    if not matrices:
        return []
    with ThreadPoolExecutor(2) as pool:
        strengths = list(pool.map(_both_ways, *zip(*matrices, strict=True)))
    return [_Way(*way.tolist()) for way in np.mean(strengths, axis=0)]


def _matrices(alignment: Alignment, matching: Matching) -> Iterator[tuple[Floats, Floats]]:
    """Matrices of both models in the first's order of units and the second's channels."""
    ours, theirs = alignment.first.prepared.feed_forwards, alignment.second.prepared.feed_forwards
    whole = [
        FeedForwardPair(at, to, ours[at], theirs[to])
        for at, to in enumerate(matching.partners)
        if to >= 0 and all(len(part.index) == part.total for part in (ours[at], theirs[to]))
    ]
    for part in [whole[at] for at in spread(len(whole), _LAYERS)] if whole else []:
        pairs, coins = alignment.matched_units(part, matching.residual)
        if len(pairs.first) < max(_FEWEST, min(part.first.total, part.second.total) // 3):
            continue
        left = _balanced(alignment.first, part.first, pairs.first)
        right = _balanced(alignment.second, part.second, pairs.second)
        signs = np.where(coins < 0, -1, 1).astype(np.float32)[:, None]
        flips = signs if alignment.first.units_flip else np.float32(1)
        for role in sorted(left.keys() & right.keys()):
            carried = matching.residual.carry(left[role])
            yield carried, right[role] * (np.float32(1) if role == "gate" else flips)


def _balanced(side: Side, part: FeedForward, index: Ints) -> dict[str, Floats]:
    """Matrices of some units of a feed-forward, free of the scale that up and down can trade."""
    units = side.prepared.stored_units(part)
    places = {number: at for at, number in enumerate(units.index.tolist())}
    rows = [places[number] for number in index.tolist()]
    gain = side.prepared.feed_forward_gain(part.layer).astype(np.float32)
    matrices = {"up": units.up[rows] * gain, "down": units.down[rows]}
    sizes = {role: np.linalg.norm(matrix, axis=1) for role, matrix in matrices.items()}
    if side.units_flip and all(size.all() for size in sizes.values()):
        trade = np.sqrt(sizes["down"] / sizes["up"])[:, None]
        matrices = {"up": matrices["up"] * trade, "down": matrices["down"] / trade}
    if units.gate is not None:
        matrices["gate"] = units.gate[rows] * gain
    return {
        role: matrix
        for role, matrix in matrices.items()
        if np.isfinite(matrix).all() and matrix.any()
    }


def _both_ways(first: Floats, second: Floats) -> NDArray[np.float64]:
    """The numbers of a `_Way` for directions of the first in the second, and the other way."""
    cross = first.T @ second
    scale = float(np.linalg.norm(second)) / max(float(np.linalg.norm(first)), 1e-30)
    ways = (first, cross, scale), (second, cross.T, 1 / max(scale, 1e-30))
    return np.array([_one_way(*way) for way in ways])


def _one_way(matrix: Floats, cross: Floats, scale: float) -> tuple[float, float, float, float]:
    """The numbers of a `_Way`: Σ sᵢ uᵢᵀ B vᵢ over Σ sᵢ² for leading and for weak directions of A.

    With v from AᵀA, sᵢ uᵢ = A vᵢ, so that each term is vᵢᵀ (AᵀB) vᵢ.
    """
    squares, right = np.linalg.eigh(matrix.T @ matrix)
    there = ((cross @ right) * right).sum(axis=0)
    rank = min(matrix.shape)
    weak = slice(len(squares) - rank, len(squares) - rank // 2)
    leading = there[-LEADING:].sum() / max(squares[-LEADING:].sum(), 1e-30)
    bulk = there[weak].sum() / max(squares[weak].sum(), 1e-30)
    noise = float(np.median(squares[-rank:])) * _largest_of_noise(*matrix.shape)
    outstanding = float(squares[-LEADING:].mean()) / max(noise, 1e-30)
    return float(leading), float(bulk), max(scale, 1e-30), outstanding


@lru_cache(maxsize=32)
def _largest_of_noise(rows: int, columns: int) -> float:
    """The largest eigenvalue of noise of some shape, over the median of those that are not zero."""
    drawn = np.random.default_rng(0).normal(size=(rows, columns))
    small = drawn @ drawn.T if rows < columns else drawn.T @ drawn
    squares = np.linalg.eigvalsh(small)
    return float(squares[-1] / np.median(squares))
