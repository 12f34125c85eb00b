"""Which of several linked models are the parents of a model: from likeness, without a p-value.

The nearest comes first. Where others are about as near, as tunes of one base often are, it is the
nearest of those that most linked models are nearest to: that is what a base is. Another is a parent
too

- where it holds parts that those before it do not, or holds them much better;
- where the model's numbers lie between its numbers and theirs, as those of a merge do.

All of them are linked by tests of their own. That the set is complete, or who came first, nothing
here can say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.atlas.keys import SECOND, TowerKeys, likeness
from kinprint.lineage.part_tensors import tensors_of
from kinprint.lineage.reading.sample import Floats, Indices, Sample
from kinprint.lineage.taken_over import MATRICES
from kinprint.records import Component, PartState, Relation, Verdict

ABOUT_AS_NEAR = 0.9
"""Models with this much of the likeness of the nearest may be the parent in its place."""
CLEARLY_NEARER = 0.6
"""Where what is linked of the nearest is this much nearer than that of another, it may not."""
CENTRAL = 2 / 3
"""Of the models that name the one which most are nearest to: as many must name another."""
BETTER = 0.2
"""Likeness by which another parent must explain a part better."""
WORTH = 0.02
"""The share of the model's weights for which it must."""
EXPLAINED = 0.6
"""The share of what is left unexplained that another parent of a mixture must explain."""
TOGETHER = 0.9
"""The share that two of them must explain, neither of which does so alone."""
_ALIGNED = 0.25  # of a model's square that a mixture must explain, so that places correspond
_PRESENT = 0.9  # of a model's numbers that another must have at the same places
_VOTES = 0.5  # likeness of keys from which on a model can be told to be near another
_IDLE = 0.02  # weight with which a model has no part in a mixture
_ROWS, _NUMBERS = 32, 2**18  # rows of a tensor, and numbers in all, that mixtures are fitted to

Place = tuple[str, Component, int | None]
Tensor = tuple[Indices, Floats]


class Candidate(Struct, frozen=True):
    """A linked model.

    Attributes
    ----------
    verdict
        How it is related to the model.
    towers
        Its keys.
    sample
        Its main tower as far as it was read.
    alone
        Whether the verdict allows that it is a parent. Where it says that the two have a start in
        common and no more, it can be one beside another that explains the model together with it.
    """

    verdict: Verdict
    towers: tuple[TowerKeys, ...]
    sample: Sample
    alone: bool = True

    @property
    def nearness(self) -> float:
        """Mean correlation of what is linked, times the share of parts that are."""
        return likeness_by_parts(self.verdict)


class Chosen(Struct, frozen=True):
    """A parent by its number among the candidates, and its weight in the nearest mixture."""

    number: int
    weight: float | None = None


def likeness_by_parts(verdict: Verdict) -> float:
    """Mean correlation of what is linked, times the share of parts that are.

    Experts of a layer count as one part: a mixture of experts is not nearer for having many.
    """
    if verdict.relation is Relation.IDENTICAL:
        return 1.0
    parts = _places(verdict)
    linked = sum(known > 0 for known, _ in parts.values())
    share = linked / len(parts) if parts else verdict.amount.linked
    return max(share * (verdict.amount.likeness or 0.0), 0.0)


def seen_from_second(verdict: Verdict) -> Verdict:
    """The same verdict with the second model called the first."""
    parts = tuple(
        replace(one, part=one.partner, partner=one.part)
        for one in verdict.parts
        if one.partner is not None
    )
    return replace(verdict, parts=parts)


def choose_parents(model: Sample, candidates: Sequence[Candidate]) -> tuple[Chosen, ...]:
    """The candidates that together explain a model, the first one first."""
    if not any(one.alone for one in candidates):
        return ()
    first = _first(candidates)
    mixture = _mixture(model, candidates, first)
    chosen = list(mixture) or [first]
    _add_by_parts(chosen, candidates)
    mixed = len(mixture) == len(chosen) > 1
    return tuple(Chosen(at, mixture[at] if mixed else None) for at in chosen)


