"""Mutual nearest neighbours: only clear pairs, indices of samples, and the record they give."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kinprint.nulls.fixed_points import fixed_points, mutual_pairs, nearest_rows
from kinprint.nulls.increasing import increasing_subsequence
from kinprint.nulls.preparation import normalise_rows


def test_ties_constants_and_padding_pair_with_nothing() -> None:
    """An assignment solver would return the identity here."""
    for scores in (np.zeros((64, 64)), np.full((64, 64), 0.5), np.full((64, 64), math.nan)):
        pairs = mutual_pairs(scores)
        assert not len(pairs.first)
        assert fixed_points([pairs]).log10_p == 0
        assert increasing_subsequence([pairs]).log10_p == 0


def test_all_copies_of_a_row_go() -> None:
    rng = np.random.default_rng(0)
    b = rng.normal(size=(12, 40))
    a = b.copy()
    a[7] = 2.0 * a[3]
    a[9] = 0.0
    found = mutual_pairs(normalise_rows(a) @ normalise_rows(b).T)
    assert not {3, 7, 9} & set(found.first.tolist())
    assert found.first.tolist() == found.second.tolist() == [0, 1, 2, 4, 5, 6, 8, 10, 11]


def test_a_tie_broken_by_rounding_is_a_tie() -> None:
    scores = np.eye(8)
    scores[2, 3] = 1 - 1e-9
    found = mutual_pairs(scores)
    assert 2 not in found.first and 3 not in found.first
    assert len(found.first) == 6


@pytest.mark.parametrize("flips", [False, True])
def test_pairs_found_in_pieces_are_those_of_the_whole_table(
    flips: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kinprint.nulls.fixed_points._PRODUCTS", 90 * 700)
    rng = np.random.default_rng(3)
    b = normalise_rows(rng.normal(size=(700, 40)))
    a = normalise_rows(b[:600] * rng.choice([-1.0, 1.0], size=(600, 1)) + 0.02 * rng.normal())
    a[[5, 300]] = a[77]
    table = a @ b.T
    whole = mutual_pairs(np.abs(table) if flips else table)
    near = nearest_rows(a, b, flips)
    found = near.pairs()
    assert found.first.tolist() == whole.first.tolist()
    assert found.second.tolist() == whole.second.tolist()
    assert (found.size, found.reachable) == (whole.size, whole.reachable)
    assert not {5, 77, 300} & set(found.first.tolist())
    best = np.abs(table).argmax(axis=1) if flips else table.argmax(axis=1)
    assert near.there.score == pytest.approx(table[np.arange(600), best], abs=1e-5)
    size = np.abs(table) if flips else table
    assert near.back.score == pytest.approx(table[size.argmax(axis=0), np.arange(700)], abs=1e-5)
    ordered = np.sort(size, axis=0)
    assert near.back.lead == pytest.approx(ordered[-1] - ordered[-2], abs=1e-5)


def test_samples_keep_their_indices() -> None:
    rng = np.random.default_rng(1)
    b = normalise_rows(rng.normal(size=(50, 60)))
    first, second = np.arange(10, 30), np.arange(20, 50)
    found = mutual_pairs(b[first] @ b[second].T, first, second)
    same = found.first == found.second
    assert found.first[same].tolist() == list(range(20, 30))
    assert found.size == 20
    assert found.reachable == int(((found.second >= 10) & (found.second < 30)).sum())
    result = fixed_points([found])
    assert result.statistic == 10
    assert result.log10_p < -8


def test_indices_must_be_single() -> None:
    with pytest.raises(ValueError, match="index of its own"):
        mutual_pairs(np.eye(3), [0, 0, 1])


def test_deleted_units_leave_their_order() -> None:
    rng = np.random.default_rng(2)
    b = rng.normal(size=(200, 300))
    kept = np.sort(rng.choice(200, 150, replace=False))
    a = normalise_rows(b[kept] + rng.normal(size=(150, 300)))
    found = mutual_pairs(a @ normalise_rows(b).T)
    runs = increasing_subsequence([found, found])
    assert runs.log10_p < -400
    assert runs.effect > 0.95
    assert fixed_points([found]).log10_p > -60
    assert len(runs.null) == 200
    assert max(runs.null) < runs.statistic


def test_the_sample_of_the_null_is_the_null() -> None:
    rng = np.random.default_rng(3)
    table = rng.normal(size=(30, 30)) + 100 * np.eye(30)
    result = fixed_points([mutual_pairs(table[rng.permutation(30)]) for _ in range(4)])
    assert np.mean(result.null) == pytest.approx(4.0, abs=0.6)
    assert np.var(result.null) == pytest.approx(4.0, abs=1.6)
    assert result.details["expected"] == pytest.approx(4.0)


def test_coins_of_fixed_pairs_add_their_bits() -> None:
    rng = np.random.default_rng(4)
    pairs = mutual_pairs(rng.normal(size=(40, 40)) + 100 * np.eye(40))
    plain = fixed_points([pairs, pairs])
    signed = fixed_points([pairs, pairs], [np.ones(40), np.ones(40)])
    assert signed.log10_p == pytest.approx(plain.log10_p - 80 * math.log10(2))
    assert signed.log10_p == pytest.approx(signed.floor)
    half = np.where(np.arange(40) % 2, 1.0, -1.0)
    fewer = fixed_points([pairs, pairs], [half, np.zeros(40)])
    assert fewer.statistic == 20
    assert fewer.log10_p > signed.log10_p
    assert np.mean(signed.null) == pytest.approx(1.0, abs=0.35)
