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
from kinprint.diff.operations import find_operations
from kinprint.diff.pairing import Correspondence, Turn
from kinprint.diff.structure import Linked, Sizes, resized
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
        counts = [int(word) for word in words if word.isdecimal() and word not in ("1", "15", "4")]
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
    ("part", "count"), [("self_attn", 8), pytest.param(".mlp.", 6, marks=pytest.mark.slow)]
)
def test_what_was_done_to_a_component_is_said_of_it_alone(
    part: str, count: int, edit: Edit, kind: Operation, tmp_path: Path
) -> None:
    first, second, *_ = _said({part: edit}, tmp_path)
    assert first == (kind, count)
    assert second[0] in _TRAINED and second[1] == 15 - count


@pytest.mark.parametrize(
    ("edit", "kind"), [(_noisy, Operation.NOISE), (_adapted, Operation.ADAPTER)]
)
@pytest.mark.parametrize("layers", [(1,), pytest.param((0,), marks=pytest.mark.slow)])
def test_what_was_done_to_layers_is_said_of_these(
    layers: tuple[int, ...], edit: Edit, kind: Operation, tmp_path: Path
) -> None:
    first, second, *_ = _said({f".layers.{at}.": edit for at in layers}, tmp_path)
    assert first == (kind, 7 * len(layers))
    assert second[0] in _TRAINED and second[1] == 15 - 7 * len(layers)


def test_units_that_were_copied_into_a_stranger_are_no_average(tmp_path: Path) -> None:
    parent, stranger = (surgery.with_layers(fewer_layers(x), (0, 1)) for x in ("base-a", "base-b"))
    draw = np.random.default_rng(2)
    new = {}
    for name, values in stranger.tensors.items():
        if ".mlp." in name:
            units = draw.random(352) < 0.4
            own = parent.tensors[name] + draw.normal(0, 0.02, values.shape) * values.std()
            picked = units if name.endswith("down_proj.weight") else units[:, None]
            new[name] = np.where(picked, own, values).astype(np.float32)
    pair = parent.write(tmp_path / "a"), stranger.changed(new).write(tmp_path / "b")
    found = kinprint.diff(*pair).operations
    assert found and not any("share" in one.evidence for one in found)
    assert not _TRAINED & {one.kind for one in found}


@pytest.mark.parametrize(
    ("alike", "said"), [(1.0, "100 % of 1,056 units"), (0.0, "are alike (mean")]
)
def test_units_that_changed_beside_a_turn_are_not_none_of_them(alike: float, said: str) -> None:
    sizes = Sizes(6, *[None] * 8), Sizes(6, *[None] * 8)
    turned = Correspondence(turned=Turn(1056, alike, 0.7))
    (found,) = find_operations((), turned, sizes)
    assert said in found.evidence.say("en")
    assert ("changed besides" in found.evidence.say("en")) == (not alike)


def test_a_stack_that_only_one_model_has_is_said() -> None:
    none, some = (Sizes(count, *[None] * 8) for count in (0, 6))
    (gained,) = resized(Correspondence(), (none, some), Linked(()))
    (lost,) = resized(Correspondence(), (some, none), Linked(()))
    told = "the second model has a stack of 6 layers that the first has not"
    assert (gained.kind, gained.evidence.say("en")) == (Operation.EXPANDED_DEPTH, told)
    assert (
        lost.evidence.say("en") == "the first model has a stack of 6 layers that the second has not"
    )
