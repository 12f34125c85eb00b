"""Sums of a change: those of blocks add up to those of the whole."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinprint.measure.change import FOLDED, ChangeSums, change_sums, unfolded_sums

KINDS = (np.float32, np.float16, ml_dtypes.bfloat16)
WHOLE = (np.int32, np.uint32, np.int64, np.uint64)
EDGES = [
    sign * 2**bits + more for sign in (-1, 1) for bits in (0, 31, 53, 63) for more in (-1, 0, 1)
]


def _pair(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    a = draw.normal(size=(rows, columns)).astype(np.float32)
    b = np.where(draw.random(a.shape) < 0.5, a, a + 0.1 * draw.normal(size=a.shape))
    return a, b.astype(np.float32)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 600), st.integers(1, 600), st.integers(0, 9), st.sampled_from(KINDS), st.data()
)
def test_blocks_add_up(rows: int, columns: int, seed: int, kind: type, data: st.DataObject) -> None:
    a, b = _pair(rows, columns, seed)
    a, b = a.astype(kind), b.astype(kind)
    whole = change_sums(a, b, a.shape)
    cut = data.draw(st.integers(0, rows))
    side = data.draw(st.integers(0, columns))
    parts = [
        change_sums(a[rs, cs], b[rs, cs], a.shape, rs.start, cs.start)
        for rs in (slice(0, cut), slice(cut, rows))
        for cs in (slice(0, side), slice(side, columns))
        if a[rs, cs].size
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert (total.numbers, total.equal, total.largest) == (
        whole.numbers,
        whole.equal,
        whole.largest,
    )
    assert total.squares == pytest.approx(whole.squares, rel=1e-4, abs=1e-9)
    assert np.allclose(total.folded, whole.folded, atol=1e-4)
    assert np.allclose(total.row_products, whole.row_products)
    assert np.allclose(total.column_products, whole.column_products)


def test_shares_and_sizes_are_those_of_the_arrays() -> None:
    a, b = _pair(300, 500, 3)
    sums = change_sums(a, b, a.shape)
    assert sums.changed == pytest.approx(np.mean(a != b))
    assert sums.relative == pytest.approx(np.linalg.norm(b - a) / np.linalg.norm(a), rel=1e-4)
    assert sums.largest == pytest.approx(float(np.abs(b - a).max()))
    assert sums.cosine == pytest.approx(
        float((a * b).sum() / np.linalg.norm(a) / np.linalg.norm(b)), rel=1e-4
    )
    assert change_sums(a, 3 * a, a.shape).scale == pytest.approx(3.0, rel=1e-5)


def test_a_folded_change_keeps_its_energy_on_average() -> None:
    draw = np.random.default_rng(1)
    a = np.zeros((2 * FOLDED, 5 * FOLDED + 7), np.float32)
    ratios = []
    for _ in range(20):
        b = draw.normal(size=a.shape).astype(np.float32)
        sums = change_sums(a, b, a.shape)
        ratios.append(float(np.square(sums.folded).sum()) / sums.squares)
    assert np.mean(ratios) == pytest.approx(1.0, abs=0.01)


def test_equal_bits_are_equal_and_zeros_are_counted() -> None:
    a = np.array([[0.0, 1.0, 2.0, np.nan, 3.0]], np.float32)
    b = np.array([[1.0, 0.0, 2.0, np.nan, np.inf]], np.float32)
    sums = change_sums(a, b, a.shape)
    assert (sums.numbers, sums.equal, sums.broken) == (5, 2, 1)
    assert (sums.zeroed, sums.filled) == (1, 1)
    assert np.isfinite(sums.relative)


@given(st.data(), st.sampled_from(WHOLE), st.sampled_from(WHOLE))
def test_whole_numbers_are_compared_with_all_of_their_digits(
    data: st.DataObject, before: type, after: type
) -> None:
    def drawn(kind: type) -> np.ndarray:
        known = [one for one in EDGES if np.iinfo(kind).min <= one <= np.iinfo(kind).max]
        return np.array([data.draw(st.lists(st.sampled_from(known), min_size=4, max_size=4))], kind)

    a, b = drawn(before), drawn(after)
    changes = [int(to) - int(one) for one, to in zip(a[0], b[0], strict=True)]
    for found in (change_sums(a, b, a.shape), unfolded_sums(a, b)):
        assert found.equal == changes.count(0)
        assert found.largest == float(max(map(abs, changes)))


def test_nothing_before_is_an_infinite_change() -> None:
    a = np.zeros((2, 3), np.float32)
    sums: ChangeSums = change_sums(a, a + 1, a.shape)
    assert sums.relative == np.inf
    assert change_sums(a, a, a.shape).relative == 0.0


def test_what_is_no_number_is_no_zero() -> None:
    a = np.array([[np.nan, np.inf, 0.0, 1.0, 0.0]], np.float32)
    b = np.array([[np.nan, 1.0, 0.0, 0.0, 2.0]], np.float32)
    found = change_sums(a, b, a.shape)
    assert (found.equal, found.broken) == (2, 1)
    assert (found.zeroed, found.filled, found.zeros) == (1, 1, 1)


def test_sizes_of_rows_and_columns_do_not_depend_on_blocks() -> None:
    a, b = _pair(1500, 900, 3)
    whole = change_sums(a, b, a.shape)
    parts = [change_sums(a[at : at + 700], b[at : at + 700], a.shape, at) for at in (0, 700, 1400)]
    total = parts[0] + parts[1] + parts[2]
    np.testing.assert_allclose(total.row_squares, whole.row_squares, rtol=1e-5)
    np.testing.assert_allclose(total.column_squares, whole.column_squares, rtol=1e-5)


@pytest.mark.parametrize("turned", [False, True])
def test_nothing_is_left_in_directions_that_were_taken_out(turned: bool) -> None:
    draw = np.random.default_rng(6)
    a = draw.normal(size=(300, 500))
    direction = draw.normal(size=(300, 1))
    direction /= np.linalg.norm(direction)
    b = a - direction @ (direction.T @ a)
    a, b = (a.T, b.T) if turned else (a, b)
    a, b = a.astype(np.float32), b.astype(np.float32)
    out, back = change_sums(a, b, a.shape).left, change_sums(b, a, a.shape).left
    assert out is not None and out < 1e-6
    assert back is not None and back > 0.5
    assert change_sums(a, a, a.shape).left is None


@pytest.mark.parametrize("shape", [(1, 2048), (3, 2048), (16, 1)])
def test_few_rows_do_not_tell_what_is_left(shape: tuple[int, int]) -> None:
    """Chance makes a few of them stand at right angles to their change."""
    chance = np.random.default_rng(3)
    a, b = (chance.normal(size=shape).astype(np.float32) for _ in range(2))
    assert change_sums(a, b, shape).left is None
