"""Cuts of any layout, against the logical matrix built the long way round."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from numpy.typing import NDArray

from kinprint.model.layout import IN_OUT, OUT_IN, Layout, StoredPart, cut, layout_of
from kinprint.model.layout.parts import interleave
from kinprint.reader.plan import element_runs, result_shape
from kinprint.records import Slice, TensorSpec

Array = NDArray[Any]


class Case(Struct, frozen=True):
    """A stored tensor, one of its parts, and what is asked of it."""

    layout: Layout
    part: StoredPart
    rows: list[int] | range | None
    columns: range | None
    expert: int | None

    @property
    def inputs(self) -> int:
        layout = self.layout
        return int(np.prod(layout.shape)) // layout.outputs // max(layout.experts, 1)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    repeat = draw(st.integers(1, 4))
    pair = draw(st.sampled_from([0, 2, 4]))
    widths = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    sizes = [(f"p{i}", repeat * width * (pair or 1)) for i, width in enumerate(widths)]
    parts = interleave(sizes, repeat)
    outputs, inputs = sum(rows for _, rows in sizes), draw(st.integers(1, 7))
    experts = draw(st.integers(0, 3))
    orient = draw(st.sampled_from([OUT_IN, IN_OUT]))
    flat = bool(experts) and draw(st.booleans())
    matrix = (outputs, inputs) if orient == OUT_IN else (inputs, outputs)
    shape: tuple[int, ...] = (experts, *matrix) if experts else matrix
    if flat:
        shape = (experts * matrix[0], matrix[1])
    axis = len(shape) - (1 if orient == IN_OUT else 2)
    part = draw(st.sampled_from(parts))
    chosen = StoredPart(part.role, part.offset, part.length, part.period, part.count, pair)
    parts = tuple(chosen if one.role == part.role else one for one in parts)
    numbers = st.integers(0, part.rows - 1)
    stretch = st.builds(lambda one, other: range(min(one, other), max(one, other) + 1), numbers,
                        numbers)  # fmt: skip
    rows = draw(st.none() | st.lists(numbers, unique=True, max_size=9) | stretch)
    start = draw(st.integers(0, inputs - 1))
    columns = draw(st.none() | st.builds(range, st.just(start), st.integers(start + 1, inputs)))
    expert = draw(st.integers(0, experts - 1)) if experts else None
    layout = Layout("t", shape, orient, axis, parts, experts, flat)
    return Case(layout, chosen, rows, columns, expert)


def stored_rows(case: Case) -> list[int]:
    """Where each logical row lies, by walking the stored ones once."""
    walk: dict[str, list[int]] = {part.role: [] for part in case.layout.parts}
    place = 0
    for _ in range(case.part.count):
        for part in case.layout.parts:
            walk[part.role] += range(place, place + part.length)
            place += part.length
    assert place == case.layout.outputs
    rows = np.array(walk[case.part.role])
    if case.part.paired:  # pairs become halves
        rows = rows.reshape(-1, case.part.paired // 2, 2).swapaxes(1, 2).reshape(-1)
    return [int(row) for row in rows]


def logical(case: Case, stored: Array) -> Array:
    """All rows of the part, from the whole tensor in memory."""
    layout = case.layout
    one = stored
    if layout.experts:
        one = stored.reshape(layout.experts, -1)[case.expert or 0]
    matrix = one.reshape(-1, case.inputs)
    if layout.orient == IN_OUT:
        matrix = one.reshape(case.inputs, -1).T
    return np.asarray(matrix[stored_rows(case)])


def read(array: Array, part: Slice) -> Array:
    flat = array.reshape(-1)
    runs = [flat[run.start : run.start + run.count] for run in element_runs(part)]
    return (np.concatenate(runs) if runs else flat[:0]).reshape(result_shape(part))


@settings(max_examples=200, deadline=None)
@given(cases())
def test_a_cut_is_the_logical_matrix_indexed(case: Case) -> None:
    stored = np.arange(int(np.prod(case.layout.shape))).reshape(case.layout.shape)
    spec = TensorSpec("t", "I64", stored.shape, "f", 0, stored.nbytes)
    plan = cut(spec, case.layout, case.part.role, case.rows, columns=case.columns,
               expert=case.expert)  # fmt: skip
    wanted = logical(case, stored)
    wanted = wanted if case.rows is None else wanted[case.rows]
    wanted = wanted if case.columns is None else wanted[:, case.columns]
    np.testing.assert_array_equal(plan.assemble([read(stored, p) for p in plan.slices]), wanted)


@settings(max_examples=200, deadline=None)
@given(cases())
def test_only_what_was_asked_for_is_read(case: Case) -> None:
    stored = np.arange(int(np.prod(case.layout.shape))).reshape(case.layout.shape)
    spec = TensorSpec("t", "I64", stored.shape, "f", 0, stored.nbytes)
    plan = cut(spec, case.layout, case.part.role, case.rows, columns=case.columns,
               expert=case.expert)  # fmt: skip
    wanted = logical(case, stored)
    wanted = wanted if case.rows is None else wanted[case.rows]
    wanted = wanted if case.columns is None else wanted[:, case.columns]
    runs = [run for piece in plan.slices for run in element_runs(piece) if run.count]
    got = [i for run in runs for i in range(run.start, run.start + run.count)]
    assert len(got) == len(set(got))
    assert set(got) >= set(wanted.flat)
    if case.layout.orient == OUT_IN:
        assert set(got) == set(wanted.flat)
    else:  # columns that lie close are read through, but no run begins or ends outside
        ends = {end for run in runs for end in (run.start, run.start + run.count - 1)}
        assert ends <= set(wanted.flat)


def test_a_single_number_is_a_vector_of_one() -> None:
    stored = np.array(3.0)
    layout = Layout("t", (), OUT_IN, 0, (StoredPart("t", 0, 1, 1),))
    plan = cut(TensorSpec("t", "F64", (), "f", 0, 8), layout, "t")
    np.testing.assert_array_equal(plan.assemble([stored]), [3.0])


@pytest.mark.parametrize(
    ("name", "detail", "shape", "expert"),
    [
        ("self_attn.q_norm.bias", "norm_q.bias", (4, 16), None),
        ("mlp.moe_statics.e_score_correction_bias", "router.bias", (2, 8), None),
        ("mamba.dt_proj_bias", None, (2, 64), None),
        ("mlp.experts.gate_proj_bias", "expert_gate.bias", (3, 2, 16), 1),
    ],
)
def test_a_bias_with_a_row_for_each_head_keeps_its_rows(
    name: str, detail: str | None, shape: tuple[int, ...], expert: int | None
) -> None:
    stored = np.arange(int(np.prod(shape))).reshape(shape)
    layout = layout_of("bias", shape, {"model_type": "llama"}, name=name, detail=detail)
    spec = TensorSpec(name, "I64", shape, "f", 0, stored.nbytes)
    plan = cut(spec, layout, layout.parts[0].role, expert=expert)
    wanted = stored if expert is None else stored[expert]
    np.testing.assert_array_equal(plan.assemble([read(stored, p) for p in plan.slices]), wanted)


def test_a_bias_in_a_single_row_is_a_vector() -> None:
    layout = layout_of("bias", (1, 8), {}, name="e_score_correction_bias", detail="router.bias")
    stored = np.arange(8).reshape(1, 8)
    plan = cut(TensorSpec("b", "I64", (1, 8), "f", 0, 64), layout, "router")
    got = plan.assemble([read(stored, p) for p in plan.slices])
    np.testing.assert_array_equal(got, np.arange(8))


def test_heads_with_an_axis_of_their_own_are_folded() -> None:
    stored = np.arange(5 * 3 * 2).reshape(5, 3, 2)  # [in, heads, width]
    spec = TensorSpec("t", "I64", (5, 3, 2), "f", 0, stored.nbytes)
    parts = (StoredPart("k", 0, 6, 6),)
    plan = cut(spec, Layout("k", (5, 6), IN_OUT, 1, parts), "k", [4, 1])
    found = plan.assemble([read(stored, p) for p in plan.slices])
    np.testing.assert_array_equal(found, stored.reshape(5, 6).T[[4, 1]])
