"""Kernel alignment and Gram similarity against their definitions, from both sides."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinprint.measure.gram import gram_similarity, linear_cka, products, unbiased_cka


def _hsic_by_the_book(x: np.ndarray, y: np.ndarray) -> float:
    """Song et al. 2012, equation 5, with kernels and loops of matrices."""
    n = len(x)
    k, m = x @ x.T, y @ y.T
    np.fill_diagonal(k, 0)
    np.fill_diagonal(m, 0)
    one = np.ones(n)
    middle = one @ k @ one * (one @ m @ one) / ((n - 1) * (n - 2))
    found = np.trace(k @ m) + middle - 2 / (n - 2) * (one @ k @ m @ one)
    return float(found / (n * (n - 3)))


@settings(deadline=None, max_examples=50)
@given(st.integers(4, 20), st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_both_alignments_are_their_definitions(n: int, p: int, q: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(0.5, 1, (n, p)), rng.normal(-0.2, 1, (n, q))
    centre = np.eye(n) - 1 / n
    k, m = centre @ x @ x.T @ centre, centre @ y @ y.T @ centre
    expected = (k * m).sum() / np.sqrt((k * k).sum() * (m * m).sum())
    assert linear_cka(x, y) == pytest.approx(expected, abs=1e-10)
    own = _hsic_by_the_book(x, x), _hsic_by_the_book(y, y)
    if n > 4 and min(own) > 1e-9:
        debiased = _hsic_by_the_book(x, y) / math.sqrt(own[0] * own[1])
        assert unbiased_cka(x, y) == pytest.approx(debiased, abs=1e-6)


@pytest.mark.parametrize("centred", [True, False])
def test_rows_and_columns_give_the_same_sums(centred: bool) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(2, 1, (13, 7)), rng.normal(0, 3, (13, 29))
    sides = [products(x, y, centred, side, block=20) for side in ("gram", "covariance")]
    one, other = sides
    assert one is not None
    assert other is not None
    assert (one.cross, one.own_x, one.own_y) == pytest.approx(
        (other.cross, other.own_x, other.own_y), rel=1e-12
    )


def test_noise_is_aligned_for_the_biased_estimate_only() -> None:
    rng = np.random.default_rng(1)
    pairs = [rng.normal(size=(2, 20, 500)) for _ in range(30)]
    assert min(linear_cka(x, y) for x, y in pairs) > 0.9
    unbiased = [unbiased_cka(x, y) for x, y in pairs]
    assert abs(np.mean(unbiased)) < 0.05
    assert min(unbiased) < 0


def test_gram_similarity_is_a_cosine_of_traceless_matrices() -> None:
    rng = np.random.default_rng(2)
    for shape_a, shape_b in [((40, 6), (9, 6)), ((3, 20), (5, 20))]:
        a, b = rng.normal(size=shape_a), rng.normal(size=shape_b)
        k, m = (g - np.trace(g) / len(g) * np.eye(len(g)) for g in (a.T @ a, b.T @ b))
        expected = (k * m).sum() / np.sqrt((k * k).sum() * (m * m).sum())
        assert gram_similarity(a, b) == pytest.approx(expected, abs=1e-12)
    turned = np.linalg.qr(rng.normal(size=(40, 40)))[0] @ rng.permutation(
        a := rng.normal(size=(40, 6))
    )
    assert gram_similarity(turned, a) == pytest.approx(1)


def test_what_has_no_answer() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(6, 3))
    assert math.isnan(linear_cka(np.full((6, 2), 0.1), x))
    assert math.isnan(unbiased_cka(np.full((6, 2), 0.1), x))
    assert math.isnan(unbiased_cka(x[:3], x[:3]))
    assert math.isnan(gram_similarity(np.eye(3) * 2, x))
    assert math.isnan(linear_cka(np.where(x > 1, np.nan, x * np.nan), x))
    assert math.isnan(linear_cka(np.ones((0, 3)), np.ones((0, 2))))
    with pytest.raises(ValueError, match="rows"):
        linear_cka(x, x[:4])


@pytest.mark.parametrize("scale", [1e-150, 1e100])
def test_extreme_scales(scale: float) -> None:
    x, y = np.random.default_rng(4).normal(size=(2, 8, 5))
    for function in (linear_cka, unbiased_cka, gram_similarity):
        assert function(x * scale, y) == pytest.approx(function(x, y), rel=1e-9)
