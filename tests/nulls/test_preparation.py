"""Preparation commutes with relabelling, and ties, zeros and rubbish stay harmless."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kinprint.nulls.bits import equal_counts
from kinprint.nulls.blocks import block_permutation, block_sizes
from kinprint.nulls.conformal import conformal, disjoint_pairs
from kinprint.nulls.preparation import (
    average_ranks,
    degenerate,
    each_massive,
    massive,
    normal_scores,
    normalise_rows,
    one_valued,
    standardise_columns,
)
from kinprint.nulls.result import Floats, NullResult
from tests.nulls.worlds import block_products

tables = arrays(
    np.float64, (6, 5), elements=st.one_of(st.floats(-1e3, 1e3), st.sampled_from([0.0, 1.0]))
)


@settings(deadline=None, max_examples=50)
@given(tables, st.permutations(range(6)), st.permutations(range(5)))
def test_preparation_commutes_with_labels_and_flips(
    x: Floats, rows: list[int], columns: list[int]
) -> None:
    signs = np.where(np.arange(6) % 2, 1.0, -1.0)[:, None]
    assert np.array_equal(normalise_rows(x[rows]), normalise_rows(x)[rows])
    assert np.array_equal(normalise_rows(signs * x), signs * normalise_rows(x))
    assert np.array_equal(standardise_columns(x[:, columns]), standardise_columns(x)[:, columns])
    flips = np.array([1.0, -1, -1, 1, -1])
    assert np.array_equal(standardise_columns(x * flips), standardise_columns(x) * flips)
    constant = np.where(np.arange(x.shape[1]) == 2, 0.1, x)  # whose mean is not quite 0.1
    assert not standardise_columns(constant)[:, 2].any()
    assert normal_scores(x[:, columns]) == pytest.approx(normal_scores(x)[:, columns], abs=1e-12)


def test_ranks_are_scipys() -> None:
    from scipy.stats import rankdata

    x = np.random.default_rng(0).integers(0, 9, 50)
    assert np.array_equal(average_ranks(x), rankdata(x))


def test_normal_scores_are_normal_and_tied_values_tie() -> None:
    scores = normal_scores(np.random.default_rng(1).gamma(1.0, size=(3, 4000)))
    assert scores.mean(axis=1) == pytest.approx(0, abs=1e-12)
    assert scores.std(axis=1) == pytest.approx(1, abs=0.01)
    tied = normal_scores([1.0, 2.0, 2.0, 3.0, 0.0])
    assert tied[1] == tied[2]
    assert normal_scores(np.ones((2, 8))).tolist() == np.zeros((2, 8)).tolist()


def test_what_cannot_speak_is_named() -> None:
    assert degenerate([1.0]) == "too short"
    assert degenerate([1.0, math.nan]) == "not finite"
    assert degenerate(np.ones(9)) == "constant"
    assert degenerate([1.0] * 8 + [2.0, 3.0]) == "mostly one value"
    assert degenerate([1.0, 2.0, 3.0]) == ""


def test_rows_of_rubbish_become_zero() -> None:
    x = np.array([[3.0, 4.0], [0.0, 0.0], [math.inf, 1.0], [1e300, 1e300], [1e-300, 0.0]])
    found = normalise_rows(x)
    assert found[0].tolist() == [0.6, 0.8]
    assert not found[1].any() and not found[2].any()
    assert np.linalg.norm(found[3:], axis=1) == pytest.approx(1)


@pytest.mark.parametrize("at_once", [1, 1 << 20])
def test_equal_bits_are_counted_as_stored_and_zeros_are_not(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kinprint.nulls.bits._AT_ONCE", at_once)
    rng = np.random.default_rng(2)
    for dtype in (np.float32, np.int8, ml_dtypes.bfloat16, np.float64):
        a, b = (rng.integers(-2, 3, (10, 7)).astype(dtype) for _ in range(2))
        counts = equal_counts(a, b)
        for block, size in enumerate(block_sizes(10)):
            for i in range(size):
                for j in range(size):
                    same = a[4 * block + i].tobytes(), b[4 * block + j].tobytes()
                    width = a.dtype.itemsize
                    equal = sum(
                        same[0][k : k + width] == same[1][k : k + width] != bytes(width)
                        for k in range(0, 7 * width, width)
                    )
                    assert counts[block, i, j] == equal
    assert equal_counts(np.array([[0.0]]), np.array([[-0.0]]))[0, 0, 0] == 0


def test_equal_bits_at_equal_places_speak_and_constants_do_not() -> None:
    def tested(a: np.ndarray, b: np.ndarray) -> NullResult:
        return block_permutation(equal_counts(a, b) / a.shape[1], block_sizes(len(a)))

    rng = np.random.default_rng(3)
    a, b = rng.integers(-8, 8, (2, 64, 256)).astype(np.int8)
    kept = rng.random(a.shape) < 0.05
    result = tested(a, np.where(kept, a, b))
    assert result.log10_p < -6
    assert result.effect == pytest.approx(0.047, abs=0.015)
    assert tested(a, b).log10_p > -3
    zeros = np.zeros((64, 256), np.int8)
    assert tested(zeros, zeros).log10_p == 0
    with pytest.raises(ValueError, match="bits"):
        equal_counts(a, b.astype(np.int16))


def test_conformal_counts_ties_and_missing_values() -> None:
    null = [1.0, 2.0, 3.0, math.nan]
    assert conformal(3.0, null).log10_p == pytest.approx(math.log10(3 / 5))
    assert conformal(9.0, null[:3]).log10_p == conformal(9.0, null[:3]).floor
    assert conformal(math.nan, null).log10_p == 0
    assert conformal(2.5, null[:2]).n == 2
    assert conformal(2.5, null[:2]).log10_p == pytest.approx(-math.log10(3))
    assert conformal(9.0, []).log10_p == 0


def test_pairs_that_share_a_root_count_once() -> None:
    pairs = [(i, j) for i in range(9) for j in range(i + 1, 9)]
    chosen = disjoint_pairs(pairs, excluded=[0])
    roots = [root for at in chosen for root in pairs[at]]
    assert len(roots) == len(set(roots)) == 8
    assert 0 not in roots
    assert disjoint_pairs(pairs, seed=1) != disjoint_pairs(pairs, seed=2)
    assert disjoint_pairs([(1, 1)]) == ()


def test_results_repeat_with_their_seed() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 16, 30))
    scores = block_products(a, b)
    assert block_permutation(scores, seed=5) == block_permutation(scores, seed=5)
    assert block_permutation(scores, seed=5).null != block_permutation(scores, seed=6).null
    assert scores[1, 2, 3] == pytest.approx(a[6] @ b[7])


def test_rows_of_one_value_are_patterns() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(6, 64))
    rows[1], rows[2] = 0.3, np.eye(64)[7]
    rows[3] = np.where(rng.random(64) < 0.5, 0.0, rows[3])  # pruned, and still telling
    rows[4] = np.sign(rows[4])
    found = one_valued(rows)
    assert found.tolist() == [False, True, True, False, False, False]
    assert one_valued(-rows).tolist() == found.tolist()
    assert one_valued(rows[::-1]).tolist() == found[::-1].tolist()


def test_massive_channels_are_few_and_found_wherever_they_lie() -> None:
    rng = np.random.default_rng(8)
    gains = np.abs(1 + 0.2 * rng.normal(size=(9, 200)))
    assert not massive(gains).any()
    gains[:, [3, 77]] += 8
    gains[0, 120] += 100  # in one vector only
    assert np.flatnonzero(massive(gains)).tolist() == [3, 77]
    order = rng.permutation(200)
    assert np.array_equal(massive(gains[:, order]), massive(gains)[order])
    gains[:, 180:] += rng.uniform(5, 50, size=20)
    assert massive(gains).sum() == 4  # no more than a fiftieth, the largest
    alone = np.stack([massive(one) for one in gains])
    assert alone.any() and np.array_equal(each_massive(gains), alone)
    assert np.array_equal(each_massive(gains[:, None]), alone[:, None])
    assert not massive(np.ones((3, 8))).any() and massive(np.empty((0, 8))).shape == (8,)
    assert not massive(np.full((2, 8), np.nan)).any()
