"""Pairs of tensors: statuses, reasons, intervals; all pairs at once are the pairs one by one."""

from __future__ import annotations

import numpy as np
import pytest

from kinprint.measure.sampling import sample_rows
from kinprint.studies.comparing import TensorComparison, compare, compare_all
from kinprint.studies.results import RowStatus
from kinprint.studies.study import ReadTensor

NAMES = ("cosine", "pearson")


def vector(*values: float) -> ReadTensor:
    return ReadTensor(RowStatus.OK, values=np.array(values, np.float32), shape=(len(values),))


def matrix(values: np.ndarray, rows: tuple[int, ...], height: int) -> ReadTensor:
    shape = (height, values.shape[1])
    return ReadTensor(RowStatus.OK, values=values.astype(np.float32), shape=shape, rows=rows)


def absent(status: RowStatus, reason: str) -> ReadTensor:
    return ReadTensor(status, reason)


def test_vectors_have_values_and_no_interval() -> None:
    found = compare(vector(1, 2, 3), vector(1, 2, 4), NAMES)
    assert found.ok and found.sample == "" and not found.intervals
    x, y = np.array([1, 2, 3.0]), np.array([1, 2, 4.0])
    expected = x @ y / np.linalg.norm(x) / np.linalg.norm(y)
    assert found.value("cosine") == pytest.approx(expected)
    assert found.value("pearson") == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert TensorComparison(RowStatus.OK).bounds("cosine") == (None, None)


@pytest.mark.parametrize(
    ("a", "b", "status"),
    [
        (vector(1, 2, 3), vector(1, 2), "shape_mismatch"),
        (vector(1, 2, 3), absent(RowStatus.MISSING, "b has none"), "missing"),
        (
            absent(RowStatus.UNREADABLE, "packed"),
            absent(RowStatus.MISSING, "none"),
            "unreadable",
        ),
        (vector(1, float("nan"), 3), vector(1, 2, 3), "undefined"),
        (vector(0, 0, 0), vector(1, 2, 3), "undefined"),
    ],
)
def test_what_cannot_be_compared_has_a_status_and_a_reason(
    a: ReadTensor, b: ReadTensor, status: str
) -> None:
    for found in (compare(a, b, NAMES), compare(b, a, NAMES)):
        assert not found.ok and found.reason
        assert found.value("cosine") is None
    assert compare(a, b, NAMES).status == status


def test_one_measure_without_a_value_does_not_hide_the_others() -> None:
    found = compare(vector(1, 1, 1), vector(1, 2, 3), NAMES)
    assert found.ok and found.value("cosine") is not None
    assert found.value("pearson") is None and found.reason.startswith("pearson")


def test_a_sample_of_rows_says_so_and_has_an_interval() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 24))
    y = 0.5 * x + rng.normal(size=x.shape)
    rows = tuple(sample_rows(400, 32))
    a, b = (matrix(side[list(rows)], rows, 400) for side in (x, y))
    found = compare(a, b, ["cosine", "max_abs_diff"])
    assert found.sample == "32/400"
    low, high = found.bounds("cosine")
    value = found.value("cosine")
    assert low is not None and high is not None and value is not None and low < value < high
    assert found.bounds("max_abs_diff") == (None, None)


def test_tensors_of_different_height_are_compared_only_by_paired_rows() -> None:
    values = np.arange(12.0).reshape(3, 4)
    a, b = matrix(values, (0, 1, 2), 50), matrix(values, (4, 5, 6), 70)
    assert compare(a, b, NAMES).status == "shape_mismatch"
    assert compare(a, b, NAMES, any_rows=True).value("cosine") == pytest.approx(1)


def assorted(seed: int) -> list[ReadTensor]:
    """Plain vectors, and all that cannot go through a product of matrices."""
    rng = np.random.default_rng(seed)
    made = [rng.normal(1, 0.1, 32).astype(np.float32) for _ in range(4)]
    made[1][3] = np.nan
    made += [
        np.ones(32, np.float32),
        np.zeros(32, np.float32),
        rng.normal(size=31).astype(np.float32),
    ]
    found = [ReadTensor(RowStatus.OK, values=one, shape=one.shape) for one in made]
    return [*found, absent(RowStatus.MISSING, "nowhere")]


@pytest.mark.parametrize(
    "names", [("cosine", "pearson", "shuffled_cosine"), ("cosine", "mean_abs_diff")]
)
def test_all_pairs_are_the_pairs_one_by_one(names: tuple[str, ...]) -> None:
    first, second = assorted(1), assorted(2)
    table = compare_all(first, second, names)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            alone = compare(a, b, names)
            assert table[i][j].status == alone.status
            assert table[i][j].reason == alone.reason
            for name in names:
                expected = alone.value(name)
                got = table[i][j].value(name)
                assert (got is None) == (expected is None)
                assert got is None or got == pytest.approx(expected, abs=1e-6)
