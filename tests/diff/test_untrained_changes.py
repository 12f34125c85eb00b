"""What training and adapters did not do is not called so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import kinprint
from benchmarks.operations import with_adapter
from benchmarks.redteam import relabelling
from benchmarks.redteam.checkpoint import Array, Checkpoint
from benchmarks.redteam.layers import (
    ATTENTION,
    DOWN,
    EMBEDDING,
    FEED_FORWARD,
    IN,
    K,
    O,
    Q,
    V,
    at,
    names_of,
)
from kinprint import Operation
from tests.fewer_layers import LAYERS, fewer_layers

_LAYERS = range(LAYERS)
_NAMED = {
    Operation.FINETUNE,
    Operation.CONTINUED,
    Operation.TRAINED,
    Operation.ADAPTER,
    Operation.NOISE,
}


def _differing(a: Checkpoint, b: Checkpoint, folder: Path) -> kinprint.Diff:
    """What is said of two models."""
    for model, name in ((a, "a"), (b, "b")):
        (folder / name).mkdir(parents=True)
        model.save(model, folder / name)
    return kinprint.diff(folder / "a", folder / "b")


def _float(values: Array) -> Array:
    return np.asarray(values, np.float32)


def _half_an_embedding(a: Checkpoint, b: Checkpoint) -> dict[str, Array]:
    table = a.tensors[EMBEDDING].copy()
    table[::2] = b.tensors[EMBEDDING][::2]
    return {EMBEDDING: table}


def _unit_embedding(a: Checkpoint, b: Checkpoint) -> dict[str, Array]:
    table = _float(a.tensors[EMBEDDING])
    return {EMBEDDING: table / np.linalg.norm(table, axis=1, keepdims=True)}


def _a_third_of_the_units(a: Checkpoint, b: Checkpoint) -> dict[str, Array]:
    found = {}
    for name in names_of(a, FEED_FORWARD, _LAYERS):
        values = a.tensors[name].copy()
        rows = (slice(None), slice(120)) if DOWN in name else slice(120)
        values[rows] = b.tensors[name][rows]
        found[name] = values
    return found


def _half_of_the_heads(a: Checkpoint, b: Checkpoint) -> dict[str, Array]:
    found = {}
    for name in names_of(a, ATTENTION, _LAYERS):
        values = a.tensors[name].copy()
        half = values.shape[1 if O in name else 0] // 2
        rows = (slice(None), slice(half)) if O in name else slice(half)
        values[rows] = b.tensors[name][rows]
        found[name] = values
    return found


def _gains_moved(a: Checkpoint, b: Checkpoint) -> dict[str, Array]:
    draw, found = np.random.default_rng(1), {}
    for layer in _LAYERS:
        gains = a.tensors[at(layer, IN)]
        factors = _float(np.exp(draw.normal(0, 0.3, len(gains))))
        found[at(layer, IN)] = gains * factors
        found |= {at(layer, part): a.tensors[at(layer, part)] / factors for part in (Q, K, V)}
    return found


def _planes_turned(a: Checkpoint, b: Checkpoint) -> dict[str, Array]:
    """Queries and keys turned by one angle, which attention does not see."""
    size = a.geometry["hidden_size"] // a.geometry["num_attention_heads"]
    found = {}
    for name in names_of(a, (Q, K), _LAYERS):
        values = _float(a.tensors[name])
        heads = values.reshape(-1, 2, size // 2, values.shape[1])
        x, y = heads[:, 0], heads[:, 1]
        turned = (np.cos(0.3) * x - np.sin(0.3) * y, np.sin(0.3) * x + np.cos(0.3) * y)
        found[name] = _float(np.stack(turned, axis=1).reshape(values.shape))
    return found


def _direction_removed(a: Checkpoint, b: Checkpoint) -> dict[str, Array]:
    direction = np.random.default_rng(2).normal(size=a.geometry["hidden_size"])
    direction /= np.linalg.norm(direction)
    table = _float(a.tensors[EMBEDDING])
    found = {EMBEDDING: _float(table - np.outer(table @ direction, direction))}
    for name in names_of(a, (O, DOWN), _LAYERS):
        values = _float(a.tensors[name])
        found[name] = _float(values - np.outer(direction, direction @ values))
    return found


def _truncated(a: Checkpoint, b: Checkpoint) -> dict[str, Array]:
    found = {}
    for name in names_of(a, (*ATTENTION, *FEED_FORWARD), _LAYERS):
        u, sizes, v = np.linalg.svd(_float(a.tensors[name]), full_matrices=False)
        kept = len(sizes) - 8
        found[name] = _float((u[:, :kept] * sizes[:kept]) @ v[:kept])
    return found


@pytest.mark.parametrize(
    "edit",
    [
        _half_an_embedding, _unit_embedding, _a_third_of_the_units, _half_of_the_heads,
        _gains_moved, _planes_turned, _direction_removed, _truncated,
    ],
)  # fmt: skip
def test_what_was_edited_is_not_called_trained(
    edit: Callable[[Checkpoint, Checkpoint], dict[str, Array]], tmp_path: Path
) -> None:
    parent = fewer_layers("base-a")
    found = _differing(parent, parent.changed(edit(parent, fewer_layers("base-b"))), tmp_path)
    kinds = {one.kind for one in found.operations}
    assert Operation.CHANGED in kinds and not kinds & _NAMED, found.summary
    removed = any("right angles" in one.evidence for one in found.operations)
    assert removed == (edit in (_direction_removed, _truncated))


@pytest.mark.parametrize("rank", [8, pytest.param(64, marks=pytest.mark.slow)])
def test_an_adapter_looks_the_same_whichever_came_first(rank: int, tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    child = with_adapter(parent, np.random.default_rng(1), rank)
    there, back = (
        [one for one in found.operations if one.kind is not Operation.FROZEN]
        for found in (
            _differing(parent, child, tmp_path / "there"),
            _differing(child, parent, tmp_path / "back"),
        )
    )
    assert there == back
    assert [(one.kind, one.rank) for one in there] == [(Operation.ADAPTER, rank)]


def test_directions_that_were_taken_out_beside_an_adapter(tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    removed = _direction_removed(parent, fewer_layers("base-b"))
    child = with_adapter(parent, np.random.default_rng(1), 8).changed(removed)
    taken_out, adapter = _differing(parent, child, tmp_path).operations
    assert f"in {len(removed)} of " in taken_out.evidence
    assert "right angles" in taken_out.evidence
    assert (adapter.kind, adapter.rank) == (Operation.ADAPTER, 8)


def test_gains_that_were_folded_are_not_called_trained(tmp_path: Path) -> None:
    parent = fewer_layers("base-a")
    found = _differing(parent, relabelling.fold_gains(parent), tmp_path)
    assert not {one.kind for one in found.operations} & _NAMED, found.summary


@pytest.mark.parametrize(
    ("parts", "layers"),
    [(ATTENTION, _LAYERS), (FEED_FORWARD, _LAYERS), ((*ATTENTION, *FEED_FORWARD), (1,))],
)
def test_training_of_some_parts_is_told(
    parts: tuple[str, ...], layers: range, tmp_path: Path
) -> None:
    parent, trained = fewer_layers("base-a"), fewer_layers("a-cpt")
    new = {name: trained.tensors[name] for name in names_of(parent, parts, layers)}
    found = _differing(parent, parent.changed(new), tmp_path)
    assert found.operations[-1].kind is Operation.CONTINUED
    assert f" {len(new)} changed" in found.operations[-1].evidence
