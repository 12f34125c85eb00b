"""The invariants' tier: sees through every symmetry, stays silent on strangers, has no p-value."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import ortho_group

from kinprint.lineage.battery import gather_evidence
from kinprint.lineage.compare import charge_of
from kinprint.lineage.pair import Pair
from kinprint.lineage.parts.survey import find_sharing
from kinprint.lineage.reading.sample import Attention, Embedding, Extent, Floats, Sample, Units
from kinprint.lineage.results import Settings
from kinprint.lineage.side import Side
from kinprint.lineage.tests.invariants import (
    LIMITS,
    TESTS,
    Statistic,
    error_rates,
    invariant_evidence,
    known_of,
    known_pairs,
    log10_tail,
    share_interval,
    statistics,
)
from kinprint.measure.invariants import Share
from kinprint.records import (
    Component,
    Evidence,
    Part,
    PartFinding,
    PartState,
    Reason,
    Status,
    Tier,
)
from tests.lineage.made import keyed, made

BASE = made(1, units=96)


def laundered(sample: Sample, seed: int) -> Sample:
    """The same function with gains folded, channels rotated, units and value dimensions redrawn."""
    rng = np.random.default_rng(seed)
    turn = np.asarray(ortho_group.rvs(sample.width, random_state=seed), np.float32)

    def carried(rows: Floats | None, gain: Floats | float = 1.0) -> Floats:
        assert rows is not None
        return np.asarray((rows * gain) @ turn, np.float32)

    def units(layer: int, one: Units) -> Units:
        gain = sample.norms["norm_post_attn", layer]
        order = rng.permutation(len(one.up))
        if one.gate is None:  # neither flips nor scales
            up, down = carried(one.up, gain), carried(one.down)
            return Units(one.index, one.total, up[order], down[order])
        factor = np.asarray(rng.choice([-0.5, 1.5], (len(one.up), 1)), np.float32)
        up, down = carried(one.up * factor, gain), carried(one.down / factor)
        gate = carried(one.gate, gain)
        return Units(one.index, one.total, up[order], down[order], gate[order])

    def attention(layer: int, one: Attention) -> Attention:
        gain = sample.norms["norm_in", layer]
        mix = np.asarray(ortho_group.rvs(8, random_state=seed + layer), np.float32)
        q, k, v = (carried(rows, gain) for rows in (one.q, one.k, one.v))
        o = np.asarray(mix @ carried(one.o), np.float32)
        renamed = [1, 0, 3, 2]
        mixed = np.asarray(mix @ v, np.float32)
        return Attention(q[renamed], k, mixed, o[renamed], rotated=one.rotated)

    embedding = sample.embedding
    assert embedding is not None
    return keyed(
        replace(
            sample,
            name=f"{sample.name} laundered",
            norms={key: np.ones_like(gain) for key, gain in sample.norms.items()},
            units={layer: units(layer, one) for layer, one in sample.units.items()},
            attention={layer: attention(layer, one) for layer, one in sample.attention.items()},
            embedding=Embedding(embedding.tokens, embedding.ids, carried(embedding.rows)),
        )
    )


def without_gates(sample: Sample) -> Sample:
    units = {layer: replace(one, gate=None) for layer, one in sample.units.items()}
    return keyed(replace(sample, units=units))


def found(a: Sample, b: Sample) -> dict[str, Evidence]:
    return {one.test: one for one in invariant_evidence(Pair(a, b))}


def test_a_laundered_copy_agrees_in_everything() -> None:
    evidence = found(BASE, laundered(BASE, 3))
    assert set(evidence) == {TESTS[one].name for one in statistics(gated=True)}
    for one in evidence.values():
        assert one.tier is Tier.CALIBRATED and one.status is Status.OK
        assert one.agreement is not None and one.agreement.share == 1
        assert one.log10_p == 0 and one.bound == "none"
    assert {one.test for one in evidence.values() if one.agreement and one.agreement.speaks} == {
        "I.two-of-three", "I.span",
    }  # fmt: skip
    units = evidence["I.two-of-three"].agreement
    assert units is not None and units.count == units.of == 3 * 96
    assert units.control is not None and units.control < 0.2
    assert units.nine_of_ten == pytest.approx(288 * math.log10(0.9))


def test_strangers_are_silent_and_order_makes_no_difference() -> None:
    stranger = made(2, units=96)
    evidence = found(BASE, stranger)
    assert all(one.agreement is not None and not one.agreement.speaks for one in evidence.values())
    assert evidence == found(stranger, BASE)


def test_one_renumbered_layer_in_a_stranger_speaks() -> None:
    stranger, taken = made(2, units=96), BASE.units[1]
    assert taken.gate is not None
    order = np.random.default_rng(3).permutation(96)
    moved = Units(taken.index, 96, -taken.up[order], -taken.down[order], taken.gate[order])
    norm = "norm_post_attn", 1
    mixed = keyed(
        replace(
            stranger,
            units={**stranger.units, 1: moved},
            norms={**stranger.norms, norm: BASE.norms[norm]},
        )
    )
    units = found(BASE, mixed)["I.two-of-three"]
    assert units.agreement is not None and units.agreement.speaks
    by_layer = dict(units.by_layer)
    assert by_layer[1] == 1 and max(by_layer[0], by_layer[2]) < LIMITS[Statistic.TWO_OF_THREE].layer


def test_some_rows_are_enough_if_the_other_model_was_read_whole() -> None:
    copy = laundered(BASE, 3)
    some = np.arange(0, 96, 2)[:48]
    part = keyed(
        replace(
            copy,
            units={
                layer: Units(some, 96, one.up[some], one.down[some], one.gate[some])
                for layer, one in copy.units.items()
                if one.gate is not None
            },
        )
    )
    units = found(BASE, part)["I.two-of-three"].agreement
    assert units is not None and units.speaks and units.of == 3 * 48
    both = found(part, keyed(replace(part, name="again")))
    assert all(one.reason == Reason.WHOLE_FEED_FORWARDS.message() for one in both.values())


def with_parts(sample: Sample) -> Sample:
    every = Extent(1000, 1000)
    parts = {Part(Component.FEED_FORWARD, layer): every for layer in sample.units}
    return keyed(replace(sample, parts={Part(Component.EMBEDDING): every, **parts}))


def parts_of(a: Sample, b: Sample) -> dict[Component, PartFinding]:
    sides = Side(a), Side(b)
    pair = Pair(*sides)
    sharing = find_sharing(pair, sides[0], gather_evidence(pair), charge_of(Settings()))
    return {each.part.component: each for each in sharing.own}


def test_parts_that_only_the_invariants_link_say_so() -> None:
    base, copy, stranger = map(with_parts, (BASE, laundered(BASE, 3), made(2, units=96)))
    for one, other in ((base, copy), (copy, base)):
        found = parts_of(one, other)[Component.FEED_FORWARD]
        assert found.state is PartState.NOT_COMPARABLE
        assert found.reason == Reason.PART_INVARIANTS.message()
    found = parts_of(base, stranger)[Component.FEED_FORWARD]
    assert found.reason != Reason.PART_INVARIANTS.message()


def test_nothing_is_matched_without_feed_forwards() -> None:
    bare = keyed(replace(BASE, units={}))
    assert all(one.status is Status.NEEDS for one in found(BASE, bare).values())


def test_plain_feed_forwards_are_matched_by_up_and_judged_by_down() -> None:
    plain = without_gates(BASE)
    evidence = found(plain, laundered(plain, 3))
    assert set(evidence) == {"I.nearest", "I.heads"}
    units = evidence["I.nearest"].agreement
    assert units is not None and units.speaks and units.share == 1
    assert units.control is not None and units.control < 0.2 and units.width == 128
    for other in (without_gates(made(2, units=96)), made(2, units=96)):
        nearest = found(plain, other)["I.nearest"].agreement
        assert nearest is not None and not nearest.speaks


def test_known_pairs_are_those_of_the_nearest_width() -> None:
    assert known_of(Statistic.SPAN, 64, whole=True, gated=True).width == 64
    assert known_of(Statistic.SPAN, 600, whole=True, gated=True).width == 512
    assert known_of(Statistic.SPAN, 4096, whole=True, gated=True).width == 1024
    assert known_of(Statistic.NEAREST, 4096, whole=True, gated=False).width == 256
    assert len(known_of(Statistic.SPAN, 128, whole=False, gated=True).strangers) >= 45


def test_limits_lie_far_above_every_known_stranger_and_pupil() -> None:
    widths = {"gated": {64, 128, 256, 512, 768, 1024}, "plain": {128, 256}}
    for (kind, _, name), each in known_pairs().items():
        assert {known.width for known in each} == widths[kind]
        limit = LIMITS.get(Statistic(name))
        assert limit is None or all(limit.mean > 3 * known.largest for known in each)


def test_no_stranger_or_pupil_set_aside_is_accused_and_descendants_are_found() -> None:
    rates, pairs = error_rates(), {"gated": 70, "plain": 28}
    for kind, reading in product(pairs, ("whole", "rows")):
        of = {pair: rates["aside", kind, reading, pair] for pair in ("stranger", "pupil", "attack")}
        assert of["stranger"].of >= pairs[kind]
        assert of["stranger"].count == of["pupil"].count == 0
        assert of["attack"].value == 1
        assert rates["aside", kind, reading, "descendant"].value > 0.9


def test_intervals_and_tails() -> None:
    low, high = share_interval(Share(50, 100))
    assert low == pytest.approx(0.404, abs=1e-3) and high == pytest.approx(0.596, abs=1e-3)
    assert share_interval(Share(0, 0)) == (0.0, 1.0)
    assert log10_tail(Share(80, 100), 0.9) == 0
    assert log10_tail(Share(100, 100), 0.9) == pytest.approx(100 * math.log10(0.9))
    assert -3 < log10_tail(Share(97, 100), 0.9) < -1


def test_one_whole_layer_of_each_is_matched_among_layers_of_which_some_units_were_read() -> None:
    """So are large models read: the layer that was read whole must be among those compared."""

    def read(sample: Sample, whole: int) -> Sample:
        some = np.arange(0, 96, 2)
        units = {
            layer: one
            if layer == whole
            else Units(some, 96, one.up[some], one.down[some], one.gate[some])
            for layer, one in sample.units.items()
            if one.gate is not None
        }
        return keyed(replace(sample, units=units))

    deep = made(5, depth=12, units=96)
    evidence = found(read(deep, 7), read(laundered(deep, 6), 7))
    units = evidence["I.two-of-three"]
    assert units.agreement is not None and units.agreement.speaks
    assert dict(units.by_layer)[7] == 1
    stranger = found(read(deep, 7), read(made(6, depth=12, units=96), 7))
    assert not any(one.agreement and one.agreement.speaks for one in stranger.values())
