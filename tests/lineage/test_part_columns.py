"""Columns of matched rows: copies show in any numbering, and the p-value is that of chance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.lineage.pair import Pair
from kinprint.lineage.parts import columns
from kinprint.lineage.parts.columns import ColumnScore, HalfChannels, column_scores
from kinprint.lineage.parts.judging import COPIED
from kinprint.lineage.parts.scores import MATCHED_COLUMNS, PartScore, part_scores
from kinprint.lineage.preparation import DENSE, FeedForward, Heads, Prepared
from kinprint.lineage.reading.sample import Attention, Sample, Units
from kinprint.records import Component
from tests.lineage.made import keyed, made, noisy
from tests.nulls.worlds import assert_valid

WIDTH = 64
MODEL = made(1, width=WIDTH, depth=2)
DRAWS = 60


def scores(a: Sample, b: Sample) -> list[PartScore]:
    return [one for one in part_scores(Pair(a, b), ()) if one.test == MATCHED_COLUMNS]


def feed_forwards(
    halves: HalfChannels, first: FeedForward, second: FeedForward
) -> ColumnScore | None:
    """The score of two feed-forwards by themselves."""
    rows = halves.feed_forwards(halves.halved(first), halves.halved(second))
    return None if rows is None else column_scores([rows])[0]


def attention(
    halves: HalfChannels, first: Heads, second: Heads, *, turned: bool = False
) -> ColumnScore | None:
    """The score of the attention of two layers by themselves."""
    rows = halves.attention(halves.halved(first), halves.halved(second), turned=turned)
    return None if rows is None else column_scores([rows])[0]


def remade(sample: Sample, rng: np.random.Generator) -> Sample:
    """The same function: units in another order, flipped and rescaled, planes turned, values mixed;
    the residual stream as it is."""
    return keyed(
        replace(
            sample,
            units={layer: _units(one, rng) for layer, one in sample.units.items()},
            attention={layer: _attention(one, rng) for layer, one in sample.attention.items()},
        )
    )


def _units(units: Units, rng: np.random.Generator) -> Units:
    order = rng.permutation(len(units.up))
    scale = (rng.choice([-1.0, 1.0], len(order)) * rng.uniform(0.5, 2, len(order)))[:, None]
    assert units.gate is not None
    up, down = units.up[order] * scale, units.down[order] / scale
    return replace(
        units, gate=units.gate[order], up=up.astype(np.float32), down=down.astype(np.float32)
    )


def _attention(part: Attention, rng: np.random.Generator) -> Attention:
    """Groups swapped, each plane turned by an angle of its own, values mixed by any matrix."""
    assert part.q is not None and part.k is not None
    assert part.v is not None and part.o is not None
    groups, inside = len(part.k), len(part.q) // len(part.k)
    rows = {
        "k": part.k[::-1].copy(),
        "v": part.v[::-1].copy(),
        "q": part.q.reshape(groups, inside, *part.q.shape[1:])[::-1].copy(),
        "o": part.o.reshape(groups, inside, *part.o.shape[1:])[::-1].copy(),
    }
    half = part.k.shape[1] // 2
    for group in range(groups):
        turn = np.exp(1j * rng.uniform(0, 2 * np.pi, half))[:, None]
        for heads in (rows["k"][group : group + 1], rows["q"][group]):
            planes = (heads[:, :half] + 1j * heads[:, half:]) * turn
            heads[:, :half], heads[:, half:] = planes.real, planes.imag
        mix = rng.normal(size=(part.v.shape[1],) * 2) + 3 * np.eye(part.v.shape[1])
        rows["v"][group] = mix @ rows["v"][group]
        rows["o"][group] = np.linalg.inv(mix).T @ rows["o"][group]
    return replace(
        part, k=rows["k"], v=rows["v"],
        q=rows["q"].reshape(part.q.shape), o=rows["o"].reshape(part.o.shape),
    )  # fmt: skip


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_a_copy_shows_in_every_part_whatever_its_rows_were_made_into(share: float) -> None:
    rng = np.random.default_rng(2)
    found = scores(MODEL, remade(noisy(MODEL, share, 3), rng))
    assert {one.parts[0].component for one in found} == {
        Component.ATTENTION, Component.FEED_FORWARD,
    }  # fmt: skip
    assert len(found) == 4 and all(one.parts[0] == one.parts[1] for one in found)
    for one in found:
        assert one.log10_p < 0.75 * one.floor < -8
        assert one.likeness > 0.85 and one.matched and one.as_stored


def test_a_copy_in_another_layer_is_found_there() -> None:
    units, attention = MODEL.units, MODEL.attention
    swapped = replace(
        MODEL, units={0: units[1], 1: units[0]}, attention={0: attention[1], 1: attention[0]}
    )
    moved = remade(keyed(swapped), np.random.default_rng(4))
    found = {one.parts: one for one in scores(MODEL, moved)}
    for (ours, theirs), one in found.items():
        assert (one.likeness > 0.85) is (ours.layer != theirs.layer)


def test_one_copied_layer_does_not_speak_for_the_others() -> None:
    stranger = made(5, width=WIDTH, depth=2)
    grafted = keyed(replace(stranger, units={**stranger.units, 1: MODEL.units[1]}))
    found = {
        one.parts[0].layer: one
        for one in scores(MODEL, remade(grafted, np.random.default_rng(6)))
        if one.parts[0].component is Component.FEED_FORWARD and one.parts[0] == one.parts[1]
    }
    assert found[1].likeness > 0.9 and found[1].log10_p < -8
    assert abs(found[0].likeness) < 0.2 and found[0].log10_p > -3


def test_what_is_fitted_does_not_see_what_is_judged() -> None:
    """Other numbers in the judged half leave every match and every likeness of the fitted half."""
    halves = HalfChannels.of(np.ones(WIDTH, bool))
    first = Prepared(MODEL).feed_forwards[0]
    second = Prepared(remade(MODEL, np.random.default_rng(7))).feed_forwards[0]
    order = np.arange(WIDTH)
    judged = np.flatnonzero(~halves.fitted)
    order[judged] = np.random.default_rng(8).permutation(judged)
    assert first.gate is not None
    moved = replace(
        first, up=first.up[:, order], down=first.down[:, order], gate=first.gate[:, order]
    )
    as_it_is, shuffled = feed_forwards(halves, first, second), feed_forwards(halves, moved, second)
    assert as_it_is is not None and shuffled is not None
    assert as_it_is.log10_p < -8 < -3 < shuffled.log10_p
    assert max(map(abs, shuffled.likenesses)) < 0.2


def one_group(heads: Heads) -> Heads:
    """The first of the groups of an attention."""
    assert heads.q is not None and heads.k is not None
    assert heads.v is not None and heads.o is not None
    inside = len(heads.q) // len(heads.k)
    return replace(heads, q=heads.q[:inside], k=heads.k[:1], v=heads.v[:1], o=heads.o[:1])


def test_a_model_with_fewer_heads_finds_all_of_its_own() -> None:
    halves = HalfChannels.of(np.ones(WIDTH, bool))
    heads = Prepared(MODEL).heads[0]
    copy = one_group(Prepared(remade(MODEL, np.random.default_rng(10))).heads[0])
    turned, straight = attention(halves, copy, heads, turned=True), attention(halves, heads, copy)
    assert turned is not None and straight is not None
    assert np.mean(turned.likenesses) > 0.85 > np.mean(straight.likenesses)
    assert turned.log10_p < -8 and turned.excess > COPIED > straight.excess


def test_channels_of_a_copy_drawn_anew_give_valid_p_values() -> None:
    """Everything else is the copy's: only the labels of the judged channels are chance."""
    rng = np.random.default_rng(9)
    copy = remade(MODEL, rng)
    halves = HalfChannels.of(np.ones(WIDTH, bool))
    ours, theirs = Prepared(MODEL), Prepared(copy)
    first, second, logs = ours.feed_forwards[0], theirs.feed_forwards[0], []
    heads, others = ours.heads[0], theirs.heads[0]
    assert first.gate is not None and heads.q is not None and heads.k is not None
    assert heads.v is not None and heads.o is not None
    fewer = one_group(others)
    for _ in range(DRAWS):
        order = np.concatenate([4 * block + rng.permutation(4) for block in range(WIDTH // 4)])
        order = np.where(halves.fitted, np.arange(WIDTH), order)
        moved = replace(
            first, up=first.up[:, order], down=first.down[:, order], gate=first.gate[:, order]
        )
        turned = replace(
            heads, q=heads.q[..., order], k=heads.k[..., order],
            v=heads.v[..., order], o=heads.o[..., order],
        )  # fmt: skip
        for score in (
            feed_forwards(halves, moved, second),
            attention(halves, turned, others),
            attention(halves, fewer, turned, turned=True),
        ):
            assert score is not None
            logs.append(score.log10_p)
    assert_valid(logs, (0.1, 0.01, 1e-3))


def test_several_parts_and_few_heads_at_a_time_tell_what_each_tells_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Heads are mixed in portions, and p-values are searched for together."""
    together = scores(MODEL, remade(noisy(MODEL, 0.5, 13), np.random.default_rng(14)))
    monkeypatch.setattr(columns, "_TOGETHER", 1)
    monkeypatch.setattr("kinprint.lineage.parts.scores.TOGETHER", 1)
    alone = scores(MODEL, remade(noisy(MODEL, 0.5, 13), np.random.default_rng(14)))
    assert len(together) == len(alone) == 4
    for one, other in zip(together, alone, strict=True):
        assert one.parts == other.parts and one.roles == other.roles
        assert [one.log10_p, one.likeness, one.excess] == pytest.approx(
            [other.log10_p, other.likeness, other.excess], rel=1e-9
        )


def over_one_covariance(rng: np.random.Generator, width: int, massive: int) -> tuple[Heads, Heads]:
    """Attention of two layers, each row drawn anew over a covariance whose spectrum falls fast."""
    axes = np.linalg.qr(rng.normal(size=(width, width)))[0]
    root = (axes / np.arange(1, width + 1)) @ axes.T
    large = rng.choice(width, massive, replace=False)
    groups, inside, rows = 3, 2, 32

    def drawn(*shape: int) -> Any:
        found = rng.normal(size=(*shape, width)) @ root
        found[..., large] *= 100
        return found / np.linalg.norm(found, axis=-1, keepdims=True)

    def layer() -> Heads:
        q, k = (drawn(2, count, rows // 2) for count in (groups * inside, groups))
        v, o = drawn(groups, rows), drawn(groups, inside, rows)
        return Heads(0, q[0] + 1j * q[1], k[0] + 1j * k[1], None, None, v, o)

    return layer(), layer()


@pytest.mark.parametrize(("width", "massive"), [(128, 0), (128, 3), (384, 0), (768, 2)])
def test_attention_drawn_apart_over_one_steep_covariance_is_no_copy(
    width: int, massive: int
) -> None:
    """Values that may be mixed freely are alike, and so are those of other heads."""
    first, second = over_one_covariance(np.random.default_rng([11, width]), width, massive)
    halves = HalfChannels.of(np.ones(width, bool))
    found, copy = attention(halves, first, second), attention(halves, first, first)
    assert found is not None and copy is not None
    assert max(found.likenesses) > 0.8 and found.log10_p < -12
    assert abs(found.excess) < COPIED / 2
    assert copy.excess > 2 * COPIED


def test_units_drawn_apart_over_one_steep_covariance_are_no_copies() -> None:
    rng = np.random.default_rng(12)
    axes = np.linalg.qr(rng.normal(size=(128, 128)))[0]
    root = (axes / np.arange(1, 129)) @ axes.T

    def units() -> FeedForward:
        rows = rng.normal(size=(3, 512, 128)) @ root
        rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
        up, down, gate = rows.astype(np.float32)
        size = rng.random(512, np.float32)
        read = frozenset({"up", "down", "gate"})
        return FeedForward(0, DENSE, np.arange(512), 512, up, down, gate, size, read)

    first, second = units(), units()
    halves = HalfChannels.of(np.ones(128, bool))
    found, copy = feed_forwards(halves, first, second), feed_forwards(halves, first, first)
    assert found is not None and copy is not None
    assert min(found.likenesses) > 0.5 and abs(found.excess) < COPIED / 2
    assert copy.excess > 2 * COPIED
