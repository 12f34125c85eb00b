"""P-values of the whole battery on null pairs of every kind: a few draws of the sweep.

`python -m tests.lineage.sweep` takes ten thousand.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from kinprint.lineage.battery import run_battery
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.side import Side
from tests.lineage.made import made, noisy
from tests.lineage.null_pairs import MASKS, PAIRS, upcycled
from tests.lineage.relabelling import relabelled
from tests.lineage.sweep import TOGETHER, draw
from tests.nulls.worlds import assert_valid

DRAWS = 30
SIBLINGS = {
    "strangers, correlated layers",
    "strangers, heavy tails",
    "strangers, heads with heavy tails",
    "strangers, with heads",
    "same contents, renamed",
    "same heads, renamed",
    "trained heads, renamed",
    "heavy tails, renamed",
    "shared features, renamed",
    "plain feed-forwards, renamed",
    "fewer units, renamed",
    "channels repeated alike, renamed",
    "fewer channels without tokens, renamed",
    "widened alike, renamed",
    *(f"one mask, {mask}, renamed" for mask in MASKS),
}
SAME = made(40, width=24, depth=2, units=32, tokens=64)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(SAME, SAME, id="the same model"),
        pytest.param(SAME, noisy(SAME, 1.0, 41), id="a trained copy", marks=pytest.mark.slow),
    ],
)
def test_relabelled_models_give_valid_p_values(one: Sample, other: Sample) -> None:
    rng = np.random.default_rng(42)
    still = Side(other)
    logs: dict[str, list[float]] = defaultdict(list)
    for _ in range(DRAWS):
        for found in run_battery(relabelled(one, rng), still):
            if found.status == "ok":
                logs[found.test].append(found.log10_p)
    assert {"E1.blocks", "E3.fixed", "U1.aligned", "S1", "S2", "S4", "E4.blocks"} <= logs.keys()
    for values in logs.values():
        assert_valid(values, (0.1, 0.01))
    # Alignment must have worked, or the test above would be about nothing.
    aligned = {each.test: each for each in run_battery(relabelled(one, rng), still)}
    assert (aligned["S1"].alignment_quality or 0.0) > 1.5


@pytest.mark.parametrize(
    ("kind", "draws"),
    [
        *((kind, 6) for kind in PAIRS if kind not in SIBLINGS),
        *(pytest.param(kind, 12, marks=pytest.mark.slow) for kind in PAIRS),
    ],
)
def test_every_kind_of_null_pair_gives_valid_p_values(kind: str, draws: int) -> None:
    found = draw(kind, draws, seed=1)
    assert len(found[kind, TOGETHER]) == draws
    for values in found.values():
        assert_valid(values, (0.1, 0.01, 1e-3))


def test_experts_of_shuffled_copies_are_still_found() -> None:
    """Coins that count once are enough."""
    rng = np.random.default_rng(43)
    child = upcycled(noisy(SAME, 0.3, 44), rng)
    found = {each.test: each.log10_p for each in run_battery(SAME, child)}
    assert found["S1"] < -9
    cousin = upcycled(noisy(SAME, 0.3, 45), rng)
    found = {each.test: each.log10_p for each in run_battery(cousin, child)}
    assert found["S1"] < -9
