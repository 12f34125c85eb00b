"""What a comparison says of changes: from what it read, within its bounds, and in all forms."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import kinprint
from benchmarks.operations import MADE
from benchmarks.redteam.zoo import DEMO, Zoo
from kinprint.diff.sampled_parts import changes_of
from kinprint.lineage.compare import compare_models
from kinprint.lineage.results import Settings
from kinprint.mirror import MirrorServer
from kinprint.reader.fetch import Fetcher
from kinprint.records import Operation
from kinprint.report.exports import render

PAIR = DEMO / "base-a", DEMO / "a-cpt"


@pytest.fixture(scope="module")
def found() -> kinprint.Comparison:
    return kinprint.compare(*PAIR, budget=1_500_000)


def test_bounds_hold_the_whole() -> None:
    whole = {(one.role, one.layer): one for one in kinprint.diff(*PAIR).tensors}
    held = total = exact = 0
    for seed in range(3):
        some = kinprint.compare(*PAIR, budget=1_500_000, seed=seed).changes
        assert some is not None
        for one in some.tensors:
            known = whole[one.role, one.layer].relative
            assert known is not None and known.value is not None and one.relative.value is not None
            if one.relative.low is not None and one.relative.high is not None:
                held += one.relative.low <= known.value <= one.relative.high
                total += 1
            else:
                assert one.read == one.numbers
                assert one.relative.value == pytest.approx(known.value, rel=1e-4)
                exact += 1
    assert total > 30 and exact > 30
    assert held >= 0.9 * total


def test_nothing_more_is_read(mirror: MirrorServer) -> None:
    with Fetcher(cache=None) as fetcher:
        compared = compare_models("zoo/base-a", "zoo/a-cpt", fetcher, Settings(budget=1_500_000))
        before = fetcher.spent.bytes, fetcher.spent.requests
        assert changes_of(compared) is not None
        assert (fetcher.spent.bytes, fetcher.spent.requests) == before


@pytest.mark.parametrize("form", [".html", ".md"])
def test_pages_show_it_and_are_drawn_again_the_same(found: kinprint.Comparison, form: str) -> None:
    page = render(found.document, form, "ko").decode()
    assert "이 비교에서 읽은 행이 말하는 만큼입니다" in page
    assert found.changes is not None
    top = max(one.relative.value or 0.0 for one in found.changes.tensors)
    assert f".{f'{100 * top:.2f}'.split('.')[1]} %" in page
    again = kinprint.report(found.to_json())
    assert isinstance(again, kinprint.Comparison)
    assert render(again.document, form, "ko").decode() == page


def test_a_notebook_shows_it(found: kinprint.Comparison) -> None:
    shown = found._repr_html_()
    assert "as far as the rows that this comparison read tell" in shown
    assert "of 18 matrices that are alike 18 changed" in shown


def test_strangers_and_copies_have_no_changes() -> None:
    stranger = kinprint.compare(DEMO / "base-a", DEMO / "base-b", level="quick")
    assert stranger.changes is None
    same = kinprint.compare(DEMO / "base-a", DEMO / "base-a")
    assert "What changed" not in same._repr_html_()


def test_of_matrices_that_are_not_alike_nothing_is_said(tmp_path: Path) -> None:
    make, _ = MADE["permuted"]
    copy = make(Zoo(DEMO)["base-a"], np.random.default_rng(2)).write(tmp_path / "copy")
    compared = kinprint.compare(DEMO / "base-a", copy)
    assert compared.changes is not None
    for one in compared.changes.operations:
        assert one.kind is not Operation.REPLACED and "no matrix changed" not in one.evidence
