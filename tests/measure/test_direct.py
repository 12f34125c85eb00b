"""Measures against their definitions, their invariances and their undefined cases."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kinprint.measure.direct import cosine, pearson

vectors = arrays(np.float64, 12, elements=st.floats(-100, 100))


@given(vectors, vectors)
def test_pearson_is_numpys(a: np.ndarray, b: np.ndarray) -> None:
    if np.ptp(a) < 1e-3 or np.ptp(b) < 1e-3:
        return
    assert pearson(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1], abs=1e-9)


@given(vectors, vectors, st.floats(0.01, 50))
def test_cosine_ignores_scale_and_is_symmetric(a: np.ndarray, b: np.ndarray, scale: float) -> None:
    if np.linalg.norm(a) < 1e-3 or np.linalg.norm(b) < 1e-3:
        return
    assert cosine(a, b) == pytest.approx(cosine(b * scale, a), abs=1e-9)
    assert -1 <= cosine(a, b) <= 1


def test_what_is_undefined_is_nan() -> None:
    zero, constant, varied = np.zeros(4), np.full(4, 0.1), np.arange(4.0)
    assert math.isnan(cosine(zero, varied))
    assert math.isnan(pearson(constant, varied))
    assert math.isnan(pearson(varied, constant))
    assert math.isnan(pearson([], []))


def test_lengths_must_agree() -> None:
    with pytest.raises(ValueError, match="3 and 4"):
        cosine(np.ones(3), np.ones(4))


def test_small_types_are_summed_in_double() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(1, 0.1, 4096).astype(ml_dtypes.bfloat16)
    b = rng.normal(1, 0.1, 4096).astype(ml_dtypes.bfloat16)
    exact = cosine(a.astype(np.float64), b.astype(np.float64))
    assert cosine(a, b) == exact


def test_a_common_mean_raises_cosine_and_not_pearson() -> None:
    """The lesson of the 2026 dispute: independent norm-like vectors have a cosine of 0.99."""
    rng = np.random.default_rng(1)
    pairs = [(rng.normal(1, 0.1, 4096), rng.normal(1, 0.1, 4096)) for _ in range(50)]
    assert min(cosine(a, b) for a, b in pairs) > 0.989
    assert max(abs(pearson(a, b)) for a, b in pairs) < 0.08
