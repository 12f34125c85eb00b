"""Menu and stages are paid for once, by one rule: verdict, map, families and pages agree."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kinprint
from kinprint.lineage.charge import Charge, false_links
from kinprint.lineage.families import likeness_of
from kinprint.lineage.tests.menu import menu
from kinprint.lineage.verdict import decide
from kinprint.records import Evidence, Group, Status, Tier

SHARE = 0.25
HALF = Charge({"U1.blocks": SHARE, "E1.blocks": 1 - SHARE}, alpha=1e-6, stage=0.5)


def found(log10_p: float, test: str = "U1.blocks", floor: float = -300.0) -> Evidence:
    return Evidence(
        test,
        Tier.EXACT,
        Group.UNIT,
        Status.OK,
        log10_p,
        effect=0.5,
        n=64,
        floor=floor,
        roles=("up", "down"),
    )


def test_a_test_pays_for_the_menu_and_the_stage() -> None:
    adjusted = HALF.adjusted(found(-9.0))
    assert adjusted == pytest.approx(-9.0 + math.log10(4) + math.log10(2))
    assert HALF.level("U1.blocks") == pytest.approx(math.log10(1e-6 / 8))
    assert HALF.combined([found(-9.0), found(-2.0, "E1.blocks")]) == adjusted
    assert HALF.combined([]) == 0.0
    assert HALF.adjusted(found(-0.1)) == 0.0


@given(st.floats(-12, 0), st.floats(1e-9, 0.9), st.sampled_from([0.25, 0.5, 1.0]))
def test_reaching_the_level_and_an_adjusted_p_below_alpha_are_one_thing(
    log10_p: float, alpha: float, stage: float
) -> None:
    charge = Charge(HALF.shares, alpha, stage)
    one = found(log10_p)
    if abs(log10_p - charge.level("U1.blocks")) > 1e-9:
        assert charge.significant(one) == (log10_p <= charge.level("U1.blocks"))
    assert charge.could_reject(found(0.0, floor=log10_p)) == charge.significant(one)


def test_what_cannot_reject_has_no_adjusted_p() -> None:
    charge = Charge.for_menu(menu())
    calibrated = Evidence("Q.known", Tier.CALIBRATED, Group.NONE, Status.OK, -9.0)
    silent = Evidence("U1.blocks", Tier.EXACT, Group.UNIT, Status.NEEDS)
    for one in (calibrated, silent, found(-99.0, "files"), found(math.nan)):
        assert charge.adjusted(one) is None
        assert not charge.significant(one) and not charge.could_reject(one)


def test_shares_are_checked() -> None:
    entries = menu("standard")
    with pytest.raises(ValueError, match="at most one"):
        Charge({"a": 0.7, "b": 0.7})
    with pytest.raises(ValueError, match="positive"):
        Charge({"a": 0.0})
    with pytest.raises(ValueError, match="stage"):
        Charge({"a": 1.0}, stage=0.0)
    with pytest.raises(ValueError, match="once"):
        Charge.for_menu([*entries, entries[0]])
    assert Charge.for_menu(entries).shares == {entry.name: entry.share for entry in entries}


def test_evidence_between_the_levels_of_menu_and_stage_decides_nothing() -> None:
    """Enough for the menu alone, too little once reading in two stages is paid for."""
    between = found(math.log10(1e-6 * SHARE) - 0.1)
    whole = Charge(HALF.shares, HALF.alpha)
    assert whole.significant(between) and decide([between], whole).relation == "dependent"
    verdict = decide([between], HALF)
    assert verdict.relation == "no-evidence"
    assert verdict.log10_p == HALF.adjusted(between)
    assert verdict.log10_p > math.log10(HALF.alpha)
    assert likeness_of(verdict) == 0.0


def test_a_page_never_contradicts_its_verdict(demo: Path, tmp_path: Path) -> None:
    """Two stages are read; the error is chosen so that only the stages' price decides."""
    names = [str(demo / "zoo" / name) for name in ("base-a", "a-cpt")]

    def compared(alpha: float) -> kinprint.Comparison:
        return kinprint.compare(*names, alpha=alpha, budget=700_000, cache=False)

    strongest = compared(1e-300).log10_p
    result = compared(10 ** (strongest - 0.15))
    assert result.plan.stages_read == result.plan.stages == 2
    assert result.relation == "no-evidence"
    adjusted = [one.adjusted for one in result.evidence if one.adjusted is not None]
    assert min(adjusted) == result.log10_p > math.log10(result.alpha)
    result.save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "not strong enough" in page and "link found" not in page


def test_false_links_of_many_pairs_count_tests_and_equal_numbers() -> None:
    """Pairs pay alpha each, and every part a chance of equal numbers."""
    assert false_links(1e-6, [0] * 276) == pytest.approx(276e-6)
    assert false_links(1e-6, [100, 50]) == pytest.approx(2e-6 + 150e-11, rel=1e-9)
    assert false_links(1e-14, [20] * 3) > 3 * 1e-14 + 60e-12  # equality costs more than tests here
    assert false_links(1e-6, []) == 0.0
