"""Whether what one model learnt is still there in the other: descent, or one initialisation?

Two models with one initialisation share its noise, which is spread evenly over all directions
of a matrix; what training adds is concentrated in few. So the leading singular directions of
an ancestor's feed-forwards live on in a descendant at nearly full strength, however long it was
trained, while those of a model that was trained apart are weaker in its twin than the bulk.
This is a size, not a p-value: it tells two kinds of relation apart once there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kinprint.lineage.alignment.units import Aligned, spread
from kinprint.lineage.pair import ForwardPair, Pair
from kinprint.lineage.reading.sample import Floats, Units
from kinprint.lineage.side import Side, Supply
from kinprint.lineage.tests.registry import Likeness, LineageTest, look, registered_test
from kinprint.records import Evidence, Group, Part, Reason, Status, Tier

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
    "L.leading", tier=Tier.RULE, group=Group.RULE, part=Part.FEED_FORWARD,
    likeness=Likeness.LEADING_DIRECTIONS,
)  # fmt: skip
def leading_directions(pair: Pair, test: LineageTest, evidence: Sequence[Evidence]) -> Evidence:
    """Strength of one model's leading directions in the other, the larger of the two ways.

    It needs all units of some layers, and is asked only where feed-forwards are no strangers.
    """
    if not any(_depend(one) for one in evidence):
        return _no_result(test, Reason.DEPENDENT_UNITS)
    supply = pair.supply(Group.UNIT_SIGN)
    ways: list[_Way] = []
    for aligned in _alignments(pair, supply):
        with ThreadPoolExecutor(2) as beside:
            found = list(beside.map(_strengths, *_sides(_matrices(pair, supply, aligned))))
        ways += [_Way(*way.tolist()) for way in np.mean(found, axis=0)] if found else []
        if ways and _kept(ways) >= _CLEAR:
            break
    if not ways:
        return _no_result(test, Reason.WHOLE_LAYERS)
    if all(one.outstanding < _STANDS_OUT for one in ways):
        return _no_result(test, Reason.NO_LEADING_DIRECTION, Status.UNDEFINED)
    best = max(ways, key=lambda one: one.score)
    return Evidence(
        test.name, test.tier, test.group, Status.OK, effect=_kept(ways), bound="none",
        roles=("gate", "up", "down"), one_to_one=_one_to_one(supply),
        details=(("leading", best.top), ("bulk", best.bulk)),
    )  # fmt: skip


def _depend(one: Evidence) -> bool:
    """Whether a test has found that units of two models depend on each other."""
    of_units = registered_test(one).group in (Group.UNIT, Group.UNIT_SIGN)
    return of_units and one.status is Status.OK and one.log10_p <= _FOUND


def _no_result(test: LineageTest, reason: Reason, status: Status = Status.NEEDS) -> Evidence:
    return replace(test.no_result(reason, status), bound="none")


@dataclass(frozen=True, slots=True)
class _Way:
    """How strongly leading (`top`) and weak (`bulk`) directions of one model are in the other.

    `scale` is the other's size over its own; `outstanding` compares its leading eigenvalues with
    the largest one of noise.
    """

    top: float
    bulk: float
    scale: float
    outstanding: float

    @property
    def score(self) -> float:
        return _score(self.top, self.bulk)

    @property
    def of_one_size(self) -> float:
        return _score(self.top / self.scale, self.bulk / self.scale)


def _kept(ways: Sequence[_Way]) -> float:
    """The larger strength of the two ways, unless it is there only because one model is larger."""
    score, even = max(one.score for one in ways), max(one.of_one_size for one in ways)
    return score if even >= _OF_ONE_SIZE else min(score, even)


def _one_to_one(supply: Supply) -> bool:
    """Whether layers have as many feed-forwards in both models: experts may have been merged."""
    first, second = (
        {one.expert for one in side.prepared.forwards} for side in (supply.first, supply.second)
    )
    return first == second


def _score(top: float, bulk: float) -> float:
    """The strength of the leading directions, weighed by how much of the bulk is left.

    A bulk that is stronger than they are is a shared initialisation; one that is weaker was
    washed out by training or noise, which the leading directions withstood.
    """
    if top <= 0:
        return 0.0
    return top * (min(_MOST, top / bulk) if bulk > 0 else _MOST)


def _alignments(pair: Pair, supply: Supply) -> Iterator[Aligned]:
    """By number where that is possible, else as the quality has it."""
    by_number = pair.numbered(supply.first, supply.second)
    if by_number is not None:
        yield by_number
    by_quality = pair.units(supply.first, supply.second)
    if by_quality is not None:
        yield by_quality


def _matrices(pair: Pair, supply: Supply, aligned: Aligned) -> Iterator[tuple[Floats, Floats]]:
    """Matrices of both models in the first's order of units and the second's channels."""
    mine, theirs = supply.first.prepared.forwards, supply.second.prepared.forwards
    known = [
        ForwardPair(at, to, mine[at], theirs[to])
        for at, to in enumerate(aligned.partners)
        if to >= 0 and all(len(x.index) == x.total for x in (mine[at], theirs[to]))
    ]
    for at in spread(len(known), _LAYERS) if known else []:
        one = known[at]
        found, coins = pair.matched(supply.first, one, aligned.residual)
        if len(found.first) < max(_FEWEST, min(one.one.total, one.other.total) // 3):
            continue
        left = _balanced(supply.first, one.one.layer, one.one.expert, found.first)
        right = _balanced(supply.second, one.other.layer, one.other.expert, found.second)
        signs = np.where(coins < 0, -1, 1).astype(np.float32)[:, None]
        turned = signs if supply.first.odd else np.float32(1)
        for role in sorted(left.keys() & right.keys()):
            carried = aligned.residual.carry(left[role])
            yield carried, right[role] * (np.float32(1) if role == "gate" else turned)


def _sides(pairs: Iterable[tuple[Floats, Floats]]) -> tuple[list[Floats], list[Floats]]:
    known = list(pairs)
    return [one for one, _ in known], [other for _, other in known]


def _balanced(side: Side, layer: int, expert: int, units: NDArray[np.int64]) -> dict[str, Floats]:
    """A feed-forward's matrices, free of the scale that up and down can trade."""
    sample = side.prepared.sample
    part: Units = sample.experts[layer, expert] if expert >= 0 else sample.units[layer]
    place = {index: at for at, index in enumerate(part.index.tolist())}
    rows = [place[index] for index in units.tolist()]
    gain = side.prepared.gain("norm_mlp", layer).astype(np.float32)
    found = {"up": part.up[rows] * gain, "down": part.down[rows]}
    sizes = {role: np.linalg.norm(matrix, axis=1) for role, matrix in found.items()}
    if side.odd and all(size.all() for size in sizes.values()):
        trade = np.sqrt(sizes["down"] / sizes["up"])[:, None]
        found = {"up": found["up"] * trade, "down": found["down"] / trade}
    if part.gate is not None:
        found["gate"] = part.gate[rows] * gain
    return {role: rows for role, rows in found.items() if np.isfinite(rows).all() and rows.any()}


