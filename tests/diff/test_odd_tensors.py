"""Tensors without numbers, and numbers near the end of their range: an answer, and a true one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kinprint
from benchmarks.redteam import storage
from benchmarks.redteam.checkpoint import Checkpoint
from kinprint import MergeOutcome, Operation
from tests.fewer_layers import fewer_layers

_UP = "model.layers.1.mlp.up_proj.weight"


@pytest.fixture(scope="module")
def whole() -> Checkpoint:
    return storage.cast(fewer_layers("base-a"), np.float32)


@pytest.mark.parametrize(
    ("rows", "sample"),
    [
        (False, False),
        (True, True),
        pytest.param(False, True, marks=pytest.mark.slow),
        pytest.param(True, False, marks=pytest.mark.slow),
    ],
)
def test_a_tensor_without_numbers_is_another_shape(
    rows: bool, sample: bool, whole: Checkpoint, tmp_path: Path
) -> None:
    values = whole.tensors[_UP]
    empty = whole.changed({_UP: values[:0] if rows else values[:, :0]})
    pair = whole.write(tmp_path / "a"), empty.write(tmp_path / "b")
    for a, b in (pair, pair[::-1]):
        found = kinprint.diff(a, b, sample=sample)
        assert found.totals.compared == found.totals.equal == found.totals.tensors - 1


@pytest.mark.parametrize("rows", [False, True])
def test_tensors_without_numbers_are_equal(rows: bool, whole: Checkpoint, tmp_path: Path) -> None:
    values = whole.tensors[_UP]
    empty = whole.changed({_UP: values[:0] if rows else values[:, :0]})
    found = kinprint.diff(empty.write(tmp_path / "a"), empty.write(tmp_path / "b"))
    assert found.totals.equal == found.totals.tensors and "same numbers" in found.summary


@pytest.mark.parametrize("sample", [False, True])
def test_a_copy_with_an_empty_tensor_is_one_of_the_parent_that_has_it(
    sample: bool, whole: Checkpoint, tmp_path: Path
) -> None:
    empty = whole.changed({_UP: whole.tensors[_UP][:0]})
    parents = [whole.write(tmp_path / "a"), empty.write(tmp_path / "b")]
    found = kinprint.unmerge(empty.write(tmp_path / "c"), parents, sample=sample).document
    assert found.outcome is MergeOutcome.COPY and found.copied == 1


@pytest.mark.parametrize(
    ("factor", "sample"),
    [
        (1e30, False),
        (1e-5, True),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in ((1e-3, False), (1e-5, False), (1e30, True), (1e-3, True))
        ),
    ],
)
def test_a_factor_of_any_size_is_told(
    factor: float, sample: bool, whole: Checkpoint, tmp_path: Path
) -> None:
    times = {name: one * np.float32(factor) for name, one in whole.tensors.items()}
    pair = whole.write(tmp_path / "a"), whole.changed(times).write(tmp_path / "b")
    found = kinprint.diff(*pair, sample=sample)
    assert [one.kind for one in found.operations] == [Operation.SCALED]
    assert f"15 were multiplied by {factor:.6g}" in found.operations[0].evidence
