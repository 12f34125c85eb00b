"""The verb `diff` over the network: what it reads is planned, and a budget is enough or told."""

from __future__ import annotations

import pytest

import kinprint
from kinprint.mirror import MirrorServer

BASE, CHILD, COPY = "zoo/base-a", "zoo/a-cpt", "zoo/a-rotated"


@pytest.mark.parametrize("given", [None, COPY])
def test_a_sampled_diff_fits_into_a_budget(mirror: MirrorServer, given: str | None) -> None:
    """What the comparison reads and what tensors cost, gaps between rows too, share it."""
    budget = 1_500_000
    plan = kinprint.plan_diff(BASE, CHILD, given=given, budget=budget, cache=False)
    found = kinprint.diff(BASE, CHILD, given=given, budget=budget, cache=False)
    assert found.document.sampled and 0 < found.totals.compared < found.totals.tensors
    assert found.document.read.bytes <= plan.bytes_at_most <= budget
