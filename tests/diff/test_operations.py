"""What was done to a model is told from two checkpoints, and nothing is said that was not done."""

from __future__ import annotations

from pathlib import Path

import pytest

import kinprint
from benchmarks.operations import MADE, made
from benchmarks.redteam.zoo import DEMO, Zoo
from kinprint import Operation


@pytest.mark.parametrize("name", MADE)
def test_what_was_done_is_told(name: str, tmp_path: Path) -> None:
    make, wanted = MADE[name]
    found, faults = made(make, wanted, Zoo(DEMO)["base-a"], len(name), tmp_path)
    assert faults == [], found.summary


@pytest.mark.parametrize(
    ("parent", "child", "kinds"),
    [
        ("base-a", "a-cpt", {Operation.CONTINUED}),
        ("base-a", "a-rotated", {Operation.ROTATED, Operation.TRAINED}),
        ("base-a", "base-b", set()),
    ],
)
def test_models_of_the_demo(parent: str, child: str, kinds: set[Operation]) -> None:
    found = kinprint.diff(DEMO / parent, DEMO / child)
    assert {one.kind for one in found.operations} == kinds


def test_the_same_model_has_no_operation() -> None:
    found = kinprint.diff(DEMO / "base-a", DEMO / "base-a")
    assert found.operations == ()
    assert found.totals.equal == found.totals.tensors


def test_a_recovered_permutation_is_exact(tmp_path: Path) -> None:
    make, wanted = MADE["permuted"]
    found, _ = made(make, wanted, Zoo(DEMO)["base-a"], 5, tmp_path)
    assert found.totals.equal == found.totals.tensors
    moved = {one.what: one.moved for one in found.map.axes}
    assert moved["channels"] > 100 and moved["units"] > 300


def test_layers_that_were_repeated_have_two_diagonals(tmp_path: Path) -> None:
    make, wanted = MADE["layers repeated"]
    found, _ = made(make, wanted, Zoo(DEMO)["base-a"], 5, tmp_path)
    assert [one.source for one in found.map.layers] == [0, 1, 2, 3, 2, 3, 4, 5]
    assert found.totals.equal == found.totals.tensors