def _first(candidates: Sequence[Candidate]) -> int:
    """The nearest, or of those about as near the one that most others are nearest to."""
    near = [one.nearness if one.alone else 0.0 for one in candidates]
    best = max(range(len(near)), key=lambda at: (candidates[at].alone, near[at], -at))
    distances = [1.0 - (one.verdict.amount.likeness or 0.0) for one in candidates]
    about = [
        at
        for at, one in enumerate(near)
        if candidates[at].alone
        and one >= ABOUT_AS_NEAR * near[best]
        and distances[best] >= CLEARLY_NEARER * distances[at]
    ]
    if len(about) < 2:
        return best
    keys = np.stack([one.towers[0].second for one in candidates])
    alike = np.stack([_key_likeness(keys[at], keys) for at in about])
    alike[np.arange(len(about)), about] = -1.0  # nobody votes for itself
    voters = alike.max(axis=0) >= _VOTES
    votes = np.bincount(alike[:, voters].argmax(axis=0), minlength=len(about))
    named = dict(zip(about, votes.tolist(), strict=True))
    central = [at for at in about if named[at] >= CENTRAL * votes.max()]
    return max(central, key=lambda at: (round(near[at], 2), named[at], near[at], -at))


def _key_likeness(key: NDArray[np.int8], keys: NDArray[np.int8]) -> NDArray[np.float32]:
    """The mean likeness of rows, tokens and gains."""
    return np.asarray(likeness(key, keys, SECOND)[:, :3].mean(axis=1), np.float32)


def _places(verdict: Verdict) -> dict[Place, tuple[float, int]]:
    """By tower, kind of part and layer: how alike what is linked is, and how many weights."""
    found: dict[Place, tuple[float, int]] = {}
    for one in verdict.parts:
        if one.state is PartState.NOT_READ:
            continue
        part, component = one.part, one.part.component
        if component is Component.EXPERT:
            component = Component.FEED_FORWARD
        place = part.tower, component, part.layer
        equal = one.state in (PartState.EQUAL, PartState.ROUNDED)
        alike = 1.0 if equal else max(one.likeness or 0.0, 1e-3) if one.state.linked else 0.0
        before = found.get(place, (0.0, 0))
        found[place] = max(before[0], alike), max(before[1], one.weights)
    return found


def _add_by_parts(chosen: list[int], candidates: Sequence[Candidate]) -> None:
    """Add candidates that explain parts which the chosen ones do not, the best first."""
    known = [_places(one.verdict) for one in candidates]
    total = sum(weights for _, weights in known[chosen[0]].values())
    while True:
        best = {
            place: max(known[at].get(place, (0.0, 0))[0] for at in chosen)
            for places in known
            for place in places
        }
        gains = [
            sum(size for place, (alike, size) in places.items() if alike > best[place] + BETTER)
            if candidates[number].alone
            else 0
            for number, places in enumerate(known)
        ]
        at = int(np.argmax(gains))
        if at in chosen or gains[at] <= WORTH * max(total, 1):
            return
        chosen.append(at)


