"""What claims are false of what facts."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.redteam.cases.registry import feed_forward, layers, tower, true
from benchmarks.redteam.truth import Fact, Reach, Reading, claims_of, falsehoods

NORMS, WHOLE = Reading("quick", None, Reach.NORMS), Reading("standard", None, Reach.WHOLE)


def first_schema(relation: str, **verdict: Any) -> dict[str, Any]:
    told = {"relation": relation, "log10_p": -9.0, "alpha": 1e-6, "roles": [], "reasons": []}
    evidence = [{"test": "U1.blocks", "status": "ok", "tier": "exact"}]
    return {"verdict": {**told, **verdict}, "plan": {"bytes_at_most": 10}, "evidence": evidence}


def by_part(relation: str, *parts: tuple[str, int | None, str]) -> dict[str, Any]:
    findings = [
        {"part": {"component": component, "layer": layer, "tower": ""}, "state": state}
        for component, layer, state in parts
    ]
    return first_schema(relation, parts=findings)


COPIED = true("partial", "partial", "partial", {feed_forward(2): Fact.EQUAL})


def test_a_relation_is_true_at_a_reach_or_is_not() -> None:
    truth = true("no-evidence", "partial", "derived", rest=Fact.KIN)
    assert not falsehoods(claims_of(first_schema("derived")), truth, WHOLE)
    assert falsehoods(claims_of(first_schema("derived")), truth, NORMS) == ["said derived"]


def test_strangers_have_no_link() -> None:
    truth = true("no-evidence", "no-evidence", "no-evidence")
    claims = claims_of(first_schema("no-evidence"))
    assert falsehoods(claims, truth, WHOLE) == ["a link between strangers"]


def test_the_rest_of_a_partial_relation_is_called_no_trace() -> None:
    claims = claims_of(first_schema("partial", roles=["norms"]))
    assert falsehoods(claims, COPIED, WHOLE) == ["norms shared", "feed-forward no-trace"]


def test_power_without_a_condition_is_false_where_something_was_taken_over() -> None:
    document = first_schema("no-evidence", log10_p=0.0, power={"U1.blocks": 0.1})
    truth = true("no-evidence", "no-evidence", "no-evidence", rest=Fact.HIDDEN)
    assert falsehoods(claims_of(document), truth, WHOLE) == [
        "said that it would have seen what is there"
    ]


def test_an_amount_is_held_against_the_share_that_is_linked() -> None:
    truth = true("partial", "partial", "partial", rest=Fact.OPEN, layers=0.22)
    for said, false in ((0.22, 0), (0.73, 1)):
        document = by_part("partial")
        document["verdict"]["amount"] = {"layers": said}
        assert len(falsehoods(claims_of(document), truth, WHOLE)) == false


def test_a_budget_is_kept() -> None:
    truth = true("partial", "partial", "partial", rest=Fact.OPEN)
    reading = Reading("standard", 9, Reach.SAMPLE)
    assert falsehoods(claims_of(first_schema("partial")), truth, reading) == ["reads 10 bytes"]


@pytest.mark.parametrize(
    ("state", "layer", "false"),
    [
        ("equal", 2, []),
        ("shared", 2, ["feed-forward 2 shared, is equal"]),
        ("no-trace", 2, ["feed-forward 2 no-trace", "feed-forward 2 no-trace, is equal"]),
        ("equal", 3, ["feed-forward 3 equal", "nothing about expert+feed-forward layer 2"]),
        ("no-trace", 3, ["nothing about expert+feed-forward layer 2"]),
    ],
)
def test_findings_by_part_are_held_against_the_fact_of_that_part(
    state: str, layer: int, false: list[str]
) -> None:
    claims = claims_of(by_part("partial", ("feed-forward", layer, state)))
    assert falsehoods(claims, COPIED, WHOLE) == false


def test_what_lies_outside_the_layers_is_in_none_of_them() -> None:
    truth = true("partial", "partial", "partial", {layers(2): Fact.EQUAL})
    claims = claims_of(by_part("partial", ("norms", None, "no-trace"), ("norms", 2, "equal")))
    assert falsehoods(claims, truth, WHOLE) == []


def test_an_arranged_numbering_may_be_shared_and_is_never_learnt_or_equal() -> None:
    truth = true("dependent", "dependent", "dependent", rest=Fact.ARRANGED)
    assert not falsehoods(claims_of(by_part("dependent", ("attention", 0, "shared"))), truth, WHOLE)
    assert falsehoods(claims_of(by_part("dependent", ("attention", 0, "equal"))), truth, WHOLE)


def test_swapped_models_have_layers_of_the_second() -> None:
    truth = true(
        "partial",
        "partial",
        "partial",
        {feed_forward(1): Fact.EQUAL},
        swapped={feed_forward(4): Fact.EQUAL},
    )
    claims = claims_of(by_part("partial", ("feed-forward", 4, "equal")))
    assert falsehoods(claims, truth, WHOLE)
    assert not falsehoods(claims, truth, Reading("standard", None, Reach.WHOLE, swapped=True))


def test_a_claim_without_a_tower_may_be_about_any() -> None:
    truth = true("partial", "partial", "partial", {tower("vision"): Fact.EQUAL})
    silent = claims_of(first_schema("partial", roles=["norms"]))
    assert falsehoods(silent, truth, NORMS) == ["feed-forward no-trace"]
    spoken = first_schema("partial", roles=["norms", "feed-forward"])
    assert falsehoods(claims_of(spoken), truth, NORMS) == []
