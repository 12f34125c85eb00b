"""Leading directions: kept by descendants, not by twins of one initialisation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from kinprint.lineage.battery import run_battery
from kinprint.lineage.reading.sample import Sample, Units
from kinprint.model.symmetries import Facts
from kinprint.records import Evidence

WIDTH, UNITS, LAYERS, RANK = 64, 160, 3, 6
FACTS = Facts(
    norm="rms", gated=True, odd_up=True, rope="half", rotary=16, head_dim=16, qk_norm="none",
    head_bias=False, fixed_positions=False, plain_values=True, free_experts=True, one_width=True,
)  # fmt: skip
Weights = dict[int, NDArray[np.float64]]  # layer → gate, up, down as units × width


def noise(seed: int, size: float) -> Weights:
    chance = np.random.default_rng(seed)
    return {layer: size * chance.standard_normal((3, UNITS, WIDTH)) for layer in range(LAYERS)}


def learnt(seed: int) -> Weights:
    """What training adds: a few strong directions in every matrix."""
    chance = np.random.default_rng(seed)
    left = chance.standard_normal((LAYERS, 3, UNITS, RANK))
    right = chance.standard_normal((LAYERS, 3, RANK, WIDTH))
    return {layer: left[layer] @ right[layer] for layer in range(LAYERS)}


def total(*parts: Weights) -> Weights:
    return {layer: np.sum([part[layer] for part in parts], axis=0) for layer in range(LAYERS)}


def sample(name: str, weights: Weights) -> Sample:
    gains = {("norm_in", layer): np.ones(WIDTH, np.float32) for layer in range(LAYERS)}
    units = {
        layer: Units(
            np.arange(UNITS), UNITS, up.astype(np.float32), down.astype(np.float32),
            gate.astype(np.float32),
        )
        for layer, (gate, up, down) in weights.items()
    }  # fmt: skip
    return Sample(name, name, WIDTH, LAYERS, FACTS, norms=gains, units=units)


def look(one: Sample, other: Sample) -> Evidence:
    (found,) = (each for each in run_battery(one, other) if each.test == "L.leading")
    return found


START, PARENT = noise(1, 3.0), learnt(2)
BASE = sample("base", total(START, PARENT))


@pytest.mark.parametrize("size", [0.3, 1.0, 2.0])
def test_descendants_keep_them_through_further_training(size: float) -> None:
    child = sample("child", total(START, PARENT, noise(3, size)))
    found = look(BASE, child)
    assert found.status == "ok" and found.effect is not None and found.effect > 0.9
    assert look(child, BASE) == found


def test_twins_share_the_noise_and_not_what_was_learnt() -> None:
    twin = sample("twin", total(START, learnt(4)))
    found = look(BASE, twin)
    assert found.effect is not None and found.effect < 0.6
    told = dict(found.details)
    assert told["leading"] < told["bulk"]


def test_renamed_and_rescaled_units_are_found_again() -> None:
    order = np.random.default_rng(5).permutation(UNITS)
    moved = {
        layer: np.stack([gate[order], up[order] * 3.0, down[order] / 3.0])
        for layer, (gate, up, down) in total(START, PARENT, noise(6, 0.5)).items()
    }
    found = look(BASE, sample("moved", moved))
    assert found.status == "ok" and found.effect is not None and found.effect > 0.9


def test_a_model_that_only_grew_larger_keeps_nothing() -> None:
    """Strength is a regression, which large weights inflate; growth is no likeness."""
    twin = {layer: 30.0 * part for layer, part in total(START, learnt(4)).items()}
    found = look(BASE, sample("grown", twin))
    told = dict(found.details)
    assert told["leading"] ** 2 / told["bulk"] > 0.85  # as strong as in a descendant
    assert found.effect is not None and found.effect < 0.6


def test_where_nothing_stands_out_nothing_is_said() -> None:
    child = sample("child", total(START, noise(3, 1.0)))
    found = look(sample("noise", START), child)
    assert (found.status, found.effect) == ("undefined", None)


def test_strangers_are_not_asked() -> None:
    found = look(BASE, sample("stranger", total(noise(7, 3.0), learnt(8))))
    assert found.status == "needs" and found.effect is None


def test_samples_of_units_say_nothing() -> None:
    child = sample("child", total(START, PARENT, noise(3, 0.3)))
    some = {
        layer: Units(one.index, 2 * UNITS, one.up, one.down, one.gate)
        for layer, one in child.units.items()
    }
    assert look(BASE, replace(child, units=some)).status == "needs"
