"""Crafted pairs with a known truth: nothing false is said about them.

The pairs of `benchmarks.redteam` that the models of the package suffice for: as people compare
them, and among the slow tests at a lower level and within a small budget. What is known to be false
today stands in `benchmarks/redteam/known_false.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.redteam.cases import CASES, SHORT
from benchmarks.redteam.known_false import KNOWN_FALSE
from benchmarks.redteam.running import SHORT_READINGS, run_case
from benchmarks.redteam.truth import Reading
from benchmarks.redteam.zoo import DEMO, Zoo


@pytest.mark.parametrize(
    "readings", [SHORT_READINGS[-1:], pytest.param(SHORT_READINGS[:-1], marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("name", SHORT)
def test_nothing_false_is_said(name: str, readings: Sequence[Reading], tmp_path: Path) -> None:
    rows = run_case(CASES[name], Zoo(DEMO), 0, readings, tmp_path)
    false = [f"{row.reading}: {'; '.join(row.falsehoods)}" for row in rows if not row.true]
    if name in KNOWN_FALSE:
        if not false:
            pytest.fail(f"{name} is told truly now: take it off known_false.py")
        pytest.xfail(KNOWN_FALSE[name])
    assert not false


def test_pairs_known_to_be_told_falsely_are_pairs_of_the_short_form() -> None:
    assert KNOWN_FALSE.keys() <= set(SHORT)


def test_the_short_form_needs_no_other_models() -> None:
    short = [CASES[name] for name in SHORT]
    assert not any(case.needs or case.large for case in short)


def test_every_pair_says_how_it_is_made() -> None:
    assert all(case.about.endswith(".") for case in CASES.values())
