"""Evidence in, relation out: the rules, and what must hold whatever the evidence."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from kinprint import text
from kinprint.lineage.charge import Charge
from kinprint.lineage.parts.findings import Sharing
from kinprint.lineage.tests.menu import menu
from kinprint.lineage.verdict import decide
from kinprint.records import (
    Agreement,
    Component,
    Evidence,
    Group,
    Part,
    PartFinding,
    PartState,
    Reason,
    Sensitivity,
    Status,
    Tier,
    VerdictReason,
)
from kinprint.report.statements import Reading, spoken

CHARGE = Charge.for_menu(menu("standard"))
GROUPS = {one.name: one.test.group for one in menu("standard")}
NORMS = ("norm_in", "norm_post_attn")
MLP = ("gate", "up", "down")


def ok(
    test: str, log10_p: float, effect: float, roles: tuple[str, ...], **more: object
) -> Evidence:
    found = Evidence(
        test, Tier.EXACT, GROUPS[test], Status.OK, log10_p, effect * 100, effect, 128,
        "signed blocks", -300.0, roles=roles, learnt=roles[0].startswith("norm"),
    )  # fmt: skip
    return replace(found, **more)


def without(evidence: Evidence) -> Evidence:
    """The test without a result."""
    return replace(evidence, status=Status.UNDEFINED, reason=Reason.NO_VARYING_NORM.message())


def gains(effect: float, log10_p: float = -50.0) -> Evidence:
    return ok("E1.blocks", log10_p, effect, NORMS)


def units(effect: float, log10_p: float = -50.0) -> Evidence:
    return ok("U1.blocks", log10_p, effect, MLP)


def planes(log10_p: float) -> Evidence:
    return ok("S2", log10_p, 0.3, ("q", "k"))


def relation(*evidence: Evidence) -> str:
    return decide(evidence, CHARGE).relation


SILENT = (units(0.0, -0.2), planes(-0.1))


def agreeing(speaks: bool) -> Evidence:
    agreement = Agreement(
        count=900, of=1000, share=0.9, interval=(0.88, 0.92), limit=0.3, speaks=speaks,
        strangers=100, largest=0.09, width=128, control=0.1, nine_of_ten=0.0,
    )  # fmt: skip
    return Evidence(
        "I.two-of-three", Tier.CALIBRATED, Group.NONE, Status.OK, statistic=0.9, agreement=agreement
    )


def test_invariants_speak_only_where_exact_tests_are_silent() -> None:
    silent = [gains(0.0, -0.1), *SILENT]
    found = decide([*silent, agreeing(True)], CHARGE)
    assert found.relation == "laundered" and found.reasons == ("invariants-agree",)
    assert found.log10_p == 0.0
    assert decide([*silent, agreeing(False)], CHARGE).relation == "no-evidence"
    linked = decide([gains(1.0), units(1.0), agreeing(True)], CHARGE)
    assert linked.relation != "laundered" and linked.log10_p < -6


def test_silence_of_tests_that_could_not_speak_is_no_disguise() -> None:
    """A plain copy of a model that no exact test compares is not called a disguised one."""
    guarded = Evidence("E1.blocks", Tier.EXACT, Group.RESIDUAL, Status.GUARDED)
    found = decide([guarded, agreeing(True)], CHARGE)
    assert found.relation == "laundered"
    assert found.reasons == ("nothing-testable", "invariants-agree")
    said = spoken(found, ("a", "b"), Reading())
    told = f"{said.summary['en']} {said.kind['en']}"
    assert "disguised or not" in told and "drawn anew" not in told
    sure = spoken(decide([*SILENT, agreeing(True)], CHARGE), ("a", "b"), Reading())
    assert "a disguised copy" in sure.summary["en"] and "drawn anew" in sure.kind["en"]


def test_a_rank_among_strangers_never_accuses() -> None:
    ranked = Evidence("Q.controls", Tier.CALIBRATED, Group.NONE, Status.OK, -300.0, 1.0)
    assert decide([gains(0.0, -0.1), *SILENT, ranked], CHARGE).relation == "no-evidence"


def test_equal_numbers_are_identical_only_with_a_rejection() -> None:
    same = [gains(1.0), units(1.0)]
    assert decide(same, CHARGE, identical=True).relation == "identical"
    constant = [
        replace(one, status=Status.UNDEFINED, reason=Reason.CONSTANT_UNITS.message())
        for one in same
    ]
    assert decide(constant, CHARGE, identical=True).relation == "untestable"


def test_a_floor_above_the_level_is_no_test() -> None:
    weak = [replace(gains(0.0, -0.1), floor=-3.0), replace(units(0.0, -0.1), floor=-6.5)]
    assert relation(*weak) == "untestable"


def test_power_is_stated_by_tests_that_know_their_sensitivity() -> None:
    sensitivity = Sensitivity(deviation=5.0, slope=400.0, widening=1.0)
    silent, spoken = replace(gains(0.01, -0.3)), replace(units(0.01, -0.3), sensitivity=sensitivity)
    found = dict(decide([silent, spoken], CHARGE).power)
    # about seven deviations for alpha and the share
    assert set(found) == {"U1.blocks"}
    assert found["U1.blocks"] == pytest.approx(5.0 * 7.0 / 400.0, rel=0.15)


def test_what_is_not_paid_for_is_refused() -> None:
    with pytest.raises(ValueError, match="menu"):
        decide([replace(units(0.5), test="U9")], CHARGE)
    with pytest.raises(ValueError, match="twice"):
        decide([units(0.5), units(0.5)], CHARGE)


ROLES = {
    "E1": NORMS, "E6": MLP, "E3": ("embed",), "S3": ("embed",), "U1": MLP, "S1": ("up", "down"),
    "S2": ("q", "k"), "S4": ("v", "o"), "E4": ("v", "o"), "E5": ("router",),
    "Cm": ("q", "k", "gate", "up"),
}  # fmt: skip


@st.composite
def findings(draw: st.DrawFn) -> list[Evidence]:
    tests = draw(st.lists(st.sampled_from(sorted(CHARGE.shares)), unique=True))
    return [
        ok(
            test,
            draw(st.floats(-60, 0)),
            draw(st.floats(-1, 1)),
            ROLES[test[:2]],
            status=draw(st.sampled_from(["ok", "ok", "ok", "needs", "guarded", "undefined"])),
            bound=draw(st.sampled_from(["signed blocks", "fixed points"])),
        )
        for test in tests
    ]


@given(findings(), st.randoms(use_true_random=False))
def test_order_does_not_matter(evidence: list[Evidence], order: random.Random) -> None:
    before = decide(evidence, CHARGE)
    order.shuffle(evidence)
    after = decide(evidence, CHARGE)
    assert (before.relation, before.log10_p, before.parts) == (
        after.relation, after.log10_p, after.parts,
    )  # fmt: skip


@given(findings(), st.integers(0, 30))
def test_more_evidence_never_weakens_a_rejection(evidence: list[Evidence], cut: int) -> None:
    fewer, all_of = decide(evidence[:cut], CHARGE), decide(evidence, CHARGE)
    assert all_of.log10_p <= fewer.log10_p
    if fewer.log10_p <= -6:
        assert all_of.relation not in ("no-evidence", "untestable")


@given(findings())
def test_no_relation_without_a_rejection(evidence: list[Evidence]) -> None:
    found = decide(evidence, CHARGE)
    rejected = found.log10_p <= -6
    assert rejected == (found.relation not in ("no-evidence", "untestable"))


@pytest.mark.parametrize("language", text.languages())
def test_every_reason_has_words(language: str) -> None:
    assert all(text.knows(f"verdict.reason.{reason}", language) for reason in VerdictReason)


def test_every_part_has_a_name() -> None:
    assert all(text.knows(f"verdict.part.{part}") for part in Component)


def test_equal_numbers_pay_for_every_pair_of_parts_and_for_the_stage() -> None:
    """Ten parts may meet ten: whichever model is called the first, the price is the same."""
    parts = [Part(Component.NORMS, layer) for layer in range(10)]
    unlike = [PartFinding(part, part, PartState.NOT_COMPARABLE) for part in parts[:5]]
    alone = [PartFinding(part, part, PartState.NOT_COMPARABLE) for part in parts[6:]]
    only_here = [
        PartFinding(Part(Component.NORMS, 20 + at), None, PartState.NOT_COMPARABLE)
        for at in range(4)
    ]
    copied = PartFinding(parts[5], parts[5], PartState.EQUAL, 1.0, -9.0, learnt=True)
    sharing = Sharing((*unlike, copied, *only_here), tuple(alone))
    for one in (sharing, sharing.swapped()):
        assert decide((), CHARGE, one).log10_p == pytest.approx(-7.0)
        tenth = replace(CHARGE, stage=0.1)
        assert decide((), tenth, one).log10_p == pytest.approx(-6.0)
        assert not decide((), replace(CHARGE, stage=0.09), one).relation.linked
