"""Planted relations are found as deeply as they should, and stated power is real power."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kinprint.nulls.blocks import (
    block_log10_p,
    block_permutation,
    block_sizes,
    signed_blocks,
    signed_log10_p,
)
from kinprint.nulls.fixed_points import Pairs, fixed_points, mutual_pairs
from kinprint.nulls.power import smallest_effect
from kinprint.nulls.preparation import normalise_rows
from kinprint.nulls.result import Floats, NullResult
from kinprint.nulls.signs import quarter_log10_p, quarter_turns, sign_chernoff, sign_log10_p
from tests.nulls.worlds import block_products


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


REPEATS = 300
IDENTITY = np.eye(4)


def stated(result: NullResult, log10_alpha: float) -> float:
    """The effect that a test on noise says it would have seen."""
    assert result.sensitivity is not None
    return smallest_effect(result.sensitivity, log10_alpha)


def seen(log10_ps: Floats, log10_alpha: float) -> float:
    return float((log10_ps <= log10_alpha).mean())


# How often a stated effect is seen: nine times in ten, and where little is relabelled more often.
@pytest.mark.parametrize(("n", "most"), [(64, 1.0), (128, 0.99), (320, 0.97), (1022, 0.95)])
@pytest.mark.parametrize("log10_alpha", [-6.0, -9.0])
def test_the_power_of_blocks_is_what_it_says(n: int, most: float, log10_alpha: float) -> None:
    rng, sizes = np.random.default_rng(5), block_sizes(n)
    noise = 0.02 * rng.normal(size=(REPEATS, len(sizes), 4, 4))
    effect = np.mean(
        [stated(block_permutation(one, sizes, unit=3.0), log10_alpha) for one in noise[:20]]
    )
    found = seen(block_log10_p(noise + 3.0 * effect * IDENTITY, sizes), log10_alpha)
    assert 0.87 < found <= most
    assert seen(block_log10_p(noise + 2.1 * effect * IDENTITY, sizes), log10_alpha) < 0.6


@pytest.mark.parametrize(("n", "most"), [(64, 1.0), (128, 0.99), (1022, 0.95)])
@pytest.mark.parametrize("log10_alpha", [pytest.param(-6.0, marks=pytest.mark.slow), -9.0])
def test_the_power_of_signed_blocks_is_what_it_says(
    n: int, most: float, log10_alpha: float
) -> None:
    rng, sizes = np.random.default_rng(6), block_sizes(n)
    gate = 0.02 * rng.normal(size=(REPEATS, len(sizes), 4, 4))
    both = 0.03 * rng.normal(size=(REPEATS, len(sizes), 4, 4))
    results = [
        signed_blocks(x, y, sizes, units=(1.0, 2.0))
        for x, y in zip(gate[:20], both[:20], strict=True)
    ]
    effect = float(np.mean([stated(one, log10_alpha) for one in results]))

    def found(size: float) -> float:
        planted = size * IDENTITY
        return seen(signed_log10_p(gate + planted, both + 2.0 * planted, sizes), log10_alpha)

    assert 0.87 < found(effect) <= most
    assert found(0.7 * effect) < 0.6


@pytest.mark.parametrize("n", [128, 1000])
def test_the_power_of_signs_is_what_it_says(n: int) -> None:
    rng = np.random.default_rng(7)
    real, imaginary = 0.5 * rng.normal(size=(2, REPEATS, n))
    effect = np.mean([stated(sign_chernoff(one, unit=2.0), -6) for one in real[:20]])
    assert seen(sign_log10_p(real + 2.0 * effect), -6) > 0.89
    assert seen(sign_log10_p(real + 1.4 * effect), -6) < 0.75
    turned = real + 1j * imaginary
    effect = np.mean([stated(quarter_turns(one, unit=1.0), -6) for one in turned[:20]])
    assert seen(quarter_log10_p(turned + effect), -6) > 0.89
    assert seen(quarter_log10_p(turned + 0.7 * effect), -6) < 0.75


def test_units_may_differ_from_block_to_block() -> None:
    """Half of the blocks hold one matrix, the others two: the slope is that of both together."""
    noise = 0.02 * np.random.default_rng(8).normal(size=(64, 4, 4))
    units = np.repeat([1.0, 2.0], 32)
    mixed = block_permutation(noise, unit=units).sensitivity
    one = block_permutation(noise, unit=1.0).sensitivity
    assert mixed is not None and one is not None
    assert mixed.slope == pytest.approx(1.5 * one.slope)
    assert mixed.deviation == one.deviation


def test_a_test_that_cannot_reach_the_level_says_so() -> None:
    noise = 0.02 * np.random.default_rng(9).normal(size=(256, 4, 4))
    assert stated(block_permutation(noise[:2], unit=1.0), -6) == math.inf
    assert stated(sign_chernoff(noise.reshape(-1)[:10], unit=1.0), -6) == math.inf
    assert stated(block_permutation(noise, unit=0.0), -6) == math.inf
    assert block_permutation(noise).sensitivity is None
    assert sign_chernoff(noise).sensitivity is None
