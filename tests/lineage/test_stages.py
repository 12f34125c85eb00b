"""Reading stops when the answer is clear, and goes on where more would settle it."""

from __future__ import annotations

from pathlib import Path

from kinprint.lineage.compare import compare_models
from kinprint.lineage.planning import plan_comparison
from kinprint.lineage.results import Settings
from kinprint.reader.fetch import Fetcher
from kinprint.records import Component, Part, PartState, Reason, Status
from kinprint.report.parts import needed_bytes


def test_strangers_are_read_to_the_end(demo: Path) -> None:
    one, other = (str(demo / "zoo" / name) for name in ("base-a", "base-b"))
    with Fetcher() as fetcher:
        found = compare_models(one, other, fetcher, Settings(budget=5_000_000))
    assert found.stages == (2, 2) and found.verdict.relation == "no-evidence"
    assert not any(one.status is Status.UNREAD for one in found.evidence)


def test_what_was_not_read_since_the_answer_was_clear_says_so(demo: Path) -> None:
    """Tests and parts of later stages do not ask for what nobody wanted to read."""
    one, other = (str(demo / "zoo" / name) for name in ("base-a", "a-cpt"))
    with Fetcher() as fetcher:
        found = compare_models(one, other, fetcher, Settings(budget=5_000_000))
    assert found.stages == (1, 2)
    evidence = {one.test: one for one in found.evidence}
    stopped = Reason.STOPPED_EARLY.message(stage=1, stages=2)
    for test in ("E3.blocks", "S2", "E4.blocks"):
        assert evidence[test].status is Status.UNREAD and evidence[test].reason == stopped
    parts = {one.part: one for one in found.verdict.parts}
    embedding = parts[Part(Component.EMBEDDING)]
    assert embedding.state is PartState.NOT_READ and embedding.reason == stopped
    assert evidence["E5.blocks"].status is Status.NEEDS  # the models have no routers


def test_parts_say_what_would_decide_them(demo: Path) -> None:
    """All units of a layer of both models and the tokens of a basis, known from headers."""
    one, other = (str(demo / "zoo" / name) for name in ("base-a", "base-b"))
    with Fetcher() as fetcher:
        found = compare_models(one, other, fetcher, Settings(budget=2_000_000))
        whole = compare_models(one, other, fetcher, Settings())
    parts = {one.part: one for one in found.verdict.parts}
    layer = parts[Part(Component.FEED_FORWARD, 1)]
    matrices = 2 * 3 * 352 * 128 * 2
    assert layer.needs is not None and layer.needs > matrices
    tables = parts[Part(Component.EMBEDDING)]
    assert tables.read > 0 and tables.needs is None
    assert all(one.needs is None for one in whole.verdict.parts if one.read == 1.0)


def test_what_is_missing_is_never_more_than_the_files(demo: Path) -> None:
    """Rows of a basis and the vocabulary serve all parts, and are counted once."""
    one, other = (demo / "zoo" / name for name in ("base-a", "a-cpt"))
    with Fetcher() as fetcher:
        found = compare_models(str(one), str(other), fetcher, Settings(budget=100_000))
    needs = needed_bytes(found.verdict.parts)
    stored = sum(file.stat().st_size for folder in (one, other) for file in folder.iterdir())
    assert needs is not None and 0.5 * stored < needs < stored


def test_a_budget_for_all_steps_and_not_for_the_whole_is_said_to_leave_something_out(
    demo: Path,
) -> None:
    names = [str(demo / "zoo" / name) for name in ("base-a", "a-cpt")]
    with Fetcher() as fetcher:
        plans = [
            plan_comparison(names, fetcher, Settings(budget=budget))
            for budget in (6_000_000, 8_000_000, None)
        ]
    told = [[str(one) for one in plan.left_out] for plan in plans]
    assert told == [["the rest of the models"], [], []]