def _mixture(model: Sample, candidates: Sequence[Candidate], first: int) -> dict[int, float]:
    """Candidates of which the model is a mixture, with their weights, the largest first.

    One after another is added that explains much of what is left, or two that explain nearly all of
    it, as sums over a base need. Empty where places of the model and of the first candidate do not
    correspond, or where some of them explain it about as well as all do.
    """
    own = _numbers(model)
    target = _aligned(own, own)
    step = max(len(target) // _NUMBERS, 1)
    columns = {at: _aligned(own, _numbers(one.sample))[::step] for at, one in enumerate(candidates)}
    columns = {at: one for at, one in columns.items() if np.isfinite(one).mean() >= _PRESENT}
    if first not in columns or not len(target):
        return {}
    fit = _Fit(columns, target[::step])
    chosen, left = [first], fit.left([first])
    if not left < 1.0 - _ALIGNED:
        return {}
    while True:
        others = [at for at in columns if at not in chosen]
        steps = [
            (fit.left([*chosen, *added]), added)
            for count, least in ((1, EXPLAINED), (2, TOGETHER))
            for added in combinations(others, count)
            if fit.left([*chosen, *added]) <= (1.0 - least) * left
        ]
        if not steps:
            break
        left, added = min(steps, key=lambda one: (len(one[1]), one[0]))
        chosen += added
    chosen = _needed(chosen, fit)
    if len(chosen) < 2:
        return {}
    weights = dict(zip(chosen, fit.weights(chosen), strict=True))
    kept = {at: one for at, one in weights.items() if abs(one) > _IDLE} or weights
    return dict(sorted(kept.items(), key=lambda item: -abs(item[1])))


def _needed(chosen: Sequence[int], fit: _Fit) -> list[int]:
    """Candidates without those that explain little beside the others, the idlest first.

    A model lies between its parent and its child, and the child alone explains it about as well.
    """
    kept = list(chosen)
    while len(kept) > 1:
        without = {one: fit.left([other for other in kept if other != one]) for one in kept}
        idlest = min(kept, key=without.__getitem__)
        if fit.left(kept) <= (1.0 - EXPLAINED) * without[idlest]:
            break
        kept.remove(idlest)
    return kept


class _Fit:
    """Mixtures of some columns of numbers nearest to a target, from their products alone.

    Numbers that one of the columns lacks are left out.
    """

    def __init__(self, columns: Mapping[int, NDArray[np.float64]], target: NDArray[np.float64]):
        table = np.stack([*columns.values(), target], axis=1)
        table = table[np.isfinite(table).all(axis=1)]
        self._products = table.T @ table
        self._place = {at: number for number, at in enumerate(columns)}

    def weights(self, chosen: Sequence[int]) -> list[float]:
        """The weights of the nearest mixture of some columns."""
        at = [self._place[one] for one in chosen]
        solved = np.linalg.lstsq(self._products[np.ix_(at, at)], self._products[at, -1], rcond=None)
        return [float(one) for one in solved[0]]

    def left(self, chosen: Sequence[int]) -> float:
        """The share of the target's square that the nearest mixture does not explain."""
        at = [self._place[one] for one in chosen]
        square = self._products[-1, -1]
        explained = float(np.dot(self.weights(chosen), self._products[at, -1]))
        return max(1.0 - explained / square, 0.0) if square > 0 else 1.0


def _numbers(sample: Sample) -> dict[tuple[object, ...], Tensor]:
    """Some rows of the matrices of a tower, with their numbers, by layer and name."""
    found: dict[tuple[object, ...], Tensor] = {}
    for part in sample.parts:
        if part.component in MATRICES:
            for (name, inputs), (index, rows) in tensors_of(sample, part).items():
                if rows.ndim == 2 and np.isfinite(rows[:_ROWS]).all():
                    place = part.component, part.layer, part.expert, name, inputs
                    found[place] = index[:_ROWS], rows[:_ROWS]
    return found


def _aligned(
    own: Mapping[tuple[object, ...], Tensor], theirs: Mapping[tuple[object, ...], Tensor]
) -> NDArray[np.float64]:
    """Numbers of another model at the places of a model's own; NaN where it has none there."""
    columns = []
    for place, (index, rows) in own.items():
        numbers, values = theirs.get(place, (index[:0], rows[:0]))
        same = np.array_equal(numbers, index) and values.shape == rows.shape
        columns.append(values.reshape(-1) if same else np.full(rows.size, np.nan))
    return np.concatenate(columns or [np.empty(0)]).astype(np.float64)
