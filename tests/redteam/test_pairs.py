"""Crafted pairs with a known truth: nothing false is said about them.

The pairs of `benchmarks.redteam` that the models of the package suffice for: one or two of a kind
as people compare them, most of them made of the first two layers, and all of them with all layers
among the slow tests, at a lower level and within a small budget too. What is known to be false
today stands in `benchmarks/redteam/known_false.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.redteam.cases import CASES, SHORT, WITHIN_THE_PACKAGE
from benchmarks.redteam.checkpoint import Checkpoint
from benchmarks.redteam.known_false import KNOWN_FALSE
from benchmarks.redteam.running import SHORT_READINGS, run_case
from benchmarks.redteam.truth import Reading
from benchmarks.redteam.zoo import DEMO, Zoo
from tests.fewer_layers import fewer_layers

WHOLE = {
    # made of later layers, or about their number
    "some-units-with-noise", "keys-as-values", "one-number-changed", "depth-upscaled",
    "depth-pruned-and-tuned", "broken-layer-missing", "broken-norm-too-short",
    "broken-not-finite-gate", "layer-copied", "layer-moved", "laundered-with-a-raw-layer",
    "input-norms-with-noise",
    # what is told depends on how much can be arranged, or was trained, over all layers
    "tuned-with-gains-moved", "tuned-beside-framed-attention", "embedding-copied-framed",
    "first-weights-with-gains",
    # what strangers have in common counts in every layer
    *(name for name in SHORT if name.startswith(("framed", "strangers", "twins"))),
}  # fmt: skip
"""Pairs that need all layers of the models that they are made of."""
SIBLINGS = {
    # what others are made of too, and more
    "attention-copied", "norms-copied", "feed-forwards-copied", "half-the-units", "rows-moved",
    "units-permuted", "signs-flipped-folded", "laundered-copy", "laundered-with-swapped-gates",
    "framed", "framed-with-columns", "strangers", "strangers-one-pattern", "low-rank-update",
    "framed-with-rows", "framed-with-a-narrow-feed-forward", "twins-hardly-trained-with-gains",
    "cast-int8",
    # what `tests/lineage/test_guards.py` does to strangers too
    "strangers-cloned-units", "strangers-positions-in-the-embedding",
    "strangers-channels-sorted-by-mean", "strangers-began-as-the-identity",
    # what differs in one number, place or format
    "cast-nf4", "cast-from-master", "other-shards", "fused", "scaled", "average-50",
    "framed-by-gains", "twins-hardly-trained", "strangers-equal-tables", "multimodal-strangers",
    "merger-copied", "encoder-of-a-multimodal-model", "tables-crossed",
    "strangers-gains-of-a-formula", "strangers-hadamard-outputs", "broken-gate-narrower",
    "broken-embedding-narrower", "broken-empty-tensor",
}  # fmt: skip
"""Pairs that are made much like others of the short form; the slow tests have them all."""


class FewerLayers(Zoo):
    """The same models, of which each has its first two layers alone."""

    def __getitem__(self, name: str) -> Checkpoint:
        return fewer_layers(name)


@pytest.mark.parametrize("name", [name for name in SHORT if name not in SIBLINGS])
def test_nothing_false_is_said(name: str, tmp_path: Path) -> None:
    zoo = Zoo(DEMO) if name in WHOLE else FewerLayers(DEMO)
    compare_and_check(name, SHORT_READINGS[-1:], tmp_path, zoo)


@pytest.mark.slow
@pytest.mark.parametrize("name", WITHIN_THE_PACKAGE)
def test_nothing_false_is_said_at_any_level(name: str, tmp_path: Path) -> None:
    compare_and_check(name, SHORT_READINGS, tmp_path, Zoo(DEMO))


def compare_and_check(name: str, readings: Sequence[Reading], folder: Path, zoo: Zoo) -> None:
    rows = run_case(CASES[name], zoo, 0, readings, folder)
    false = [f"{row.reading}: {'; '.join(row.falsehoods)}" for row in rows if not row.true]
    if name in KNOWN_FALSE:
        if not false:
            pytest.fail(f"{name} is told truly now: take it off known_false.py")
        pytest.xfail(KNOWN_FALSE[name])
    assert not false


def test_pairs_of_the_short_form_need_no_other_models() -> None:
    assert set(SHORT) | KNOWN_FALSE.keys() <= set(WITHIN_THE_PACKAGE)
    assert set(SHORT) >= WHOLE | SIBLINGS


def test_every_pair_says_how_it_is_made() -> None:
    assert all(case.about.endswith(".") for case in CASES.values())
