"""Numbers that single precision has not: what is said of them goes no further than what is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

import kinprint
from benchmarks.redteam.checkpoint import Checkpoint
from benchmarks.redteam.zoo import DEMO, Zoo
from kinprint.lineage.compare import compare_models
from kinprint.lineage.results import Settings
from kinprint.reader.fetch import Fetcher
from kinprint.records import SINGLE
from tests.fewer_layers import fewer_layers

Tensors = dict[str, NDArray[Any]]
TABLE = "model.layers.0.extra"
QUERY = "model.layers.0.self_attn.q_proj.weight"


@pytest.fixture(scope="module")
def model() -> Checkpoint:
    """Two layers of a trained model."""
    return fewer_layers("base-a")


def doubled(model: Checkpoint, seed: int) -> Tensors:
    """Its tensors in double precision, changed by less than single precision shows."""
    rng = np.random.default_rng(seed)
    return {
        name: one.astype(np.float64) * (1 + 1e-9 * rng.standard_normal(one.shape))
        for name, one in model.tensors.items()
    }


def compared(a: Path, b: Path, **options: Any) -> kinprint.Comparison:
    return kinprint.compare(a, b, level="deep", **options)


def test_digits_that_are_not_compared_are_not_called_equal(
    model: Checkpoint, tmp_path: Path
) -> None:
    a, b = (model.changed(doubled(model, seed)).write(tmp_path / f"{seed}") for seed in range(2))
    found = compared(a, b)
    assert found.relation is kinprint.Relation.SAME_WEIGHTS
    assert {(one.state, one.bits) for one in found.parts} == {(kinprint.PartState.ROUNDED, SINGLE)}
    assert "to single precision" in found.summary
    assert "단정밀도" in compared(a, b, language="ko").summary
    assert found.relation is compared(b, a).relation
    changes = kinprint.diff(a, b)
    assert {one.changed.value for one in changes.document.tensors if one.changed} == {1.0}
    assert [one.kind for one in changes.operations] == [kinprint.Operation.NOISE]


def test_a_copy_in_double_precision_is_identical(model: Checkpoint, tmp_path: Path) -> None:
    """In other files, so that these do not tell it."""
    double = model.changed(doubled(model, 0))
    a, b = double.write(tmp_path / "a"), replace(double, shards=2).write(tmp_path / "b")
    found = compared(a, b)
    assert found.relation is kinprint.Relation.IDENTICAL
    assert {one.state for one in found.parts} == {kinprint.PartState.EQUAL}


def test_units_of_which_more_are_read_in_one_model_are_as_alike(tmp_path: Path) -> None:
    """Numbers of twice the size leave room for fewer rows: a mean is over those of both."""
    whole = Zoo(DEMO)["base-a"]
    wide = {name: one.astype(np.float64) for name, one in whole.tensors.items()}
    single = replace(whole, dtype=np.float32).write(tmp_path / "a")
    with Fetcher() as fetcher:
        double = str(whole.changed(wide).write(tmp_path / "b"))
        found = compare_models(str(single), double, fetcher, Settings())
    (units,) = (one for one in found.evidence if one.test == "U1.blocks")
    assert [likeness for _, likeness in units.by_layer] == pytest.approx([1.0] * 6, abs=1e-6)


def test_a_cast_to_single_precision_is_a_cast(model: Checkpoint, tmp_path: Path) -> None:
    double = doubled(model, 0)
    single = {name: one.astype(np.float32).astype(np.float64) for name, one in double.items()}
    a, b = (
        model.changed(tensors).write(tmp_path / name)
        for name, tensors in (("a", double), ("b", single))
    )
    [operation] = kinprint.diff(a, b).operations
    assert operation.kind is kinprint.Operation.CAST


def test_numbers_beyond_single_precision_are_not_equal(model: Checkpoint, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    vast = [np.abs(rng.standard_normal((64, 64))) * 1e200 for _ in range(2)]
    a, b = (model.changed({TABLE: one}).write(tmp_path / f"{at}") for at, one in enumerate(vast))
    found = compared(a, b)
    assert found.relation not in (kinprint.Relation.IDENTICAL, kinprint.Relation.SAME_WEIGHTS)
    assert kinprint.diff(a, b).document.tensors[-1].broken == vast[0].size


@pytest.mark.parametrize("sample", [False, True])
@pytest.mark.parametrize(
    ("kind", "step"), [(np.int64, 2**20), (np.int64, 2**40), (np.uint64, 2**40)]
)
def test_whole_numbers_that_differ_are_not_equal(
    model: Checkpoint, tmp_path: Path, kind: type, step: int, sample: bool
) -> None:
    """Those of more digits than double precision has, too."""
    table = np.random.default_rng(0).integers(2**20, 2**21, (64, 64)) * step
    a, b = (
        model.changed({TABLE: (table + more).astype(kind)}).write(tmp_path / f"{more}")
        for more in range(2)
    )
    found = kinprint.diff(a, b, sample=sample)
    changes = [one for one in found.document.tensors if one.changed and one.changed.value]
    assert [(one.b, one.changed and one.changed.value, one.largest) for one in changes] == [
        (TABLE, 1.0, 1.0)
    ]
    assert "hold the same numbers" not in found.summary


@pytest.mark.parametrize("name", ["freqs_cis", TABLE, QUERY])
def test_complex_numbers_are_not_half_compared(
    model: Checkpoint, tmp_path: Path, name: str
) -> None:
    """They are refused: whether their imaginary parts are equal, nobody has looked."""
    rng = np.random.default_rng(0)
    real = model.tensors.get(name, np.ones((64, 64), np.float32))
    a, b = (
        model.changed(
            {name: (real + 1j * rng.standard_normal(real.shape)).astype(np.complex64)}
        ).write(tmp_path / f"{at}")
        for at in range(2)
    )
    assert compared(a, b).relation is not kinprint.Relation.IDENTICAL
    told = {one.b: one.reason for one in kinprint.diff(a, b).document.tensors}
    assert "C64" in told[name]
