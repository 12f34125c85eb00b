"""Which models of many belong together: a likeness for each pair, a tree, an order of leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kinprint.lineage.charge import Charge
from kinprint.lineage.tests.registry import registered_test
from kinprint.records import Evidence, ModelRef, Relation, Verdict

_ORDERED = 256  # more leaves than this are not put into the best order: it takes too long


@dataclass(frozen=True, slots=True)
class Branch:
    """Two branches that meet at a height: leaves are places of models, then earlier branches."""

    one: int
    other: int
    height: float


def likeness_of(verdict: Verdict, evidence: Sequence[Evidence], charge: Charge) -> float:
    """The largest correlation of weights that is beyond chance; 0 where there is none."""
    if verdict.relation is Relation.IDENTICAL:
        return 1.0
    effects = [
        one.effect
        for one in evidence
        if registered_test(one).likeness and one.effect is not None and charge.significant(one)
    ]
    return float(min(max(effects, default=0.0), 1.0))


def family_tree(
    models: Sequence[ModelRef], likeness: Mapping[tuple[int, int], float]
) -> tuple[tuple[int, ...], tuple[Branch, ...]]:
    """An order of leaves and a tree by average linkage, with heights 1 − likeness.

    Models are sorted by name before ties are broken, so that the order in which they are
    given changes nothing but their places.
    """
    count = len(models)
    if count < 2:
        return tuple(range(count)), ()
    from scipy.cluster.hierarchy import leaves_list, linkage

    places = sorted(range(count), key=lambda at: (models[at].name, models[at].commit, at))
    apart = [
        1.0 - likeness.get((min(one, other), max(one, other)), 0.0)
        for at, one in enumerate(places)
        for other in places[at + 1 :]
    ]
    table = linkage(np.asarray(apart), "average", optimal_ordering=count <= _ORDERED)

    def named(branch: float) -> int:
        return places[int(branch)] if branch < count else int(branch)

    tree = tuple(Branch(named(row[0]), named(row[1]), max(float(row[2]), 0.0)) for row in table)
    return tuple(places[int(leaf)] for leaf in leaves_list(table)), tree
