"""Which of several linked models are the parents of a model: from likeness, without a p-value.

The nearest comes first. Where others are about as near, as tunes of one base often are, those that
lie behind another, as seen from the model, go; of the rest it is the nearest of those that most
linked models are nearest to: that is what a base is. Another is a parent too

- where it holds parts that those before it do not, or holds them much better;
- where the model's numbers lie between its numbers and theirs, as those of a merge do;
- where the model has the changes that it and others made to a base in some numbers and not in
  others, as merges do that drop or trim changes (DARE, TIES); then the base is one too.

Models that hold another one's numbers rounded, or those of the model itself, are passed over: a
quantised copy is as near as what it was made from. Who holds the very same numbers is the only one.

All of them are linked by tests of their own. That the set is complete, or who came first, nothing
here can say.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from kinprint.atlas.keys import SECOND, TowerKeys, likeness
from kinprint.diff.direction import first_by_rounding
from kinprint.lineage.part_tensors import tensors_of
from kinprint.lineage.reading.sample import Floats, Indices, Sample
from kinprint.lineage.taken_over import MATRICES
from kinprint.records import Component, PartState, Precedence, Relation, Verdict

ABOUT_AS_NEAR = 0.9
"""Models with this much of the likeness of the nearest may be the parent in its place."""
CLEARLY_NEARER = 0.6
"""Where what is linked of the nearest is this much nearer than that of another, it may not."""
ALIGNED_UPDATES = 0.4
"""A cosine between changes of two models that were trained apart; up to 0.37 was measured."""
VOTES = 3
"""Linked models that must be nearest to one of those about as near, so that this is asked."""
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
_CLEARLY = 3.0  # standard deviations
# Of a merge that drops or trims changes: the least share of numbers that are the base's, scattered
# half as much as by chance; changes that storage has not rounded much, as shares of the number, and
# the least count of them; of these the share that has one ratio, by times of what ratios nearby
# have; and the square of the distance to a parent, as a share of that to the base. Ratios are
# counted in steps of 2 %. In TIES and DARE merges of the zoo 0.34 and more have one ratio, ten
# times what lies nearby; of others at most 0.14, twice that.
_LEFT_ALONE, _SCATTERED, _SHOWN, _ENOUGH = 0.02, 0.5, 2.0**-5, 2000
_ONE_RATIO, _SHARPLY, _APART = 0.1, 5.0, 0.1
_RATIOS = np.exp(np.arange(-150, 151) * 0.02)
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
    for at, one in enumerate(candidates):
        if one.verdict.relation is Relation.IDENTICAL:
            return (Chosen(at),)
    fit = _Fit(model, [one.sample for one in candidates])
    numbers = _not_rounded(model, candidates, fit)
    able = {at: candidates[at] for at in numbers}
    first = _first(able, fit)
    mixture = _mixture(able, fit, first)
    chosen = fit.sum_of_parts(able) or list(mixture) or [first]
    _add_by_parts(chosen, able)
    mixed = set(mixture) == set(chosen) and len(chosen) > 1
    return tuple(Chosen(at, mixture[at] if mixed else None) for at in chosen)


def _not_rounded(model: Sample, candidates: Sequence[Candidate], fit: _Fit) -> list[int]:
    """Candidates less those that hold numbers of the model rounded, with what is not clearly nearer
    to the model than to these; and of two of which one holds the other's the one that is farther
    from the model. All, where no parent would be left."""
    samples = [one.sample for one in candidates]
    rounded = {at for at, one in enumerate(samples) if _is_finer(model, one)}
    gone = rounded | {
        at for at in range(len(samples)) for copy in rounded if at != copy and fit.beside(at, copy)
    }
    for one, other in combinations(range(len(samples)), 2):
        for fine, coarse in ((one, other), (other, one)):
            if _is_finer(samples[fine], samples[coarse]):
                gone.add(fine if fit.behind(fine, coarse, 0.0) else coarse)
    kept = [at for at in range(len(samples)) if at not in gone]
    return kept if any(candidates[at].alone for at in kept) else list(range(len(samples)))


def _is_finer(one: Sample, other: Sample) -> bool:
    """Whether a model has the parts of another and holds the numbers that it holds rounded."""
    same_parts = one.parts.keys() == other.parts.keys()
    return same_parts and first_by_rounding(one, other) is Precedence.A_FIRST


def _first(candidates: Mapping[int, Candidate], fit: _Fit) -> int:
    """The nearest, or of those about as near the one that most others are nearest to."""
    near = {at: one.nearness for at, one in candidates.items() if one.alone}
    best = max(near, key=lambda at: (near[at], -at))
    distances = {at: 1.0 - (candidates[at].verdict.amount.likeness or 0.0) for at in near}
    about = [
        at
        for at, one in near.items()
        if one >= ABOUT_AS_NEAR * near[best] and distances[best] >= CLEARLY_NEARER * distances[at]
    ]
    about = [at for at in about if not any(fit.behind(at, one, ALIGNED_UPDATES) for one in about)]
    if len(about) < 2:
        return about[0] if about else best
    keys = np.stack([one.towers[0].second for one in candidates.values()])
    place = {at: number for number, at in enumerate(candidates)}
    alike = np.stack([_key_likeness(keys[place[at]], keys) for at in about])
    alike[np.arange(len(about)), [place[at] for at in about]] = -1.0  # nobody votes for itself
    voters = alike.max(axis=0) >= _VOTES
    votes = np.bincount(alike[:, voters].argmax(axis=0), minlength=len(about))
    if votes.max() < VOTES:
        return max(about, key=lambda at: (near[at], -at))
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


def _add_by_parts(chosen: list[int], candidates: Mapping[int, Candidate]) -> None:
    """Add candidates that explain parts which the chosen ones do not, the best first."""
    known = {at: _places(one.verdict) for at, one in candidates.items()}
    total = sum(weights for _, weights in known[chosen[0]].values())
    while True:
        best = {
            place: max(known[at].get(place, (0.0, 0))[0] for at in chosen)
            for places in known.values()
            for place in places
        }
        gains = {
            at: sum(size for place, (alike, size) in places.items() if alike > best[place] + BETTER)
            if candidates[at].alone
            else 0
            for at, places in known.items()
        }
        at = max(gains, key=gains.__getitem__)
        if at in chosen or gains[at] <= WORTH * max(total, 1):
            return
        chosen.append(at)


def _mixture(candidates: Collection[int], fit: _Fit, first: int) -> dict[int, float]:
    """Candidates of which the model is a mixture, with their weights, the largest first.

    One after another is added that explains much of what is left, or two that explain nearly all of
    it, as sums over a base need. Empty where places of the model and of the first candidate do not
    correspond, or where some of them explain it about as well as all do.
    """
    if first not in fit:
        return {}
    chosen, left = [first], fit.left([first])
    if not left < 1.0 - _ALIGNED:
        return {}
    while True:
        others = [at for at in candidates if at in fit and at not in chosen]
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
    """How far a model is from others and from their mixtures, from products of numbers at equal
    places alone.

    Others that lack many of the model's places are not in it; places that one of the rest lacks are
    left out.
    """

    def __init__(self, model: Sample, others: Sequence[Sample]) -> None:
        own = _numbers(model)
        target = _aligned(own, own)
        step = max(len(target) // _NUMBERS, 1)
        columns = {at: _aligned(own, _numbers(other))[::step] for at, other in enumerate(others)}
        present = {
            at: one
            for at, one in columns.items()
            if one.size and np.isfinite(one).mean() >= _PRESENT
        }
        table = np.stack([*present.values(), target[::step]], axis=1)
        table = table[np.isfinite(table).all(axis=1)]
        self._table, self._products = table, table.T @ table
        self._count = max(len(table), 1)
        self._place = {at: number for number, at in enumerate(present)}

    def __contains__(self, one: int) -> bool:
        return one in self._place

    def behind(self, far: int, near: int, cosine: float) -> bool:
        """Whether of two others one is farther from the model, and by so much that the cosine
        between the ways from the near one to the model and to the far one does not explain it.

        Let u lead from the near one to the model, v to the far one: |u - v|^2 - |u|^2 =
        |v|^2 - 2 u.v. The model is as far from both where the cosine of u and v is |v| / 2|u|:
        where v is short, chance and habits of training reach that.
        """
        if far not in self or near not in self:
            return False
        target, one, other = -1, self._place[far], self._place[near]
        own, between = self._square(target, other), self._square(one, other)
        excess = self._square(target, one) - own
        return bool(excess > 2.0 * cosine * np.sqrt(own * between))

    def beside(self, one: int, copy: int) -> bool:
        """Whether another is not clearly nearer to the model than to a rounded copy of it.

        Rounding errors e are at right angles to everything, so that |e|^2 is the difference, give
        or take 2 |u| |e| / sqrt(n) for n numbers where u leads from the model to the other.
        """
        if one not in self or copy not in self:
            return False
        at, to = self._place[one], self._place[copy]
        far, error = self._square(at, -1), self._square(to, -1)
        by_chance = 2.0 * np.sqrt(far * error / self._count)
        return bool(self._square(at, to) - far <= _CLEARLY * by_chance)

    def sum_of_parts(self, candidates: Collection[int]) -> list[int]:
        """Others of which the model has numbers here and there, the one that it has most of first:
        one that it leaves alone most often, and at least two from whose way to that one it has
        one share in many places. None where there are no such two."""
        others = {at: self._table[:, self._place[at]] for at in candidates if at in self}
        model = self._table[:, -1]
        kept = {at: model == one for at, one in others.items()}
        base = max(kept, key=lambda at: np.count_nonzero(kept[at]), default=None)
        if base is None or not _is_scattered(kept[base]):
            return []
        least = _APART * self._square(self._place[base], -1)
        change = model - others[base]
        found = [
            at
            for at, one in others.items()
            if at != base
            and self._square(self._place[at], -1) >= least
            and _has_one_ratio(change, one - others[base], others[base])
        ]
        most = sorted([base, *found], key=lambda at: -np.count_nonzero(kept[at]))
        return most if len(found) > 1 else []

    def _square(self, one: int, other: int) -> float:
        """The square of the distance between two columns."""
        products = self._products
        found = products[one, one] + products[other, other] - 2.0 * products[one, other]
        return max(float(found), 0.0)

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


def _is_scattered(kept: NDArray[np.bool_]) -> bool:
    """Whether some numbers were left alone here and there, and not whole tensors."""
    share = kept.mean() if len(kept) else 0.0
    turns = np.mean(kept[1:] != kept[:-1]) if share > 0 else 0.0
    return bool(share >= _LEFT_ALONE and turns >= _SCATTERED * 2 * share * (1 - share))


def _has_one_ratio(
    part: NDArray[np.float64], whole: NDArray[np.float64], size: NDArray[np.float64]
) -> bool:
    """Whether many changes are one multiple of others, which stands out."""
    shown = _SHOWN * np.abs(size)
    large = (np.abs(part) > shown) & (np.abs(whole) > shown)
    count = int(np.count_nonzero(large))
    if count < _ENOUGH:
        return False
    found, _ = np.histogram(part[large] / whole[large], _RATIOS)
    at = int(found.argmax())
    share = found[max(at - 1, 0) : at + 2].sum() / count
    nearby = 3 * np.median(found[max(at - 12, 0) : at + 13]) / count
    return bool(share >= max(_ONE_RATIO, _SHARPLY * nearby))


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
