"""What is left of a formula after some numbers moved is told from numbers that were learnt."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kinprint.measure.courses import Floats, on_course

PLACES, TIME = np.arange(768), np.arange(128)
WITHIN = (PLACES % 64 - 31.5) / 31.5
TURNS = np.arange(200)[:, None] / 10000 ** (np.arange(64) / 64)

FORMULAS = {
    "power": (PLACES / 768) ** 0.7,
    "decay": -6 + 5 * (PLACES / 767) ** 1.3,
    "zigzag": 0.5 * (1 - PLACES / 767) + ((PLACES + 1) % 3 - 1) * 0.1,
    "decay by head": -6 + 5 * (PLACES / 767) ** 1.3 + 2.5 * WITHIN * np.abs(WITHIN),
    "time steps": np.log(np.expm1(np.geomspace(0.001, 0.1, 768))),
    "rates": np.tile(np.log(np.arange(1, 33)), (64, 1)),
    "inverse": np.tile(32 / np.pi * (32 / (2 * np.arange(32) + 1) - 1), (64, 1)),
    "frequencies": 10000.0 ** (-np.arange(64) / 64),
    "positions": np.concatenate([np.sin(TURNS), np.cos(TURNS)], axis=1),
    "cosines": np.cos(np.pi / 128 * (TIME + 0.5) * TIME[:, None]),
}


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_is_told_by_half_of_its_numbers(name: str, kind: Any) -> None:
    rng = np.random.default_rng(1)
    rows: Floats = np.atleast_2d(FORMULAS[name]).astype(kind).astype(np.float32)
    moved: Floats = rows + rng.normal(size=rows.shape).astype(np.float32)
    left = rng.random(rows.shape) < 0.49
    assert on_course(np.where(left, rows, moved), left)


@pytest.mark.parametrize("kind", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize(
    "shape", [(1, 32), (1, 256), (8, 64), pytest.param((48, 96), marks=pytest.mark.slow)]
)
def test_numbers_that_were_learnt_or_drawn_have_no_course(
    shape: tuple[int, int], kind: Any
) -> None:
    """Of 100 of them not one may be taken for a formula, however they are spread."""
    rng = np.random.default_rng(2)
    drawn = (
        lambda: rng.normal(size=shape),
        lambda: rng.random(shape),
        lambda: 1 + 0.02 * rng.normal(size=shape),
        lambda: np.exp(2 * rng.normal(size=shape)),
    )
    for _ in range(25):
        for draw in drawn:
            rows: Floats = draw().astype(kind).astype(np.float32)
            assert not on_course(rows, rng.random(shape) < 0.5)


def test_a_formula_that_was_trained_before_it_was_copied_has_no_course() -> None:
    """Of a short row that rises in large steps training must have changed more to be seen."""
    rng = np.random.default_rng(3)
    for name, change in (("power", 0.05), ("decay", 0.05), ("rates", 0.2)):
        rows = np.atleast_2d(FORMULAS[name])
        trained = (rows + change * np.std(rows) * rng.normal(size=rows.shape)).astype(np.float32)
        assert not on_course(trained, rng.random(rows.shape) < 0.5)


def test_what_is_too_little_or_constant_has_no_course() -> None:
    row = np.linspace(0, 1, 64, dtype=np.float32)[None]
    assert not on_course(row, np.arange(64)[None] < 8)
    assert not on_course(np.ones_like(row), np.ones(row.shape, np.bool_))
