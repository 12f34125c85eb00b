"""Models of different width: a basis that cannot be trusted is none, and a good one is found."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.demo import FOLDER
from kinprint.lineage.battery import run_battery
from kinprint.lineage.reading.sample import Sample
from kinprint.records import Evidence, Reason, Status
from tests.lineage.made import each_matrix, keyed, noisy
from tests.lineage.test_validity import samples_of

UNITS = ("U1.blocks", "U1.fixed", "U1.aligned", "S1", "S2", "S4")


def narrowed(sample: Sample, share: float, seed: int) -> Sample:
    """Some of the channels, in their order."""
    rng = np.random.default_rng(seed)
    at = np.sort(rng.permutation(sample.width)[: int(share * sample.width)])
    norms = {key: gain[at] for key, gain in sample.norms.items()}
    smaller = replace(sample, width=len(at), norms=norms, facts=sample.facts)
    return each_matrix(smaller, lambda rows: np.ascontiguousarray(rows[..., at]))


def renewed(sample: Sample, seed: int) -> Sample:
    """Embedding and gains drawn anew: what tells channels apart is gone."""
    rng = np.random.default_rng(seed)
    assert sample.embedding is not None
    rows = rng.normal(size=sample.embedding.rows.shape).astype(np.float32)
    norms = {
        key: np.asarray(1 + 0.1 * rng.normal(size=gain.shape), np.float32)
        for key, gain in sample.norms.items()
    }
    return keyed(replace(sample, norms=norms, embedding=replace(sample.embedding, rows=rows)))


@pytest.fixture(scope="module")
def models() -> dict[str, Sample]:
    folder = FOLDER / "zoo"
    return dict(zip("ab", samples_of(folder / "base-a", folder / "base-b"), strict=True))


def by_test(one: Sample, other: Sample) -> dict[str, Evidence]:
    return {found.test: found for found in run_battery(one, other)}


def test_half_of_the_channels_are_found_without_tokens_and_gains(models: dict[str, Sample]) -> None:
    """Rows of which half is left have a cosine of 0.7 with what they were."""
    child = renewed(noisy(narrowed(models["a"], 0.45, 3), 0.2, 4), 5)
    found = by_test(models["a"], child)
    assert found["S1"].log10_p < -50
    assert found["S2"].log10_p < -10


def test_strangers_without_a_common_basis_are_not_comparable(models: dict[str, Sample]) -> None:
    found = by_test(models["a"], renewed(narrowed(models["b"], 0.45, 3), 5))
    for test in UNITS:
        assert found[test].status is Status.NEEDS, test
        assert found[test].reason == Reason.RESIDUAL_MAP_UNTRUSTED.message(), test


def test_strangers_with_common_tokens_are(models: dict[str, Sample]) -> None:
    found = by_test(models["a"], narrowed(models["b"], 0.75, 3))
    for test in UNITS:
        assert found[test].status is Status.OK, test
        assert found[test].log10_p > -4, test
