"""Starts that are no chance: seen in one model alone, and no evidence between two."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.lineage.battery import run_battery
from kinprint.lineage.common_starts import without_common_starts
from kinprint.lineage.reading.sample import Sample
from kinprint.records import Status
from tests.lineage.made import each_matrix, keyed, made, noisy
from tests.nulls import worlds

Start = Callable[[int, int], np.ndarray]
SIZES = {"width": 64, "depth": 5, "units": 96, "tokens": 40}


def identity(rows: int, columns: int) -> np.ndarray:
    return 5 * np.eye(rows, columns)


def identities(rows: int, columns: int) -> np.ndarray:
    return (
        5
        * np.tile(np.eye(min(rows, columns)), (-(-rows // columns), -(-columns // rows)))[
            :rows, :columns
        ]
    )


def started(sample: Sample, start: Start, strength: float = 1.0) -> Sample:
    """All matrices of the layers with one start added, heads side by side as they are stored."""

    def add(rows: np.ndarray) -> np.ndarray:
        flat = rows.reshape(-1, rows.shape[-1])
        added = flat + strength * start(*flat.shape)
        return np.asarray(added.reshape(rows.shape), np.float32)

    return replace(each_matrix(sample, add), embedding=sample.embedding)


def matrices(sample: Sample) -> list[np.ndarray]:
    units = [one for part in sample.units.values() for one in (part.gate, part.up, part.down)]
    heads = [one for part in sample.attention.values() for one in (part.q, part.k, part.v, part.o)]
    return [one for one in (*units, *heads) if one is not None]


def test_an_identity_is_taken_out_and_the_rest_stays() -> None:
    sample = made(2, **SIZES)
    left = without_common_starts(started(sample, identity))
    for one, own in zip(matrices(left), matrices(sample), strict=True):
        same = np.isclose(one, own)
        assert 0.7 < same.mean() < 1.0
        assert np.abs(one).max() < 5  # five deviations are the identity's


def test_models_of_chance_are_left_as_they_are() -> None:
    samples = [made(seed, **SIZES) for seed in range(60)]
    assert sum(without_common_starts(sample) is not sample for sample in samples) <= 2


def test_rows_that_share_a_direction_have_no_diagonal() -> None:
    """Columns are large then, and some of them lie on a diagonal, in all layers alike."""
    for seed in range(10):
        shared = 3 * np.random.default_rng(seed).standard_normal(64) ** 3

        def direction(rows: int, columns: int, shared: np.ndarray = shared) -> np.ndarray:
            return np.broadcast_to(shared, (rows, columns))

        sample = started(made(seed, **SIZES), direction)
        assert without_common_starts(sample) is sample


def test_few_rows_are_left_as_they_are() -> None:
    sample = started(made(2, **{**SIZES, "units": 6}), identity)
    left = without_common_starts(sample)
    for layer, part in sample.units.items():
        assert np.array_equal(left.units[layer].up, part.up)


@pytest.mark.parametrize(
    "layers", [(0, 1, 2, 0, 1, 2), (0, 0, 1, 1, 2, 2), (0, 0, 0, 1, 1, 1), (0, 1, 0, 1, 0, 1)]
)
def test_copied_layers_are_no_common_start(layers: tuple[int, ...]) -> None:
    sample = made(3, **SIZES)
    copied = replace(
        sample,
        units={at: sample.units[layer] for at, layer in enumerate(layers)},
        attention={at: sample.attention[layer] for at, layer in enumerate(layers)},
    )
    assert without_common_starts(copied) is copied


@pytest.mark.parametrize(
    ("start", "pairs", "sizes"),
    [
        pytest.param(identity, 60, {"width": 64, "depth": 2, "units": 64}, marks=pytest.mark.slow),
        (identities, 12, {"width": 64, "depth": 12, "units": 16}),
        pytest.param(
            identities, 24, {"width": 64, "depth": 12, "units": 16}, marks=pytest.mark.slow
        ),
    ],
)
def test_p_values_of_strangers_that_began_as_the_identity_are_valid(
    start: Start, pairs: int, sizes: dict[str, int]
) -> None:
    """In every test that saw it: uniform or above. What permutes whole layers has no labels left,
    since rows with the same columns gone are more alike."""
    found: dict[str, list[float]] = {}
    for seed in range(pairs):
        models = [keyed(started(made(1000 + 2 * seed + one, **sizes), start)) for one in range(2)]
        for one in run_battery(*models):
            if one.status is Status.OK:
                found.setdefault(one.test, []).append(one.log10_p)
    assert {"U1.blocks", "Cm.blocks", "E4.blocks", "S1", "S2.numbered"} <= found.keys()
    assert not {"U1.fixed", "U1.aligned"} & found.keys()
    for log10_ps in found.values():
        worlds.assert_valid(log10_ps, (0.1, 0.01, 1e-4))


def test_a_descendant_of_such_a_model_is_seen_in_its_units() -> None:
    parent = started(made(5, **SIZES), identity)
    evidence = run_battery(parent, noisy(parent, 0.5, 6))
    found = {one.test: one.log10_p for one in evidence if one.status is Status.OK}
    assert all(found[test] < -10 for test in ("U1.blocks", "E4.blocks", "Cm.blocks", "S2.numbered"))
