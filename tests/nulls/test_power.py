"""Planted relations are found as deeply as they should, and stated power is real power."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kinprint.nulls.blocks import block_log10_p, block_permutation, block_products, signed_blocks
from kinprint.nulls.fixed_points import Pairs, fixed_point_log10_p, fixed_points, mutual_pairs
from kinprint.nulls.power import (
    detectable_by_blocks,
    detectable_by_fixed_points,
    detectable_by_signs,
    score_spread,
)
from kinprint.nulls.preparation import normalise_rows
from kinprint.nulls.result import Floats
from kinprint.nulls.signs import sign_log10_p


def related(
    rows: int, cosine: float, rng: np.random.Generator, d: int = 4096, layers: int = 8
) -> tuple[Floats, list[Pairs]]:
    tables, pairs = [], []
    for _ in range(layers):
        a = rng.normal(size=(rows, d))
        b = normalise_rows(cosine * a + math.sqrt(1 - cosine**2) * rng.normal(size=(rows, d)))
        a = normalise_rows(a)
        tables.append(block_products(a, b))
        pairs.append(mutual_pairs(a @ b.T))
    return np.concatenate(tables), pairs


def test_faint_relations_show_by_blocks() -> None:
    """Row cosine 0.01 at d = 4096, 64 rows of 8 layers: about forty digits."""
    scores, pairs = related(64, 0.01, np.random.default_rng(0))
    found = block_permutation(scores)
    assert -50 < found.log10_p < -25
    assert found.effect == pytest.approx(0.01, abs=0.002)
    assert fixed_points(pairs).log10_p > found.log10_p
    assert score_spread(scores) == pytest.approx(1 / 64, rel=0.05)


def test_clear_relations_show_by_fixed_points() -> None:
    """Row cosine 0.05: some 450 digits, where blocks have met their floor."""
    scores, pairs = related(64, 0.05, np.random.default_rng(1))
    found = fixed_points(pairs)
    assert found.log10_p < -430
    assert found.effect > 0.8
    assert block_permutation(scores).log10_p > found.log10_p


def test_sixteen_rows_suffice() -> None:
    rng = np.random.default_rng(2)
    assert block_permutation(related(16, 0.02, rng)[0]).log10_p < -20
    assert fixed_points(related(16, 0.05, rng)[1]).log10_p < -65


def test_signs_add_to_labels() -> None:
    scores, _ = related(64, 0.01, np.random.default_rng(3))
    alone = block_permutation(scores).log10_p
    assert signed_blocks(np.zeros_like(scores), scores).log10_p < 1.2 * alone


def test_strangers_stay_strangers() -> None:
    scores, pairs = related(64, 0.0, np.random.default_rng(4))
    assert block_permutation(scores).log10_p > -3
    assert signed_blocks(scores, scores[::-1]).log10_p > -3
    assert fixed_points(pairs).log10_p > -3


def share(log10_ps: Floats, log10_alpha: float) -> float:
    return float((log10_ps <= log10_alpha).mean())


@pytest.mark.parametrize("n", [24, 320])
def test_block_power_is_what_it_says(n: int) -> None:
    excess = detectable_by_blocks(n, 0.02, -6)
    rng = np.random.default_rng(5)
    noise = 0.02 * rng.normal(size=(500, n // 4, 4, 4))
    assert share(block_log10_p(noise + excess * np.eye(4)), -6) == pytest.approx(0.9, abs=0.06)
    assert share(block_log10_p(noise + 0.7 * excess * np.eye(4)), -6) < 0.6


@pytest.mark.parametrize("n", [30, 400])
def test_sign_power_is_what_it_says(n: int) -> None:
    mean = detectable_by_signs(n, 0.5, -6)
    noise = 0.5 * np.random.default_rng(6).normal(size=(800, n))
    assert share(sign_log10_p(noise + mean), -6) == pytest.approx(0.9, abs=0.06)
    assert share(sign_log10_p(noise + 0.7 * mean), -6) < 0.6


def test_fixed_point_power_is_what_it_says() -> None:
    rows, layers = 32, 4
    excess = detectable_by_fixed_points(rows, layers, 1.0, -6)
    rng = np.random.default_rng(7)

    def found(effect: float) -> float:
        hits = 0
        for _ in range(300):
            pairs = [
                mutual_pairs(rng.normal(size=(rows, rows)) + effect * np.eye(rows))
                for _ in range(layers)
            ]
            fixed = sum(int((one.first == one.second).sum()) for one in pairs)
            shapes = [(one.reachable, one.size) for one in pairs]
            hits += fixed_point_log10_p(fixed, shapes) <= -6
        return hits / 300

    assert found(excess) > 0.85
    assert found(0.6 * excess) < 0.6


def test_a_test_that_cannot_reach_the_level_says_so() -> None:
    assert detectable_by_blocks(8, 0.02, -6) == math.inf
    assert detectable_by_signs(10, 0.02, -6) == math.inf
    assert detectable_by_fixed_points(4, 1, 0.02, -6) == math.inf
    assert detectable_by_blocks(4096, 0.0, -6) == math.inf
