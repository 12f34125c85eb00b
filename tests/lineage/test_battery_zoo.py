"""The battery on trained models whose family tree is known: one pair of each surgery."""

from __future__ import annotations

import math

import pytest

from kinprint.lineage.battery import run_battery
from kinprint.lineage.side import Side
from kinprint.lineage.tests.menu import menu
from kinprint.records import Evidence
from tests.conftest import ZOO
from tests.lineage.samples import samples_of

pytestmark = pytest.mark.zoo
# What finds the pair beyond doubt, by surgery; the least log10 p that it must reach.
RELATED = {
    ("base-a", "a-cpt"): ("U1.fixed", -4000),
    ("a-cpt", "a-permuted"): ("S1", -500),
    ("a-cpt", "a-rotated"): ("S2", -90),
    ("base-a", "a-hidprune"): ("E3.order", -100),
    ("base-a", "a-upcycled"): ("U1.blocks", -1000),
    ("a-newvocab", "a-rotated"): ("S1", -500),
    ("a-ffnprune", "a-depthup"): ("U1.order", -1000),
    ("base-a", "a-normsonly"): ("E1.blocks", -30),
}
INDEPENDENT = (
    ("base-a", "base-b"), ("base-a", "a-distilled"), ("neox-j", "qwen-i"), ("moe-k", "a-upcycled"),
)  # fmt: skip


@pytest.fixture(scope="module")
def sides() -> dict[str, Side]:
    names = {name for pair in (*RELATED, *INDEPENDENT) for name in pair} | {"tie-a"}
    return {name: Side(one) for name, one in samples_of(ZOO, sorted(names)).items()}


def combined(found: tuple[Evidence, ...]) -> float:
    shares = {entry.name: entry.share for entry in menu()}
    exact = [one for one in found if one.tier == "exact"]
    return min(one.log10_p - math.log10(shares[one.test]) for one in exact)


@pytest.mark.parametrize("pair", RELATED, ids=" ".join)
def test_relatives_are_found(sides: dict[str, Side], pair: tuple[str, str]) -> None:
    found = run_battery(*(sides[name] for name in pair))
    test, least = RELATED[pair]
    by_test = {one.test: one for one in found}
    assert by_test[test].log10_p < least
    assert combined(found) < -6


def test_kept_norms_alone_are_found_in_norms_alone(sides: dict[str, Side]) -> None:
    found = run_battery(sides["base-a"], sides["a-normsonly"])
    speaking = {one.test for one in found if one.log10_p < -6}
    assert speaking == {"E1.blocks", "E1.profile", "E1.fixed"}


@pytest.mark.parametrize("pair", INDEPENDENT, ids=" ".join)
def test_strangers_are_not_accused(sides: dict[str, Side], pair: tuple[str, str]) -> None:
    """Not even the student and its teacher, nor the same data in the same order."""
    assert combined(run_battery(*(sides[name] for name in pair))) > -3


def test_a_shared_start_shows_in_matrices_and_not_in_norms(sides: dict[str, Side]) -> None:
    found = {one.test: one for one in run_battery(sides["base-a"], sides["tie-a"])}
    assert found["U1.blocks"].log10_p < -1000
    assert found["S1.numbered"].log10_p < -200
    gains = found["E1.blocks"].effect
    assert gains is not None and abs(gains) < 0.25
    kept = {one.test: one for one in run_battery(sides["base-a"], sides["a-cpt"])}
    assert (kept["E1.blocks"].effect or 0) > 0.6
