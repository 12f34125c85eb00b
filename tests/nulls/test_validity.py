"""P-values under the null: no level is reached more often than it says, in any world."""

from __future__ import annotations

import numpy as np
import pytest

from kinprint.nulls.blocks import block_log10_p, block_permutation
from kinprint.nulls.conformal import conformal
from kinprint.nulls.copies import clone_classes, sum_over
from kinprint.nulls.monte_carlo import drawn_log10_p
from kinprint.nulls.signs import sign_log10_p
from tests.nulls import worlds
from tests.nulls.simulations import BY_WORLD, independent_fisher

REPEATS = 2000


@pytest.mark.parametrize("repeats", [REPEATS // 4, pytest.param(REPEATS, marks=pytest.mark.slow)])
@pytest.mark.parametrize("test", BY_WORLD)
@pytest.mark.parametrize("kind", worlds.KINDS)
def test_no_level_is_reached_too_often(test: str, kind: str, repeats: int) -> None:
    rng = np.random.default_rng(worlds.KINDS.index(kind))
    worlds.assert_valid(BY_WORLD[test](kind, repeats, rng))


def test_fisher_is_uniform_for_independent_tests() -> None:
    found = independent_fisher("", 3 * REPEATS, np.random.default_rng(2))
    worlds.assert_valid(found)
    for level in (0.05, 0.5):
        assert (found <= np.log10(level)).mean() == pytest.approx(level, abs=0.025)


def test_a_broken_null_would_be_noticed() -> None:
    """The same rates condemn a model whose labels were never shuffled."""
    rng = np.random.default_rng(3)
    same = np.tile(np.arange(32), (200, 1))
    table = worlds.table("same", 32, 24, rng)
    with pytest.raises(AssertionError, match="at or below"):
        worlds.assert_valid(block_log10_p(worlds.cut(table, same)))


def test_cloned_units_share_a_coin_and_are_tied() -> None:
    """Each unit six times over: untied coins would accuse; tied ones do not."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(8, 64))
    up = np.repeat(rows, 6, axis=0) * np.tile([1, 1, 1, -1, 2, 1], 8)[:, None]
    up += 0.1 * rng.normal(size=up.shape)
    classes = clone_classes(up)
    assert classes.max() == 7
    t = np.repeat(rng.normal(size=8), 6)
    coins = (rng.integers(2, size=(REPEATS, 8)) * 2 - 1)[:, classes]
    tied = np.array([sum_over(one, classes) for one in t * coins])
    worlds.assert_valid(sign_log10_p(tied))
    assert (sign_log10_p(t * coins) < -4).mean() > 0.003


def test_drawn_p_values_are_uniform_or_above() -> None:
    rng = np.random.default_rng(5)
    found = [drawn_log10_p(x[0], x[1:]) for x in np.round(rng.normal(size=(4000, 100)), 1)]
    worlds.assert_valid(found, (0.05, 0.01))


def test_bounds_do_not_fall_below_what_drawing_finds() -> None:
    rng = np.random.default_rng(6)
    compared = 0
    for _ in range(60):
        result = block_permutation(rng.normal(size=(12, 4, 4)) + 0.2 * np.eye(4))
        share = float((np.array(result.null) >= result.statistic).mean())
        assert drawn_log10_p(result.statistic, result.null) == pytest.approx(
            np.log10((share * 200 + 1) / 201), abs=1e-9
        )
        if share > 0.02:
            compared += 1
            assert result.log10_p > np.log10(share) - 0.15
    assert compared > 10


def test_conformal_p_values_are_uniform() -> None:
    rng = np.random.default_rng(7)
    found = [conformal(x[0], x[1:]).log10_p for x in rng.standard_cauchy((REPEATS, 40))]
    worlds.assert_valid(found, (0.05, 0.025))
    assert np.mean(np.array(found) <= np.log10(0.5)) == pytest.approx(0.5, abs=0.06)
