"""Every format against the library that owns it: the numbers are the same."""

from __future__ import annotations

import numpy as np
import pytest

from kinprint.reader.decode import as_float32
from tests.model.quantised.fixtures import CASES, load


@pytest.mark.parametrize("case", CASES)
def test_rows_are_those_of_the_library(case: str) -> None:
    fixture = load(case)
    weight = fixture.weight(fixture.logical)
    shape = weight.shape
    assert shape is not None
    width = shape[-1]
    height = int(np.prod(shape[:-1]))
    ours = fixture.rows(weight, range(height))[:: fixture.step]
    theirs = fixture.expected.reshape(-1, width)
    assert ours.shape == theirs.shape
    assert ours.dtype == np.float32
    # The library answers in its own type, often half precision: ours, rounded to it, may
    # differ by its last place, since the library rounds between its steps as well.
    steps = {"float32": 2**-22, "float16": 2**-10, "bfloat16": 2**-7}
    close = steps[theirs.dtype.name]
    np.testing.assert_allclose(ours, as_float32(theirs), rtol=close, atol=0)
