"""Sentences of a verdict say of each part what its finding says, and no more."""

from __future__ import annotations

from kinprint.records import (
    Amount,
    Component,
    Part,
    PartFinding,
    PartState,
    Reason,
    Relation,
    Verdict,
)
from kinprint.report.statements import Reading, spoken

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
    assert "is open: feed-forward (at least 33 % of it)" in what


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
    assert kind.startswith("Judging by the rows that were read") and "seed (7)" in kind
    assert "Judging" not in said(Relation.DERIVED, whole)[2]
