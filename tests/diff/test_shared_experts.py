"""Units of the expert that all tokens share are matched and judged as those of any feed-forward."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kinprint
from kinprint.records import Operation, Role, feed_forward_of, plain_role
from tests.lineage.stored_models import LAYERS, LLAMA, UNITS, WIDTH, llama, stored

Array = NDArray[Any]
Tensors = dict[str, Array]
EXPERTS, SHARED = 3, 80
# What a family calls its class, and the expert that all tokens share.
FAMILIES = {
    "deepseek": ("DeepseekForCausalLM", "shared_experts"),
    "qwen2_moe": ("Qwen2MoeForCausalLM", "shared_expert"),
    "glm4_moe": ("Glm4MoeForCausalLM", "shared_experts"),
}


def feed_forward(root: str, units: int, chance: np.random.Generator) -> Tensors:
    shapes = {"gate_proj": (units, WIDTH), "up_proj": (units, WIDTH), "down_proj": (WIDTH, units)}
    return {
        f"{root}.{name}.weight": chance.normal(size=shape).astype(np.float32)
        for name, shape in shapes.items()
    }


def mixture(family: str, *, dense: bool = False) -> tuple[Tensors, dict[str, Any]]:
    """A mixture with a shared expert in every layer, `dense` beside a plain feed-forward."""
    architecture, shared = FAMILIES[family]
    chance = np.random.default_rng(4)
    raw = {name: one for name, one in llama().items() if ".mlp." not in name}
    for layer in range(LAYERS):
        root = f"model.layers.{layer}.mlp"
        raw[f"{root}.gate.weight"] = chance.normal(size=(EXPERTS, WIDTH)).astype(np.float32)
        for expert in range(EXPERTS):
            raw |= feed_forward(f"{root}.experts.{expert}", UNITS, chance)
        raw |= feed_forward(f"{root}.{shared}", SHARED, chance)
        if dense:
            raw |= feed_forward(root, SHARED, chance)
    config = LLAMA | {
        "model_type": family, "architectures": [architecture], "num_experts_per_tok": 2,
        "num_experts": EXPERTS, "n_routed_experts": EXPERTS, "moe_intermediate_size": UNITS,
        "shared_expert_intermediate_size": SHARED, "n_shared_experts": 1,
    }  # fmt: skip
    return raw, config


def roots(raw: Tensors, ending: str) -> list[str]:
    tail = ".up_proj.weight"
    return [name.removesuffix(tail) for name in raw if name.endswith(ending + tail)]


def permuted(raw: Tensors, root: str, chance: np.random.Generator) -> Tensors:
    """Units in another order, half of them with other signs where they read and send."""
    gate, up, down = (raw[f"{root}.{name}_proj.weight"] for name in ("gate", "up", "down"))
    order = chance.permutation(len(up))
    signs = np.where(np.arange(len(up)) % 2, -1, 1).astype(np.float32)
    up, down = up[order] * signs[:, None], np.ascontiguousarray(down[:, order] * signs)
    changed: Tensors = {"gate": gate[order], "up": up, "down": down}
    return raw | {f"{root}.{name}_proj.weight": one for name, one in changed.items()}


def rescaled(raw: Tensors, root: str, chance: np.random.Generator) -> Tensors:
    up, down = (raw[f"{root}.{name}_proj.weight"] for name in ("up", "down"))
    factors = np.exp2(chance.integers(-2, 3, len(up))).astype(np.float32)
    changed: Tensors = {"up": up * factors[:, None], "down": down / factors}
    return raw | {f"{root}.{name}_proj.weight": one for name, one in changed.items()}


def edited(
    raw: Tensors, edit: Callable[[Tensors, str, np.random.Generator], Tensors], *endings: str
) -> Tensors:
    chance = np.random.default_rng(7)
    for root in [root for ending in endings for root in roots(raw, ending)]:
        raw = edit(raw, root, chance)
    return raw


@pytest.mark.parametrize("family", FAMILIES)
def test_units_of_a_shared_expert_that_were_renumbered_are_found(
    family: str, tmp_path: Path
) -> None:
    raw, config = mixture(family)
    a = stored(tmp_path / "a", raw, config)
    b = stored(tmp_path / "b", edited(raw, permuted, FAMILIES[family][1]), config)
    found = kinprint.diff(a, b)
    assert [one.kind for one in found.operations] == [Operation.PERMUTED]
    assert found.totals.equal == found.totals.tensors
    axes = {(one.what, one.layer, one.expert): one for one in found.map.axes}
    assert set(axes) == {("units", layer, None) for layer in range(LAYERS)}
    assert all(one.kept == SHARED and one.flipped == SHARED // 2 for one in axes.values())


def test_units_of_a_shared_expert_that_were_rescaled_are_not_trained(tmp_path: Path) -> None:
    raw, config = mixture("qwen2_moe")
    a = stored(tmp_path / "a", raw, config)
    b = stored(tmp_path / "b", edited(raw, rescaled, "shared_expert"), config)
    found = kinprint.diff(a, b)
    kinds = [one.kind for one in found.operations if one.kind is not Operation.FROZEN]
    assert kinds == [Operation.RESCALED]
    assert found.operations[-1].evidence.startswith(f"in {LAYERS} feed-forwards")


@pytest.mark.parametrize(
    "endings",
    [
        pytest.param(("mlp",), marks=pytest.mark.slow),
        ("shared_expert",),
        ("mlp", "shared_expert"),
    ],
)
def test_a_plain_and_a_shared_feed_forward_of_one_layer_have_units_of_their_own(
    endings: tuple[str, ...], tmp_path: Path
) -> None:
    raw, config = mixture("qwen2_moe", dense=True)
    a = stored(tmp_path / "a", raw, config)
    moved = kinprint.diff(a, stored(tmp_path / "b", edited(raw, permuted, *endings), config))
    assert [one.kind for one in moved.operations] == [Operation.PERMUTED]
    assert moved.totals.equal == moved.totals.tensors
    assert len(moved.map.axes) == LAYERS * len(endings)
    scaled = kinprint.diff(a, stored(tmp_path / "c", edited(raw, rescaled, *endings), config))
    kinds = [one.kind for one in scaled.operations if one.kind is not Operation.FROZEN]
    assert kinds == [Operation.RESCALED]
    count = LAYERS * len(endings)
    assert scaled.operations[-1].evidence.startswith(f"in {count} feed-forwards")


def test_a_sample_tells_what_changed_in_a_shared_expert(tmp_path: Path) -> None:
    raw, config = mixture("glm4_moe")
    a = stored(tmp_path / "a", raw, config)
    chance = np.random.default_rng(8)
    new = {
        name: one + chance.normal(0, 0.05, one.shape).astype(np.float32) if "_proj" in name else one
        for name, one in raw.items()
    }
    found = kinprint.compare(a, stored(tmp_path / "b", new, config))
    assert found.changes is not None
    roles = {one.role for one in found.changes.tensors}
    assert {Role.SHARED_GATE, Role.SHARED_UP} <= roles


@pytest.mark.parametrize(
    ("role", "prefix", "plain"),
    [
        ("up", "", "up"),
        ("expert_up.bias", "expert_", "up.bias"),
        ("shared_down", "shared_", "down"),
        ("expert_gate_up", "expert_", "gate_up"),
        ("shared_expert_gate", "", "shared_expert_gate"),  # what it is gated by, no feed-forward
        ("norm_in", "", "norm_in"),
    ],
)
def test_roles_of_experts_have_a_plain_form(role: str, prefix: str, plain: str) -> None:
    assert feed_forward_of(role) == prefix and plain_role(role) == plain
