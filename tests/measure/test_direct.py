"""Measures against their definitions, their invariances and their undefined cases."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kinprint.measure import direct
from kinprint.measure.direct import cosine, pearson

vectors = arrays(np.float64, 12, elements=st.floats(-100, 100))

BOTH: list[Callable[..., float]] = [
    direct.cosine,
    direct.pearson,
    direct.centred_cosine,
    direct.cosine_about,
    direct.l2,
    direct.relative_l2,
    direct.symmetric_relative_l2,
    direct.relative_rmse,
    direct.mean_abs_diff,
    direct.max_abs_diff,
    direct.variation_difference,
    direct.sign_agreement,
]


@given(vectors, vectors)
def test_pearson_is_numpys(a: np.ndarray, b: np.ndarray) -> None:
    if np.ptp(a) < 1e-3 or np.ptp(b) < 1e-3:
        return
    assert pearson(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-9)
    assert direct.centred_cosine(a, b) == pearson(a, b)
    assert cosine(a - a.mean(), b - b.mean()) == pytest.approx(pearson(a, b), abs=1e-9)


@given(vectors, vectors, st.floats(0.01, 50))
def test_cosine_ignores_scale_and_is_symmetric(a: np.ndarray, b: np.ndarray, scale: float) -> None:
    if np.linalg.norm(a) < 1e-3 or np.linalg.norm(b) < 1e-3:
        return
    assert cosine(a, b) == pytest.approx(cosine(b * scale, a), abs=1e-9)
    assert -1 <= cosine(a, b) <= 1


@given(vectors, vectors)
def test_distances_are_the_formulas(a: np.ndarray, b: np.ndarray) -> None:
    distance, na, nb = np.linalg.norm(a - b), np.linalg.norm(a), np.linalg.norm(b)
    assert direct.l2(a, b) == pytest.approx(distance, rel=1e-12)
    assert direct.norm(a) == pytest.approx(na, rel=1e-12)
    assert direct.mean_abs_diff(a, b) == pytest.approx(np.abs(a - b).mean(), rel=1e-12)
    assert direct.max_abs_diff(a, b) == pytest.approx(np.abs(a - b).max(), rel=1e-12)
    assert direct.sign_agreement(a, b) == (np.sign(a) == np.sign(b)).mean()
    if na > 1e-3:
        assert direct.relative_l2(a, b) == pytest.approx(distance / na, rel=1e-12)
        rmse = math.sqrt(((a - b) ** 2).mean()) / math.sqrt((a**2).mean())
        assert direct.relative_rmse(a, b) == pytest.approx(rmse, rel=1e-9)
        symmetric = direct.symmetric_relative_l2(a, b)
        assert symmetric == pytest.approx(2 * distance / (na + nb), rel=1e-9)
        assert symmetric == direct.symmetric_relative_l2(b, a) <= 2
    if abs(a.mean()) > 1e-3 and abs(b.mean()) > 1e-3:
        expected = abs(a.std() / abs(a.mean()) - b.std() / abs(b.mean()))
        assert direct.variation_difference(a, b) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_what_is_undefined_is_nan() -> None:
    zero, constant, varied = np.zeros(4), np.full(4, 0.1), np.arange(4.0)
    assert math.isnan(cosine(zero, varied))
    assert math.isnan(pearson(constant, varied))
    assert math.isnan(pearson(varied, constant))
    assert math.isnan(pearson([], []))
    assert math.isnan(direct.relative_l2(zero, varied))
    assert direct.relative_l2(varied, zero) == 1
    assert math.isnan(direct.variation_difference([-1.0, 1.0], [1.0, 2.0]))
    assert math.isnan(direct.cosine_about([1.0, 1.0], [2.0, 3.0]))


def test_a_constant_has_no_variation_however_its_mean_is_rounded() -> None:
    for length in range(2, 200):
        constant, rising = np.full(length, 0.1), np.arange(length)
        assert math.isnan(pearson(constant, rising)), length
        assert math.isnan(pearson(rising, constant)), length
        assert direct.variation(constant) == 0


@pytest.mark.parametrize("function", BOTH)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_gives_nan_and_no_warning(function: Any, bad: float) -> None:
    spoilt, fine = np.array([1.0, bad, 3.0]), np.array([1.0, 2.0, 4.0])
    assert math.isnan(function(spoilt, fine))
    assert math.isnan(function(fine, spoilt))


def test_a_signalling_nan_gives_no_warning() -> None:
    signalling = np.array([0x7F800001, 0x3F800000], np.uint32).view(np.float32)
    assert math.isnan(cosine(signalling, np.ones(2)))


@pytest.mark.parametrize("function", BOTH)
def test_lengths_must_agree(function: Any) -> None:
    with pytest.raises(ValueError, match="3 and 4"):
        function(np.ones(3), np.ones(4))


def test_small_types_are_summed_in_double() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(1, 0.1, 4096).astype(ml_dtypes.bfloat16)
    b = rng.normal(1, 0.1, 4096).astype(ml_dtypes.bfloat16)
    for function in BOTH:
        assert function(a, b) == function(a.astype(np.float64), b.astype(np.float64))


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1e150, 1e307])
def test_extreme_values_neither_overflow_nor_vanish(scale: float) -> None:
    a, b = np.array([1.0, 2.0, 3.0]), np.array([1.0, -2.0, 5.0])
    near = 1e-3 if scale < 1e-300 else 1e-12
    for function in (cosine, pearson, direct.relative_l2, direct.variation_difference):
        assert function(a * scale, b * scale) == pytest.approx(function(a, b), rel=near)
    for function in (direct.l2, direct.mean_abs_diff, direct.max_abs_diff):
        assert function(a * scale, b * scale) == pytest.approx(function(a, b) * scale, rel=near)


def test_a_small_scatter_about_a_large_mean_is_kept() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=500), rng.normal(size=500)
    assert pearson(a + 1e7, b + 1e7) == pytest.approx(pearson(a, b), abs=1e-6)
    ulp = np.nextafter(0.1, 1)
    assert pearson([0.1, ulp, 0.1, ulp], [0.0, 1.0, 0.0, 1.0]) == pytest.approx(1)


def test_zero_agrees_in_sign_with_zero_only() -> None:
    assert direct.sign_agreement([0.0, -0.0, 0.0, 1.0], [-0.0, 0.0, 1.0, 0.0]) == 0.5


def test_a_common_mean_raises_cosine_and_not_pearson() -> None:
    """The lesson of the 2026 dispute: independent norm-like vectors have a cosine of 0.99."""
    rng = np.random.default_rng(1)
    pairs = [(rng.normal(1, 0.1, 4096), rng.normal(1, 0.1, 4096)) for _ in range(50)]
    assert min(cosine(a, b) for a, b in pairs) > 0.989
    assert max(abs(pearson(a, b)) for a, b in pairs) < 0.08


# Mean and deviation of the norm vectors of the two disputed models at layers 10 and 30, and
# their correlation, as published; then what the published tables say of the same vectors:
# cosine, relative RMSE and the difference of the coefficients of variation.
PUBLISHED: list[tuple[tuple[float, float, float, float], float, tuple[float, ...]]] = [
    (
        (0.23573653399944305, 0.04095647484064102, 0.49698755145072937, 0.04654686897993088),
        0.009186744689941406,
        (0.981094479560852, 1.1219305385974117, 0.08008032292127609),
    ),
    (
        (0.33874842524528503, 0.04011906683444977, 0.9475851058959961, 0.10075894743204117),
        -0.005766566377133131,
        (0.9874210953712463, 1.8130445621205424, 0.012100882828235626),
    ),
    (
        (0.29378122091293335, 0.03251666575670242, 0.7746694087982178, 0.05821703374385834),
        0.035622794181108475,
        (0.9914291501045227, 1.6420538229020047, 0.03553245961666107),
    ),
    (
        (0.6472766995429993, 0.03625436872243881, 1.7011948823928833, 0.09322034567594528),
        -0.0027777794748544693,
        (0.9969309568405151, 1.633004850859877, 0.0012136325240135193),
    ),
]


@pytest.mark.parametrize(("moments", "correlation", "expected"), PUBLISHED)
def test_published_numbers_follow_from_published_moments(
    moments: tuple[float, float, float, float], correlation: float, expected: tuple[float, ...]
) -> None:
    a, b = _vectors_with(*moments, correlation)
    assert pearson(a, b) == pytest.approx(correlation, abs=1e-9)
    assert cosine(a, b) == pytest.approx(expected[0], abs=2e-7)
    assert direct.relative_rmse(a, b) == pytest.approx(expected[1], abs=5e-7)
    assert direct.relative_rmse(b, a) != pytest.approx(expected[1], abs=0.1)
    assert direct.variation_difference(a, b) == pytest.approx(expected[2], abs=1e-7)


def test_the_published_distance_at_layer_ten() -> None:
    a, b = _vectors_with(*PUBLISHED[0][0], PUBLISHED[0][1])
    assert round(direct.l2(a, b), 4) == 17.1803


def test_cosine_about_a_constant_sees_only_the_side() -> None:
    rng = np.random.default_rng(3)
    low, other, high = (rng.normal(mean, 0.05, 4096) for mean in (0.3, 0.5, 1.7))
    assert direct.cosine_about(low, other) > 0.98
    assert direct.cosine_about(low, high) < -0.98
    assert direct.cosine_about(low, high, 0.0) == pytest.approx(cosine(low, high))
    assert direct.cosine_about(low, high) == pytest.approx(cosine(low - 1, high - 1))


def _vectors_with(
    mean_a: float, std_a: float, mean_b: float, std_b: float, correlation: float
) -> tuple[np.ndarray, np.ndarray]:
    """Two vectors with exactly these moments."""
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 4096))
    one = (one - one.mean()) / one.std()
    other -= other.mean()
    other -= (other @ one) / (one @ one) * one
    other /= other.std()
    mixed = correlation * one + math.sqrt(1 - correlation**2) * other
    return mean_a + std_a * one, mean_b + std_b * mixed
