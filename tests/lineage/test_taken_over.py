"""Taken over, or only started alike: what gains, matrices and norms say of linked parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from kinprint.lineage.alignment.residual import MapSource, ResidualMap
from kinprint.lineage.gains import gain_likeness
from kinprint.lineage.preparation import Prepared
from kinprint.lineage.reading.sample import Floats
from kinprint.lineage.taken_over import APART_GAINS, LIMITS, NARROW, Limits, judged, limits_of
from kinprint.records import Component, Part, PartFinding, PartState
from tests.lineage.made import keyed, made

LAYERS = 3


def found(
    component: Component, likeness: float, gains: float | None = None, equal: bool = False
) -> list[PartFinding]:
    """Linked parts of one kind, one a layer."""
    parts = [Part(component, layer) for layer in range(LAYERS)]
    state = PartState.EQUAL if equal else PartState.SHARED
    return [
        PartFinding(part, part, state, likeness, gains=gains, learnt=True if equal else None)
        for part in parts
    ]


def told(
    findings: Sequence[PartFinding],
    limits: Limits = LIMITS,
    moved: float = 1.0,
    carried: float | None = None,
) -> set[bool | None]:
    return {one.learnt for one in judged(findings, limits, moved, 0.9, lambda _: carried)}


@pytest.mark.parametrize("limits", [LIMITS, NARROW])
def test_gains_decide_for_matrices_that_do_not_tell_themselves(limits: Limits) -> None:
    for gains, learnt in ((limits.gains, True), (limits.gains - 0.01, None), (APART_GAINS, False)):
        assert told(found(Component.FEED_FORWARD, 0.5, gains), limits) == {learnt}
    # Whatever gains say, no initialisation leaves trained matrices so close.
    assert told(found(Component.FEED_FORWARD, limits.sure, 0.1), limits) == {True}
    assert told(found(Component.FEED_FORWARD, limits.sure, 0.1), limits, moved=0.0) == {False}


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
    assert told(twins, limits_of(64)) == {None}
    assert limits_of(128) is LIMITS and limits_of(127) is NARROW


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
        assert {one.learnt for one in judged([*matrices, *norms], LIMITS, 1.0, 0.9, _none)} == {
            learnt, None,
        }  # fmt: skip


def _none(finding: PartFinding) -> None:
    """No gains in another basis."""


def test_gains_in_another_basis_can_say_that_a_matrix_was_taken_over_and_no_more() -> None:
    linked = found(Component.FEED_FORWARD, 0.7)
    assert told(linked, carried=LIMITS.gains) == {True}
    assert told(linked, carried=0.1) == {None}
    assert told(found(Component.FEED_FORWARD, LIMITS.matrices), carried=0.1) == {True}


def test_equal_numbers_need_no_limit() -> None:
    assert told(found(Component.ROUTER, 1.0, equal=True)) == {True}
    assert told(found(Component.ROUTER, 1.0)) == {None}


def test_effective_gains_are_carried_into_the_basis_of_the_other_model() -> None:
    """Channels renamed and flipped, or a whole rotation: the gains that they feed are the same."""
    model = made(1, width=32)
    rng = np.random.default_rng(2)
    part = Part(Component.FEED_FORWARD, 1)
    turn: Floats = np.linalg.qr(rng.normal(size=(32, 32)))[0].astype(np.float32)
    units = model.units[1]
    gain = model.norms["norm_post_attn", 1]
    assert units.gate is not None
    scale: Floats = np.exp(rng.normal(0, 0.5, 32)).astype(np.float32)
    gate: Floats = units.gate * gain * scale
    up: Floats = units.up * gain * scale
    turned: tuple[Floats, Floats] = gate @ turn, up @ turn
    folded = {**model.norms, ("norm_post_attn", 1): np.ones(32, np.float32)}
    plain = keyed(replace(model, norms=folded, units={1: replace(units, gate=gate, up=up)}))
    other = keyed(replace(plain, units={1: replace(units, gate=turned[0], up=turned[1])}))
    first, second = Prepared(plain), Prepared(other)
    back = ResidualMap(MapSource.TOKENS, turn)
    assert (gain_likeness(first, second, part, part, back) or 0.0) > 0.999
    assert abs(gain_likeness(first, second, part, part) or 0.0) < 0.6
