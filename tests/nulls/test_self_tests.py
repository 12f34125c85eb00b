"""Self-tests of one model: they find structure, and leave exchangeable models alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kinprint.nulls import copies, result
from kinprint.nulls.copies import (
    chance_cosine,
    clone_classes,
    clone_pairs,
    components,
    copied_sets,
    copied_units,
    joined,
    sum_over,
)
from kinprint.nulls.exchangeability import (
    LEVEL,
    _coins,
    along_index,
    balance,
    canonical_axes,
    column_profiles,
    lags,
    skewness,
    trend,
)
from kinprint.nulls.result import Floats, Ints
from kinprint.nulls.signs import sign_log10_p
from tests.nulls import worlds


def test_sorted_units_are_found() -> None:
    rng = np.random.default_rng(1)
    norms = np.sort(rng.gamma(5.0, size=256)) + rng.normal(size=256)
    for values in (norms, -norms):
        found = trend(values)
        assert not found.exchangeable
        assert found.reason == "sorted"
        assert abs(found.effect) > 0.5
    assert trend(rng.permutation(norms)).exchangeable


def test_spearman_is_scipys() -> None:
    from scipy.stats import spearmanr

    x = np.random.default_rng(2).integers(0, 20, 101)
    assert trend(x).effect == pytest.approx(spearmanr(x, np.arange(101)).statistic)


def test_constant_and_short_vectors_are_not_called_exchangeable() -> None:
    assert trend(np.ones(50)).reason == "constant"
    assert lags(np.ones((2, 50))).reason == "constant"
    assert not lags(np.array([1.0, np.nan, 2.0])).exchangeable


def test_skewed_rows_are_fair_coins_unless_a_grid_ends_sooner_on_one_side() -> None:
    rng = np.random.default_rng(8)
    rows = rng.standard_cauchy((64, 96)).clip(-20, 20)
    flips = rng.integers(2, size=(400, 64)) * 2 - 1
    worlds.assert_valid(list(sign_log10_p(flips * skewness(rows))), (0.05, 0.01))
    normal = rng.normal(size=(128, 256))
    cut = np.round(normal / 0.3).clip(-8, 2)
    assert sign_log10_p(-skewness(cut)[None])[0] < -20 < sign_log10_p(skewness(normal)[None])[0]
    assert not skewness([[1.0, 1.0, 1.0], [np.nan, 0.0, 1.0]]).any()


@pytest.mark.parametrize("at_once", [1 << 20, 8 * 48])
def test_lags_are_calibrated(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result, "_AT_ONCE", at_once)  # drawing ends early in portions of 8
    rng = np.random.default_rng(3)
    found = [
        lags(rng.standard_cauchy((2, 24)), draws=99, seed=i, level=0.01).log10_p for i in range(400)
    ]
    worlds.assert_valid(found, (0.2, 0.05, 0.01))


def test_lags_that_are_settled_are_not_drawn_on(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    wave = np.tile([1.0, 0.0, 0.0, 0.0], 16)
    given = [rng.normal(size=64) + size * wave for size in np.linspace(0.0, 2.0, 20)]
    whole = [lags(one, draws=199, level=0.01) for one in given]
    monkeypatch.setattr(result, "_AT_ONCE", 8 * 64)
    parted = [lags(one, draws=199, level=0.01) for one in given]
    assert [one.exchangeable for one in parted] == [one.exchangeable for one in whole]
    refused = [not one.exchangeable for one in whole]
    assert any(refused) and not all(refused)
    ps = [10.0**one.log10_p * 9 for one in parted if one.exchangeable]
    assert any(abs(p - round(p)) < 1e-6 for p in ps)  # of eight draws and the statistic itself


@pytest.mark.parametrize("shared", [False, True])
def test_periods_and_shards_are_found(shared: bool) -> None:
    rng = np.random.default_rng(4)
    wave = np.tile([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], 32)
    shards = np.repeat([0.0, 1.0, 0.5, 2.0], 64)
    for structure in (wave * 2, shards):
        values = rng.normal(size=(3, 256)) + structure
        found = lags(values, draws=999, shared=shared)
        assert not found.exchangeable
        mixed = values[:, rng.permutation(256)]
        assert lags(mixed, draws=999, shared=shared).log10_p > -2.9
    found = lags(rng.normal(size=(3, 256)) + wave * 2, draws=199, level=0.01, shared=shared)
    assert found.where % 8 == 0


def embedding(rng: np.random.Generator, tokens: int = 512, channels: int = 64) -> Floats:
    """Tokens in order with a few features in common, in directions of their own, and noise."""
    features = np.cumsum(rng.normal(size=(tokens, 4)), axis=0) / 16
    return features @ rng.normal(size=(4, channels)) + rng.normal(size=(tokens, channels))


def test_courses_along_the_index_are_calibrated() -> None:
    rng = np.random.default_rng(30)
    found = [
        along_index(column_profiles(embedding(rng, 64, 24)), 99, seed, 0.01).log10_p
        for seed in range(400)
    ]
    worlds.assert_valid(found, (0.2, 0.05, 0.01))


def sorted_by_mean(table: Floats) -> Floats:
    return table[:, np.argsort(table[:64].mean(axis=0) - table.mean(axis=0))]


def with_a_wave(table: Floats) -> Floats:
    tokens, channels = table.shape
    strength = np.random.default_rng(1).normal(size=(tokens, 1))
    return np.asarray(table + strength * np.sin(0.37 * np.arange(channels)))


def with_positions(table: Floats) -> Floats:
    tokens, channels = table.shape
    angles = np.arange(tokens)[:, None] / 10_000 ** (np.arange(channels // 2) * 2 / channels)
    return np.asarray(table + np.concatenate([np.sin(angles), np.cos(angles)], axis=1))


def with_positions_by_turns(table: Floats) -> Floats:
    tokens, channels = table.shape
    angles = np.arange(tokens)[:, None] / 10_000 ** (np.arange(channels) // 2 * 2 / channels)
    return np.asarray(table + np.where(np.arange(channels) % 2, np.cos(angles), np.sin(angles)))


@pytest.mark.parametrize(
    "change", [sorted_by_mean, with_a_wave, with_positions, with_positions_by_turns]
)
def test_courses_along_the_index_are_found(change: Callable[[Floats], Floats]) -> None:
    """And are gone where the channels are dealt anew."""
    rng = np.random.default_rng(33)
    table = change(embedding(rng))
    found = along_index(column_profiles(table))
    assert not found.exchangeable and found.reason == "along the index"
    assert along_index(column_profiles(table[:, rng.permutation(64)])).exchangeable


def test_profiles_move_with_their_channels() -> None:
    rng = np.random.default_rng(32)
    table, order = embedding(rng), rng.permutation(64)
    mixed, octaves, places = column_profiles(table)
    others = column_profiles(table[:, order])
    assert np.allclose(octaves[:, order], others[1]) and np.allclose(places[:, order], others[2])
    gram, other = mixed.T @ mixed, others[0].T @ others[0]
    assert np.allclose(gram[np.ix_(order, order)], other)


def test_balance_is_calibrated() -> None:
    rng = np.random.default_rng(10)
    features = rng.normal(size=(12, 20)) + 3.0 * rng.normal(size=20)
    found = [
        balance(features * (rng.integers(2, size=(12, 1)) * 2 - 1), draws=99, seed=i).log10_p
        for i in range(2000)
    ]
    worlds.assert_valid(found, (0.05, 0.01))


def test_the_first_flips_are_those_of_a_longer_look() -> None:
    assert np.array_equal(_coins(32, 20, 1), _coins(999, 20, 1)[:32])


def test_signs_that_lean_are_found() -> None:
    rng = np.random.default_rng(11)
    rows = rng.normal(size=(600, 200))
    rows[3] = 0.0
    assert balance(rows).exchangeable
    leaning = balance(rows + 0.15)
    assert not leaning.exchangeable
    several = balance(rows + 0.15, level=LEVEL / 3)  # as one of three that are asked
    assert not several.exchangeable, "so many draws can reach the level"
    assert leaning.effect == pytest.approx(0.15**2 / (1 + 0.15**2), rel=0.2)
    assert not balance(np.zeros((9, 4))).exchangeable


def test_principal_axes_are_found() -> None:
    rng = np.random.default_rng(5)
    mixing = np.diag(np.linspace(0.2, 2, 24)) @ rng.normal(size=(24, 24))
    trained = rng.normal(size=(600, 24)) @ mixing
    assert canonical_axes(trained).exchangeable
    _, _, axes = np.linalg.svd(trained, full_matrices=False)
    rotated = trained @ axes.T
    assert canonical_axes(rotated).reason == "sorted"
    whitened = rotated / rotated.std(axis=0)
    assert canonical_axes(whitened).reason == "uncorrelated axes"
    assert canonical_axes(whitened[:, rng.permutation(24)]).reason == "uncorrelated axes"


def test_independent_columns_are_not_principal_axes() -> None:
    rng = np.random.default_rng(6)
    found = [canonical_axes(rng.normal(size=(200, 32))).exchangeable for _ in range(100)]
    assert sum(found) >= 98


def test_chance_cosine_holds() -> None:
    rng = np.random.default_rng(7)
    for d in (3, 16, 64):
        limit = chance_cosine(20, d, 0.05)
        x = rng.normal(size=(2000, 20, d))
        x /= np.linalg.norm(x, axis=2, keepdims=True)
        top = np.abs(x @ x.swapaxes(1, 2) - 2 * np.eye(20))
        top[:, np.arange(20), np.arange(20)] = 0
        worlds.assert_valid(np.where(top.max(axis=(1, 2)) >= limit, -9.0, 0.0), (0.05,))


def test_clones_are_classed_by_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies, "_PRODUCTS", 7 * 30)  # seven rows at a time
    rng = np.random.default_rng(8)
    x = rng.normal(size=(30, 200))
    x[20] = -x[3] + 0.2 * rng.normal(size=200)
    x[21] = x[20] + 0.2 * rng.normal(size=200)
    x[5] = 0.0
    x[6] = 0.0
    classes = clone_classes(x)
    assert classes[3] == classes[20] == classes[21]
    assert len(set(classes.tolist())) == 28
    order = rng.permutation(30)
    moved = clone_classes(x[order])
    same = classes[:, None] == classes[None, :]
    assert np.array_equal(moved[:, None] == moved[None, :], same[np.ix_(order, order)])
    assert sum_over(np.ones(30), classes).max() == 3


def test_copied_layers_are_tied_and_others_left() -> None:
    rng = np.random.default_rng(9)
    layers = rng.normal(size=(6, 64, 128)) + 0.5 * rng.normal(size=128)
    layers[4] = layers[1] + 1.5 * rng.normal(size=(64, 128))
    assert copied_sets(layers).tolist() == [0, 1, 2, 3, 1, 4]
    assert copied_sets(layers[:, :3] + 5.0).tolist() == [0, 1, 2, 3, 4, 5]
    small = layers[:, :3].copy()
    small[4] = small[1] + 0.1 * rng.normal(size=(3, 128))
    assert copied_sets(small).tolist() == [0, 1, 2, 3, 1, 4]
    false = sum(
        len(set(copied_sets(rng.normal(size=(4, 16, 32))).tolist())) < 4 for _ in range(300)
    )
    assert false <= 4


def test_joined_classes_hold_together_what_either_does() -> None:
    one, other = np.array([0, 0, 1, 2, 3, 3]), np.array([0, 1, 1, 2, 3, 4])
    assert joined(one, other).tolist() == [0, 0, 0, 1, 2, 2]
    assert joined(np.arange(4), np.arange(4)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("at_once", [7, 512])
@pytest.mark.parametrize(
    ("places", "classes"),
    [
        pytest.param(np.tile(np.arange(40), 2), 40, id="all again"),
        pytest.param(np.tile(np.arange(20), 4), 20, id="four times"),
        pytest.param(np.repeat(np.arange(40), 2), 40, id="side by side"),
        pytest.param(np.arange(80), 80, id="not at all"),
    ],
)
def test_repeated_units_are_tied_when_training_has_moved_them(
    places: Ints, classes: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kinprint.nulls.copies._ROWS", at_once)
    rng = np.random.default_rng(11)
    rows = rng.normal(size=(places.max() + 1, 256))[places]
    rows = rows + 0.85 * rng.normal(size=rows.shape)  # cosines of 0.58
    rows *= rng.choice([-1.0, 1.0], size=(len(rows), 1))
    assert len(np.unique(copied_units(rows))) == classes
    assert len(np.unique(clone_classes(rows))) == 80  # one by one they look like strangers
    order = rng.permutation(len(rows))
    assert len(np.unique(copied_units(rows[order]))) == len(rows)


@pytest.mark.parametrize("n", [4, 6, 8])
def test_few_fair_units_are_not_refused_for_rounding(n: int) -> None:
    """Among few coins the very signs at hand are drawn again, and must count as reached."""
    rng = np.random.default_rng(12)
    refused = [not balance(rng.normal(size=(n, 40))).exchangeable for _ in range(200)]
    assert sum(refused) <= 3


def test_copies_are_found_wherever_they_lie() -> None:
    rng = np.random.default_rng(12)
    rows = rng.normal(size=(700, 256))
    left, right = np.arange(0, 60), rng.permutation(np.arange(600, 700))[:60]
    signs = rng.integers(2, size=(60, 1)) * 2 - 1
    rows[right] = signs * (rows[left] + 0.5 * rng.normal(size=(60, 256)))
    found = clone_pairs(rows)
    assert set(zip(*(one.tolist() for one in found), strict=True)) == set(
        zip(left.tolist(), right.tolist(), strict=True)
    )
    tied = components(700, *found)
    assert tied.max() + 1 == 640 and np.array_equal(tied[left], tied[right])
    assert not len(clone_pairs(np.zeros((5, 16)))[0])
