"""Factors in every order of storage, read by any rows, against the whole matrix."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinprint.model.adapters.factors import RANK_FIRST, RANK_LAST, RANK_MIXED, Factor
from tests.model.adapters.fixtures import stored


@pytest.mark.parametrize("order", [RANK_FIRST, RANK_LAST, RANK_MIXED])
@given(data=st.data())
def test_any_rows_of_any_expert(order: str, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 4))
    size = data.draw(st.integers(1, 90))
    experts = data.draw(st.integers(1, 3))
    whole = np.random.default_rng(rank + 7 * size).normal(size=(experts, size, rank))
    whole = whole.astype(np.float32)
    array = {
        RANK_FIRST: whole.swapaxes(1, 2).reshape(experts * rank, size),
        RANK_LAST: whole.reshape(experts * size, rank),
        RANK_MIXED: whole.transpose(1, 2, 0).reshape(size, rank * experts),
    }[order]
    file = stored({}, {"x": array})
    factor = Factor(file.specs["x"], order, rank, size, experts)
    expert = data.draw(st.integers(0, experts - 1))
    picked = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=12))
    start = data.draw(st.integers(0, size - 1))
    for rows in (tuple(picked), range(start, size), range(size)):
        got = factor.matrix(rows, file.read(factor.slices(rows, expert)), expert)
        np.testing.assert_array_equal(got, whole[expert][np.asarray(rows)])


def test_distant_columns_are_read_apart() -> None:
    file = stored({}, {"x": np.ones((2, 1000))})
    factor = Factor(file.specs["x"], RANK_FIRST, 2, 1000)
    assert [part.columns for part in factor.slices((900, 3, 5))] == [range(3, 6), range(900, 901)]
