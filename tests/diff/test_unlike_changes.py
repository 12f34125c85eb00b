"""Where unlike things were done to matrices of one model, each is told of those that show it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import kinprint
from benchmarks.operations import with_adapter, with_noise
from benchmarks.redteam import surgery
from benchmarks.redteam.checkpoint import Array, Checkpoint
from kinprint import Operation
from tests.fewer_layers import fewer_layers

Edit = Callable[[Checkpoint], Checkpoint]
_TRAINED = {Operation.FINETUNE, Operation.CONTINUED, Operation.TRAINED}


def _noisy(model: Checkpoint) -> Checkpoint:
    return with_noise(model, np.random.default_rng(3), 0.1)


def _adapted(model: Checkpoint) -> Checkpoint:
    return with_adapter(model, np.random.default_rng(3), 4)


def _doubled(model: Checkpoint) -> Checkpoint:
    return model.changed({name: 2 * values for name, values in model.tensors.items()})


def _averaged(model: Checkpoint) -> Checkpoint:
    return surgery.mixed([(model, 0.5), (fewer_layers("base-b"), 0.5)])


def _pruned(model: Checkpoint) -> Checkpoint:
    return surgery.masked(model, None)


def _said(parts: dict[str, Edit], folder: Path) -> list[tuple[Operation, int]]:
    """What is said where parts of a model were edited and all others tuned, with how many
    matrices; what is said of vectors beside an adapter comes last."""
    parent, trained = fewer_layers("base-a"), fewer_layers("a-cpt")
    new: dict[str, Array] = {
        name: (values + 0.2 * (trained.tensors[name] - values)).astype(np.float32)
        for name, values in parent.tensors.items()
    }
    for part, edit in parts.items():
        new |= {name: one for name, one in edit(parent).tensors.items() if part in name}
    pair = parent.write(folder / "a"), parent.changed(new).write(folder / "b")
    found = []
    for one in kinprint.diff(*pair).operations:
        words = one.evidence.split()
        counts = [int(word) for word in words if word.isdecimal() and word not in ("1", "22", "4")]
        found.append((one.kind, counts[0]))
    return found


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        (_noisy, Operation.NOISE),
        (_adapted, Operation.ADAPTER),
        (_doubled, Operation.SCALED),
        (_averaged, Operation.CHANGED),
        (_pruned, Operation.PRUNED_NUMBERS),
    ],
)
@pytest.mark.parametrize(
    ("part", "count"), [("self_attn", 12), pytest.param(".mlp.", 9, marks=pytest.mark.slow)]
)
def test_what_was_done_to_a_component_is_said_of_it_alone(
    part: str, count: int, edit: Edit, kind: Operation, tmp_path: Path
) -> None:
    first, second, *_ = _said({part: edit}, tmp_path)
    assert first == (kind, count)
    assert second[0] in _TRAINED and second[1] == 22 - count


@pytest.mark.parametrize(
    ("edit", "kind"), [(_noisy, Operation.NOISE), (_adapted, Operation.ADAPTER)]
)
@pytest.mark.parametrize("layers", [pytest.param((1,), marks=pytest.mark.slow), (0, 1)])
def test_what_was_done_to_layers_is_said_of_these(
    layers: tuple[int, ...], edit: Edit, kind: Operation, tmp_path: Path
) -> None:
    first, second, *_ = _said({f".layers.{at}.": edit for at in layers}, tmp_path)
    assert first == (kind, 7 * len(layers))
    assert second[0] in _TRAINED and second[1] == 22 - 7 * len(layers)
