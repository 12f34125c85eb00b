"""Columns of output heads: what strangers have in common is no evidence, and copies are seen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.lineage.pair import Pair
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.tests.columns import head_evidence
from kinprint.records import Status
from tests.lineage.made import made
from tests.lineage.relabelling import relabelled

WIDTH, TOKENS = 400, 480
Rows = np.ndarray


def with_head(seed: int, change: Callable[[Rows], Rows] = lambda rows: rows) -> Sample:
    """A model of its own numbers, and a head of such that was changed."""
    sample = made(seed, width=WIDTH, depth=1, units=32, tokens=TOKENS)
    assert sample.embedding is not None
    rows = np.random.default_rng([seed, 1]).normal(size=(TOKENS, WIDTH))
    head = replace(sample.embedding, rows=change(rows).astype(np.float32))
    return replace(sample, head=head)


def least(a: Sample, b: Sample) -> float:
    """The least log10 p of any test of the heads."""
    found = [one.log10_p for one in head_evidence(Pair(a, b)) if one.status is Status.OK]
    return min(found, default=0.0)


def massive(rows: Rows) -> Rows:
    """Some channels far above the others, which follow the tokens, each in its own way."""
    course = np.sin(np.outer(np.arange(len(rows)), 1 + np.arange(rows.shape[1])))
    large = np.arange(rows.shape[1]) % 50 == 7
    return np.asarray(np.where(large, 60.0 * course + 0.1 * rows, rows))


def leaning(rows: Rows) -> Rows:
    """Frequent tokens lie to one side in all channels."""
    return np.asarray(rows + np.log1p(np.arange(len(rows)))[:, None])


def repeated(rows: Rows) -> Rows:
    """Channels that are one and the same, up to a little."""
    course = np.sin(np.arange(len(rows)))[:, None]
    return np.asarray(np.where(np.arange(rows.shape[1]) % 50 == 7, course + 0.01 * rows, rows))


@pytest.mark.parametrize("change", [massive, leaning, repeated])
def test_what_strangers_have_in_common_is_no_evidence(change: Callable[[Rows], Rows]) -> None:
    pairs = [(with_head(seed, change), with_head(seed + 1, change)) for seed in range(0, 24, 2)]
    assert min(least(*pair) for pair in pairs) > -2.5


def test_a_head_that_was_trained_on_is_seen_under_other_names_too() -> None:
    one = with_head(1)
    assert one.head is not None
    noise = np.random.default_rng(2).normal(size=one.head.rows.shape)
    moved = replace(one.head, rows=(one.head.rows + noise).astype(np.float32))
    other = replace(with_head(3), head=moved)
    assert least(one, other) < -12 and least(other, one) < -12
    # Signs are left where channels have been renamed, and nothing where they were flipped, too.
    renamed = relabelled(one, np.random.default_rng(4), signs=False)
    assert least(renamed, replace(other, key="other")) < -6
    flipped = relabelled(one, np.random.default_rng(4))
    assert least(flipped, replace(other, key="other")) > -3
