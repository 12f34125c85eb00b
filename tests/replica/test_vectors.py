from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from kinprint.replica.correlate import correlate, fill, nearest_correlation
from kinprint.replica.figures import Correlation, changed_share, moments
from kinprint.replica.vectors import generator, nudged, standardised


def correlation_matrix(seed: int, size: int) -> NDArray[np.float64]:
    drawn = np.random.default_rng(seed).standard_normal((size, 3 * size))
    return np.asarray(np.corrcoef(drawn))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 8))
def test_sample_moments_are_exact(seed: int, size: int) -> None:
    wanted = correlation_matrix(seed, size)
    unit = standardised(np.linspace(2.5, 0.05, size).tolist(), wanted, 512, str(seed))
    assert np.allclose(unit.mean(axis=0), 0.0, atol=1e-12)
    assert np.allclose(unit.std(axis=0), 1.0, atol=1e-9)
    assert np.allclose(np.corrcoef(unit.T), wanted, atol=1e-9)


def test_the_first_column_stays_positive() -> None:
    unit = standardised([2.5, 0.1], np.eye(2), 4096, "first")
    assert (1.0 + 2.5 * unit[:, 0] > 0.0).all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32))
def test_a_correlation_matrix_is_left_alone(seed: int) -> None:
    wanted = correlation_matrix(seed, 6)
    fixed = np.ones((6, 6), dtype=bool)
    assert np.allclose(nearest_correlation(wanted, fixed), wanted, atol=2e-5)


def test_impossible_correlations_are_a_mistake() -> None:
    impossible = np.array([[1.0, 0.9, 0.9], [0.9, 1.0, -0.9], [0.9, -0.9, 1.0]])
    with pytest.raises(AssertionError, match="contradict"):
        nearest_correlation(impossible, np.ones((3, 3), dtype=bool))


def test_free_entries_give_way_to_fixed_ones() -> None:
    start = np.array([[1.0, 0.9, 0.7], [0.9, 1.0, 0.2], [0.7, 0.2, 1.0]])
    assert np.linalg.eigvalsh(start)[0] < 0
    fixed = np.eye(3, dtype=bool)
    fixed[0, 1] = fixed[1, 0] = True
    found = nearest_correlation(start, fixed)
    assert found[0, 1] == pytest.approx(0.9, abs=1e-4)
    assert np.linalg.eigvalsh(found)[0] > 0


def test_known_pairs_spread_to_their_neighbours() -> None:
    keys = [(model, layer) for model in "abc" for layer in range(12)]
    known = [Correlation("input", ("a", 10), ("b", 10), 0.5, "")]
    guess, fixed = fill(keys, known)
    assert guess[10, 22] == guess[22, 10] == 0.5
    assert 0.4 < guess[9, 22] < 0.5
    assert not guess[:24, 24:].any()
    assert fixed.sum() == len(keys) + 2
    assert np.linalg.eigvalsh(correlate(keys, known))[0] > 0


def test_nothing_known_is_nothing_to_correct() -> None:
    keys = [("a", layer) for layer in range(4)]
    assert np.allclose(np.diag(correlate(keys, [])), 1.0)


@given(st.floats(0.0, 1.0), st.integers(0, 1000))
def test_nudging_moves_the_share_asked_for_by_one_place(share: float, seed: int) -> None:
    drawn = generator(str(seed)).standard_normal(256)
    values = drawn.astype(ml_dtypes.bfloat16).astype(np.float32)
    copy = nudged(values, share, "x")
    assert np.count_nonzero(copy != values) == round(share * 256)
    assert np.array_equal(copy.astype(ml_dtypes.bfloat16).astype(np.float32), copy)
    moved = copy != values
    assert (np.abs(copy - values)[moved] >= 2**-8 * np.abs(values[moved])).all()
    assert np.allclose(copy, values, rtol=2**-7, atol=0)


def test_moments_are_there_where_something_was_published() -> None:
    known = moments("phi", "input")
    statuses = [one.status for one in known.values()]
    assert statuses.count("reconstructed") == 3 and statuses.count("fitted") == 4
    assert set(known) == {0, 5, 10, 15, 20, 25, 30}
    assert not moments("internlm", "input") and not moments("mixtral", "post")


def test_shares_of_changes_lie_in_the_published_bands() -> None:
    shares = [changed_share(layer) for layer in range(46)]
    assert shares == sorted(shares, reverse=True)
    assert all(share > 0.9 for share in shares[:3])
    assert all(0.1 <= share <= 0.5 for share in shares[3:13])
    assert all(share < 0.1 for share in shares[13:])
    assert shares[45] == pytest.approx(0.001)
