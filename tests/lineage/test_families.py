"""Trees of models: who joins whom first, whichever way they are given."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinprint.lineage.families import Branch, family_tree, likeness_of
from kinprint.records import Amount, ModelRef, Relation, Verdict


def refs(names: str) -> list[ModelRef]:
    return [ModelRef(name, "hub", name) for name in names]


def test_the_most_alike_join_first() -> None:
    order, tree = family_tree(refs("abcd"), {(0, 2): 0.9, (1, 3): 0.5})
    assert tree[0].height == pytest.approx(0.1) and {tree[0].one, tree[0].other} == {0, 2}
    assert {tree[1].one, tree[1].other} == {1, 3}
    assert {tree[2].one, tree[2].other} == {4, 5} and tree[2].height == pytest.approx(1.0)
    assert abs(order.index(0) - order.index(2)) == 1 and sorted(order) == [0, 1, 2, 3]


def leaves(tree: tuple[Branch, ...], branch: int, names: str) -> frozenset[str]:
    if branch < len(names):
        return frozenset(names[branch])
    merge = tree[branch - len(names)]
    return leaves(tree, merge.one, names) | leaves(tree, merge.other, names)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.permutations(range(6)))
def test_the_order_of_arguments_changes_places_only(seed: int, order: list[int]) -> None:
    """Likenesses with many ties, which a careless clustering breaks by position."""
    chance = np.random.default_rng(seed)
    names = "abcdef"
    known = {
        frozenset(pair): float(chance.choice([0.0, 0.5, 0.9])) for pair in combinations(names, 2)
    }

    def drawn(given: str) -> tuple[list[tuple[frozenset[str], float]], str]:
        likeness = {
            (a, b): known[frozenset((given[a], given[b]))] for a, b in combinations(range(6), 2)
        }
        places, tree = family_tree(refs(given), likeness)
        joined = [
            (leaves(tree, merge.one, given) | leaves(tree, merge.other, given), merge.height)
            for merge in tree
        ]
        return joined, "".join(given[at] for at in places)

    assert drawn(names) == drawn("".join(names[at] for at in order))


def test_one_or_two_models_have_trees_too() -> None:
    assert family_tree(refs("a"), {}) == ((0,), ())
    order, tree = family_tree(refs("ba"), {(0, 1): 1.0})
    assert sorted(order) == [0, 1] and tree[0].height == 0.0


def test_likeness_counts_what_is_not_linked_as_nothing() -> None:
    amount = Amount(linked=0.25, likeness=0.8)
    assert likeness_of(Verdict(Relation.PARTIAL, -9.0, 1e-6, amount=amount)) == 0.2
    assert likeness_of(Verdict(Relation.NO_EVIDENCE, 0.0, 1e-6, amount=amount)) == 0.0
    assert likeness_of(Verdict(Relation.DEPENDENT, -9.0, 1e-6)) == 0.0
    assert likeness_of(Verdict(Relation.IDENTICAL, -77.0, 1e-6)) == 1.0


def test_groups_come_first_the_largest_before_all() -> None:
    likeness = {(0, 5): 0.9, (1, 3): 0.5, (1, 6): 0.4}
    order, tree = family_tree(refs("abcdefg"), likeness)
    assert set(order[:3]) == {1, 3, 6} and set(order[3:5]) == {0, 5} and order[5:] == (2, 4)
    assert [branch.height for branch in tree[-3:]] == [1.0] * 3  # groups are equally unlike


def test_what_is_linked_stands_together_although_nothing_says_how_alike_it_is() -> None:
    order, _ = family_tree(refs("abcd"), {}, {(0, 3)})
    assert set(order[:2]) == {0, 3}
