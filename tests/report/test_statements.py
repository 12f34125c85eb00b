"""Sentences of a verdict say of each part what its finding says, and no more."""

from __future__ import annotations

from msgspec.structs import replace

from kinprint.records import (
    Amount,
    Component,
    Level,
    Part,
    PartFinding,
    PartState,
    Reason,
    Relation,
    Verdict,
    VerdictReason,
)
from kinprint.report.parts import needed_bytes
from kinprint.report.statements import Reading, headline, spoken

TITLES = ("one", "other")


def finding(
    component: Component, layer: int | None, state: PartState, **more: object
) -> PartFinding:
    part = Part(component, layer)
    return PartFinding(part, part, state, weights=100, **{"read": 1.0, **more})  # type: ignore[arg-type]


def said(relation: Relation, *parts: PartFinding, seed: int = 0) -> tuple[str, str, str]:
    verdict = Verdict(relation, -99.0, 1e-6, parts, Amount(linked=0.5, likeness=1.0, read=1.0))
    found = spoken(verdict, TITLES, Reading(seed=seed))
    return found.summary["en"], found.what["en"], found.kind["en"]


def test_a_headline_names_only_what_was_taken_over() -> None:
    headline, what, _ = said(
        Relation.PARTIAL,
        finding(Component.EMBEDDING, None, PartState.EQUAL, learnt=True),
        finding(Component.FEED_FORWARD, 0, PartState.SHARED, learnt=None, share=0.33),
    )
    assert "embedding" in headline and "feed-forward" not in headline
    assert "is open: feed-forward (at least 33 %)" in what


def test_rounding_is_in_the_headline_of_equal_weights_alone() -> None:
    """Towers that differ make another relation of the same reasons."""
    told = {}
    for relation in (Relation.SAME_WEIGHTS, Relation.PARTIAL, Relation.DERIVED):
        verdict = Verdict(relation, -99.0, 1e-6, reasons=(VerdictReason.SAME_AFTER_ROUNDING,))
        told[relation] = headline(verdict, TITLES)["en"]
    assert "rounding" in told.pop(Relation.SAME_WEIGHTS)
    assert not any("rounding" in one for one in told.values())


def test_an_equal_last_norm_does_not_speak_for_those_of_the_layers() -> None:
    _, what, _ = said(
        Relation.DERIVED,
        finding(Component.NORMS, None, PartState.EQUAL, learnt=True),
        *(
            finding(Component.NORMS, layer, PartState.SHARED, learnt=True, tests=("E1.blocks",))
            for layer in range(3)
        ),
        finding(
            Component.ATTENTION, 0, PartState.NOT_COMPARABLE,
            reason=Reason.PART_HEADS_RENAMED.message(),
        ),
    )  # fmt: skip
    assert "Equal: norms outside the layers." in what and "norms of layers 0–2" in what


def test_rows_that_speak_for_whole_parts_are_said_to() -> None:
    whole = finding(Component.ATTENTION, 0, PartState.EQUAL, learnt=True)
    some = finding(Component.FEED_FORWARD, 0, PartState.EQUAL, learnt=True, read=0.05)
    _, _, kind = said(Relation.DERIVED, whole, some, seed=7)
    assert kind.startswith("Of what was read of the layers") and "seed (7)" in kind
    assert "seed" not in said(Relation.DERIVED, whole)[2]


def test_experts_are_counted_and_not_what_is_known_of_them() -> None:
    """A copy at another place leaves one expert of the second model without an answer."""
    copied = PartFinding(
        Part(Component.EXPERT, 1, 2), Part(Component.EXPERT, 1, 5), PartState.EQUAL,
        learnt=True, weights=100, read=1.0,
    )  # fmt: skip
    reason = Reason.PART_ONLY_THERE.message()
    others = [
        PartFinding(Part(Component.EXPERT, 1, at), None, PartState.NOT_COMPARABLE, read=1.0)
        for at in (0, 1, 3, 4, 5, 6, 7)
    ]
    alone = PartFinding(
        Part(Component.EXPERT, 1, 2), Part(Component.EXPERT, 1, 2), PartState.NOT_COMPARABLE,
        reason=reason, read=1.0,
    )  # fmt: skip
    headline, what, _ = said(Relation.PARTIAL, copied, *others, alone)
    assert "experts (1 of 8) of layer 1" in headline and "experts (7 of 8) of layer 1" in what


