"""Layouts by rule: doubts are said, contradictions leave a tensor whole, vectors get their 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kinprint.errors import SliceOutside
from kinprint.model.layout import IN_OUT, OUT_IN, StoredPart, cut, layout_of, pattern_of
from kinprint.model.layout.sizes import Sizes, tower_of
from kinprint.records import TensorSpec

LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
}  # fmt: skip


def spec(*shape: int) -> TensorSpec:
    return TensorSpec("t", "F32", shape, "f", 0, 4 * int(np.prod(shape)))


def config(family: str, **more: Any) -> dict[str, Any]:
    return LLAMA | {"model_type": family} | more


def test_a_plain_tensor_is_one_part() -> None:
    layout = layout_of("gate", (160, 64), LLAMA)
    assert (pattern_of(layout), layout.orient, layout.fused) == ("", OUT_IN, False)
    assert cut(spec(160, 64), layout, "gate", rows=[3, 4]).slices[0].rows == range(3, 5)


@pytest.mark.parametrize(
    ("family", "more", "shape", "pattern"),
    [
        ("chatglm", {}, (128, 64), "q:64, k:32, v:32"),
        ("chatglm", {"position_encoding_2d": True}, (192, 64), "4 x (q:16, k:16, v:16)"),
        ("mpt", {"attn_config": {"attn_type": "multiquery_attention"}}, (96, 64),
         "q:64, k:16, v:16"),
        ("gpt_bigcode", {}, (96, 64), "q:64, k:16, v:16"),
        ("RefinedWeb", {"n_head_kv": 2}, (128, 64), "2 x (q:32, k:16, v:16)"),
        ("phi3small", {}, (128, 64), "2 x (q:32, k:16, v:16)"),
        ("minimax", {}, (192, 64), "4 x (q:16, k:16, v:16)"),
        ("minimax_m1", {}, (192, 64), "4 x (q:16, k:16, v:16)"),
        ("moonvit", {}, (192, 64), "q:64, k:64, v:64"),
        ("codegen", {"num_attention_heads": 16}, (192, 64), "4 x (q:16, v:16, k:16)"),
        ("deberta", {}, (192, 64), "4 x (q:16, k:16, v:16)"),
    ],
)  # fmt: skip
def test_orders_of_families(
    family: str, more: dict[str, Any], shape: tuple[int, int], pattern: str
) -> None:
    layout = layout_of("qkv", shape, config(family, **more))
    assert pattern_of(layout) == pattern
    assert layout.known
    assert not layout.warnings


def test_sizes_that_differ_by_layer() -> None:
    lists = {"num_query_heads": [4, 8], "num_kv_heads": [1, 2], "head_dim": 8}
    openelm = {"model_type": "openelm", "model_dim": 64, **lists}
    layout = layout_of("qkv", (96, 64), openelm, layer=1)
    assert pattern_of(layout) == "q:64, k:16, v:16"


def test_a_nested_text_model_decides() -> None:
    wrapped = {"model_type": "llava", "text_config": config("phi3")}
    assert pattern_of(layout_of("qkv", (128, 64), wrapped)) == "q:64, k:32, v:32"


def test_a_contradiction_is_reported_and_the_tensor_left_whole() -> None:
    layout = layout_of("qkv", (100, 64), config("phi3"))
    assert not layout.fused
    assert not layout.known
    (clause,) = layout.warnings
    assert str(clause) == "the configuration gives q:64, k:32, v:32, the tensor has 100 rows"
    with pytest.raises(SliceOutside, match="no part 'k'"):
        cut(spec(100, 64), layout, "k")


def test_a_silent_configuration_is_reported() -> None:
    layout = layout_of("qkv", (192, 64), {"model_type": "bloom"})
    assert "does not say" in str(layout.warnings[0])


def test_an_unknown_family_is_doubted() -> None:
    layout = layout_of("qkv", (128, 64), config("never_seen"))
    assert pattern_of(layout) == "q:64, k:32, v:32"
    assert not layout.known
    assert "not known" in str(layout.warnings[0])
    assert not layout_of("gate_up", (10, 4), config("never_seen"), name="m.w12.weight").known
    assert layout_of("gate_up", (10, 4), config("never_seen"), name="m.gate_up_proj.weight").known


def test_up_comes_first_where_the_name_says_so() -> None:
    layout = layout_of("gate_up", (320, 64), config("x"), name="encoder.mlp.up_gate_proj.weight")
    assert pattern_of(layout) == "up:160, gate:160"


def test_experts_are_turned_by_their_shape() -> None:
    both = config("qwen3_vl_moe", moe_intermediate_size=48)
    name = "model.language_model.layers.0.mlp.experts.gate_up_proj"
    published = layout_of("expert_gate_up", (4, 64, 96), both, name=name)
    saved = layout_of("expert_gate_up", (4, 96, 64), both, name=name)
    assert (published.orient, saved.orient) == (IN_OUT, OUT_IN)
    assert published.warnings == saved.warnings == ()
    turned = layout_of("expert_gate_up", (4, 96, 64), config("llama4"))
    assert turned.orient == OUT_IN
    assert "habit" in str(turned.warnings[0])
    square = layout_of("expert_down", (4, 64, 64), config("gpt_oss"))
    assert square.orient == IN_OUT


def test_an_expert_must_be_named() -> None:
    layout = layout_of("expert_down", (4, 64, 48), config("granitemoe"))
    tensor = spec(4, 64, 48)
    assert cut(tensor, layout, "expert_down", rows=[0], expert=3).slices[0].rows == range(192, 193)
    for expert in (None, 4):
        with pytest.raises(SliceOutside):
            cut(tensor, layout, "expert_down", expert=expert)


def test_offset_norms_get_their_one() -> None:
    layout = layout_of("norm_in", (4,), config("gemma2"))
    plan = cut(spec(4), layout, "norm_in")
    stored = np.array([0.0, 0.5, -1.0, 2.0], np.float32)
    np.testing.assert_array_equal(plan.assemble([stored]), [1.0, 1.5, 0.0, 3.0])
    assert layout_of("norm_in", (4,), config("gemma2"), format="gguf").norm_offset == 0
    assert layout_of("norm_in", (4,), config("gemma3n")).norm_offset == 0


def test_some_families_mix_both_habits_of_norms() -> None:
    offsets = {
        ("muse_glimmer", "model.language_model.norm.weight"): 0,
        ("muse_glimmer", "model.language_model.layers.0.input_layernorm.weight"): 1,
        ("muse_spark", "model.language_model.layers.0.post_attention_layernorm.weight"): 0,
        ("qwen3_5", "model.language_model.norm.weight"): 1,
        ("minicpmv4_7", "model.merger.mlp.0.pre_norm.weight"): 0,
        ("qwen3_next", "model.layers.0.linear_attn.norm.weight"): 0,
    }
    for (family, name), offset in offsets.items():
        found = layout_of("norm_in", (4,), config(family), name=name).norm_offset
        assert found == offset, (family, name)


def test_first_publishers_files_store_rows_in_pairs() -> None:
    layout = layout_of("q", (64, 64), LLAMA, name="layers.0.attention.wq.weight")
    assert any(part.paired for part in layout.parts)
    values = layout_of("v", (32, 64), LLAMA, name="layers.0.attention.wv.weight")
    assert not any(part.paired for part in values.parts)


def test_fused_tensors_in_gguf_are_concatenated() -> None:
    metadata = {
        "general.architecture": "falcon", "falcon.embedding_length": 64,
        "falcon.attention.head_count": 4, "falcon.attention.head_count_kv": 2,
    }  # fmt: skip
    layout = layout_of("qkv", (128, 64), {}, gguf=metadata)
    assert pattern_of(layout) == "q:64, k:32, v:32"


def test_rows_of_a_part_lie_in_runs() -> None:
    part = StoredPart("k", 16, 16, 48, 4)
    walked = [start + row for start in (16, 64, 112, 160) for row in range(16)]
    assert walked == [part.stored(row) for row in range(part.rows)]


def test_rows_outside_a_part_are_refused() -> None:
    layout = layout_of("qkv", (128, 64), config("phi3"))
    with pytest.raises(SliceOutside):
        cut(spec(128, 64), layout, "k", rows=[32])


def test_columns_far_apart_are_read_apart() -> None:
    layout = layout_of("qkv", (64, 192), config("gpt2"))
    pieces = cut(spec(64, 192), layout, "q", rows=[0, 1, 60]).slices
    assert [piece.columns for piece in pieces] == [range(2), range(60, 61)]


def test_a_shape_against_the_habit_is_believed_and_reported() -> None:
    layout = layout_of("up", (64, 160), config("never_seen"))
    assert layout.orient == IN_OUT
    (clause,) = layout.warnings
    assert str(clause) == "the shape says in_out where the family's habit is out_in"
    assert not layout_of("up", (64, 160), config("gpt2")).warnings
    assert layout_of("up", (160, 64), config("gpt2")).warnings


def test_a_shape_says_nothing_where_stages_differ_in_width() -> None:
    swin = {"model_type": "swin", "hidden_size": 768, "depths": [2, 2, 6, 2]}
    assert layout_of("up", (768, 192), swin).orient == OUT_IN


def test_heads_of_latent_attention_are_stacked_in_gguf() -> None:
    """The converter turns each head of k, and leaves those of v as they were."""
    metadata = {"general.architecture": "deepseek2"}
    keys = layout_of("other", (4, 8, 6), {}, detail="mla_k_b", gguf=metadata)
    values = layout_of("other", (4, 5, 8), {}, detail="mla_v_b", gguf=metadata)
    assert (keys.experts, keys.orient, keys.outputs) == (4, IN_OUT, 6)
    assert (values.experts, values.orient, values.outputs) == (4, OUT_IN, 5)
    stored = np.arange(4 * 8 * 6).reshape(4, 8, 6)
    plan = cut(spec(4, 8, 6), keys, "other", expert=2)
    (piece,) = plan.slices
    assert piece.rows == range(16, 24)
    np.testing.assert_array_equal(plan.assemble([stored[2]]), stored[2].T)


LATENT = config("deepseek_v3", kv_lora_rank=24, q_lora_rank=40, qk_rope_head_dim=8,
                qk_nope_head_dim=16, v_head_dim=12)  # fmt: skip


@pytest.mark.parametrize(
    ("detail", "name", "rows", "pattern"),
    [
        ("mla_qkv_a", "fused_qkv_a_proj_with_mqa", 72, "q_a:40, k/v:24, k:8"),
        ("mla_kv_a", "wkv_a", 32, "k/v:24, k:8"),
        ("mla_kv_a", "kv_a_proj", 24, ""),
        ("mla_kv_a", "k_rope_proj", 8, ""),
        ("mla_kv_b", "wkv_b", 112, "4 x (k:16, v:12)"),
    ],
)
def test_latent_attention_under_many_names(detail: str, name: str, rows: int, pattern: str) -> None:
    layout = layout_of("other", (rows, 64), LATENT, name=f"x.{name}.weight", detail=detail)
    assert pattern_of(layout) == pattern
    assert not layout.warnings


@pytest.mark.parametrize(
    ("family", "name", "role", "pattern"),
    [
        ("bert", "mlp.up_gated_layer.weight", "gate_up", "up:48, gate:48"),
        ("stablelm_alpha", "mlp.gate_proj.weight", "gate", "up:48, gate:48"),
        ("molmo2", "mlp.ff_proj.weight", "gate_up", "up:48, gate:48"),
        ("inkling_mm_model", "mlp.w13_dn.weight", "gate_up", "48 x (gate:1, up:1)"),
        ("phi3small", "mlp.up_proj.weight", "gate_up", "48 x (gate:1, up:1)"),
    ],
)
def test_gates_before_and_after(family: str, name: str, role: str, pattern: str) -> None:
    layout = layout_of(role, (96, 64), config(family), name=name)
    assert pattern_of(layout) == pattern
    assert layout.known


def test_mamba_of_plamo_goes_head_by_head() -> None:
    plamo = config("plamo2", mamba_num_heads=4)
    layout = layout_of("ssm", (128, 64), plamo, name="model.layers.layers.0.mixer.in_proj.weight")
    assert pattern_of(layout) == "4 x (ssm_z:16, ssm_x:16)"


def test_hybrids_state_their_inner_width_in_several_ways() -> None:
    rest = {"mamba_n_groups": 1, "mamba_d_state": 8, "mamba_n_heads": 4}
    for more in ({"mamba_d_head": 32}, {"mamba_d_head": "auto", "mamba_expand": 2},
                 {"mamba_d_ssm": 128}):  # fmt: skip
        layout = layout_of("ssm", (276, 64), config("falcon_h1", **rest, **more),
                           name="model.layers.0.mamba.in_proj.weight")  # fmt: skip
        assert pattern_of(layout) == "ssm_z:128, ssm_x:128, ssm_B:8, ssm_C:8, ssm_dt:4"


def test_an_unknown_tower_is_doubted_and_a_known_one_is_not() -> None:
    towers = {"model_type": "x", "vision_config": {"model_type": "exaone4_5_vision",
              "hidden_size": 32, "num_heads": 4, "num_key_value_heads": 2}}  # fmt: skip
    name = "model.visual.blocks.0.attn.qkv.weight"
    layout = layout_of("other", (64, 32), towers, name=name, detail="qkv")
    assert pattern_of(layout) == "q:32, k:16, v:16"
    assert layout.known
    bias = name.replace("weight", "bias")
    layout = layout_of("other", (64,), towers, name=bias, detail="qkv.bias")
    assert pattern_of(layout) == "q:32, k:16, v:16"
    layout = layout_of("other", (96, 32), {"model_type": "x"}, name=name, detail="qkv")
    assert pattern_of(layout) == "q:32, k:32, v:32"
    assert not layout.known


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("thinker.visual.blocks.0.attn.qkv.weight", 1),
        ("audio", 2),
        ("talker", 3),
        ("talker.code_predictor", 4),
        ("code2wav", 5),
        ("mystery", None),
    ],
)
def test_towers_of_a_model_that_listens_and_talks_are_found(name: str, hidden: int | None) -> None:
    told = {
        "thinker_config": {
            "text_config": {"hidden_size": 9},
            "vision_config": {"hidden_size": 1},
            "audio_config": {"hidden_size": 2},
        },
        "talker_config": {
            "text_config": {"hidden_size": 3},
            "code_predictor_config": {"hidden_size": 4},
        },
        "code2wav_config": {"hidden_size": 5},
    }
    assert Sizes(tower_of(told, name)).value("hidden_size") == hidden


@pytest.mark.parametrize(("rows", "pattern"), [(7 * 64, "q:64, k:64, v:64, up:256"), (9 * 64, "")])
def test_attention_and_a_feed_forward_four_times_as_wide_are_told_apart(
    rows: int, pattern: str
) -> None:
    name, detail = "single_blocks.0.linear1.weight", "attention_and_up"
    layout = layout_of("other", (rows, 64), {}, name=name, detail=detail)
    assert (pattern_of(layout), layout.warnings) == (pattern, ())


@pytest.mark.parametrize("name", ["img_attn.qkv.weight", "img_attn_qkv.bias"])
def test_blocks_for_pictures_have_a_third_for_each(name: str) -> None:
    layout = layout_of("qkv", (192, 64)[: 2 - name.endswith("bias")], {}, name=name)
    assert (pattern_of(layout), layout.known) == ("q:64, k:64, v:64", True)


def test_shared_experts_may_be_stacked_too() -> None:
    layout = layout_of("shared_up", (2, 48, 64), config("inkling_text"))
    assert (layout.experts, layout.orient, layout.outputs) == (2, OUT_IN, 48)
    assert not layout_of("shared_up", (48, 64), config("inkling_text")).experts


def test_a_router_is_turned_by_its_shape() -> None:
    ernie = config("ernie4_5_vl_moe", moe_num_experts=8)
    assert layout_of("router", (64, 8), ernie).orient == IN_OUT
    assert layout_of("router", (8, 64), ernie).orient == OUT_IN


def test_xlnet_has_an_axis_for_its_heads() -> None:
    keys = layout_of("k", (64, 4, 16), config("xlnet"))
    assert (keys.shape, keys.orient, keys.outputs) == ((64, 64), IN_OUT, 64)
    assert layout_of("o", (64, 4, 16), config("xlnet")).orient == OUT_IN


def test_heads_that_differ_by_layer_are_counted_by_layer() -> None:
    laguna = config("phi3", num_attention_heads_per_layer=[4, 8], head_dim=16)
    assert pattern_of(layout_of("qkv", (192, 64), laguna, layer=1)) == "q:128, k:32, v:32"


@pytest.mark.parametrize(
    ("family", "name", "role", "shape", "orient"),
    [
        ("llama", "self_attn.q_proj.kernel", "q", (64, 64), IN_OUT),
        ("llama", "self_attn.q_proj.weight", "q", (64, 64), OUT_IN),
        ("llama", "self_attn.k_proj.kernel", "k", (64, 32), IN_OUT),
        ("llama", "mlp.up_proj.kernel", "up", (64, 160), IN_OUT),
        ("mixtral", "experts.w1.kernel", "expert_gate", (8, 64, 64), IN_OUT),
        ("gpt2", "attn.c_proj.kernel", "o", (64, 64), OUT_IN),
        ("gpt2", "attn.c_proj.weight", "o", (64, 64), IN_OUT),
        ("llama", "conv.kernel", "other", (3, 64, 64), OUT_IN),
    ],
)
def test_a_kernel_is_stored_the_other_way_round(
    family: str, name: str, role: str, shape: tuple[int, ...], orient: str
) -> None:
    layout = layout_of(role, shape, config(family), name=f"model.layers.0.{name}")
    assert layout.orient == orient and not layout.warnings


def test_a_kernel_whose_shape_says_otherwise_is_told() -> None:
    layout = layout_of("up", (160, 64), LLAMA, name="model.layers.0.mlp.up_proj.kernel")
    assert layout.orient == OUT_IN and layout.warnings
