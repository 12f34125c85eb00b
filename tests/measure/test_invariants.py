"""Shares that no relabelling, flip, turn or rotation changes, and what strangers make of them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import ortho_group

from kinprint.measure.basis import (
    gram_turn,
    mutual,
    nearest_cosines,
    polar_factor,
    refined,
    spread,
    token_table,
    traceless_gram,
    unit_rows,
)
from kinprint.measure.invariants import (
    HeadRows,
    Share,
    UnitRows,
    agreements,
    effective_gains,
    head_agreement,
    plane_agreements,
    unit_agreement,
)

Floats = NDArray[np.float32]
WIDTH, UNITS = 32, 96


def normal(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def layer(seed: int) -> UnitRows:
    up, down, gate = normal(seed, 3, UNITS, WIDTH)
    return UnitRows.of(up, down, gate)


def turn(seed: int, width: int = WIDTH) -> Floats:
    return np.asarray(ortho_group.rvs(width, random_state=seed), np.float32)


def disguised(units: UnitRows, basis: Floats, seed: int) -> UnitRows:
    """The same units in another basis, order, sign and size."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(units.count)
    factor = (rng.choice([-1, 1], units.count) * rng.uniform(0.5, 2, units.count))[:, None]
    gate = units.gate
    assert gate is not None
    return UnitRows.of(
        ((units.up * factor) @ basis)[order],
        ((units.down / factor) @ basis)[order],
        (gate @ basis)[order],
    )


def test_every_symmetry_redrawn_leaves_all_shares_at_one() -> None:
    one, basis = layer(1), turn(2)
    found = unit_agreement(one, disguised(one, basis, 3), basis)
    whole = Share(UNITS, UNITS)
    assert found.mutual == found.concordance == found.two_of_three == found.span == whole
    assert found.cosine == pytest.approx(1, abs=1e-5)


def test_strangers_agree_in_few_units() -> None:
    found = unit_agreement(layer(1), layer(2), None)
    assert found.two_of_three.value < 0.12 and found.span.value < 0.1
    assert 0.2 < found.concordance.value < 0.8


def test_some_rows_meet_all_units_of_the_other() -> None:
    one, basis = layer(1), turn(2)
    some = one.some([4, 9, 50])
    found = unit_agreement(some, disguised(one, basis, 3), basis)
    assert found.two_of_three == found.span == Share(3, 3)


@pytest.mark.parametrize(
    ("attack", "left"),
    [
        (lambda one: UnitRows.of(one.gate, one.down, one.up), "span"),
        (lambda one: UnitRows.of(one.up * signs(), one.down, one.gate), "two_of_three"),
    ],
)
def test_attacks_leave_some_share(attack: Callable[[UnitRows], UnitRows], left: str) -> None:
    one = layer(1)
    found = unit_agreement(one, attack(one), None)
    assert getattr(found, left).value == 1
    assert found.concordance.value < 0.8


def signs() -> Floats:
    return np.random.default_rng(5).choice(np.array([-1, 1], np.float32), (UNITS, 1))


def test_exchanged_gate_and_up_are_found_by_their_plane() -> None:
    one, basis = layer(1), turn(2)
    assert one.gate is not None
    swapped = disguised(UnitRows.of(one.gate, one.down, one.up), basis, 3)
    (found,) = plane_agreements([one], [layer(4), swapped], [basis])
    assert found.partner == 1 and found.span.value == 1


def test_one_partner_for_all_is_no_agreement() -> None:
    copies = UnitRows.of(*(np.tile(normal(seed, 1, WIDTH), (UNITS, 1)) for seed in (1, 2, 3)))
    found = unit_agreement(layer(4), copies, None)
    assert found.two_of_three.count <= 1 and found.span.count <= 1
    assert unit_agreement(copies, copies, None).two_of_three.count == 1


def test_units_without_a_row_take_no_part() -> None:
    up, down, gate = normal(1, 3, 8, WIDTH)
    up[2], gate[5], down[7] = 0, np.nan, 0
    assert UnitRows.of(up, down, gate).count == 5


def test_plain_feed_forwards_are_matched_by_up_and_judged_by_down() -> None:
    rows = normal(1, 2, UNITS, WIDTH)
    order, basis = np.random.default_rng(2).permutation(UNITS), turn(3)
    one = UnitRows.of(rows[0], rows[1])
    found = unit_agreement(one, UnitRows.of(*(part[order] @ basis for part in rows)), basis)
    assert found.nearest == found.mutual == Share(UNITS, UNITS)
    assert not found.concordance.of and not found.two_of_three.of
    stranger = UnitRows.of(*normal(4, 2, UNITS, WIDTH))
    assert unit_agreement(one, stranger, None).nearest.value < 0.1


def test_layers_find_their_partners_and_maps_one_by_one() -> None:
    """One layer copied raw needs the identity, the others a map."""
    layers, basis = [layer(seed) for seed in (1, 2, 3)], turn(4)
    others = [disguised(layers[1], basis, 5), layers[2], disguised(layers[0], basis, 6)]
    found = agreements(layers, others, [None, basis])
    assert [(one.partner, one.turn) for one in found] == [(2, 1), (0, 1), (1, 0)]
    assert all(one.units.two_of_three.value == 1 for one in found)
    assert all(one.control is not None and one.control.value < 0.15 for one in found)


