"""Assignments of rows: found again after shuffling, and honest about ties."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from kinprint.measure.direct import cosine
from kinprint.measure.matching import aligned_cosine, assign, cosine_table, match_rows


def test_a_shuffled_copy_is_put_back() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(20, 50)).astype(np.float32)
    order = rng.permutation(20)
    found = match_rows(a, a[order] * rng.uniform(0.1, 9, (20, 1)))
    assert [order[j] for _, j in found.pairs] == list(range(20))
    assert found.mean == pytest.approx(1)
    assert found.distinct


def test_the_table_is_made_of_cosines() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(3, 7)), rng.normal(size=(5, 7))
    expected = [[cosine(x, y) for y in b] for x in a]
    assert cosine_table(a, b) == pytest.approx(np.array(expected))
    assert cosine_table(a * 1e200, b * 1e-200) == pytest.approx(np.array(expected))


def test_no_other_assignment_is_better() -> None:
    scores = np.random.default_rng(2).normal(size=(4, 6))
    found = assign(scores)
    best = max(
        sum(scores[i, j] for i, j in enumerate(columns))
        for columns in itertools.permutations(range(6), 4)
    )
    assert math.fsum(found.scores) == pytest.approx(best)
    assert len({j for _, j in found.pairs}) == len(found.pairs) == 4
    assert assign(scores.T).mean == pytest.approx(found.mean)


def test_zero_rows_take_no_part() -> None:
    a = np.random.default_rng(3).normal(size=(4, 8))
    b = a.copy()
    b[1] = 0
    found = match_rows(a, b)
    assert [pair for pair in found.pairs if pair[0] == pair[1]] == [(0, 0), (2, 2), (3, 3)]
    assert all(j != 1 for _, j in found.pairs)
    assert math.isnan(aligned_cosine(a, np.zeros((2, 8))))


def test_a_single_missing_score_is_avoided() -> None:
    assert assign([[math.nan, 0.1], [0.1, 5.0]]).pairs == ((0, 1), (1, 0))


def test_ties_are_admitted() -> None:
    """On constant scores the solver returns the identity, which must not look like a finding."""
    assert not assign(np.ones((5, 5))).distinct
    doubled = np.random.default_rng(4).normal(size=(3, 9))[[0, 1, 1, 2]]
    assert not match_rows(doubled, doubled).distinct
    assert not assign([[1.0, 1.0]]).distinct
    assert not assign(np.empty((0, 3))).distinct
    assert assign([[1.0]]).distinct


def test_the_best_pairing_of_noise_is_above_zero_and_grows() -> None:
    rng = np.random.default_rng(5)
    few, many = (aligned_cosine(*rng.normal(size=(2, n, 400))) for n in (8, 128))
    assert 0.02 < few < many


def test_rows_of_other_width_do_not_compare() -> None:
    with pytest.raises(ValueError, match="3 and 4"):
        cosine_table(np.ones((2, 3)), np.ones((2, 4)))
