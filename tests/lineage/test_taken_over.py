"""Taken over, or only started alike: what gains, matrices and norms say of linked parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.optimize import linear_sum_assignment

from kinprint.lineage.alignment.residual import MapSource, ResidualMap
from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.arranged import arranged_units
from kinprint.lineage.parts.gains import gain_likeness
from kinprint.lineage.parts.taken_over import (
    APART_GAINS,
    LIMITS,
    NARROW,
    SAME_INIT_MATRICES,
    Circumstances,
    Limits,
    judged,
    limits_of,
)
from kinprint.lineage.preparation import Prepared
from kinprint.lineage.reading.sample import Floats
from kinprint.lineage.side import Side
from kinprint.records import Component, Part, PartFinding, PartState
from tests.lineage.made import keyed, made

LAYERS = 3


def _always(answer: bool, finding: PartFinding) -> bool:
    return answer


def found(
    component: Component, likeness: float, gains: float | None = None, equal: bool = False
) -> list[PartFinding]:
    """Linked parts of one kind, one a layer."""
    parts = [Part(component, layer) for layer in range(LAYERS)]
    state = PartState.EQUAL if equal else PartState.SHARED
    return [
        PartFinding(
            part, part, state, likeness, gains=gains, learnt=True if equal else None, weights=1
        )
        for part in parts
    ]


def circumstances(**others: Any) -> Circumstances:
    """Of two models of one width, as they are stored, but for what is said."""
    usual = Circumstances(
        limits=LIMITS,
        moved=1.0,
        arranged=lambda _: 0.35,
        mixed=0.6,
        arranged_norms=lambda _: 0.9,
        carried_gains=lambda _: None,
        columns=lambda _: None,
        as_stored=lambda _: True,
        marked=lambda _: True,
        turnable=lambda _: False,
    )
    return replace(usual, **others)


def told(
    findings: Sequence[PartFinding],
    limits: Limits = LIMITS,
    moved: float = 1.0,
    carried: float | None = None,
    as_stored: bool = True,
    marked: bool = True,
    columns: float | None = None,
) -> set[bool | None]:
    known = circumstances(
        limits=limits,
        moved=moved,
        carried_gains=lambda _: carried,
        columns=lambda _: columns,
        as_stored=lambda _: as_stored,
        marked=lambda _: marked,
    )
    return {one.learnt for one in judged(findings, known)}


@pytest.mark.parametrize("limits", [LIMITS, NARROW])
def test_gains_decide_for_matrices_that_do_not_tell_themselves(limits: Limits) -> None:
    for gains, learnt in ((limits.gains, True), (limits.gains - 0.01, None), (APART_GAINS, False)):
        likeness = SAME_INIT_MATRICES if learnt is False else 0.5
        assert told(found(Component.FEED_FORWARD, likeness, gains), limits) == {learnt}


def test_gains_of_a_stranger_that_was_numbered_anew_say_nothing_of_its_matrices() -> None:
    """Numbering channels makes gains agree, and mixing values attention, but no feed-forward."""
    framed = found(Component.FEED_FORWARD, 0.17, 0.73)
    mixed = found(Component.ATTENTION, 0.57, 0.73)
    norms = found(Component.NORMS, 0.8)
    assert told([*framed, *mixed, *norms]) == {None}
    # Nor where some of its layers are the other model's.
    own = replace(framed[0], likeness=0.9, gains=0.95)
    known = judged([own, *framed[1:], *mixed], circumstances())
    taken = {one.part for one in known if one.learnt}
    assert taken == {own.part, mixed[0].part}
    # Norms that agree more than numbering makes them were taken over.
    assert told([*framed, *found(Component.NORMS, 0.9)]) == {True, None}
    # A stranger in another basis, its columns scaled.
    assert told(framed, carried=0.9, as_stored=False) == {None}
    # Attention alone has no feed-forward beside it that speaks.
    alone = [*found(Component.ATTENTION, 0.62, 0.8), *mixed]
    assert {one.learnt for one in judged(alone[:LAYERS], circumstances())} == {True}
    assert {one.learnt for one in judged(mixed, circumstances())} == {None}


def test_what_a_turn_of_the_residual_stream_can_reach_of_few_weights_says_nothing() -> None:
    """Of one layer more than of all: it counts beside those that are as alike, or more."""
    bound = circumstances(arranged=lambda weights: 0.9 / weights**0.5)
    layers = found(Component.FEED_FORWARD, 0.6, 0.9)
    assert {one.learnt for one in judged(layers, bound)} == {True}
    assert {one.learnt for one in judged(layers[:1], bound)} == {None}
    # Others that are less alike do not speak for it, nor does it for them.
    low = [replace(one, likeness=0.2) for one in layers[1:]]
    assert {one.learnt for one in judged([layers[0], *low], bound)} == {None}
    high = [replace(layers[0], likeness=0.95), *low]
    assert [one.learnt for one in judged(high, bound)] == [True, None, None]
    # One matrix of three is as alike as a third of the layer.
    third = [replace(one, share=1 / 3) for one in layers]
    assert {one.learnt for one in judged(third, bound)} == {None}


def test_gains_of_a_strangers_attention_do_not_hide_feed_forwards_that_were_taken_over() -> None:
    tuned = found(Component.FEED_FORWARD, 0.9, 0.9)
    other = found(Component.ATTENTION, 0.2, 0.1)
    known = judged([*tuned, *other], circumstances())
    assert {one.part.component for one in known if one.learnt} == {Component.FEED_FORWARD}


def test_gains_that_agree_in_some_layers_of_twins_say_nothing() -> None:
    """Ungated models of width 256, one initialisation, texts in another order, hardly trained.

    Likeness of all tensors, and gains, of their attention and feed-forwards, layer by layer.
    """
    attention = ((0.377, 0.497), (0.364, 0.456), (0.397, 0.578), (0.406, 0.465))
    feed_forwards = ((0.692, 0.662), (0.445, 0.65), (0.391, 0.644), (0.393, 0.757))
    kinds = {Component.ATTENTION: attention, Component.FEED_FORWARD: feed_forwards}
    twins = [
        PartFinding(part, part, PartState.SHARED, likeness, gains=gains, weights=1)
        for component, layers in kinds.items()
        for layer, (likeness, gains) in enumerate(layers)
        for part in [Part(component, layer)]
    ]
    assert told([*twins, *found(Component.NORMS, 0.56)], moved=0.032) == {None}


@pytest.mark.parametrize(("width", "units", "layers"), [(64, 24, 1), (64, 160, 1), (64, 160, 4)])
def test_no_turn_makes_strangers_more_alike_than_is_allowed_for(
    width: int, units: int, layers: int
) -> None:
    """The best turn towards all units of random strangers, and units assigned in turns with it."""
    rng = np.random.default_rng(units + layers)
    sizes = {"width": width, "units": units, "depth": layers}
    pair = Pair(Side(made(1, **sizes)), Side(made(2, **sizes)))
    shape = layers, units, 3, width
    ours, theirs = (rng.normal(size=shape) / np.sqrt(width) for _ in range(2))
    placed = ours
    for _ in range(8):
        left, _, right = np.linalg.svd(placed.reshape(-1, width).T @ theirs.reshape(-1, width))
        turned = ours @ (left @ right)
        orders = [
            linear_sum_assignment(-np.einsum("ukd,vkd->uv", one, other))[1]
            for one, other in zip(theirs, turned, strict=True)
        ]
        placed = np.stack([one[order] for one, order in zip(ours, orders, strict=True)])
    cosines = np.einsum("lukd,lukd->luk", placed @ (left @ right), theirs)
    norms = (np.linalg.norm(one, axis=-1) for one in (placed, theirs))
    reached = float((cosines / np.prod([*norms], axis=0)).mean())
    allowed = arranged_units(pair)(shape[0] * units * 3 * width)
    assert 0.4 * allowed < reached < allowed


def test_gains_that_were_written_in_say_nothing_of_matrices() -> None:
    """Twins that were hardly trained have matrices as alike as copies; columns tell them apart."""
    matrices = found(Component.FEED_FORWARD, 0.9, 0.9)
    for columns, learnt in ((None, True), (LIMITS.gains, True), (0.3, None)):
        assert told(matrices, columns=columns) == {learnt}


def test_gains_that_were_learnt_apart_are_not_outvoted_by_matrices() -> None:
    """Models that started alike and were trained for a short time keep any likeness."""
    for likeness in (SAME_INIT_MATRICES + 0.01, 0.9, 0.99):
        assert told(found(Component.FEED_FORWARD, likeness, 0.1)) == {None}
        assert told(found(Component.FEED_FORWARD, likeness, 0.5)) == {None}


def test_matrices_without_gains_need_norms_that_were_taken_over_or_a_mark_of_training() -> None:
    """Models that started alike and were hardly trained have matrices as alike as that."""
    matrices = found(Component.FEED_FORWARD, LIMITS.matrices)
    assert told(matrices) == {True} and told(matrices, moved=0.0) == {None}
    assert told(matrices, marked=False) == {None}
    apart = [replace(one, state=PartState.NOT_COMPARABLE) for one in found(Component.NORMS, 0.5)]
    assert told([*matrices, *apart]) == {None}
    assert told([*matrices, *found(Component.NORMS, LIMITS.norms)], marked=False) == {True}
    # Layers scatter: one that is less alike follows the others, but not one that started alike.
    mixed = found(Component.FEED_FORWARD, 0.9)
    for likeness, learnt in ((0.76, {True}), (SAME_INIT_MATRICES, {True, None})):
        mixed[0] = replace(mixed[0], likeness=likeness)
        assert told(mixed) == learnt
    # In another basis the norms as stored say nothing.
    assert told([*matrices, *apart], as_stored=False) == {True, None}


def test_tables_follow_the_layers() -> None:
    """Rows of tokens that no text had keep their first weights."""
    table = [found(Component.EMBEDDING, 0.97)[0]]
    assert told(table) == {None}
    for likeness, gains, learnt in ((0.95, 0.1, None), (0.4, 0.1, None), (0.9, 0.9, True)):
        known = judged(
            [*table, *found(Component.ATTENTION, likeness, gains)],
            circumstances(turnable=lambda _: True),
        )
        assert known[0].learnt is learnt
    # Layers without a link have no first weights in common, so that the table was taken over.
    strangers = [
        replace(one, state=PartState.NOT_COMPARABLE) for one in found(Component.ATTENTION, 0.0)
    ]
    # Few of its rows may be those of a stranger that was turned.
    for turnable, learnt in ((False, True), (True, None)):
        few = circumstances(turnable=partial(_always, turnable))
        known = judged([*table, *strangers], few)
        assert known[0].learnt is learnt


def test_gains_of_copied_matrices_do_not_speak_for_others() -> None:
    copied = found(Component.ATTENTION, 1.0, 1.0, equal=True)
    assert told([*copied, *found(Component.FEED_FORWARD, 0.3, 0.3)]) == {True, None}


def test_twins_of_a_narrow_model_are_not_called_taken_over() -> None:
    """As close as twins of width 64 come that saw the same data in another order."""
    twins = [
        *found(Component.FEED_FORWARD, 0.92, 0.73),
        *found(Component.ATTENTION, 0.85, 0.73),
        *found(Component.NORMS, 0.75),
    ]
    assert told(twins, limits_of(64, 64)) == {None}
    assert limits_of(128, 128) is LIMITS and limits_of(127, 127) is NARROW


def test_the_mean_of_all_norms_decides_and_not_the_closest_one() -> None:
    norms = found(Component.NORMS, 0.6)
    norms[0] = replace(norms[0], likeness=0.86)
    matrices = found(Component.FEED_FORWARD, 0.5, 0.5)
    assert told([*norms, *matrices]) == {None}
    assert told([*found(Component.NORMS, LIMITS.norms), *matrices]) == {True, None}


def test_a_weak_merge_is_no_common_initialisation() -> None:
    """Its norms agree a little, layer by layer too little to be linked."""
    matrices = found(Component.FEED_FORWARD, 0.4, 0.2)
    for likeness, learnt in ((0.1, False), (0.35, None)):
        norms = [
            replace(one, state=PartState.NOT_COMPARABLE) for one in found(Component.NORMS, likeness)
        ]
        assert told([*matrices, *norms]) == {learnt, None}


def test_gains_in_another_basis_can_say_that_a_matrix_was_taken_over_and_no_more() -> None:
    linked = found(Component.FEED_FORWARD, 0.7)
    assert told(linked, carried=LIMITS.gains, as_stored=False) == {True}
    assert told(linked, carried=0.1, as_stored=False) == {None}
    close = found(Component.FEED_FORWARD, LIMITS.matrices)
    for carried, learnt in ((None, True), (LIMITS.gains, True), (0.5, None)):
        assert told(close, carried=carried, as_stored=False) == {learnt}


def test_equal_numbers_need_no_limit() -> None:
    assert told(found(Component.ROUTER, 1.0, equal=True)) == {True}
    assert told(found(Component.ROUTER, 1.0)) == {None}


def test_effective_gains_are_carried_into_the_basis_of_the_other_model() -> None:
    """Channels renamed and flipped, or a whole rotation: the gains that they feed are the same."""
    width = 128
    model = made(1, width=width)
    rng = np.random.default_rng(2)
    part = Part(Component.FEED_FORWARD, 1)
    turn: Floats = np.linalg.qr(rng.normal(size=(width, width)))[0].astype(np.float32)
    units = model.units[1]
    gain = model.norms["norm_post_attn", 1]
    assert units.gate is not None
    scale: Floats = np.exp(rng.normal(0, 0.5, width)).astype(np.float32)
    gate: Floats = units.gate * gain * scale
    up: Floats = units.up * gain * scale
    turned: tuple[Floats, Floats] = gate @ turn, up @ turn
    folded = {**model.norms, ("norm_post_attn", 1): np.ones(width, np.float32)}
    plain = keyed(replace(model, norms=folded, units={1: replace(units, gate=gate, up=up)}))
    other = keyed(replace(plain, units={1: replace(units, gate=turned[0], up=turned[1])}))
    first, second = Prepared(plain), Prepared(other)
    back = ResidualMap(MapSource.TOKENS, turn)
    assert (gain_likeness(first, second, part, part, 1.0, back) or 0.0) > 0.999
    assert abs(gain_likeness(first, second, part, part, 1.0) or 0.0) < 0.6


@pytest.mark.parametrize("units", [16, 352])
@pytest.mark.parametrize("moved", [0.0, 0.05])
def test_first_weights_that_are_common_are_no_common_gains(units: int, moved: float) -> None:
    """Columns of few rows have lengths that scatter, in both models alike."""
    start = made(1, width=128, units=units)
    part = Part(Component.FEED_FORWARD, 1)
    seen: list[Prepared] = []
    for seed in (2, 3):
        rng = np.random.default_rng(seed)
        gain = (1 + moved * rng.standard_normal(128)).astype(np.float32)
        norms = {**start.norms, ("norm_post_attn", 1): gain}
        seen.append(Prepared(keyed(replace(start, norms=norms))))
    alike = gain_likeness(seen[0], seen[1], part, part, 1.0)
    assert alike is None or alike <= APART_GAINS
    assert moved == 0.0 or units == 16 or alike is not None


def test_models_of_different_width_did_not_start_alike() -> None:
    """Matrices that agree by less than twins of one width can, and by more than they keep."""
    assert told(found(Component.FEED_FORWARD, 0.62), limits_of(128, 96)) == {True}
    assert told(found(Component.FEED_FORWARD, 0.44), limits_of(128, 96)) == {None}
    assert told(found(Component.FEED_FORWARD, 0.62), limits_of(128, 128)) == {None}
