"""Which models of many belong together: a likeness for each pair, a tree, an order of leaves."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct

from kinprint.records import ModelRef, Relation, Verdict

Places = tuple[int, int]
_ORDERED = 256  # more leaves than this are not put into the best order: it takes too long
_LATER = 1e-6  # how much further away the next group is, so that they join in their order


class Branch(Struct, frozen=True):
    """Two branches that meet at a height: leaves are places of models, then earlier branches."""

    one: int
    other: int
    height: float


def likeness_of(verdict: Verdict) -> float:
    """The mean correlation over all that was read: parts without a link count as 0."""
    if verdict.relation is Relation.IDENTICAL:
        return 1.0
    if not verdict.relation.linked:
        return 0.0
    return min(max(verdict.amount.linked * (verdict.amount.likeness or 0.0), 0.0), 1.0)


def family_tree(
    models: Sequence[ModelRef],
    likeness: Mapping[Places, float],
    linked: Container[Places] = (),
) -> tuple[tuple[int, ...], tuple[Branch, ...]]:
    """An order of leaves and a tree by average linkage, with heights 1 − likeness.

    Groups that nothing links are all equally unlike, so that any order of joining them is average
    linkage: the largest come first. Models are sorted by name before ties are broken, so that the
    order in which they are given changes nothing but their places.

    Parameters
    ----------
    models : the models.
    likeness : how alike two are, by their places, the smaller one first; 0 where it is not said.
    linked : pairs that belong together although nothing says how alike they are.
    """
    count = len(models)
    if count < 2:
        return tuple(range(count)), ()
    from scipy.cluster.hierarchy import leaves_list, linkage

    places = sorted(range(count), key=lambda at: (models[at].name, models[at].commit, at))
    kin = {both for both, known in likeness.items() if known > 0}
    rank = _ranks(places, lambda both: both in kin or both in linked)
    apart = [
        1.0 - likeness.get((min(both), max(both)), 0.0)
        if rank[both[0]] == rank[both[1]]
        else 1.0 + _LATER * max(rank[both[0]], rank[both[1]])
        for both in combinations(places, 2)
    ]
    table = linkage(np.asarray(apart), "average", optimal_ordering=count <= _ORDERED)

    def named(branch: float) -> int:
        return places[int(branch)] if branch < count else int(branch)

    tree = tuple(
        Branch(named(row[0]), named(row[1]), min(max(float(row[2]), 0.0), 1.0)) for row in table
    )
    order = [places[int(leaf)] for leaf in leaves_list(table)]
    return tuple(sorted(order, key=rank.__getitem__)), tree


def _ranks(places: Sequence[int], linked: Callable[[Places], bool]) -> Mapping[int, int]:
    """For each place that of its group, the largest group first, then the first by name."""
    groups: list[list[int]] = []
    for at in places:
        kin = [group for group in groups if any(linked((min(at, to), max(at, to))) for to in group)]
        groups = [group for group in groups if group not in kin]
        groups.append(sorted((at, *(to for group in kin for to in group)), key=places.index))
    groups.sort(key=lambda group: (-len(group), places.index(group[0])))
    return {at: rank for rank, group in enumerate(groups) for at in group}
