"""Which of several linked models are the parents of a model: from likeness, without a p-value.

The nearest comes first. Where others are about as near, as tunes of one base often are, those that
lie behind another, as seen from the model, go; of the rest it is the nearest of those that most
linked models are nearest to: that is what a base is. Of those that are as near in this, too, it is
who has more equal parts; whom nothing tells apart are told together. Another is a parent too

- where it holds parts that those before it do not, or holds them much better;
- where the model's numbers lie between its numbers and theirs, as those of a merge do;
- where the model has the changes that it and others made to a base in some numbers and not in
  others, as merges do that drop or trim changes (DARE, TIES); then the base is one too.

Models that hold another one's numbers rounded, or those of the model itself, are passed over: a
quantised copy is as near as what it was made from. Of several that hold the very same numbers one
is asked, so that it does not matter how many there are. Who holds those of the model is the only
one.

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
from kinprint.atlas.mixtures import Fit, Part
from kinprint.diff.direction import first_by_rounding
from kinprint.lineage.identity import equal_as_read
from kinprint.lineage.reading.sample import Sample
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
EXPLAINED, MOST = 0.95, 8
"""The share of what the first parent leaves unexplained that all parents of a mixture must explain,
and how many these may be. Sums explain all of it but for rounding. Of the middle one of three
states of one training run the others explain (1 + c) / 2, where c is the cosine between the two
ways; of a base k children whose changes lie at right angles explain 1 - 1 / k at most."""
_ALIGNED = 0.25  # of a model's square that a mixture must explain, so that places correspond
_VOTES = 0.5  # likeness of keys from which on a model can be told to be near another
_NOTHING = 1e-6  # of what the first parent leaves unexplained
_IDLE = 0.02  # weight with which a model has no part in a mixture
_DIGITS = 6  # of nearness that tell candidates apart

Place = tuple[str, Component, int | None]


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

    @property
    def rank(self) -> tuple[float, int]:
        """How near it is, and how many weights lie in equal parts: what is alike in both, nothing
        tells apart."""
        return round(self.nearness, _DIGITS), equal_weights(self.verdict)


class Chosen(Struct, frozen=True):
    """A parent by its number among the candidates.

    Attributes
    ----------
    number
        Its number.
    weight
        Its weight in the nearest mixture.
    tied
        Numbers of others that could stand in its place: nothing that was read tells them apart.
    """

    number: int
    weight: float | None = None
    tied: tuple[int, ...] = ()


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


def equal_weights(verdict: Verdict) -> int:
    """How many weights lie in parts that are equal, rounding aside."""
    return sum(one.weights for one in verdict.parts if one.state.same)


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
    same = [at for at, one in enumerate(candidates) if one.verdict.relation is Relation.IDENTICAL]
    if same:
        return (Chosen(same[0], tied=tuple(same[1:])),)
    strange = [_strange_parts(one.verdict) for one in candidates]
    fit = Fit(model, [one.sample for one in candidates], strange)
    numbers = _not_rounded(model, candidates, fit)
    able = {at: candidates[at] for at in numbers}
    once = _each_once(able)
    first, *others = _first(once, fit)
    mixture = _mixture(once, fit, first)
    summed = fit.sum_of_parts(once) or list(mixture)
    chosen = summed or [first]
    _add_by_parts(chosen, able)
    if set(mixture) == set(chosen) and len(chosen) > 1:
        return tuple(Chosen(at, mixture[at]) for at in chosen)
    copies = [at for at in able.keys() - once.keys() if able[at].rank == able[first].rank]
    alike = [at for at in copies if equal_as_read(able[at].sample, able[first].sample)]
    tied = () if summed else tuple(sorted({*others, *alike} - {*chosen}))
    return tuple(Chosen(at, tied=tied if at == first else ()) for at in chosen)


def _not_rounded(model: Sample, candidates: Sequence[Candidate], fit: Fit) -> list[int]:
    """Candidates less those that hold numbers of the model rounded, with what was made from these;
    and of two of which one holds the other's this one, unless the model
    was made from it. All, where no parent would be left."""
    samples = [one.sample for one in candidates]
    rounded = {at for at, one in enumerate(samples) if _is_finer(model, one)}
    gone = rounded | {
        at
        for at in range(len(samples))
        for copy in rounded
        if at != copy and fit.made_from_copy(at, None, copy)
    }
    for one, other in combinations(range(len(samples)), 2):
        for fine, coarse in ((one, other), (other, one)):
            if _is_finer(samples[fine], samples[coarse]):
                gone.add(fine if fit.made_from_copy(None, fine, coarse) else coarse)
    kept = [at for at in range(len(samples)) if at not in gone]
    return kept if any(candidates[at].alone for at in kept) else list(range(len(samples)))


def _is_finer(one: Sample, other: Sample) -> bool:
    """Whether a model has the parts of another and holds the numbers that it holds rounded."""
    same_parts = one.parts.keys() == other.parts.keys()
    return same_parts and first_by_rounding(one, other) is Precedence.A_FIRST


def _each_once(candidates: Mapping[int, Candidate]) -> dict[int, Candidate]:
    """Candidates, and of those whose main towers hold the same numbers the nearest."""
    kept: list[int] = []
    for at in sorted(candidates, key=lambda at: (-candidates[at].alone, -candidates[at].nearness)):
        own = candidates[at].sample
        if not any(equal_as_read(own, candidates[one].sample) for one in kept):
            kept.append(at)
    return {at: candidates[at] for at in sorted(kept)}


def _first(candidates: Mapping[int, Candidate], fit: Fit) -> list[int]:
    """The nearest, or of those about as near the one that most others are nearest to; several
    where nothing tells these apart."""
    near = {at: one.nearness for at, one in candidates.items() if one.alone}
    rank = {at: candidates[at].rank for at in near}
    best = max(near, key=rank.__getitem__)
    distances = {at: 1.0 - (candidates[at].verdict.amount.likeness or 0.0) for at in near}
    about = [
        at
        for at, one in near.items()
        if one >= ABOUT_AS_NEAR * near[best] and distances[best] >= CLEARLY_NEARER * distances[at]
    ]
    about = [at for at in about if not any(fit.behind(at, one, ALIGNED_UPDATES) for one in about)]
    if len(about) < 2:
        return about or [best]
    keys = np.stack([one.towers[0].second for one in candidates.values()])
    place = {at: number for number, at in enumerate(candidates)}
    alike = np.stack([_key_likeness(keys[place[at]], keys) for at in about])
    alike[np.arange(len(about)), [place[at] for at in about]] = -1.0  # nobody votes for itself
    nearest = alike.max(axis=0)
    votes = ((alike == nearest) & (nearest >= _VOTES)).sum(axis=1)
    if votes.max() < VOTES:
        return _best(about, rank)
    named = dict(zip(about, votes.tolist(), strict=True))
    central = [at for at in about if named[at] >= CENTRAL * votes.max()]
    return _best(central, {at: (round(near[at], 2), named[at], *rank[at]) for at in central})


def _best(some: Sequence[int], rank: Mapping[int, tuple[float, ...]]) -> list[int]:
    """All that have the highest rank."""
    highest = max(rank[at] for at in some)
    return [at for at in some if rank[at] == highest]


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
        linked = max(one.likeness or 0.0, 1e-3) if one.state.linked else 0.0
        alike = 1.0 if one.state.same else linked
        before = found.get(place, (0.0, 0))
        found[place] = max(before[0], alike), max(before[1], one.weights)
    return found


def _strange_parts(verdict: Verdict) -> set[Part]:
    """Parts of the model that nothing links with the other."""
    return {
        (one.part.component, one.part.layer, one.part.expert)
        for one in verdict.parts
        if not one.state.linked and one.state is not PartState.NOT_READ
    }


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
        at = max(gains, key=lambda at: (gains[at], candidates[at].rank))
        if at in chosen or gains[at] <= WORTH * max(total, 1):
            return
        chosen.append(at)


def _mixture(candidates: Collection[int], fit: Fit, first: int) -> dict[int, float]:
    """Candidates of which the model is a mixture, with their weights, the largest first.

    They are added one after another, the one first that explains most of what is left. Empty where
    places of the model and of the first candidate do not correspond, where something is left in
    the end that is no rounding, or where one of them explains it about as well as all do.
    """
    if first not in fit:
        return {}
    chosen = [first]
    alone = left = fit.left(chosen)
    if not alone < 1.0 - _ALIGNED:
        return {}
    least = fit.rounding + _NOTHING * alone
    others = {at for at in candidates if at in fit} - {first}
    while others and left > least and len(chosen) < MOST:
        left, added = min((fit.left([*chosen, at]), at) for at in others)
        chosen.append(added)
        others.remove(added)
    chosen = _needed(_outermost(chosen, others, fit, least), fit, least)
    if len(chosen) < 2 or fit.left(chosen) > (1.0 - EXPLAINED) * alone:
        return {}
    weights = dict(zip(chosen, fit.weights(chosen), strict=True))
    kept = {at: one for at, one in weights.items() if abs(one) > _IDLE} or weights
    return dict(sorted(kept.items(), key=lambda item: -abs(item[1])))


def _outermost(chosen: Sequence[int], others: Collection[int], fit: Fit, least: float) -> list[int]:
    """Candidates, where some lie between others that explain as much: these in place of them.

    Of two merges of the same models each is a mixture of the other and one of these.
    """
    kept = list(chosen)
    for other in sorted(others):
        for at, one in enumerate(kept):
            instead = [*kept[:at], other, *kept[at + 1 :]]
            if fit.left(instead) <= least and _is_between(one, instead, fit):
                kept = instead
                break
    return kept


def _is_between(one: int, others: Sequence[int], fit: Fit) -> bool:
    """Whether a candidate is a mixture of several others in which each has a positive part."""
    return len(others) > 1 and min(fit.weights(others, of=one)) > _IDLE


def _needed(chosen: Sequence[int], fit: Fit, least: float) -> list[int]:
    """Candidates without those that explain little beside the others, the idlest first.

    A model lies between its parent and its child, and the child alone explains it about as well.
    What leaves no more than `least` unexplained explains all; of several that can be done without
    those go first that lie between the others, whatever rounding has left.
    """
    kept = list(chosen)
    while len(kept) > 1:
        rest = {one: [other for other in kept if other != one] for one in kept}
        without = {one: fit.left(others) for one, others in rest.items()}
        most = max(least, fit.left(kept) / (1.0 - EXPLAINED))
        idle = [one for one in kept if without[one] <= most]
        if not idle:
            break
        kept.remove(min(idle, key=lambda at: (not _is_between(at, rest[at], fit), without[at])))
    return kept
