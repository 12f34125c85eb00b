"""Parts in, kind out: the rules, and what must hold whatever the parts."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kinprint.lineage.kind import amount_of, kind_of_relation
from kinprint.records import (
    Component,
    Part,
    PartFinding,
    PartState,
    Reason,
    Relation,
    VerdictReason,
)

SIZES = {Component.NORMS: 256, Component.ATTENTION: 50_000, Component.FEED_FORWARD: 135_000}
LAYERS = 4
ARRANGED = 0.2


def part(
    component: Component,
    layer: int,
    state: PartState,
    likeness: float | None = None,
    learnt: bool | None = None,
) -> PartFinding:
    at = Part(component, layer)
    read = 0.0 if state is PartState.NOT_READ else 1.0
    return PartFinding(at, at, state, likeness, learnt=learnt, weights=SIZES[component], read=read)


def model(
    state: PartState, likeness: float | None = None, learnt: bool | None = None
) -> list[PartFinding]:
    """All parts of a model in one state."""
    return [
        part(component, layer, state, likeness, learnt)
        for layer in range(LAYERS)
        for component in SIZES
    ]


def altered(
    parts: Sequence[PartFinding], where: set[tuple[Component, int]], **fields: object
) -> list[PartFinding]:
    """The parts, some of them with other fields."""
    return [
        replace(one, **fields) if (one.part.component, one.part.layer) in where else one
        for one in parts
    ]


def every(component: Component) -> set[tuple[Component, int]]:
    return {(component, layer) for layer in range(LAYERS)}


def relation(parts: Sequence[PartFinding]) -> Relation:
    return kind_of_relation(parts, ARRANGED).relation


STRANGER = model(PartState.NOT_COMPARABLE)
TAKEN = {"state": PartState.SHARED, "likeness": 0.9, "learnt": True}
ALIKE = {"state": PartState.SHARED, "likeness": 0.3, "learnt": False}


def test_equal_weights_in_another_precision_are_the_same_weights() -> None:
    assert relation(model(PartState.EQUAL, 1.0, True)) is Relation.SAME_WEIGHTS
    assert relation(model(PartState.ROUNDED, 0.99, True)) is Relation.SAME_WEIGHTS
    one_changed = altered(model(PartState.EQUAL, 1.0, True), {(Component.ATTENTION, 2)}, **TAKEN)
    assert relation(one_changed) is Relation.DERIVED


def test_equal_experts_in_each_others_place_are_not_the_same_weights() -> None:
    expert = part(Component.FEED_FORWARD, 0, PartState.EQUAL, 1.0, True)
    here, there = (Part(Component.EXPERT, 0, number) for number in range(2))
    in_place = [replace(expert, part=one, partner=one) for one in (here, there)]
    moved = [replace(expert, part=one, partner=to) for one, to in ((here, there), (there, here))]
    assert relation(in_place) is Relation.SAME_WEIGHTS
    assert relation(moved) is Relation.DERIVED


def test_what_one_model_alone_has_makes_them_different_though_it_was_not_read() -> None:
    alone = part(Component.FEED_FORWARD, 0, PartState.NOT_READ)
    missing = replace(alone, partner=None, reason=Reason.PART_MISSING.message())
    equal = model(PartState.EQUAL, 1.0, True)
    assert relation([*equal, alone]) is Relation.SAME_WEIGHTS
    assert relation([*equal, missing]) is Relation.DERIVED


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({(Component.FEED_FORWARD, 1)}, Relation.PARTIAL),
        ({(Component.FEED_FORWARD, 1), (Component.ATTENTION, 1)}, Relation.PARTIAL),
        (every(Component.ATTENTION), Relation.PARTIAL),
        (every(Component.NORMS), Relation.PARTIAL),
        (every(Component.FEED_FORWARD), Relation.DERIVED),
    ],
)
@pytest.mark.parametrize("state", [PartState.EQUAL, PartState.SHARED])
def test_what_was_taken_over_is_taken_over_however_little(
    where: set[tuple[Component, int]], expected: Relation, state: PartState
) -> None:
    assert relation(altered(STRANGER, where, **{**TAKEN, "state": state})) is expected


def test_what_may_have_started_alike_is_not_counted_as_taken_over() -> None:
    """Half of the layers' weights or less: partial. What is linked and open does not count."""
    linked = model(PartState.SHARED, 0.6)
    half = altered(linked, {(each, at) for each in SIZES for at in range(LAYERS // 2)}, **TAKEN)
    for parts in (altered(linked, every(Component.NORMS), **TAKEN), half):
        kind = kind_of_relation(parts, ARRANGED)
        assert kind.relation is Relation.PARTIAL and "layers-unshared" in kind.reasons
    more = altered(half, {(Component.ATTENTION, LAYERS - 1)}, **TAKEN)
    assert relation(more) is Relation.DERIVED


def test_a_few_experts_do_not_speak_for_all_beside_norms_of_another_model() -> None:
    def expert(at: int, state: PartState) -> PartFinding:
        where, read = Part(Component.EXPERT, 0, at), float(state is PartState.EQUAL)
        return PartFinding(where, where, state, learnt=bool(read), weights=9_000, read=read)

    some = [expert(at, PartState.EQUAL if at < 3 else PartState.NOT_READ) for at in range(24)]
    own = part(Component.NORMS, 0, PartState.NOT_COMPARABLE)
    kind = kind_of_relation([own, *some], ARRANGED)
    assert kind.relation is Relation.PARTIAL and "experts-not-read" in kind.reasons
    taken = part(Component.NORMS, 0, PartState.SHARED, 0.9, learnt=True)
    assert relation([taken, *some]) is Relation.DERIVED
    assert relation([own, *(expert(at, PartState.EQUAL) for at in range(24))]) is Relation.DERIVED


def test_norms_are_partial_where_nothing_else_was_read() -> None:
    quick = altered(model(PartState.NOT_READ), every(Component.NORMS), read=1.0, **TAKEN)
    for parts in (quick, altered(quick, every(Component.NORMS), state=PartState.EQUAL)):
        kind = kind_of_relation(parts, ARRANGED)
    assert kind.relation is Relation.PARTIAL and "layers-not-read" in kind.reasons


def test_one_initialisation_is_about_all_that_is_linked() -> None:
    twins = altered(STRANGER, every(Component.FEED_FORWARD), **ALIKE)
    assert relation(twins) is Relation.SAME_INIT
    # One equal part, or one that was learnt together, and it is impossible.
    for taken in (TAKEN, {**TAKEN, "state": PartState.EQUAL}):
        assert relation(altered(twins, {(Component.ATTENTION, 0)}, **taken)) is Relation.PARTIAL
    # Matrices that are closer than trained twins are: the gains may have been made anew.
    close = {"state": PartState.SHARED, "likeness": 0.7, "learnt": None, "gains": 0.1}
    closer = kind_of_relation(altered(twins, {(Component.ATTENTION, 0)}, **close), ARRANGED)
    assert closer.relation is Relation.DEPENDENT and "matrices-alike" in closer.reasons
    unknown = altered(STRANGER, every(Component.FEED_FORWARD), **{**ALIKE, "learnt": None})
    assert relation(unknown) is Relation.DEPENDENT


def test_equal_numbers_that_nobody_trained_are_not_taken_over() -> None:
    for reason in (VerdictReason.AS_DRAWN, VerdictReason.FEW_EQUAL):
        untrained = {**TAKEN, "learnt": None, "untrained": reason}
        parts = altered(STRANGER, every(Component.ATTENTION), **untrained)
        kind = kind_of_relation(parts, ARRANGED)
        assert kind.relation is Relation.DEPENDENT and kind.reasons == (reason,)


def test_an_arranged_numbering_is_no_common_initialisation() -> None:
    framed = altered(STRANGER, every(Component.FEED_FORWARD), **{**ALIKE, "likeness": 0.15})
    kind = kind_of_relation(framed, ARRANGED)
    assert kind.relation is Relation.DEPENDENT and "arranged" in kind.reasons


def test_how_much_counts_weights_and_not_parts() -> None:
    amount = amount_of(altered(STRANGER, every(Component.FEED_FORWARD), **TAKEN))
    share = SIZES[Component.FEED_FORWARD] / sum(SIZES.values())
    assert amount.linked == pytest.approx(share)
    assert amount.layers == pytest.approx(135 / 185)
    assert amount.likeness == pytest.approx(0.9) and amount.read == 1.0


@st.composite
def findings(draw: st.DrawFn) -> list[PartFinding]:
    found = []
    for one in STRANGER:
        state = draw(st.sampled_from(PartState))
        likeness = draw(st.floats(0, 1)) if state.linked else None
        learnt = draw(st.sampled_from([True, False, None])) if state.linked else None
        read = 0.0 if state is PartState.NOT_READ else 1.0
        found.append(replace(
            one, state=state, likeness=likeness, learnt=True if state.same else learnt, read=read,
        ))  # fmt: skip
    return found


@given(findings(), st.randoms(use_true_random=False))
def test_the_order_of_parts_does_not_matter(parts: list[PartFinding], order: random.Random) -> None:
    before = kind_of_relation(parts, ARRANGED)
    order.shuffle(parts)
    assert kind_of_relation(parts, ARRANGED) == before


@given(findings())
def test_no_kind_says_more_than_its_parts(parts: list[PartFinding]) -> None:
    found = relation(parts)
    taken = [one for one in parts if one.learnt]
    unequal = [one for one in parts if not one.state.same and one.state is not PartState.NOT_READ]
    if found in (Relation.DERIVED, Relation.PARTIAL):
        assert taken
    if found is Relation.SAME_INIT:
        assert not taken
    if found is Relation.SAME_WEIGHTS:
        assert not unequal


def test_a_model_that_was_widened_is_all_there_whichever_has_more_weights() -> None:
    """Feed-forwards of which a quarter is the other model's: all of that one's."""
    narrow, wide = SIZES[Component.FEED_FORWARD], 4 * SIZES[Component.FEED_FORWARD]
    same = model(PartState.EQUAL, 1.0, learnt=True)
    for own, other in ((narrow, wide), (wide, narrow)):
        sizes = {"weights": own, "partner_weights": other}
        fields = {"state": PartState.SHARED, "share": 0.25, "least": 0.25, **sizes}
        parts = altered(same, every(Component.FEED_FORWARD), **fields)
        assert kind_of_relation(parts, ARRANGED).relation is Relation.DERIVED
        layers = amount_of(parts).layers
        assert layers is not None and layers < 0.5


def test_the_smaller_parts_of_two_models_are_not_one_model() -> None:
    """An eighth of one attention is the other, whose feed-forward is far larger."""
    attention = PartFinding(
        Part(Component.ATTENTION, 0), Part(Component.ATTENTION, 0), PartState.SHARED, 1.0,
        learnt=True, weights=800, partner_weights=100, least=0.125, read=1.0,
    )  # fmt: skip
    units = PartFinding(
        Part(Component.FEED_FORWARD, 0), Part(Component.FEED_FORWARD, 0), PartState.NOT_COMPARABLE,
        weights=90, partner_weights=800, read=1.0,
    )  # fmt: skip
    assert relation([attention, units]) is Relation.PARTIAL
    assert relation([attention, replace(units, partner_weights=90)]) is Relation.DERIVED
