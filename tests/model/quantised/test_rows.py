"""Any rows are the rows of the whole, and cost no more bytes than they must."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kinprint.errors import BadQuantisation, SliceOutside
from kinprint.model.quantised import QuantisedWeight, float_rows, logical_weights, needed
from kinprint.reader.decode import Array
from kinprint.reader.extents import total, union
from kinprint.reader.plan import ReadPolicy, plan_file, slice_bytes
from tests.model.quantised.fixtures import CASES, Fixture, declare, load

GPTQ = {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
AWQ = {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}}


@functools.cache
def whole(case: str) -> tuple[Fixture, QuantisedWeight, Array]:
    fixture = load(case)
    weight = fixture.weight(fixture.logical)
    assert weight.shape is not None
    height = int(np.prod(weight.shape[:-1]))
    return fixture, weight, fixture.rows(weight, range(height))


@settings(deadline=None)
@given(st.sampled_from(CASES), st.data())
def test_a_part_is_a_part_of_the_whole(case: str, data: st.DataObject) -> None:
    fixture, weight, everything = whole(case)
    some = st.lists(st.integers(0, len(everything) - 1), max_size=9).map(tuple)
    stretch = st.tuples(st.integers(0, len(everything)), st.integers(0, len(everything)))
    rows = data.draw(st.one_of(some, stretch.map(lambda ends: range(min(ends), max(ends)))))
    np.testing.assert_array_equal(fixture.rows(weight, rows), everything[list(rows)])


@settings(deadline=None)
@given(st.sampled_from(CASES), st.data())
def test_bytes_beyond_the_needed_ones_do_not_matter(case: str, data: st.DataObject) -> None:
    fixture, weight, everything = whole(case)
    row = data.draw(st.integers(0, len(everything) - 1))
    spans = [span for part in needed(weight, (row,)) for span in slice_bytes(part)]
    held = bytearray(b"\xa5" * len(fixture.raw))
    for span in spans:
        held[span.start : span.stop] = fixture.raw[span.start : span.stop]
    only = Fixture(bytes(held), fixture.specs, fixture.config, fixture.logical, 1, fixture.expected)
    np.testing.assert_array_equal(only.rows(weight, (row,))[0], everything[row])


def bytes_needed(weight: QuantisedWeight, rows: range) -> int:
    return total(union(span for part in needed(weight, rows) for span in slice_bytes(part)))


def test_rows_that_lie_as_rows_cost_what_they_hold() -> None:
    config = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}
    specs = declare(x__weight=("F8_E4M3", (4096, 4096)), x__weight_scale_inv=("F32", (32, 32)))
    weight = logical_weights(specs, config)["x.weight"]
    assert bytes_needed(weight, range(16)) == 16 * 4096 + 32 * 4
    specs = declare(x_blocks=("U8", (32, 5760, 90, 16)), x_scales=("U8", (32, 5760, 90)))
    weight = logical_weights(specs, {})["x"]
    assert weight.shape == (32, 5760, 2880)
    assert bytes_needed(weight, range(5760, 5776)) == 16 * (1440 + 90)


def test_what_columns_cost_is_said_honestly() -> None:
    """Sixteen outputs need few bytes, far apart: a plan that joins gaps reads it all."""
    gptq = declare(
        x__qweight=("I32", (512, 4096)),
        x__qzeros=("I32", (32, 512)),
        x__scales=("F16", (32, 4096)),
        x__g_idx=("I32", (4096,)),
    )
    weight = logical_weights(gptq, GPTQ)["x.weight"]
    least = 512 * 64 + 32 * 8 + 32 * 32 + 4096 * 4
    assert bytes_needed(weight, range(16)) == least == 50_432
    assert _planned(weight, range(16)) > 0.9 * weight.stored_bytes
    awq = declare(
        x__qweight=("I32", (4096, 512)),
        x__qzeros=("I32", (32, 512)),
        x__scales=("F16", (32, 4096)),
    )
    weight = logical_weights(awq, AWQ)["x.weight"]
    assert bytes_needed(weight, range(16)) == 4096 * 8 + 32 * 8 + 32 * 32
    assert _planned(weight, range(16)) > 0.9 * weight.stored_bytes


def _planned(weight: QuantisedWeight, rows: range) -> int:
    spans = [span for part in needed(weight, rows) for span in slice_bytes(part)]
    return plan_file("memory", spans, [], weight.stored_bytes, ReadPolicy()).cost.bytes


def test_rows_outside_are_refused() -> None:
    _, weight, everything = whole("awq_gemm")
    with pytest.raises(SliceOutside):
        needed(weight, (0, len(everything)))
    with pytest.raises(SliceOutside):
        needed(weight, range(-1, 2))


def test_no_rows_cost_nothing_but_tables() -> None:
    for case in CASES:
        fixture, weight, everything = whole(case)
        none = fixture.rows(weight, ())
        assert none.shape == (0, everything.shape[1])
        assert none.dtype == np.float32


def test_too_few_arrays_are_noticed() -> None:
    _, weight, _ = whole("awq_gemm")
    with pytest.raises(ValueError, match="needs 3 arrays"):
        float_rows(weight, range(2), [])


def test_a_shape_that_was_not_read_is_asked_for() -> None:
    fixture = load("bnb_nf4")
    weight = logical_weights(fixture.specs, fixture.config)[fixture.logical]
    assert weight.shape is None
    with pytest.raises(BadQuantisation, match="has not been read"):
        needed(weight, range(1))