def test_a_map_from_few_tokens_is_refined_by_gates_alone() -> None:
    layers, basis = [layer(seed) for seed in (1, 2)], turn(3)
    others = [disguised(one, basis, 4) for one in layers]
    tokens = normal(5, WIDTH // 2, WIDTH)
    table = token_table(tokens, tokens @ basis + 0.4 * normal(6, WIDTH // 2, WIDTH))
    keys = [one.key for one in layers], [one.key for one in others]
    start = polar_factor(table)
    found = refined(*keys, start, table)
    assert np.abs(found - basis).max() < np.abs(start - basis).max() / 4
    assert nearest_cosines(*keys, found).max(axis=1).mean() > 0.99


@pytest.mark.parametrize("at_once", [1, 4_000_000])
def test_nearest_cosines_are_those_of_single_rows(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kinprint.measure.basis._SCORES", at_once)
    rng = np.random.default_rng(5)
    first, second = (
        [unit_rows(rng.normal(size=(count, 24)).astype(np.float32)) for count in counts]
        for counts in ((10, 100, 64), (30, 50, 30))
    )
    turn = np.linalg.qr(rng.normal(size=(24, 24)))[0].astype(np.float32)
    expected = [
        [(ours[spread(len(ours), 16)] @ turn @ theirs.T).max(axis=1).mean() for theirs in second]
        for ours in first
    ]
    assert nearest_cosines(first, second, turn, 16) == pytest.approx(np.array(expected), abs=1e-6)


def test_widths_may_differ() -> None:
    layers = [layer(seed) for seed in (1, 2)]
    kept = np.arange(24)
    narrow = [UnitRows.of(one.up[:, kept], one.down[:, kept], one.key[:, kept]) for one in layers]
    tokens = normal(3, 200, WIDTH)
    table = token_table(tokens[:, kept], tokens)
    keys = [one.key for one in narrow], [one.key for one in layers]
    found = agreements(narrow, layers, [refined(*keys, polar_factor(table), table)])
    assert [one.partner for one in found] == [0, 1]
    assert all(one.units.two_of_three.value > 0.9 for one in found)


def test_gram_matrices_give_a_map_up_to_its_sign() -> None:
    rows = [normal(seed, 400, WIDTH) * np.linspace(0.3, 2, WIDTH) for seed in range(4)]
    mixed = [part @ turn(seed) for seed, part in enumerate(rows)]
    basis = turn(9)
    found = gram_turn(
        [traceless_gram(part) for part in mixed], [traceless_gram(part @ basis) for part in mixed]
    )
    assert min(np.abs(found - basis).max(), np.abs(found + basis).max()) < 1e-3


def test_mutual_needs_both_sides_and_a_score() -> None:
    best, both = mutual(np.array([[0.9, 0.1], [0.8, 0.2], [-1.0, -1.0]]))
    assert best[0] == 0 and both.tolist() == [True, False, False]


def heads(seed: int) -> HeadRows:
    q, o = normal(seed, 2, 6, 8, WIDTH)
    k, v = normal(seed + 50, 2, 3, 8, WIDTH)
    return HeadRows(q, k, v, o, rotated=6)


def test_heads_are_matched_whatever_planes_values_and_names_were_redrawn() -> None:
    one, basis, rng = heads(1), turn(2), np.random.default_rng(3)
    angle = np.exp(1j * rng.uniform(0, 6, (3, 3, 1)))

    def turned(rows: Floats, by: NDArray[np.complex128]) -> NDArray[np.float64]:
        planes = (rows[:, :3] + 1j * rows[:, 3:6]) * by
        return np.concatenate([planes.real, planes.imag, rows[:, 6:]], axis=1)

    mixes = np.stack([turn(seed, 8) for seed in (4, 5, 6)])
    order = np.array([2, 0, 1])
    queries = np.concatenate([[2 * group + 1, 2 * group] for group in order])
    moved = HeadRows(
        (turned(one.q, angle.repeat(2, axis=0)) @ basis)[queries],
        (turned(one.k, angle) @ basis)[order],
        (mixes @ one.v @ basis)[order],
        (mixes.repeat(2, axis=0) @ one.o @ basis)[queries],
        rotated=6,
    )
    assert head_agreement(one, moved, basis) == Share(6, 6)
    stranger = head_agreement(one, heads(7), None)
    assert stranger is not None and stranger.value < 0.8
    assert head_agreement(one, HeadRows(one.q, one.k, one.v, one.o, rotated=8), None) is None


def test_effective_gains_do_not_see_who_holds_the_scale() -> None:
    gains, rows = 1 + 0.3 * normal(1, WIDTH), normal(2, 40, WIDTH)
    written = np.exp(normal(3, WIDTH))
    ours = effective_gains([rows * gains])
    theirs = effective_gains([(rows * gains / written) * written])
    np.testing.assert_allclose(ours, theirs, rtol=1e-5)


def test_rows_of_zero_or_no_number_become_zero() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [np.inf, 1.0]])
    np.testing.assert_allclose(unit_rows(rows), np.array([[0.6, 0.8], [0, 0], [0, 0]]), atol=1e-6)
