"""The planner: what it plans is enough, and no more than it says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinprint.errors import SliceOutside
from kinprint.reader.assemble import assemble
from kinprint.reader.dtypes import PLAIN, dtype_named
from kinprint.reader.extents import total
from kinprint.reader.plan import ReadPolicy, plan_file, result_shape, slice_bytes
from kinprint.records import ByteRange, Slice, TensorSpec

NUMPY = {"U8": "u1", "I16": "<i2", "I32": "<i4", "U64": "<u8"}
shapes = st.lists(st.integers(1, 7), min_size=0, max_size=3).map(tuple)
packed_types = st.sampled_from(["F4", "F6_E2M3", "U8", "I32"])


def spec(shape: tuple[int, ...], dtype: str, offset: int = 64) -> TensorSpec:
    nbytes = dtype_named(dtype, "f").nbytes(math.prod(shape))
    return TensorSpec("t", dtype, shape, "f", offset, nbytes)


@st.composite
def slices(draw: st.DrawFn, dtypes: st.SearchStrategy[str]) -> Slice:
    tensor = spec(draw(shapes), draw(dtypes))
    columns = tensor.shape[-1] if tensor.shape else 1
    rows = tensor.count // columns
    match draw(st.sampled_from(["whole", "rows", "columns", "both", "elements"])):
        case "whole":
            return Slice(tensor)
        case "rows":
            return Slice(tensor, rows=draw(_indices(rows)))
        case "columns":
            return Slice(tensor, columns=draw(_stretch(columns)))
        case "both":
            return Slice(tensor, rows=draw(_indices(rows)), columns=draw(_stretch(columns)))
        case _:
            return Slice(tensor, elements=draw(_indices(tensor.count)))


def _indices(limit: int) -> st.SearchStrategy[range | tuple[int, ...]]:
    numbers = st.lists(st.integers(0, limit - 1), max_size=6).map(tuple)
    return st.one_of(numbers, _stretch(limit))


def _stretch(limit: int) -> st.SearchStrategy[range]:
    return st.tuples(st.integers(0, limit), st.integers(0, limit)).map(
        lambda pair: range(min(pair), max(pair))
    )


def expected(part: Slice, full: np.ndarray) -> np.ndarray:
    flat = full.reshape(-1)
    if part.elements is not None:
        return flat[list(part.elements)]
    if part.rows is None and part.columns is None:
        return full
    columns = part.tensor.shape[-1] if part.tensor.shape else 1
    matrix = flat.reshape(-1, columns)
    rows = list(range(len(matrix)) if part.rows is None else part.rows)
    return matrix[rows][:, list(range(columns) if part.columns is None else part.columns)]


@given(slices(st.sampled_from(sorted(NUMPY))), st.data())
def test_slices_give_what_indexing_gives(part: Slice, data: st.DataObject) -> None:
    tensor = part.tensor
    seed = data.draw(st.integers(0, 2**32 - 1))
    raw = np.random.default_rng(seed).bytes(tensor.nbytes)
    file = b"\xee" * tensor.offset + raw + b"\xee" * 64
    full = np.frombuffer(raw, dtype=NUMPY[tensor.dtype])
    got = assemble(part, lambda span: file[span.start : span.stop])
    want = expected(part, full.reshape(tensor.shape))
    assert got.shape == result_shape(part)
    np.testing.assert_array_equal(got, want)


@given(slices(packed_types), st.integers(0, 2**32 - 1))
def test_packed_slices_equal_slices_of_the_whole(part: Slice, seed: int) -> None:
    tensor = part.tensor
    raw = np.random.default_rng(seed).bytes(tensor.nbytes)
    file = b"\xee" * tensor.offset + raw
    whole = assemble(Slice(tensor), lambda span: file[span.start : span.stop])
    got = assemble(part, lambda span: file[span.start : span.stop])
    np.testing.assert_array_equal(got.astype(np.float64), expected(part, whole).astype(np.float64))


@given(slices(st.sampled_from(sorted(PLAIN))))
def test_ranges_stay_inside_the_tensor(part: Slice) -> None:
    tensor = part.tensor
    for span in slice_bytes(part):
        assert tensor.offset <= span.start < span.stop <= tensor.offset + tensor.nbytes


def test_sixteen_rows_cost_sixteen_rows() -> None:
    tensor = spec((4096, 4096), "BF16")
    part = Slice(tensor, rows=tuple(range(0, 4096, 256)))
    assert total(slice_bytes(part)) == 16 * 4096 * 2


def test_sixteen_rows_of_a_quantised_tensor_cost_sixteen_rows() -> None:
    tensor = spec((4096, 4096), "Q4_K")
    part = Slice(tensor, rows=tuple(range(0, 4096, 256)))
    assert total(slice_bytes(part)) == 16 * (4096 // 256) * 144


@pytest.mark.parametrize(
    "part",
    [
        Slice(spec((4, 3), "F32"), rows=(4,)),
        Slice(spec((4, 3), "F32"), rows=(-1,)),
        Slice(spec((4, 3), "F32"), columns=range(4)),
        Slice(spec((4, 3), "F32"), columns=range(0, 3, 2)),
        Slice(spec((4, 3), "F32"), elements=(12,)),
        Slice(spec((4, 3), "F32"), rows=(0,), elements=(1,)),
        Slice(spec((), "F32"), rows=(1,)),
    ],
)
def test_slices_beyond_the_tensor_are_refused(part: Slice) -> None:
    with pytest.raises(SliceOutside):
        slice_bytes(part)


def test_the_plan_joins_cuts_and_counts() -> None:
    policy = ReadPolicy(gap=10, part=100)
    wanted = [ByteRange(0, 20), ByteRange(28, 40), ByteRange(500, 720)]
    plan = plan_file("f", wanted, (), 1000, policy, overhead=1)
    assert plan.reads == (
        ByteRange(0, 40), ByteRange(500, 600), ByteRange(600, 700), ByteRange(700, 720),
    )  # fmt: skip
    assert plan.cost.bytes == 260
    assert plan.cost.requests == 5
    assert (
        plan_file("f", wanted, (ByteRange(0, 1000),), 1000, policy, overhead=1).cost.requests == 0
    )


def test_a_plan_outside_the_file_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="outside"):
        plan_file("f", [ByteRange(90, 110)], (), 100, ReadPolicy())


def test_strided_views_are_read_whole_and_viewed_alike() -> None:
    stored = np.arange(12, dtype="<f4")
    tensor = TensorSpec("t", "F32", (4, 3), "f", 8, 48, strides=(1, 4))
    file = b"\xee" * 8 + stored.tobytes()

    def take(span: ByteRange) -> bytes:
        return file[span.start : span.stop]

    full = stored.reshape(3, 4).T
    np.testing.assert_array_equal(assemble(Slice(tensor), take), full)
    np.testing.assert_array_equal(assemble(Slice(tensor, rows=(2, 0)), take), full[[2, 0]])
    np.testing.assert_array_equal(
        assemble(Slice(tensor, rows=(1,), columns=range(1, 3)), take), full[[1], 1:3]
    )
