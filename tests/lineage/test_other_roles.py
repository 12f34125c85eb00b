"""Matrices that changed roles are known again; vectors and narrow tensors are not asked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kinprint.lineage.parts.other_roles import in_other_roles
from kinprint.reader.fetch import Fetcher
from kinprint.records import Component
from tests.lineage.stored_models import LAYERS, Array, final, llama, sampled, stored

Tensors = dict[str, Array]


def moved(a: Tensors, b: Tensors, folder: Path) -> set[Component]:
    """What components of the first model are found under other roles in the second."""
    paths = [stored(folder / str(at), tensors) for at, tensors in enumerate((a, b))]
    with Fetcher() as fetcher:
        first, second = final(sampled(paths, fetcher))
    return {part.component for part in in_other_roles(first, second, first.parts, second.parts)}


def with_vectors(seed: int, size: int, rows: int = 1) -> Tensors:
    """A model with positive vectors of two names in every layer, as state-space blocks have."""
    chance = np.random.default_rng(seed)
    tensors = llama(seed)
    for layer in range(LAYERS):
        for name in ("A_log", "D"):
            values = 1 + 0.2 * chance.normal(size=(rows, size)).astype(np.float32)
            tensors[f"model.layers.{layer}.mamba.{name}"] = values if rows > 1 else values[0]
    return tensors


def test_keys_in_the_place_of_values_are_found(tmp_path: Path) -> None:
    tensors = llama(1)
    other = dict(tensors)
    for layer in range(LAYERS):
        root = f"model.layers.{layer}.self_attn"
        for role, source in (("k", "v"), ("v", "k")):
            other[f"{root}.{role}_proj.weight"] = tensors[f"{root}.{source}_proj.weight"]
    assert moved(tensors, other, tmp_path) == {Component.ATTENTION}


@pytest.mark.parametrize(("size", "rows"), [(4, 1), (64, 1), (4, 16), (64, 16)])
def test_vectors_and_narrow_tensors_have_no_other_role(
    size: int, rows: int, tmp_path: Path
) -> None:
    assert moved(with_vectors(1, size, rows), with_vectors(2, size, rows), tmp_path) == set()
