"""The shuffled cosine: enumeration, published shuffles and closed form agree."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from kinprint.measure.direct import cosine, shuffled_cosine_mean


def test_the_closed_form_is_the_mean_over_all_shuffles() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.5, 1, (2, 6))
    every = [cosine(a, b[list(order)]) for order in itertools.permutations(range(6))]
    assert shuffled_cosine_mean(a, b) == pytest.approx(np.mean(every), abs=1e-12)


def test_what_has_no_direction_has_no_shuffled_cosine() -> None:
    assert math.isnan(shuffled_cosine_mean([0.0, 0.0], [1.0, 2.0]))
    assert math.isnan(shuffled_cosine_mean([], []))
    assert shuffled_cosine_mean([2.0], [-3.0]) == -1.0


def test_the_published_shuffles_lie_where_the_closed_form_says() -> None:
    """Mean, deviation and shuffled cosine of published norm vectors, layers 0, 10 and 30."""
    for mean_a, std_a, mean_b, std_b, published in [
        (
            0.14563041925430298,
            0.06360136717557907,
            0.06551524251699448,
            0.025237208232283592,
            0.8537580966949463,
        ),
        (
            0.23573653399944305,
            0.04095647484064102,
            0.49698755145072937,
            0.04654686897993088,
            0.9808288812637329,
        ),
        (
            0.6472766995429993,
            0.03625436872243881,
            1.7011948823928833,
            0.09322034567594528,
            0.9969505071640015,
        ),
    ]:
        rng = np.random.default_rng(0)
        a, b = rng.normal(size=(2, 4096))
        a, b = ((one - one.mean()) / one.std() for one in (a, b))
        x, y = mean_a + std_a * a, mean_b + std_b * b
        # The sum over shuffled places has the variance Σ(x−x̄)²·Σ(y−ȳ)² / (n−1).
        scatter = len(x) * x.std() * y.std() / math.sqrt(len(x) - 1)
        deviation = scatter / np.linalg.norm(x) / np.linalg.norm(y)
        assert abs(published - shuffled_cosine_mean(x, y)) < 3 * deviation
