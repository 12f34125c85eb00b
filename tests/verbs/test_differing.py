"""The verb `diff` over the network: what it reads is planned, and a budget is enough or told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import kinprint
from benchmarks.redteam.zoo import DEMO, Zoo
from kinprint.mirror import MirrorServer

BASE, CHILD, COPY = "zoo/base-a", "zoo/a-cpt", "zoo/a-rotated"


def test_a_plan_counts_tables_of_other_sizes(
    tmp_path: Path, make_mirror: Callable[[Path], MirrorServer]
) -> None:
    """Tokens are matched before their rows are read, and no tokenizer is read for a plan."""
    parent, name = Zoo(DEMO)["base-a"], "model.embed_tokens.weight"
    more = np.vstack([parent.tensors[name], parent.tensors[name][:512]])
    models = {"a": parent, "b": parent.changed({name: more}, vocab_size=len(more))}
    for folder, model in models.items():
        (tmp_path / "zoo" / folder).mkdir(parents=True)
        model.save(model, tmp_path / "zoo" / folder)
    make_mirror(tmp_path)
    numbers = sum(one.size for model in models.values() for one in model.tensors.values())
    whole = kinprint.plan_diff("zoo/a", "zoo/b", sample=False, cache=False)
    assert whole.stages[-1].bytes >= 1.9 * numbers, "some came with the headers"
    plan = kinprint.plan_diff("zoo/a", "zoo/b", cache=False)
    found = kinprint.diff("zoo/a", "zoo/b", cache=False)
    assert found.document.sampled and found.totals.compared == found.totals.tensors
    assert found.document.read.bytes <= plan.bytes_at_most


@pytest.mark.parametrize("given", [None, COPY])
def test_a_sampled_diff_fits_into_a_budget(mirror: MirrorServer, given: str | None) -> None:
    """What the comparison reads and what tensors cost, gaps between rows too, share it."""
    budget = 1_500_000
    plan = kinprint.plan_diff(BASE, CHILD, given=given, budget=budget, cache=False)
    found = kinprint.diff(BASE, CHILD, given=given, budget=budget, cache=False)
    assert found.document.sampled and 0 < found.totals.compared < found.totals.tensors
    assert found.document.read.bytes <= plan.bytes_at_most <= budget
