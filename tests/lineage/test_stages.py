"""Reading stops when the answer is clear, and goes on where more would settle it."""

from __future__ import annotations

from pathlib import Path

import pytest

from kinprint.lineage import kind
from kinprint.lineage.compare import compare_models
from kinprint.lineage.results import Settings
from kinprint.reader.fetch import Fetcher


@pytest.mark.parametrize(
    ("surely", "stages", "reason"),
    [
        pytest.param(0.85, 1, "learnt-together", id="no twins have such norms"),
        pytest.param(0.99, 2, "leading-kept", id="twins might have such norms"),
    ],
)
def test_doubts_about_norms_are_settled_by_reading_more(
    demo: Path, monkeypatch: pytest.MonkeyPatch, surely: float, stages: int, reason: str
) -> None:
    monkeypatch.setattr(kind, "CERTAIN_GAINS", surely)
    one, other = (str(demo / "zoo" / name) for name in ("base-a", "a-cpt"))
    with Fetcher() as fetcher:
        found = compare_models(one, other, fetcher, Settings(budget=5_000_000))
    assert found.stages == (stages, 2)
    assert found.verdict.relation == "derived" and reason in found.verdict.reasons
