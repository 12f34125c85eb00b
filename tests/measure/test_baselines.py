"""The critique's random baseline: what noise around one gives."""

from __future__ import annotations

import math

import pytest

from kinprint.measure.baselines import random_baseline

# Published: mean and deviation over pairs of vectors of 4096 values, mean 1.0, deviation 0.1.
# The tolerances are four standard errors of 400 pairs: std/20 for a mean, std/28 for a
# deviation; the publication's own rounding and its own sample of pairs come on top.
PUBLISHED = [
    ("cosine", 0.9901, 0.0002, 1e-4, 1e-4),
    ("pearson", 0.0007, 0.0150, 0.0040, 0.0030),
    ("l2", 9.0468, 0.0996, 0.0300, 0.0180),
]


@pytest.mark.parametrize(("name", "mean", "std", "near_mean", "near_std"), PUBLISHED)
def test_the_published_baseline(
    name: str, mean: float, std: float, near_mean: float, near_std: float
) -> None:
    found = random_baseline(name, n=400, mean=1.0, std=0.1, length=4096, seed=0)
    assert found.pairs == 400
    assert found.mean == pytest.approx(mean, abs=near_mean)
    assert found.std == pytest.approx(std, abs=near_std)


def test_theory_agrees() -> None:
    """Cosine 1/(1 + 0.01), Pearson 0 ± 1/√4095, distance √2·0.1·64 ± 0.1."""
    cosine, pearson, l2 = (
        random_baseline(name, 400, 1.0, 0.1, 4096, 1) for name in ("cosine", "pearson", "l2")
    )
    assert cosine.mean == pytest.approx(1 / 1.01, abs=5e-5)
    assert pearson.mean == pytest.approx(0, abs=4 / 64 / 20)
    assert pearson.std == pytest.approx(1 / math.sqrt(4095), rel=0.15)
    assert l2.mean == pytest.approx(math.sqrt(2) * 6.4, abs=0.02)
    assert l2.std == pytest.approx(0.1, rel=0.15)


def test_the_seed_decides() -> None:
    draws = [random_baseline("cosine", 5, 0.0, 1.0, 50, seed) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_pairs_without_a_value_do_not_count() -> None:
    assert random_baseline("pearson", 3, 1.0, 0.0, 8, 0).pairs == 0
