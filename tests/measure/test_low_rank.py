"""The rank of a change is told exactly where it has one, and is not invented."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kinprint.measure.change import change_sums
from kinprint.measure.low_rank import (
    ChangeSpectrum,
    largest_singular_value,
    rounding_variance,
    spectrum_of,
)

Rng = np.random.Generator


def _weights(draw: Rng, rows: int, columns: int) -> np.ndarray:
    """Numbers whose columns have different sizes, as trained ones do."""
    scales = np.exp(draw.normal(0, 0.5, columns))
    return (draw.normal(size=(rows, columns)) * scales * 0.02).astype(np.float32)


def _spectrum(a: np.ndarray, b: np.ndarray) -> ChangeSpectrum:
    found = spectrum_of(change_sums(a, b, a.shape), rounding_variance(b))
    assert found is not None
    return found


@pytest.mark.parametrize("rank", [2, 7, 16, 64])
@pytest.mark.parametrize("shape", [(128, 352), (1024, 768), (300, 2000)])
@pytest.mark.parametrize("kind", [ml_dtypes.bfloat16, np.float16, np.float32])
def test_the_rank_of_a_merged_update(rank: int, shape: tuple[int, int], kind: Any) -> None:
    draw = np.random.default_rng([rank, *shape])
    a = _weights(draw, *shape).astype(kind)
    before = a.astype(np.float32)
    update = draw.normal(size=(shape[0], rank)) @ draw.normal(size=(rank, shape[1]))
    update *= 0.02 * np.linalg.norm(before) / np.linalg.norm(update)
    assert _spectrum(a, (before + update).astype(kind)).rank == rank


@pytest.mark.parametrize("decay", [0.3, 0.7, 1.0])
def test_a_change_in_all_directions_has_no_rank(decay: float) -> None:
    draw = np.random.default_rng(5)
    a = _weights(draw, 256, 512).astype(ml_dtypes.bfloat16)
    before = a.astype(np.float32)
    u, _, v = np.linalg.svd(draw.normal(size=before.shape), full_matrices=False)
    change = (u * np.arange(1, 257) ** -decay) @ v
    change *= 0.05 * np.linalg.norm(before) / np.linalg.norm(change)
    assert _spectrum(a, (before + change).astype(ml_dtypes.bfloat16)).rank is None


def test_noise_is_white_and_training_is_not() -> None:
    draw = np.random.default_rng(6)
    a = _weights(draw, 512, 1024)
    noise = draw.normal(size=a.shape) * 0.05 * np.abs(a)  # in proportion to what is there
    assert _spectrum(a, (a + noise).astype(np.float32)).whiteness > 0.95
    shared = np.outer(draw.normal(size=512), draw.normal(size=1024)) * 6e-4
    assert _spectrum(a, (a + noise + shared).astype(np.float32)).whiteness < 0.6


def test_rounding_changes_as_much_as_is_said() -> None:
    draw = np.random.default_rng(7)
    a = _weights(draw, 400, 400)
    for kind in (ml_dtypes.bfloat16, np.float16):
        rounded = a.astype(kind)
        error = float(np.square(rounded.astype(np.float32) - a).mean())
        assert rounding_variance(rounded) == pytest.approx(error, rel=0.1)
    assert rounding_variance(np.ones(3, np.int8)) is None


@pytest.mark.parametrize("shape", [(256, 256), (64, 256), (256, 30), (9, 9)])
@pytest.mark.parametrize("decay", [0.0, 1.0, 4.0])
def test_the_largest_singular_value(shape: tuple[int, int], decay: float) -> None:
    draw = np.random.default_rng([*shape, int(decay)])
    matrix = draw.normal(size=shape) * draw.random(shape[1]) ** decay
    found = largest_singular_value(matrix.astype(np.float32))
    assert found == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-5)
    assert largest_singular_value(np.zeros(shape, np.float32)) == 0.0
