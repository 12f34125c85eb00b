"""The shuffled cosine: drawing, enumeration and closed form agree."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from kinprint.measure.direct import cosine, pearson
from kinprint.measure.shuffled import shuffled_cosine, shuffled_cosine_exact


def test_the_closed_form_is_the_mean_over_all_shuffles() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.5, 1, (2, 6))
    every = [cosine(a, b[list(order)]) for order in itertools.permutations(range(6))]
    exact = shuffled_cosine_exact(a, b)
    assert exact.mean == pytest.approx(np.mean(every), abs=1e-12)
    assert exact.std == pytest.approx(np.std(every), abs=1e-12)
    assert (cosine(a, b) - exact.mean) / exact.std == pytest.approx(math.sqrt(5) * pearson(a, b))


def test_drawing_comes_near_and_depends_on_the_seed_alone() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(1, 0.3, (2, 400))
    exact, drawn = shuffled_cosine_exact(a, b), shuffled_cosine(a, b, seed=5, draws=400)
    assert drawn.mean == pytest.approx(exact.mean, abs=5 * exact.std / 20)
    assert drawn.std == pytest.approx(exact.std, rel=0.2)
    assert drawn == shuffled_cosine(a, b, seed=5, draws=400)
    assert drawn != shuffled_cosine(a, b, seed=6, draws=400)


def test_what_has_no_direction_has_no_shuffled_cosine() -> None:
    assert math.isnan(shuffled_cosine_exact([0.0, 0.0], [1.0, 2.0]).mean)
    assert math.isnan(shuffled_cosine([0.0, 0.0], [1.0, 2.0]).mean)
    assert math.isnan(shuffled_cosine_exact([], []).mean)
    one = shuffled_cosine_exact([2.0], [-3.0])
    assert (one.mean, one.std) == (-1.0, 0.0)
    assert shuffled_cosine_exact([1.0, 1.0], [1.0, 2.0]).std == 0


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
        exact = shuffled_cosine_exact(mean_a + std_a * a, mean_b + std_b * b)
        assert abs(published - exact.mean) < 3 * exact.std
