"""One view of the evidence: what comes first, what was found, what is said about it."""

from __future__ import annotations

import math

import pytest
from msgspec.structs import replace

from kinprint import text
from kinprint.records import Status, Tier
from kinprint.report.evidence import State, findings, leading, silent
from kinprint.report.schema import ComparisonDocument, EvidencePart
from tests.report.kin_documents import comparison


def part(
    test: str, log10_p: float | None, adjusted: float | None = None, **more: object
) -> EvidencePart:
    fields = {"tier": Tier.EXACT, "group": "unit", "status": Status.OK, "bound": "signs"} | more
    return EvidencePart(test=test, log10_p=log10_p, adjusted=adjusted, **fields)  # type: ignore[arg-type]


def document(*parts: EvidencePart) -> ComparisonDocument:
    return replace(comparison(), evidence=list(parts))


def test_the_order_is_that_of_what_was_paid() -> None:
    given = document(
        part("a", -30.0, -20.0),
        part("b", -29.0, -25.0),
        part("c", None),
        part("d", -99.0, tier=Tier.CALIBRATED),
        part("e", -20.0, -20.0),
    )
    assert [one.test for one in findings(given)] == ["b", "a", "e", "c", "d"]


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (part("S1", -9.0, -7.0), State.FOUND),
        (part("S1", -9.0, -5.9), State.WEAK),
        (part("S1", -9.0), State.WEAK),
        (part("S1", -2.9, 0.0), State.NOTHING),
        (part("S1", None), State.NOTHING),
        (part("Q.known", -9.0, tier=Tier.CALIBRATED), State.CONTEXT),
        (part("acme", -9.0, tier=Tier.EXTENSION), State.CONTEXT),
        (part("L.leading", 0.0, tier=Tier.RULE), State.RULE),
    ],
)
def test_the_state_is_decided_after_paying(found: EvidencePart, state: State) -> None:
    (one,) = findings(document(found))
    assert one.state is state
    assert (one.p is None) == (state is State.RULE or found.log10_p is None)
    for language in text.languages():
        assert one.outcome.say(language)
        assert all(mark.say(language) for mark in one.marks)


def test_a_test_has_its_words_or_its_name() -> None:
    known, calibrated, foreign = findings(
        document(
            part("U1.blocks", -9.0),
            part("Q.known", -1.0, tier=Tier.CALIBRATED),
            part("acme.rows", -1.0, tier=Tier.EXTENSION),
        )
    )
    assert known.words == text.words("test.U1.blocks.compares")
    assert calibrated.compares is None
    assert calibrated.words == text.words("test.Q.known.title")
    assert foreign.title == "acme.rows" and foreign.words["ko"] == ""
    assert foreign.question is None


def test_the_strongest_of_each_family_leads() -> None:
    found = findings(
        document(
            part("U1.blocks", -9.0), part("U1.fixed", -90.0), part("S1", -50.0),
            part("Q.known", -1.0, tier=Tier.CALIBRATED),
        )
    )  # fmt: skip
    first, rest = leading(found, 2)
    assert [one.test for one in first] == ["U1.fixed", "S1"]
    assert [one.test for one in rest] == ["U1.blocks", "Q.known"]


def test_silent_tests_are_listed_apart() -> None:
    mute = part("E5.blocks", 0.0, status=Status.NEEDS, reason="routers of both models")
    given = document(part("S1", -9.0), mute)
    assert silent(given) == [mute]
    assert [one.test for one in findings(given)] == ["S1"]


def test_where_the_pair_falls_is_said_in_every_language() -> None:
    null = [float(at) for at in range(10)]
    told = {
        "outside": part("S1", -9.0, -8.0, statistic=99.0, null=null),
        "inside": part("S1", -0.1, 0.0, statistic=3.0, null=null),
        "known": part(
            "Q.known", -1.0, tier=Tier.CALIBRATED, bound="conformal", statistic=0.4, null=null
        ),
        "counts": part(
            "U1.fixed", -9.0, -8.0, bound="fixed points", statistic=40.0, null=null,
            details={"pairs": 64.0},
        ),
    }  # fmt: skip
    for key, one in told.items():
        (found,) = findings(document(one))
        assert found.reading[-1].key == f"page.evidence.{key}"
        assert all(sentence.say("ko") != sentence.say("en") for sentence in found.reading)
    (nothing,) = findings(document(part("S1", -9.0, -8.0, statistic=math.nan, null=null)))
    assert nothing.reading == ()
