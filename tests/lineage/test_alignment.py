"""ResidualMap maps, partner layers and heads are found, and see neither labels nor signs."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace
from scipy.stats import ortho_group

from kinprint.lineage.alignment.blocks import common_blocks
from kinprint.lineage.alignment.residual import (
    IDENTITY,
    MapSource,
    ResidualMap,
    best_channels,
)
from kinprint.lineage.alignment.units import UnitStack, rate_map, spread_parts, unit_scores
from kinprint.lineage.pair import Pair
from kinprint.lineage.reading.sample import Floats, Sample
from kinprint.lineage.side import Side
from kinprint.measure.basis import polar_factor
from kinprint.nulls.fixed_points import nearest_rows
from tests.lineage.made import LLAMA, keyed, made, noisy
from tests.lineage.null_pairs import with_experts
from tests.lineage.relabelling import relabelled

BASE = made(1, units=96)


def turned(sample: Sample, seed: int) -> Sample:
    """The model with its norms folded away and its residual stream turned."""
    turn = ortho_group.rvs(sample.width, random_state=seed).astype(np.float32)

    def carry(rows: Floats | None, gain: Floats | float = 1.0) -> Floats:
        assert rows is not None
        return np.asarray((rows * gain) @ turn, np.float32)

    norms = sample.norms
    return keyed(
        replace(
            sample,
            norms={key: np.ones_like(gain) for key, gain in norms.items()},
            units={
                layer: replace(
                    one,
                    up=carry(one.up, norms["norm_post_attn", layer]),
                    gate=carry(one.gate, norms["norm_post_attn", layer]),
                    down=carry(one.down),
                )
                for layer, one in sample.units.items()
            },
            attention={
                layer: replace(
                    one,
                    q=carry(one.q, norms["norm_in", layer]),
                    k=carry(one.k, norms["norm_in", layer]),
                    v=carry(one.v, norms["norm_in", layer]),
                    o=carry(one.o),
                )
                for layer, one in sample.attention.items()
            },
            embedding=None
            if sample.embedding is None
            else replace(sample.embedding, rows=carry(sample.embedding.rows)),
        )
    )


def paired(
    a: Sample, b: Sample, level: str = "standard"
) -> tuple[Pair, tuple[str, float], tuple[int, ...]]:
    first = Side(a)
    pair = Pair(first, b, level=level)
    matching = pair.alignment_from(first).feed_forwards
    assert matching is not None
    return pair, (matching.residual.source, matching.quality), matching.partners


def test_a_turned_residual_stream_is_found_by_tokens() -> None:
    _, (name, quality), partners = paired(BASE, turned(BASE, 2))
    assert name == "polar factor of embeddings"
    assert quality > 2.9
    assert partners == (0, 1, 2)


def test_renamed_channels_are_found_by_tokens_and_by_gains() -> None:
    moved = relabelled(BASE, np.random.default_rng(3), signs=False)
    assert paired(BASE, moved)[1][1] > 2.9
    other_tokens = replace(moved, embedding=None)
    _, (name, quality), partners = paired(BASE, other_tokens)
    assert name == "norm gains"
    assert quality > 2.9
    assert partners == (0, 1, 2)


def test_a_turned_stream_without_tokens_is_found_by_gram_matrices() -> None:
    """Trained weights have uneven Gram matrices; so have these."""
    scale = np.linspace(0.3, 2.0, BASE.width, dtype=np.float32)
    uneven = replace(
        BASE,
        units={
            layer: replace(
                one, up=one.up * scale, down=one.down * np.roll(scale, 7 + layer), gate=one.gate
            )
            for layer, one in BASE.units.items()
        },
    )
    _, (name, quality), partners = paired(uneven, replace(turned(uneven, 4), embedding=None))
    assert name in ("Gram matrices", "matched units")
    assert quality > 2.5
    assert partners == (0, 1, 2)


def test_a_deep_look_finds_a_turned_stream_whose_first_layers_are_gone() -> None:
    """Layers spread over the depth do not correspond then; counted from the last they do."""
    whole = made(21, depth=6)
    rng = np.random.default_rng(22)
    scales = {layer: rng.uniform(0.2, 2.0, (2, whole.width)).astype(np.float32)
              for layer in whole.units}  # fmt: skip
    uneven = replace(
        whole,
        units={
            layer: replace(one, up=one.up * scales[layer][0], down=one.down * scales[layer][1])
            for layer, one in whole.units.items()
        },
    )
    less = turned(uneven, 23)
    kept = range(3, 6)
    pruned = replace(
        less, depth=3, embedding=None,
        units={new: less.units[old] for new, old in enumerate(kept)},
        attention={new: less.attention[old] for new, old in enumerate(kept)},
        norms={("norm_final", -1): less.norms["norm_final", -1]},
    )  # fmt: skip
    assert paired(pruned, uneven)[1][1] < 1.5
    _, (_, quality), partners = paired(pruned, uneven, "deep")
    assert quality > 2.5 and partners == (3, 4, 5)


def test_layers_of_a_model_of_other_depth_find_their_origin() -> None:
    deeper = replace(
        BASE,
        depth=4,
        units={new: BASE.units[old] for new, old in enumerate((0, 1, 1, 2))},
        attention={new: BASE.attention[old] for new, old in enumerate((0, 1, 1, 2))},
        norms={
            **{
                (role, new): BASE.norms[role, old]
                for new, old in enumerate((0, 1, 1, 2))
                for role in ("norm_in", "norm_post_attn")
            },
            ("norm_final", -1): BASE.norms["norm_final", -1],
        },
    )
    pair, _, partners = paired(BASE, noisy(deeper, 0.3, 5))
    assert partners[0] == 0 and partners[1] in (1, 2) and partners[2] == 3
    heads = pair.alignment_from(pair.sides[0]).attention
    assert heads is not None
    assert heads.partners[0] == 0 and heads.partners[1] in (1, 2) and heads.partners[2] == 3


def test_renamed_heads_are_matched() -> None:
    rng = np.random.default_rng(6)
    moved = relabelled(BASE, rng)
    first = Side(BASE)
    groups = Pair(first, moved).alignment_from(first).head_groups
    assert len(groups) == 6
    for match in groups:
        # Rows lose their mean, which a flipped basis does not keep: one part in the width.
        assert np.abs(match.planes).min() > 0.9
        assert len({to for _, to in match.queries}) == 2


def test_the_quality_sees_neither_labels_nor_signs() -> None:
    one, other = Side(BASE).prepared, Side(made(2, units=96)).prepared
    shuffled = Side(_units_renamed(BASE, 7)).prepared
    whole = UnitStack.of(other.feed_forwards)
    expected = rate_map(one.feed_forwards, whole, IDENTITY, True).quality
    assert rate_map(shuffled.feed_forwards, whole, IDENTITY, True).quality == pytest.approx(
        expected, rel=1e-5
    )


def test_maps_for_a_test_of_signs_never_saw_the_signs() -> None:
    """Nor where maps the other way, from a model without coins, were looked for before."""
    plain = keyed(replace(made(2, units=96), facts=replace(LLAMA, odd_up=False)))

    def maps(sample: Sample) -> list[tuple[str, float]]:
        first, second = Side(sample), Side(plain)
        assert first.units_flip and not second.units_flip
        pair = Pair(first, second)
        assert pair.alignment_from(second).residual_maps
        found = pair.alignment_from(first).residual_maps
        return [(rated.residual.source, rated.quality) for rated in found]

    expected = maps(BASE)
    found = maps(_units_renamed(BASE, 7))
    assert [name for name, _ in found] == [name for name, _ in expected]
    assert "matched units" in dict(found)
    assert [value for _, value in found] == pytest.approx([q for _, q in expected], rel=1e-3)


def test_signed_partners_carry_rows_as_their_matrix_would() -> None:
    rng = np.random.default_rng(8)
    near = nearest_rows(rng.normal(size=(6, 3)), rng.normal(size=(9, 3)), flips=True)
    found = best_channels(MapSource.COLUMNS, near, signed=True)
    assert found.pairs is not None
    left, right, signs = found.pairs
    matrix = np.zeros((6, 9), np.float32)
    matrix[left, right] = signs
    rows = rng.normal(size=(4, 6)).astype(np.float32)
    assert np.allclose(found.carry(rows), rows @ matrix)
    turning = rows + 1j * rows[::-1]
    assert np.allclose(ResidualMap(MapSource.GRAM, matrix).carry(turning), turning @ matrix)


def test_a_map_has_one_sign_where_all_channels_keep_their_places() -> None:
    every, ones = np.arange(4), np.ones(4, np.float32)

    def sign(left: np.ndarray, signs: np.ndarray) -> float:
        return ResidualMap(MapSource.COLUMNS, None, (left, every[: len(left)], signs), 4).sign

    assert IDENTITY.sign == sign(every, ones) == 1.0
    assert sign(every, -ones) == -1.0
    assert sign(every[::-1], ones) == sign(every, np.sign(every - 1.5)) == 0.0
    assert sign(every[:3], ones[:3]) == 0.0, "a channel that has no partner is lost"
    assert ResidualMap(MapSource.GRAM, np.eye(4, dtype=np.float32)).sign == 0.0


def test_unit_scores_match_where_units_are_equal() -> None:
    one = Side(BASE).prepared.feed_forwards[0]
    found = unit_scores(one, one, IDENTITY, True)
    assert np.array_equal(found.match.argmax(axis=1), np.arange(96))
    assert np.allclose(found.best(), 2.0, atol=1e-5)


def test_blocks_are_of_indices_not_of_places() -> None:
    first, second = np.array([1, 2, 3, 8, 9]), np.array([9, 8, 3, 1, 40])
    blocks = common_blocks(first, second)
    assert blocks.sizes.tolist() == [2, 2]
    assert blocks.first.tolist() == [[0, 2, -1, -1], [3, 4, -1, -1]]
    assert blocks.second.tolist() == [[3, 2, -1, -1], [1, 0, -1, -1]]
    rows = np.eye(5)
    assert blocks.products(rows, rows)[0, 2:].sum() == 0
    usable = np.array([True, True, False, True, True])
    assert common_blocks(first, second, usable).sizes.tolist() == [1, 2]


def _units_renamed(sample: Sample, seed: int) -> Sample:
    rng = np.random.default_rng(seed)
    units = {}
    for layer, one in sample.units.items():
        order = rng.permutation(len(one.index))
        coins = (rng.integers(2, size=(len(order), 1)) * 2 - 1).astype(np.float32)
        assert one.gate is not None
        units[layer] = replace(
            one, up=one.up[order] * coins, down=one.down[order] * coins, gate=one.gate[order]
        )
    return keyed(replace(sample, units=units))


def test_of_rivals_for_a_channel_the_better_stays() -> None:
    near = nearest_rows(np.array([[0.9, 0.1], [1.0, 0.0]]), np.eye(3)[:, :2])
    found = best_channels(MapSource.COLUMNS, near, signed=False)
    assert found.pairs is not None
    left, right, _ = found.pairs
    assert (left.tolist(), right.tolist()) == ([1], [0])


@pytest.mark.parametrize("shape", [(5, 5), (7, 4), (4, 7)])
def test_the_polar_factor_is_the_nearest_orthonormal_matrix(shape: tuple[int, int]) -> None:
    table = np.random.default_rng(9).normal(size=shape)
    u, _, vt = np.linalg.svd(table, full_matrices=False)
    assert np.allclose(polar_factor(table), u @ vt, atol=1e-5)
    flat = np.outer(np.arange(1.0, shape[0] + 1), np.arange(1.0, shape[1] + 1))
    found = polar_factor(flat)
    assert np.linalg.norm(found, 2) == pytest.approx(1.0) and np.isfinite(found).all()


def test_numbers_of_experts_choose_no_map() -> None:
    rng = np.random.default_rng(10)
    one = with_experts(made(3), rng)
    order = {(layer, expert): (layer, (expert + 1) % 4) for layer, expert in one.experts}
    other = replace(one, experts={order[at]: units for at, units in one.experts.items()})
    chosen = [spread_parts(Side(each).prepared.feed_forwards, 3) for each in (one, other)]
    assert all(np.array_equal(x.up, y.up) for x, y in zip(*chosen, strict=True))
