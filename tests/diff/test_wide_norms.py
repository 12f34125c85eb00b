"""Norms over all heads at once move with the heads that they scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import kinprint
from kinprint.records import Operation
from tests.lineage.stored_models import GROUPS, HEADS, LAYERS, LLAMA, SIZE, WIDTH, llama, stored

Array = NDArray[Any]
# Configurations of this family state no width of a head.
OLMO = {name: one for name, one in LLAMA.items() if name != "head_dim"} | {
    "model_type": "olmo2",
    "architectures": ["Olmo2ForCausalLM"],
}


def olmo() -> dict[str, Array]:
    """A small OLMo 2: norms behind attention and feed-forward, and of all queries and all keys."""
    chance = np.random.default_rng(6)
    raw = {
        name.replace("input_layernorm", "post_feedforward_layernorm"): one
        for name, one in llama().items()
    }
    for layer in range(LAYERS):
        root = f"model.layers.{layer}.self_attn"
        for word, heads in (("q", HEADS), ("k", GROUPS)):
            gains = chance.normal(1, 0.2, heads * SIZE).astype(np.float32)
            raw[f"{root}.{word}_norm.weight"] = gains
    return raw


def with_heads_renumbered(raw: dict[str, Array]) -> dict[str, Array]:
    """Key-value heads change places with their queries, and so do the queries of each."""
    groups = np.arange(GROUPS)[::-1]
    each = HEADS // GROUPS
    queries = np.concatenate([group * each + np.arange(each)[::-1] for group in groups])

    def moved(name: str, values: Array) -> Array:
        word = name.rpartition("self_attn.")[2]
        heads = groups if word.startswith(("k_", "v_")) else queries
        rows = (heads[:, None] * SIZE + np.arange(SIZE)).reshape(-1)
        return np.ascontiguousarray(values[:, rows] if word.startswith("o_") else values[rows])

    return {name: moved(name, one) if ".self_attn." in name else one for name, one in raw.items()}


@pytest.mark.parametrize("beside", ["", "q_norm.bias", "attn_sub_norm.weight"])
def test_norms_over_all_heads_are_the_same_after_heads_were_renumbered(
    beside: str, tmp_path: Path
) -> None:
    raw = olmo()
    assert raw["model.layers.0.self_attn.q_norm.weight"].shape == (WIDTH,)
    if beside:
        chance = np.random.default_rng(9)
        names = (f"model.layers.{layer}.self_attn.{beside}" for layer in range(LAYERS))
        raw |= {name: chance.normal(size=WIDTH).astype(np.float32) for name in names}
    a = stored(tmp_path / "a", raw, OLMO)
    b = stored(tmp_path / "b", with_heads_renumbered(raw), OLMO)
    found = kinprint.diff(a, b)
    assert [one.kind for one in found.operations] == [Operation.PERMUTED]
    assert found.totals.equal == found.totals.tensors
    assert {one.what for one in found.map.axes} == {"queries", "groups"}
