"""Spectra and subspaces: decomposed or through Gram matrices, the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import linalg

from kinprint.measure import spectra


@pytest.mark.parametrize("shape", [(9, 5), (5, 9), (6, 6), (1, 4), (4, 1)])
def test_values_are_numpys_by_either_way(shape: tuple[int, int]) -> None:
    a = np.random.default_rng(0).normal(size=shape)
    expected = np.linalg.svd(a, compute_uv=False)
    assert spectra.singular_values(a) == pytest.approx(expected)
    assert spectra.singular_values(a, direct=0) == pytest.approx(expected, rel=1e-6)
    assert spectra.singular_values(a * 1e200) == pytest.approx(expected * 1e200)


def test_angles_are_scipys_by_either_way() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(40, 12)), rng.normal(size=(7, 12))
    bases = [np.linalg.svd(m)[2][:3].T for m in (a, b)]
    expected = np.sort(linalg.subspace_angles(*bases))
    assert spectra.principal_angles(a, b, 3) == pytest.approx(expected)
    assert spectra.principal_angles(a, b, 3, direct=0) == pytest.approx(expected, abs=1e-7)
    overlap = np.mean(np.cos(expected) ** 2)
    assert spectra.subspace_overlap(a, b, 3) == pytest.approx(overlap)


def test_tiny_angles_are_seen() -> None:
    a = np.zeros((2, 4))
    a[0, 0], a[1, 1] = 2, 1
    b = a.copy()
    b[1, 2] = 1e-9
    angles = spectra.principal_angles(a, b, 2)
    assert angles[1] == pytest.approx(1e-9, rel=1e-6)
    assert angles[0] < 1e-12


def test_chance_overlap_is_k_over_width() -> None:
    rng = np.random.default_rng(2)
    found = [spectra.subspace_overlap(a, b, k=4) for a, b in rng.normal(size=(60, 2, 30, 20))]
    assert np.mean(found) == pytest.approx(4 / 20, abs=0.02)


def test_spectra_of_noise_are_alike() -> None:
    a, b = np.random.default_rng(3).normal(size=(2, 60, 40))
    assert spectra.spectrum_cosine(a, b) > 0.99
    assert spectra.spectrum_log_distance(a, b) < 0.2
    skewed = a * np.linspace(0.01, 1, 40)
    assert spectra.spectrum_log_distance(a, skewed) > 0.5
    assert spectra.spectrum_log_distance(a, a * 7) == pytest.approx(0, abs=1e-12)


def test_unequal_shapes_and_what_has_no_answer() -> None:
    a = np.random.default_rng(4).normal(size=(6, 5))
    assert 0 < spectra.spectrum_cosine(a, a[:2]) < 1
    assert math.isnan(spectra.spectrum_cosine(a, np.zeros((3, 3))))
    assert math.isnan(spectra.spectrum_log_distance(a, np.zeros((3, 3))))
    assert math.isnan(spectra.spectrum_cosine(a, a * np.nan))
    rank_one = np.outer(np.arange(1.0, 7), np.arange(1.0, 6))
    for direct in (0, 100):
        assert len(spectra.principal_angles(a, rank_one, 2, direct)) == 0
        assert len(spectra.principal_angles(a, rank_one, 1, direct)) == 1
    assert math.isnan(spectra.subspace_overlap(a, rank_one, 2))
    with pytest.raises(ValueError, match="columns"):
        spectra.principal_angles(a, a.T)


def test_a_direction_that_grew_stands_out_of_noise() -> None:
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(64, 128))
    grown = noise + 0.2 * np.outer(rng.normal(size=64), rng.normal(size=128))
    assert spectra.noise_ratio(noise) < 1.05 < spectra.noise_ratio(grown)
    assert spectra.noise_ratio(1e-30 * noise) == pytest.approx(spectra.noise_ratio(noise))
    assert math.isnan(spectra.noise_ratio(np.zeros((3, 4))))
