"""`compare`, `matrix` and `plan_comparison` from Python: what each option does."""

from __future__ import annotations

from pathlib import Path

import pytest

import kinprint
from kinprint.mirror import MirrorServer
from kinprint.report.views.terminal.comparison import comparison_lines

BASE, CHILD, STRANGER = "zoo/base-a", "zoo/a-cpt", "zoo/base-b"


@pytest.fixture
def zoo(demo: Path) -> Path:
    return demo / "zoo"


def test_a_level_is_named_by_enum_or_word(zoo: Path) -> None:
    one = kinprint.compare(zoo / "base-a", zoo / "base-b", level="quick")
    other = kinprint.compare(zoo / "base-a", zoo / "base-b", level=kinprint.Level.QUICK)
    assert one.asked == other.asked and one.evidence == other.evidence
    with pytest.raises(kinprint.BadOption, match="level"):
        kinprint.compare(zoo / "base-a", zoo / "base-b", level="thorough")


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
def test_an_error_must_be_a_probability(zoo: Path, alpha: float) -> None:
    with pytest.raises(kinprint.BadOption, match="alpha"):
        kinprint.compare(zoo / "base-a", zoo / "base-b", level="quick", alpha=alpha)


def test_the_seed_and_the_error_are_put_down(zoo: Path) -> None:
    found = kinprint.compare(zoo / "base-a", zoo / "base-b", level="quick", seed=3, alpha=0.05)
    assert (found.asked.seed, found.asked.alpha, found.alpha) == (3, 0.05, 0.05)


def test_the_answer_is_the_same_without_details(zoo: Path) -> None:
    whole, brief = (
        kinprint.compare(zoo / "base-a", zoo / "a-cpt", details=details)
        for details in (True, False)
    )
    assert whole.changes is not None and whole.shared is not None
    assert brief.changes is None and brief.shared is None
    lines, fewer = (list(comparison_lines(one.document, "en")) for one in (whole, brief))
    assert lines == fewer
    kept, left = whole.to_dict(), brief.to_dict()
    assert kept["seeds"] and not left["seeds"]
    for one in kept["evidence"]:  # samples of chance are for pictures
        one["null"] = one["null"] if one["tier"] == "calibrated" else []
    same = ("models", "verdict", "evidence", "samples", "asked")
    assert [kept[key] for key in same] == [left[key] for key in same]


def test_controls_calibrate_and_change_no_answer(zoo: Path) -> None:
    plain = kinprint.compare(zoo / "base-a", zoo / "a-cpt", level="quick")
    found = kinprint.compare(
        zoo / "base-a", zoo / "a-cpt", level="quick", controls=[zoo / "base-b"]
    )
    assert not plain.controls and {one.control for one in found.controls} == {str(zoo / "base-b")}
    assert (found.relation, found.log10_p) == (plain.relation, plain.log10_p)


def test_the_language_is_spoken(zoo: Path) -> None:
    english = kinprint.compare(zoo / "base-a", zoo / "base-b", level="quick")
    korean = kinprint.compare(zoo / "base-a", zoo / "base-b", level="quick", language="ko")
    assert english.summary.isascii() and not korean.summary.isascii()
    korean.language = "en"
    assert korean.summary == english.summary


def test_a_budget_is_never_exceeded(mirror: MirrorServer) -> None:
    found = kinprint.compare(BASE, CHILD, budget="1.5MB", cache=False)
    assert 0 < found.cost.bytes <= 1_500_000 and found.plan.left_out
    with pytest.raises(kinprint.BudgetExceeded):
        kinprint.compare(BASE, CHILD, budget=1000, cache=False)
    with pytest.raises(kinprint.BadOption, match="budget"):
        kinprint.compare(BASE, CHILD, budget="much")


def test_a_plan_holds(mirror: MirrorServer) -> None:
    plan = kinprint.plan_comparison([BASE, STRANGER], cache=False)
    found = kinprint.compare(BASE, STRANGER, cache=False)
    assert plan.models == (BASE, STRANGER) and sum(plan.stages, kinprint.Cost()) == plan.cost
    assert 0 < found.cost.bytes <= plan.bytes_at_most
    assert 0 < plan.spent.bytes < plan.cost.bytes


def test_what_was_read_is_kept_unless_it_should_not_be(mirror: MirrorServer) -> None:
    kinprint.compare(BASE, CHILD, level="quick", cache=False)
    assert not kinprint.cached().models
    first = kinprint.compare(BASE, CHILD, level="quick")
    again = kinprint.compare(BASE, CHILD, level="quick")
    assert again.cost.bytes < first.cost.bytes / 10
    assert {one.name for one in kinprint.cached().models} == {BASE, CHILD}
    assert kinprint.clear_cache() > 0 and not kinprint.cached().models


def test_progress_is_told_as_it_is_made(mirror: MirrorServer) -> None:
    told: list[kinprint.Progress] = []
    found = kinprint.compare(BASE, CHILD, level="quick", cache=False, progress=told.append)
    assert {one.kind for one in told} == {"plan", "bytes"}
    assert all(one.done_bytes <= one.total_bytes for one in told)
    assert max(one.done_bytes for one in told) <= found.cost.bytes


def test_one_reader_pays_for_several_calls(mirror: MirrorServer) -> None:
    with kinprint.Reader(budget="64MB", cache=False) as reader:
        one = kinprint.compare(BASE, CHILD, level="quick", reader=reader)
        other = kinprint.inspect(STRANGER, reader=reader)
        assert reader.cost.bytes == one.cost.bytes + other.cost.bytes > 0
    assert one.asked.budget == reader.budget == 64_000_000
    with pytest.raises(kinprint.BadOption, match="budget"):
        kinprint.compare(BASE, CHILD, reader=reader, budget="1MB")


def test_a_matrix_sets_aside_what_cannot_be_read(zoo: Path) -> None:
    models = [zoo / name for name in ("base-a", "nowhere", "a-cpt")]
    found = kinprint.matrix(models, level="quick", seed=2, language="ko")
    assert found.relations == (kinprint.Relation.PARTIAL,) and found.asked.seed == 2
    (failure,) = found.failures
    assert failure.given == str(zoo / "nowhere")
    assert isinstance(failure.error, kinprint.BadReference)
    with pytest.raises(kinprint.BadReference):
        kinprint.matrix(models[:2], level="quick")
    with pytest.raises(kinprint.BadOption):
        kinprint.matrix(models[:1], level="quick")


def test_processes_change_no_matrix(zoo: Path) -> None:
    models = [zoo / name for name in ("base-a", "a-cpt", "base-b")]
    one, two = (kinprint.matrix(models, level="quick", jobs=jobs) for jobs in (1, 2))
    assert two.relations == one.relations and two.order == one.order
    # Processes have other numbers of threads, which may add up in another order.
    for a, b in zip(one.pairs, two.pairs, strict=True):
        assert b.likeness == pytest.approx(a.likeness) and b.log10_p == pytest.approx(a.log10_p)


def test_no_stage_of_a_plan_has_fewer_requests_than_none(mirror: MirrorServer) -> None:
    """Ranges of a later stage lie between those of an earlier one, and are read after them."""
    for budget in (1_200_000, 2_400_000):
        plan = kinprint.plan_comparison([BASE, CHILD], budget=budget, cache=False)
        assert len(plan.stages) == 2
        assert all(one.bytes > 0 and one.requests > 0 for one in plan.stages)
        assert plan.cost.bytes <= plan.bytes_at_most <= budget
