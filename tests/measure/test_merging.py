"""Weights from sums of products, ranks of magnitudes, and the arithmetic of merges."""

from __future__ import annotations

import numpy as np
import pytest

from kinprint.measure.masks import MagnitudeCounts, subset_sums, trimmed, usual_ratio
from kinprint.measure.merging import (
    Precision,
    add_task_vectors,
    linear,
    rounded,
    slerp_coefficients,
    task_vectors,
)
from kinprint.measure.mixtures import Products, dependent_columns, mixture_of

DRAWS = np.random.default_rng(3)


def floats(*shape: int, size: float = 1.0) -> np.ndarray:
    return DRAWS.normal(0, size, shape).astype(np.float32)


def test_intervals_hold_the_weight_about_as_often_as_they_say() -> None:
    held = 0
    for _ in range(200):
        a, b = floats(4000), floats(4000)
        products = Products(2)
        products.add([a, b], 0.3 * a + 0.7 * b + floats(4000, size=0.1))
        first = mixture_of(products).weights[0]
        held += first.low <= 0.3 <= first.high
    assert 180 <= held <= 199


def test_a_weight_is_never_negative_but_that_of_a_free_column() -> None:
    a, b = floats(4000), floats(4000)
    products = Products(2)
    products.add([a, b], 1.4 * a - 0.4 * b + floats(4000, size=0.01))
    bound = mixture_of(products)
    assert bound.weights[1].value == bound.weights[1].high == 0
    assert bound.weights[1].low == pytest.approx(-0.4, abs=0.01), "of the fit without that limit"
    free = mixture_of(products, [1])
    assert free.weights[1].value == pytest.approx(-0.4, abs=0.01)
    assert free.residual is not None and bound.residual is not None
    assert free.residual < bound.residual


def test_columns_that_are_equal_or_nearly_so_are_one_weight() -> None:
    a, b = floats(4000), floats(4000)
    for twin in (a, a + floats(4000, size=1e-4)):
        products = Products(3)
        products.add([a, twin, b], 0.3 * a + 0.7 * b + floats(4000, size=0.01))
        found = mixture_of(products)
        assert [one.columns for one in found.weights] == [(0, 1), (2,)]
        assert found.weights[0].value == pytest.approx(0.3, abs=0.01)


def test_a_column_that_is_a_sum_of_others_is_told_with_them() -> None:
    a, b = floats(4000), floats(4000)
    products = Products(3)
    products.add([a, (a + b) / 2, b], 0.3 * a + 0.7 * b + floats(4000, size=0.01))
    assert sorted(dependent_columns(products)) == [0, 1, 2]
    (found,) = mixture_of(products).weights
    assert found.columns == (0, 1, 2)
    assert found.low <= 1 <= found.high and found.value == pytest.approx(1, abs=0.01)
    assert not dependent_columns(products.of([0, 2]))
    assert min(mixture_of(products).spread) > 100, "of each by itself nothing is known"


def test_zeros_have_no_weight_that_could_be_known() -> None:
    a, zeros = floats(4000), np.zeros(4000, np.float32)
    products = Products(2)
    products.add([a, zeros], a + floats(4000, size=0.01))
    found = mixture_of(products)
    assert found.spread[0] < 0.01 and found.spread[1] > 100


def test_blocks_add_up_to_the_whole() -> None:
    a, b = floats(3200), floats(3200)
    whole, parts = Products(1), Products(1)
    whole.add([a], b)
    for at in range(0, 3200, 800):
        parts.add([a[at : at + 800]], b[at : at + 800])
    assert parts.total == pytest.approx(whole.total) and parts.size == whole.size


def test_ranks_are_those_of_sorting_but_for_ties() -> None:
    values = rounded(floats(1000), Precision.BFLOAT16)
    counter = MagnitudeCounts()
    for at in range(0, 1000, 300):
        counter.add(values[at : at + 300])
    magnitudes = counter.done()
    assert magnitudes.size == 1000
    low, high = magnitudes.ranks(values)
    larger = (np.abs(values)[None] > np.abs(values)[:, None]).sum(axis=1)
    as_large = (np.abs(values)[None] >= np.abs(values)[:, None]).sum(axis=1)
    assert np.array_equal(low, larger) and np.array_equal(high, as_large - 1)
    found = trimmed(magnitudes, values, 0.3)
    assert found.kept.sum() <= 300 <= found.kept.sum() + found.either.sum()
    assert not (found.kept & found.either).any()


def test_the_usual_ratio_is_that_of_numbers_that_have_one_vector_alone() -> None:
    a, b = floats(20_000), floats(20_000)
    first, second = DRAWS.random((2, 20_000)) < 0.5
    assert usual_ratio(1.7 * a * first + 0.8 * b * second, a) == pytest.approx(1.7, rel=0.005)
    assert usual_ratio(np.zeros(5, np.float32), a[:5]) is None


def test_sums_of_choices_begin_with_all() -> None:
    sums = subset_sums([np.array([1.0], np.float32), np.array([10.0], np.float32)], [2, 3])
    assert sums.ravel().tolist() == [32.0, 2.0, 30.0, 0.0]


def test_slerp_between_tensors_of_one_direction_is_a_straight_line() -> None:
    assert slerp_coefficients(0.25, 0.9996) == (0.75, 0.25)
    first, second = slerp_coefficients(0.5, 0.0)
    assert first == pytest.approx(2**-0.5) and second == pytest.approx(2**-0.5)


def test_a_short_format_rounds_weights_and_steps() -> None:
    one = np.array([1.0, 3.0], np.float32)
    stepwise = linear([one], [0.3], False, Precision.BFLOAT16, fused=False)
    assert stepwise.tolist() == [0.30078125, 0.90234375]
    once = linear([one], [0.3], False, Precision.BFLOAT16)
    assert once.tolist() == [0.30078125, 0.8984375]


def test_consensus_takes_the_sign_of_the_sum_and_divides_by_what_it_took() -> None:
    base = np.zeros(3, np.float32)
    vectors = [np.array([1, -1, 0], np.float32), np.array([2, 3, 0], np.float32)]
    options = {"normalize": True, "consensus": True}
    merged = add_task_vectors(base, vectors, [0.5, 0.25], Precision.FLOAT32, **options)
    assert merged.tolist() == pytest.approx([(0.5 + 0.5) / 0.75, 3.0, 0.0])
    assert [one.tolist() for one in task_vectors(base, vectors, Precision.FLOAT32)] == [
        one.tolist() for one in vectors
    ]
