"""All pairs of some models: what fails is set aside with its error, and the rest goes on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kinprint.errors import BadOption, BudgetExceeded, InternalError, KinprintError, SystemFailed
from kinprint.lineage import matrix, opening
from kinprint.lineage.about.description import describe
from kinprint.lineage.battery import gather_evidence
from kinprint.lineage.matrix import compare_all, run_pairs
from kinprint.lineage.results import Matrix, Settings
from kinprint.mapped import shelf
from kinprint.reader.fetch import Fetcher
from kinprint.records import Cost
from kinprint.report.build.comparison import matrix_document
from kinprint.report.views.terminal.comparison import matrix_lines
from tests.fewer_layers import short_zoo
from tests.lineage.samples import samples_of

NAMES = ("base-a", "a-cpt", "base-b")
QUICK = Settings("quick")


def failing(function: Callable[..., Any], when: Callable[..., bool], error: Exception) -> Any:
    """The same function, but for some arguments."""

    def wrapper(*args: Any, **named: Any) -> Any:
        if when(*args):
            raise error
        return function(*args, **named)

    return wrapper


@pytest.fixture
def run(demo: Path) -> Callable[[], Matrix]:
    def compared() -> Matrix:
        with Fetcher() as fetcher:
            return compare_all([str(demo / "zoo" / name) for name in NAMES], fetcher, QUICK)

    return compared


def test_a_pair_that_fails_is_set_aside(
    run: Callable[[], Matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run()

    def strangers(pair: Any) -> bool:
        return {Path(sample.name).name for sample in pair.samples} == {"a-cpt", "base-b"}

    error = ZeroDivisionError("of all things")
    monkeypatch.setattr(matrix, "gather_evidence", failing(gather_evidence, strangers, error))
    found = run()
    assert found.pairs == whole.pairs[:2] and found.models == whole.models
    (failed,) = found.failed
    assert (failed.a, failed.b) == (1, 2) and isinstance(failed.error, InternalError)
    assert "of all things" in str(failed.error) and "gather_evidence" in failed.error.trace
    assert len(found.order) == 3 and len(found.tree) == 2 and found.subjects == whole.subjects
    document = matrix_document(found, Cost())
    assert [(Path(one.a).name, Path(one.b).name) for one in document.failed] == [NAMES[1:]]
    for language in ("en", "ko"):
        assert any("ZeroDivisionError" in line.text for line in matrix_lines(document, language))


@pytest.mark.parametrize(
    ("name", "place"),
    [("open_checkpoint", lambda name, *_: name), ("Sampler", lambda models, *_: models[-1].name)],
)
@pytest.mark.parametrize("error", [ValueError("odd"), PermissionError(13, "no")])
def test_a_model_that_fails_in_a_way_nobody_foresaw_is_set_aside(
    run: Callable[[], Matrix],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    place: Callable[..., str],
    error: Exception,
) -> None:
    def concerns_last(*args: Any) -> bool:
        return Path(place(*args)).name == NAMES[-1]

    monkeypatch.setattr(opening, name, failing(getattr(opening, name), concerns_last, error))
    found = run()
    assert [Path(ref.given).name for ref in found.models] == ["base-a", "a-cpt"]
    (unread,) = found.unread
    kind = SystemFailed if isinstance(error, OSError) else InternalError
    assert Path(unread.given).name == "base-b" and isinstance(unread.error, kind)
    assert [one.verdict.relation for one in found.pairs] == ["partial"] and not found.failed


def test_what_concerns_all_models_ends_the_matrix(
    run: Callable[[], Matrix], demo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [str(demo / "zoo" / name) for name in NAMES]
    with Fetcher() as fetcher, pytest.raises(BadOption):
        compare_all(names[:1], fetcher, QUICK)
    full = BudgetExceeded(needed="2 MB", requests=1, budget="1 MB", suggested="3 MB")
    monkeypatch.setattr(opening, "open_checkpoint", failing(print, lambda *_: True, full))
    with pytest.raises(BudgetExceeded):
        run()


def test_what_a_model_says_about_itself_is_not_needed(
    run: Callable[[], Matrix], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run()

    def concerns_first(checkpoint: Any, *_: Any) -> bool:
        return Path(checkpoint.ref.given).name == NAMES[0]

    broken = failing(describe, concerns_first, KeyError("dates"))
    monkeypatch.setattr(matrix, "describe", broken)
    found = run()
    assert found.pairs == whole.pairs and found.subjects[1:] == whole.subjects[1:]
    assert found.subjects[0].files == 0 and any("dates" in str(note) for note in found.notes)


@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_model_whose_numbers_make_no_sense_spoils_its_own_pairs(jobs: int) -> None:
    """In this process, and in others: what cannot be compared is told pair by pair."""
    read = list(samples_of(short_zoo(), NAMES).values())
    broken = replace(read[0], norms={("norm_in", 0): "no numbers"})
    samples = [*read, *read[:2], broken]
    pairs = list(combinations(range(len(samples)), 2))
    with shelf() as place:
        outcomes = run_pairs([place.put((sample,)) for sample in samples], pairs, QUICK, jobs)
    assert len(outcomes) == len(pairs) >= 12
    for (_, last), outcome in zip(pairs, outcomes, strict=True):
        assert isinstance(outcome, KinprintError) == (samples[last] is broken)
