"""Blocks must not change a result, and must keep memory small."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kinprint.measure import blocks, direct, ordered, rows, stored
from kinprint.measure.measures import measure

BLOCKWISE: list[Callable[..., float]] = [
    direct.cosine,
    direct.pearson,
    direct.cosine_about,
    direct.l2,
    direct.relative_l2,
    direct.mean_abs_diff,
    direct.max_abs_diff,
    direct.variation_difference,
    direct.sign_agreement,
    ordered.spearman,
    ordered.p99_abs_diff,
    stored.bit_equal_share,
]


@settings(deadline=None, max_examples=40)
@given(
    arrays(np.float32, 37, elements=st.floats(-9, 9, width=32)),
    arrays(np.float32, 37, elements=st.floats(-9, 9, width=32)),
    st.integers(1, 40),
)
def test_blocks_of_any_size_give_what_the_whole_gives(
    a: np.ndarray, b: np.ndarray, block: int
) -> None:
    for function in BLOCKWISE:
        whole, parts = function(a, b), function(a, b, block=block)
        assert parts == pytest.approx(whole, rel=1e-6, abs=1e-9, nan_ok=True), function.__name__


@pytest.mark.parametrize("block", [1, 7, 64])
def test_rows_in_blocks(block: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 11, 5))
    assert np.allclose(rows.row_cosines(a, b, block=block), rows.row_cosines(a, b), atol=1e-15)
    assert np.allclose(rows.row_pearsons(a, b, block=block), rows.row_pearsons(a, b), atol=1e-15)


@pytest.mark.parametrize(
    "name", ["cosine", "pearson", "l2", "mean_abs_diff", "shuffled_cosine", "row_pearson_mean"]
)
def test_a_large_matrix_is_never_copied_whole(name: str) -> None:
    a, b = np.random.default_rng(0).standard_normal((2, 1024, 4096), dtype=np.float32)
    tracemalloc.start()
    assert measure(name, a, b).ok
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < a.nbytes


def test_sums_are_as_exact_as_a_double_sum_can_be() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(1, 0.1, (2, 700_000)).astype(np.float32)
    found = blocks.sums(a, b)
    assert found is not None
    exact = math.fsum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))
    assert found.ab == pytest.approx(exact, rel=1e-14)


def test_scan_counts_what_is_no_number() -> None:
    seen = blocks.scan(np.array([np.nan, 2.0, -np.inf, np.inf, -3.0, 5e-324]), block=2)
    assert (seen.nan, seen.infinite, seen.least, seen.greatest) == (1, 2, -3.0, 2.0)
    assert not seen.finite
    assert blocks.scan(np.array([np.nan] * 3)).peak == 0


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.float16, bool, ml_dtypes.float8_e4m3fn])
def test_any_stored_type_will_do(kind: type) -> None:
    a: np.ndarray = np.array([0, 1, 1, 0, 1]).astype(kind)
    b: np.ndarray = np.array([1, 1, 0, 0, 1]).astype(kind)
    assert direct.cosine(a, b) == pytest.approx(2 / 3)
    assert ordered.spearman(a, b) == pytest.approx(1 / 6)
    assert ordered.p99_abs_diff(a, b) == 1
