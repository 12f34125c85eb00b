"""Evidence in, relation out: the rules, and what must hold whatever the evidence."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinprint import text
from kinprint.lineage.charge import Charge
from kinprint.lineage.tests.menu import menu
from kinprint.lineage.verdict import decide
from kinprint.records import (
    ALPHA,
    Component,
    Evidence,
    Group,
    Reason,
    Relation,
    Sensitivity,
    Status,
    Tier,
    Verdict,
    VerdictReason,
)
from kinprint.report.answer import summary_of, sureness_of

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
    return replace(found, **more)  # type: ignore[arg-type]


def without(evidence: Evidence) -> Evidence:
    """The test without a result."""
    return replace(evidence, status=Status.UNDEFINED, reason=Reason.NO_VARYING_NORM.message())


def gains(effect: float, log10_p: float = -50.0) -> Evidence:
    return ok("E1.blocks", log10_p, effect, NORMS)


def units(effect: float, log10_p: float = -50.0) -> Evidence:
    return ok("U1.blocks", log10_p, effect, MLP)


def columns(effect: float, log10_p: float = -50.0) -> Evidence:
    return ok("E3.blocks", log10_p, effect, ("embed",))


def planes(log10_p: float) -> Evidence:
    return ok("S2", log10_p, 0.3, ("q", "k"))


def profile(effect: float, log10_p: float = -50.0) -> Evidence:
    return ok("E1.profile", log10_p, effect, NORMS)


def look(neighbours: float, spread: float = 0.02) -> Evidence:
    return Evidence(
        "gains.look", Tier.RULE, Group.RULE, Status.OK, effect=neighbours, learnt=True,
        gain_spread=spread,
    )  # fmt: skip


def relation(*evidence: Evidence) -> str:
    return decide(evidence, CHARGE).relation


SILENT = (units(0.0, -0.2), planes(-0.1))


def test_norms_alone_are_partial_only_where_matrices_were_read() -> None:
    unread = decide([gains(0.95)], CHARGE)
    assert (unread.relation, "layers-not-read" in unread.reasons) == ("derived", True)
    assert relation(gains(0.95), *SILENT) == "partial"
    assert relation(gains(0.3)) != "derived"
    assert relation(gains(0.85)) == "dependent"  # twins on the same data come as close


def test_each_relation_has_its_case() -> None:
    assert relation(gains(0.8), columns(0.8), units(0.75)) == "derived"
    assert relation(gains(0.95), columns(0.0, -0.3), *SILENT) == "partial"
    assert relation(gains(0.1, -3.0), columns(0.5), units(0.3)) == "same-init"
    assert relation(gains(0.0, -0.1), units(0.2)) == "dependent"
    assert relation(gains(0.0, -0.1), columns(0.0, -0.2), *SILENT) == "no-evidence"
    assert (
        relation(replace(gains(0.0), status=Status.NEEDS, reason=Reason.NORM_GAINS.message()))
        == "untestable"
    )


def test_measured_same_init_pairs_are_never_derived() -> None:
    """Gains by layer and averaged, feed-forward and spread of gains, as twins measured."""
    other_data = [
        (0.21, 0.19, 0.19, 0.04),
        (0.09, 0.21, 0.24, 0.03),
        (0.14, 0.18, 0.44, 0.02),
        (0.33, 0.30, 0.67, 0.01),
        (0.06, 0.09, 0.72, 0.01),
        (0.25, 0.14, 0.84, 0.004),
    ]
    other_order = [(0.44, 0.67, 0.32, 0.04), (0.40, 0.67, 0.28, 0.05), (0.39, 0.73, 0.50, 0.02),
                   (0.52, 0.67, 0.63, 0.02), (0.52, 0.60, 0.85, 0.01), (0.70, 0.78, 0.89, 0.01),
                   (0.75, 0.69, 0.98, 0.004), (0.43, 0.48, 0.69, 0.01)]  # fmt: skip
    for layers, averaged, matrix, spread in other_data + other_order:
        found = relation(gains(layers), profile(averaged), columns(0.6), units(matrix),
                         look(0.25, spread))  # fmt: skip
        assert found in ("same-init", "dependent"), (layers, averaged, matrix)
        if (layers, averaged, matrix, spread) in other_data:
            assert found == "same-init", (layers, averaged, matrix)


def test_descendants_and_siblings_are_derived() -> None:
    measured = [(0.99, 0.99, 0.99), (0.78, 0.84, 0.74), (0.69, 0.71, 0.64), (0.75, 0.81, 0.82),
                (0.49, 0.98, 0.96)]  # fmt: skip
    far = [(0.67, 0.74, 0.64), (0.66, 0.76, 0.52), (0.64, 0.86, 0.75)]
    for layers, averaged, matrix in measured + far:
        told = gains(layers), profile(averaged), columns(0.7), units(matrix)
        assert relation(*told, lead(0.95)) == "derived", (layers, averaged, matrix)
        expected = "dependent" if (layers, averaged, matrix) in far else "derived"
        assert relation(*told) == expected, (layers, averaged, matrix)
    assert "learnt-likely" in decide([gains(0.8), units(0.7)], CHARGE).reasons
    assert "learnt-together" in decide([gains(0.95), units(0.9)], CHARGE).reasons
    # long continued training leaves little in the matrices, and gains that tell all the same
    assert relation(gains(0.75), units(0.05)) == "derived"


def test_gains_trained_anew_do_not_hide_the_matrices() -> None:
    """Long training leaves twins no such matrices: parents with new gains have them."""
    found = decide([gains(0.1), columns(0.9), units(0.9), look(0.3, 0.04)], CHARGE)
    assert (found.relation, found.reasons[0]) == ("derived", "learnt-anew")
    assert relation(gains(0.55), columns(0.9), units(0.98), look(0.3, 0.04)) == "derived"
    assert relation(gains(0.1), columns(0.9), units(0.9), look(0.3, 0.004)) == "same-init"
    assert relation(gains(0.1), columns(0.9), units(0.7), look(0.3, 0.05)) == "same-init"


def lead(effect: float, one_to_one: bool = True) -> Evidence:
    return Evidence(
        "L.leading", Tier.RULE, Group.RULE, Status.OK, effect=effect, bound="none", roles=MLP,
        one_to_one=one_to_one,
    )  # fmt: skip


def test_leading_directions_tell_descendants_from_twins() -> None:
    between = gains(0.5), columns(0.6), units(0.6), look(0.3, 0.04)
    assert relation(*between) == "dependent"
    assert relation(*between, lead(0.95)) == "derived"
    # as alike as GPT-NeoX twins on the same data are in their gains
    twins = gains(0.78), profile(0.88), columns(0.8), units(0.78), look(0.2, 0.02)
    assert relation(*twins) == "derived"
    assert relation(*twins, lead(0.7)) == "dependent"
    assert relation(gains(0.93), units(0.4), lead(0.5)) == "derived"  # no twins are so close
    assert relation(*twins, lead(0.3, one_to_one=False)) == "derived"  # experts were merged
    folded = without(gains(0.0))
    assert relation(folded, units(0.7), lead(0.5)) == "dependent"
    # what has hardly moved agrees everywhere
    hardly = gains(0.4), columns(0.99), units(0.96), look(0.1, 0.01), lead(0.95)
    assert relation(*hardly) == "same-init"
    # and a stranger's matrices are no relation, however alike
    assert relation(gains(0.0, -0.1), *SILENT, lead(0.99)) == "no-evidence"


def test_where_no_direction_stands_out_gains_must_be_nearly_equal() -> None:
    """Optimisers that even out their updates, as Muon does, keep twins alike for long."""
    flat = Evidence("L.leading", Tier.RULE, Group.RULE, Status.UNDEFINED, bound="none")
    assert relation(gains(0.84), units(0.9), flat) == "dependent"
    assert relation(gains(0.88), units(0.9), flat) == "derived"
    assert relation(gains(0.5), profile(0.86), units(0.9), flat) == "dependent"
    folded = without(gains(0.0))
    assert relation(folded, units(0.73), flat) == "dependent"


def layered(*likenesses: float) -> Evidence:
    by_layer = tuple(enumerate(likenesses))
    return replace(units(sum(likenesses) / len(likenesses)), by_layer=by_layer)


def test_layers_taken_over_one_by_one_are_no_twins() -> None:
    found = decide([gains(0.5), layered(1.0, 0.0, 0.98, 0.01), lead(0.4)], CHARGE)
    assert (found.relation, found.reasons[0]) == ("derived", "layers-mixed")
    assert relation(gains(0.1, -3.0), layered(-0.1, -0.2), lead(0.4)) == "dependent"
    # units of one layer renamed leave it silent, but its gains are what they were
    assert relation(gains(0.2), layered(0.8, 0.8, 0.0, 0.8), lead(0.6)) == "same-init"
    # twins lose more in some layers than in others, and nowhere all of it
    assert relation(gains(0.2), layered(0.6, 0.2, 0.5, 0.3), lead(0.4)) == "same-init"
    assert relation(gains(0.2), layered(0.4, 0.0, 0.5, 0.0), lead(0.4)) == "same-init"


def values(effect: float) -> Evidence:
    return ok("S4", -50.0, effect, ("v", "o"))


def test_values_stay_alike_for_longest_and_prove_least() -> None:
    folded = without(gains(0.0))
    assert relation(folded, values(0.7), units(0.0, -0.2)) == "dependent"
    assert relation(folded, values(0.95), units(0.0, -0.2)) == "derived"
    # attention from another model beside feed-forwards of one's own is no shared start
    assert relation(gains(0.1, -3.0), columns(0.5), values(0.9), units(0.0, -0.2)) == "dependent"
    assert relation(gains(0.1, -3.0), columns(0.5), values(0.9), units(0.3)) == "same-init"


def test_gains_learnt_on_one_embedding_are_no_shared_norms() -> None:
    found = decide([gains(0.53), profile(0.77), columns(0.6), *SILENT], CHARGE)
    assert found.relation == "partial" and found.reasons[0] == "embedding-shared"


def test_hardly_trained_models_are_undecided() -> None:
    constant = without(gains(0.0))
    assert relation(constant, units(0.95), look(0.0, 0.002)) == "dependent"
    assert relation(constant, units(0.95), look(0.0, 0.0)) == "derived"  # folded away


def test_without_matrices_weak_gains_are_undecided() -> None:
    assert relation(gains(0.5)) == "dependent"
    assert relation(gains(0.5), *SILENT) == "partial"


def test_where_gains_cannot_speak_the_matrices_decide() -> None:
    folded = without(gains(0.0))
    assert relation(folded, ok("S1", -80.0, 0.9, ("up", "down"))) == "derived"
    assert relation(folded, ok("S1", -80.0, 0.3, ("up", "down"))) == "dependent"
    renamed = gains(0.0, -0.1), columns(0.0, -0.2)  # channels do not line up
    assert relation(*renamed, ok("S1", -80.0, 0.9, ("up", "down"))) == "derived"
    rewritten = gains(0.0, -0.1), columns(0.5)
    assert relation(*rewritten, look(0.0, 0.2), units(0.5)) == "derived"
    assert relation(*rewritten, look(0.0, 0.2), units(0.3)) == "dependent"
    # a little training leaves twins more of their first weights
    assert relation(*rewritten, look(0.0, 0.04), units(0.5)) == "dependent"
    assert relation(*rewritten, look(0.0, 0.04), units(0.7)) == "derived"


def test_parts_made_anew_are_named() -> None:
    found = decide([gains(0.8), columns(0.8), units(0.7), planes(-0.1)], CHARGE)
    assert found.relation == "derived"
    assert found.unshared == ("attention",)
    assert found.parts == ("norms", "embedding", "feed-forward")
    found = decide([gains(0.9), columns(0.0, -0.2), *SILENT], CHARGE)
    assert found.relation == "partial" and found.parts == ("norms",)


def test_embedding_alone_is_no_descent() -> None:
    """Rare tokens keep their first values, so same-init pairs agree there for longest."""
    assert relation(gains(0.1, -1.0), columns(0.6), *SILENT) == "dependent"
    assert relation(gains(0.1, -1.0), columns(0.97), *SILENT) == "partial"


def test_calibrated_evidence_flags_and_never_accuses() -> None:
    extreme = Evidence("Q.known", Tier.CALIBRATED, Group.NONE, Status.OK, -300.0, 1.0, floor=-300.0)
    found = decide([gains(0.0, -0.1), *SILENT, extreme], CHARGE)
    assert found.relation == "no-evidence" and found.log10_p == 0.0
    assert "laundering-flag" in found.reasons


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
    layers = {"attention", "feed-forward"}
    assert found.relation != "derived" or layers & set(found.parts)


@pytest.mark.parametrize("language", text.languages())
def test_every_reason_has_words(language: str) -> None:
    named = (*VerdictReason, "unshared", "missing")
    assert all(text.knows(f"verdict.reason.{reason}", language) for reason in named)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("language", text.languages())
def test_every_relation_has_words(relation: Relation, language: str) -> None:
    verdict = Verdict(relation, -12.5, ALPHA, (Component.NORMS,), (("U1.blocks", 0.031),))
    said = summary_of(verdict, "one/a", "two/b", language)
    assert "one/a" in said and "two/b" in said and "{" not in said
    assert sureness_of(verdict, language)


def test_every_part_has_a_name() -> None:
    assert all(text.knows(f"verdict.part.{part}") for part in Component)


def test_p_values_are_rounded_up() -> None:
    assert "10^-12" in summary_of(Verdict(Relation.DERIVED, -12.9, ALPHA), "a", "b", "en")
    assert "10^12 " in sureness_of(Verdict(Relation.DERIVED, -12.9, ALPHA), "en")