def test_layers_of_the_second_model_are_named_in_their_order() -> None:
    places = (0, 1, 2, 4, 3, 5, 6, 7)
    copied = [
        PartFinding(
            Part(Component.ATTENTION, at), Part(Component.ATTENTION, to), PartState.EQUAL,
            learnt=True, read=1.0,
        )
        for at, to in enumerate(places)
    ]  # fmt: skip
    assert "(layers 0–2, 4, 3, 5–7 of the second model)" in said(Relation.DERIVED, *copied)[1]
    assert "of layer 3 (layer 4 of the second model)" in said(Relation.DERIVED, copied[3])[1]


def test_parts_of_which_a_share_is_linked_are_not_everything() -> None:
    whole = finding(Component.ATTENTION, 0, PartState.SHARED, learnt=True)
    half = finding(Component.HEAD, None, PartState.SHARED, learnt=True, share=0.5)
    assert "everything" in said(Relation.DERIVED, whole, whole)[1]
    what = said(Relation.DERIVED, whole, half)[1]
    assert "everything" not in what and "output head (at least 50 %)" in what


def test_an_embedding_that_is_the_head_answers_to_a_head_as_one() -> None:
    table, head = Part(Component.EMBEDDING), Part(Component.HEAD)
    strange = PartFinding(table, table, PartState.NOT_COMPARABLE, read=1.0)
    again = PartFinding(table, head, PartState.EQUAL, learnt=True, weights=100, read=1.0)
    headline, what, _ = said(Relation.PARTIAL, strange, again)
    assert "Equal: output head." in what and "output head" in headline


def test_feed_forwards_that_experts_were_made_of_are_not_said_to_have_no_like() -> None:
    expert = PartFinding(
        Part(Component.EXPERT, 0, 0), Part(Component.FEED_FORWARD, 0), PartState.SHARED,
        learnt=True, read=1.0,
    )  # fmt: skip
    alone = PartFinding(
        Part(Component.FEED_FORWARD, 1), Part(Component.FEED_FORWARD, 1), PartState.NOT_COMPARABLE,
        reason=Reason.PART_ONLY_THERE.message(), read=1.0,
    )  # fmt: skip
    assert "Not comparable: feed-forward of layer 1" in said(Relation.DERIVED, expert, alone)[1]


def test_bytes_are_those_of_the_parts_that_more_reading_decides() -> None:
    reason = Reason.PART_NOT_READ.message()
    unread = [
        finding(Component.EMBEDDING, None, PartState.NOT_READ, reason=reason, needs=147_456),
        finding(Component.MIXER, 0, PartState.NOT_READ, reason=reason, needs=None),
        finding(Component.NORMS, None, PartState.EQUAL, learnt=True),
    ]
    verdict = Verdict(
        Relation.PARTIAL, -99.0, 1e-6, tuple(unread), Amount(linked=0.1, likeness=1.0, read=0.1)
    )
    for level, limited, words in (
        (Level.QUICK, True, "Not read at level quick: "),
        (Level.STANDARD, False, "Not read at level standard: "),
        (Level.STANDARD, True, "Not read within this budget: "),
    ):
        coverage = spoken(verdict, TITLES, Reading(level, limited=limited)).coverage["en"]
        needed = "embedding (a comparison would take about 147 kB)"
        assert f"{words}{needed}; state-space or convolution blocks." in coverage


