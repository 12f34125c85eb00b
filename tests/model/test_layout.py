"""Layouts by rule: doubts are said, contradictions leave a tensor whole, vectors get their 1."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kinprint.errors import SliceOutside
from kinprint.model.layout import IN_OUT, OUT_IN, Part, cut, layout_of, pattern_of, split_slices
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
    assert split_slices(spec(160, 64), layout, "gate", rows=[3, 4])[0].rows == range(3, 5)


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
    assert layout.warnings == ("the configuration gives q:64, k:32, v:32, the tensor has 100 rows",)
    with pytest.raises(SliceOutside, match="no part 'k'"):
        cut(spec(100, 64), layout, "k")


def test_a_silent_configuration_is_reported() -> None:
    layout = layout_of("qkv", (192, 64), {"model_type": "bloom"})
    assert "does not say" in layout.warnings[0]


def test_an_unknown_family_is_doubted() -> None:
    layout = layout_of("qkv", (128, 64), config("never_seen"))
    assert pattern_of(layout) == "q:64, k:32, v:32"
    assert not layout.known
    assert "not known" in layout.warnings[0]
    assert not layout_of("gate_up", (10, 4), config("never_seen"), name="m.w12.weight").known
    assert layout_of("gate_up", (10, 4), config("never_seen"), name="m.gate_up_proj.weight").known


def test_up_comes_first_where_the_name_says_so() -> None:
    layout = layout_of("gate_up", (320, 64), config("x"), name="encoder.mlp.up_gate_proj.weight")
    assert pattern_of(layout) == "up:160, gate:160"


def test_experts_are_turned_by_their_shape() -> None:
    hub = config("qwen3_vl_moe", moe_intermediate_size=48)
    assert layout_of("expert_gate_up", (4, 64, 96), hub).orient == IN_OUT
    saved = layout_of("expert_gate_up", (4, 96, 64), hub)
    assert saved.orient == OUT_IN
    assert "habit" in saved.warnings[0]
    square = layout_of("expert_down", (4, 64, 64), config("gpt_oss"))
    assert square.orient == IN_OUT


def test_an_expert_must_be_named() -> None:
    layout = layout_of("expert_down", (4, 64, 48), config("granitemoe"))
    tensor = spec(4, 64, 48)
    assert split_slices(tensor, layout, "expert_down", rows=[0], expert=3)[0].rows == range(
        192, 193
    )
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


def test_first_publishers_files_store_rows_in_pairs() -> None:
    layout = layout_of("q", (64, 64), LLAMA, name="layers.0.attention.wq.weight")
    assert layout.gguf_permuted
    assert not layout_of("v", (32, 64), LLAMA, name="layers.0.attention.wv.weight").gguf_permuted


def test_tied_heads_are_known() -> None:
    assert layout_of("lm_head", (9, 64), LLAMA | {"tie_word_embeddings": True}).tied
    assert not layout_of("lm_head", (9, 64), LLAMA).tied


def test_fused_tensors_in_gguf_are_concatenated() -> None:
    metadata = {
        "general.architecture": "falcon", "falcon.embedding_length": 64,
        "falcon.attention.head_count": 4, "falcon.attention.head_count_kv": 2,
    }  # fmt: skip
    layout = layout_of("qkv", (128, 64), {}, gguf=metadata)
    assert pattern_of(layout) == "q:64, k:32, v:32"


def test_runs_and_single_rows_agree() -> None:
    part = Part("k", 16, 16, 48, 4)
    walked = [row for start, stop in part.runs for row in range(start, stop)]
    assert walked == [part.stored(row) for row in range(part.rows)]


def test_rows_outside_a_part_are_refused() -> None:
    layout = layout_of("qkv", (128, 64), config("phi3"))
    with pytest.raises(SliceOutside):
        cut(spec(128, 64), layout, "k", rows=[32])


def test_columns_far_apart_are_read_apart() -> None:
    layout = layout_of("qkv", (64, 192), config("gpt2"))
    pieces = split_slices(spec(64, 192), layout, "q", rows=[0, 1, 60])
    assert [piece.columns for piece in pieces] == [range(2), range(60, 61)]


def test_a_shape_against_the_habit_is_believed_and_reported() -> None:
    layout = layout_of("up", (64, 160), config("never_seen"))
    assert layout.orient == IN_OUT
    assert layout.warnings == ("the shape says in_out where the family's habit is out_in",)
    assert not layout_of("up", (64, 160), config("gpt2")).warnings
    assert layout_of("up", (160, 64), config("gpt2")).warnings
