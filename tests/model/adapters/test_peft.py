"""Rows merged here against the weights that PEFT and MLX themselves merged."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.model.adapters import needed
from kinprint.model.layout import IN_OUT, layout_of
from tests.model.adapters.fixtures import CASES, Case, case, logical

# Weights that the base stores inputs first, as `layout_of` says for these families.
TURNED = {
    "gpt_oss": ("experts.gate_up_proj", "experts.down_proj"),
    "gpt_oss_square": ("experts.down_proj",),
    "old_gpt_oss": ("experts.down_proj",),
    "llama4": ("experts.gate_up_proj", "experts.down_proj"),
    "gpt2": ("c_attn.weight", "c_proj.weight", "c_fc.weight"),
}
TURNED |= dict.fromkeys(("gpt2_dora", "gpt2_saved", "ia3_gpt2"), TURNED["gpt2"])


def turned(name: str, found: Case) -> set[str]:
    return {key for key in found.shapes if key.endswith(TURNED.get(name, ("\0",)))}


@pytest.mark.parametrize("name", CASES)
def test_sampled_rows_are_those_the_library_merged(name: str) -> None:
    found = case(name)
    inputs_first = turned(name, found)
    matched = found.adapter.matched(found.shapes, inputs_first)
    assert not matched.warnings
    assert set(found.merged) <= set(matched.updates)
    rng = np.random.default_rng(3)
    for key, merged in found.merged.items():
        update = matched.updates[key]
        base, expected = (
            logical(array, update, key in inputs_first) for array in (found.base[key], merged)
        )
        picked = rng.permutation(update.rows)[: max(3, update.rows // 3)]
        samples = (tuple(int(i) for i in picked), range(update.rows), range(1, 2), ())
        for rows in samples:
            index = np.asarray(rows, np.int64)
            got = found.adapter.merged(update, rows, base[index])
            assert got.dtype == np.float32
            if len(update.shape) == 1:
                got = got[:, None]
            np.testing.assert_allclose(got, expected[index], rtol=2e-5, atol=2e-6)
        assert not np.allclose(base, expected, atol=1e-3)  # the adapter does something


@pytest.mark.parametrize("name", CASES)
def test_what_the_library_left_alone_is_left_alone(name: str) -> None:
    """An update beyond the changed weights may only repeat the base's own numbers."""
    found = case(name)
    updates = found.adapter.matched(found.shapes, turned(name, found)).updates
    assert all(not updates[key].needs_base for key in set(updates) - set(found.merged))


@pytest.mark.parametrize("name", ["gpt2", "gpt2_dora"])
def test_orientation_follows_from_the_factors_alone(name: str) -> None:
    found = case(name)
    told = found.adapter.matched(found.shapes, turned(name, found)).updates
    assert found.adapter.matched(found.shapes).updates == told
    assert found.adapter.matched(found.shapes, ()).updates == told


def test_layouts_agree_on_what_is_turned() -> None:
    found = case("gpt2")
    updates = found.adapter.matched(found.shapes).updates
    config = {"model_type": "gpt2", "n_embd": 8, "n_head": 2}
    for key, update in updates.items():
        role = "qkv" if "c_attn" in key else "o"
        layout = layout_of(role, found.shapes[key], config, name=key)
        stored = (update.width, update.rows) if layout.orient == IN_OUT else update.shape
        assert found.shapes[key] == stored
        assert layout.outputs == update.rows


def test_a_few_rows_cost_a_few_rows() -> None:
    found = case("llama")
    updates = found.adapter.matched(found.shapes).updates
    update = updates["model.layers.0.self_attn.q_proj.weight"]
    wanted = needed(update, (1, 6))
    cells = {part.tensor.name.split(".")[-2]: 0 for part in wanted}
    for array, part in zip(found.adapter.read(wanted), wanted, strict=True):
        cells[part.tensor.name.split(".")[-2]] += array.size
    assert cells == {"lora_B": 2 * 4, "lora_A": 4 * 8}


def test_an_expert_reads_its_own_factor_alone() -> None:
    found = case("gpt_oss")
    updates = found.adapter.matched(found.shapes, turned("gpt_oss", found)).updates
    update = updates["model.layers.0.mlp.experts.down_proj"]
    assert update.shape == (3, 8, 12)
    down = [part for part in needed(update, (8, 9)) if "lora_A" in part.tensor.name]
    assert [part.rows for part in down] == [range(2, 4)]


def test_tokens_of_an_embedding_are_read_by_columns() -> None:
    found = case("embedding")
    update = found.adapter.matched(found.shapes).updates["model.embed_tokens.weight"]
    assert update.kind == "embedding"
    parts = [part for part in needed(update, (5,)) if "lora_embedding_A" in part.tensor.name]
    assert [part.columns for part in parts] == [range(5, 6)]


def test_replaced_weights_need_no_base() -> None:
    found = case("saved")
    updates = found.adapter.matched(found.shapes).updates
    update = updates["lm_head.weight"]
    assert update.kind == "replaced"
    assert not update.needs_base
    got = found.adapter.merged(update, range(4), None)
    np.testing.assert_array_equal(got, found.merged["lm_head.weight"][:4])
    other = updates["model.layers.0.self_attn.q_proj.weight"]
    with pytest.raises(ValueError, match="without rows of the base"):
        found.adapter.merged(other, range(2), None)


def test_experts_stored_apart_share_the_stacked_factors() -> None:
    found = case("qwen3_moe")
    updates = found.adapter.matched(found.shapes).updates
    up = updates["model.layers.0.mlp.experts.2.up_proj.weight"]
    assert (up.shape, up.expert, up.first) == ((6, 8), 2, 6)
    gate = updates["model.layers.0.mlp.experts.2.gate_proj.weight"]
    assert replace(up, name=gate.name, first=0) == gate
