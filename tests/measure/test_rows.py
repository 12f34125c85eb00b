"""Row by row: each row is a vector of its own."""

from __future__ import annotations

import math

import numpy as np
import pytest

from kinprint.measure.direct import cosine, pearson
from kinprint.measure.rows import (
    partner_cosines,
    row_cosine_mean,
    row_cosines,
    row_pearson_mean,
    row_pearsons,
)


def test_each_row_is_its_vectors_measure() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.3, 1, (2, 30, 17)).astype(np.float32)
    assert row_cosines(a, b) == pytest.approx([cosine(x, y) for x, y in zip(a, b, strict=True)])
    assert row_pearsons(a, b) == pytest.approx([pearson(x, y) for x, y in zip(a, b, strict=True)])


@pytest.mark.parametrize("block", [17, 85, 10_000])
def test_strangers_of_rows_are_the_partners_of_the_rows_before(block: int) -> None:
    a, b = np.random.default_rng(1).normal(size=(2, 30, 17)).astype(np.float32)
    same, others = partner_cosines(a, b, block)
    assert same == pytest.approx(row_cosines(a, b))
    assert others == pytest.approx(row_cosines(a, np.roll(b, 1, axis=0)))


def test_bad_rows_are_set_aside() -> None:
    a = np.arange(20.0).reshape(5, 4)
    b = a + 1
    b[1], b[2, 0], b[3] = 0, math.nan, 0.1
    found = row_cosines(a, b)
    assert np.isnan(found).tolist() == [False, True, True, False, False]
    assert np.isnan(row_pearsons(a, b)).tolist() == [False, True, True, True, False]
    assert row_cosine_mean(a, b) == pytest.approx(np.nanmean(found))
    assert row_pearson_mean(a, b) == pytest.approx(np.nanmean(row_pearsons(a, b)))


def test_rows_of_extreme_scale() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 4, 9))
    scales = np.array([[1e-310], [1e-160], [1e160], [1e300]])
    assert row_cosines(a * scales, b * scales)[1:] == pytest.approx(row_cosines(a, b)[1:])
    assert row_pearsons(a * scales, b)[1:] == pytest.approx(row_pearsons(a, b)[1:])
    assert row_cosines(a * scales, b)[0] == pytest.approx(row_cosines(a, b)[0], abs=1e-9)


def test_no_rows_and_other_shapes() -> None:
    assert math.isnan(row_cosine_mean(np.ones((0, 3)), np.ones((0, 3))))
    with pytest.raises(ValueError, match="no rows in common"):
        row_cosines(np.ones((2, 3)), np.ones((3, 2)))