def _strengths(one: Floats, other: Floats) -> NDArray[np.float64]:
    """What `_Way` holds, for the directions of the first in the second and the other way."""
    cross = one.T @ other
    scale = float(np.linalg.norm(other)) / max(float(np.linalg.norm(one)), 1e-30)
    ways = (one, cross, scale), (other, cross.T, 1 / max(scale, 1e-30))
    return np.array([_strength(*way) for way in ways])


def _strength(one: Floats, cross: Floats, scale: float) -> tuple[float, float, float, float]:
    """The numbers of a `_Way`: Σ sᵢ uᵢᵀ B vᵢ over Σ sᵢ² for leading and for weak directions of A.

    With v from AᵀA, sᵢ uᵢ = A vᵢ, so that each term is vᵢᵀ (AᵀB) vᵢ.
    """
    squares, right = np.linalg.eigh(one.T @ one)
    there = ((cross @ right) * right).sum(axis=0)
    rank = min(one.shape)
    weak = slice(len(squares) - rank, len(squares) - rank // 2)
    top = there[-LEADING:].sum() / max(squares[-LEADING:].sum(), 1e-30)
    bulk = there[weak].sum() / max(squares[weak].sum(), 1e-30)
    noise = float(np.median(squares[-rank:])) * _largest_of_noise(*one.shape)
    outstanding = float(squares[-LEADING:].mean()) / max(noise, 1e-30)
    return float(top), float(bulk), max(scale, 1e-30), outstanding


@lru_cache(maxsize=32)
def _largest_of_noise(rows: int, columns: int) -> float:
    """The largest eigenvalue of noise of some shape, over the median of those that are not zero."""
    drawn = np.random.default_rng(0).normal(size=(rows, columns))
    small = drawn @ drawn.T if rows < columns else drawn.T @ drawn
    squares = np.linalg.eigvalsh(small)
    return float(squares[-1] / np.median(squares))