def test_what_all_parts_of_a_tower_need_is_counted_once() -> None:
    unread = [
        finding(
            Component.ATTENTION, layer, PartState.NOT_READ,
            reason=Reason.PART_NOT_READ.message(), needs=1_100_000, basis=1_000_000,
        )
        for layer in range(5)
    ]  # fmt: skip
    assert needed_bytes(unread) == 1_500_000
    assert needed_bytes(unread[:0]) is None
    verdict = Verdict(Relation.PARTIAL, -99.0, 1e-6, tuple(unread), Amount(read=0.1))
    coverage = spoken(verdict, TITLES, Reading(Level.STANDARD, limited=True)).coverage["en"]
    assert "(a comparison would take about 1.5 MB)" in coverage


def test_a_link_without_a_linked_part_is_one_of_many_together() -> None:
    norms = finding(
        Component.NORMS, 0, PartState.NOT_COMPARABLE, reason=Reason.PART_TOGETHER.message()
    )
    what = said(Relation.DEPENDENT, norms)[1]
    assert "many together are" in what and "nothing was found" not in what


def test_linked_is_not_said_to_be_copied_where_some_of_it_was_not() -> None:
    equal = finding(Component.ATTENTION, 5, PartState.EQUAL, learnt=True)
    alike = finding(Component.ATTENTION, 4, PartState.SHARED, learnt=False, likeness=0.3)

    def amount(*parts: PartFinding) -> str:
        told = Amount(linked=0.9, likeness=0.4, read=1.0)
        verdict = Verdict(Relation.PARTIAL, -99.0, 1e-6, parts, told)
        return spoken(verdict, TITLES, Reading()).amount["en"]

    assert "not to say copied" in amount(equal, alike)
    assert "not to say copied" not in amount(equal)


def test_a_tower_of_another_name_is_named() -> None:
    """Towers that changed places, and a tower that is all of the other model."""

    def at(tower: str, there: str) -> PartFinding:
        part = Part(Component.ATTENTION, 0, tower=tower)
        return PartFinding(
            part, replace(part, tower=there), PartState.EQUAL, learnt=True, weights=100, read=1.0
        )

    _, swapped, _ = said(Relation.DERIVED, at("vision", "text"), at("text", "vision"))
    assert "attention in vision (in text of the second model)" in swapped
    assert "attention in text (in vision of the second model)" in swapped
    _, whole, _ = said(Relation.DERIVED, at("vision", ""))
    assert "attention in vision (in the main tower of the second model)" in whole
    assert "second model" not in said(Relation.DERIVED, at("vision", "vision"))[1]


def test_an_amount_over_parts_of_which_some_rows_are_linked_is_a_lower_limit() -> None:
    def amount(share: float) -> str:
        part = finding(Component.FEED_FORWARD, 0, PartState.SHARED, learnt=True, share=share)
        known = Amount(linked=0.5, layers=0.25, likeness=1.0, read=1.0)
        verdict = Verdict(Relation.PARTIAL, -99.0, 1e-6, (part,), known)
        return spoken(verdict, TITLES, Reading()).amount["en"]

    assert "at least 50 %" in amount(0.01) and "at least 25 %" in amount(0.01)
    assert "at least" not in amount(1.0)


def test_the_likeness_of_renumbered_units_of_which_some_were_read_is_a_lower_limit() -> None:
    """Some have a partner that was not read, and met another one."""

    def amount(read: float, test: str) -> str:
        part = finding(
            Component.FEED_FORWARD, 0, PartState.SHARED, learnt=True, tests=(test,), read=read
        )
        known = Amount(linked=1.0, likeness=0.7, read=read)
        verdict = Verdict(Relation.DERIVED, -99.0, 1e-6, (part,), known)
        return spoken(verdict, TITLES, Reading()).amount["en"]

    assert "correlation is at least 0.70" in amount(0.2, "S1")
    assert "correlation is 0.70" in amount(1.0, "S1")
    assert "correlation is 0.70" in amount(0.2, "U1.blocks")
