"""Roles, layouts and axes put together: what tables give must hold for every name and shape."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from kinprint.model.inspection import group_tensors
from kinprint.model.tensor_map import MappedTensor, map_tensors
from kinprint.records import TensorSpec

GLM4 = {
    "model_type": "glm4", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_hidden_layers": 1, "intermediate_size": 160, "vocab_size": 512,
}  # fmt: skip
GLM4_NAMES = {
    "model.embed_tokens.weight": (512, 64),
    "model.layers.0.input_layernorm.weight": (64,),
    "model.layers.0.self_attn.q_proj.weight": (64, 64),
    "model.layers.0.self_attn.k_proj.weight": (32, 64),
    "model.layers.0.self_attn.v_proj.weight": (32, 64),
    "model.layers.0.self_attn.o_proj.weight": (64, 64),
    "model.layers.0.post_self_attn_layernorm.weight": (64,),
    "model.layers.0.post_attention_layernorm.weight": (64,),
    "model.layers.0.post_mlp_layernorm.weight": (64,),
    "model.layers.0.mlp.gate_up_proj.weight": (320, 64),
    "model.layers.0.mlp.down_proj.weight": (64, 160),
    "model.norm.weight": (64,),
    "lm_head.weight": (512, 64),
}
QWEN3_5 = {
    "model_type": "qwen3_5_text", "hidden_size": 64, "linear_num_key_heads": 2,
    "linear_key_head_dim": 16, "linear_num_value_heads": 4, "linear_value_head_dim": 16,
}  # fmt: skip


def understood(config: dict[str, Any], **shapes: tuple[int, ...]) -> list[MappedTensor]:
    specs = [TensorSpec(name, "BF16", shape, "f", 0, 0) for name, shape in shapes.items()]
    return list(map_tensors(specs, config, "safetensors").tensors)


def meant(one: MappedTensor) -> tuple[object, ...]:
    return one.role.role, one.role.layer, one.role.expert, one.splits, one.axes


def test_layers_of_one_shape_may_be_split_differently() -> None:
    """OpenELM lists the heads of every layer; other lists are none of its business."""
    config = {
        "model_type": "openelm", "model_dim": 64, "head_dim": 16, "num_query_heads": [12, 16],
        "num_kv_heads": [3, 1], "eos_token_id": [1, 2, 3],
    }  # fmt: skip
    names = [f"transformer.layers.{layer}.attn.qkv_proj.weight" for layer in range(2)]
    first, second = understood(config, **dict.fromkeys(names, (288, 64)))
    assert first.splits == "q:192, k:48, v:48"
    assert second.splits == "q:256, k:16, v:16"


def _in_blocks(wrapper: str) -> Callable[[str], str]:
    return lambda name: re.sub(r"(\.\d+\.)", rf"\g<1>{wrapper}.", name)


@pytest.mark.parametrize(
    "wrap",
    [
        _in_blocks("_orig_mod"),
        _in_blocks("_checkpoint_wrapped_module"),
        lambda name: "_fsdp_wrapped_module." + _in_blocks("_fsdp_wrapped_module")(name),
        lambda name: "_orig_mod." + _in_blocks("_checkpoint_wrapped_module._orig_mod")(name),
        lambda name: "base_model.model." + re.sub(r"(_proj)\.", r"\1.base_layer.", name),
    ],
)
def test_wrappers_inside_names_change_nothing(wrap: Callable[[str], str]) -> None:
    plain = understood(GLM4, **GLM4_NAMES)
    wrapped = understood(GLM4, **{wrap(name): shape for name, shape in GLM4_NAMES.items()})
    assert [meant(one) for one in wrapped] == [meant(one) for one in plain]
    roles = {one.spec.name: one.role.role for one in plain}
    assert roles["model.layers.0.post_attention_layernorm.weight"] == "norm_pre_ffn"


def test_layouts_told_by_names_see_through_wrappers() -> None:
    name = "model.layers.0.linear_attn.in_proj_qkv.base_layer.weight"
    (one,) = understood(QWEN3_5, **{name: (128, 64)})
    assert one.splits == "linear_q:32, linear_k:32, linear_v:64"


def test_experts_one_after_another_are_said_to_be_so() -> None:
    config = {"model_type": "dbrx", "d_model": 64, "ffn_config": {"moe_num_experts": 4}}
    names = {
        f"transformer.blocks.0.ffn.experts.mlp.{part}": (192, 64) for part in ("w1", "v1", "w2")
    }
    found = understood(config, **names)
    assert {one.splits for one in found} == {"4 experts x (ffn_hidden=48), flattened [E*ffn,H]"}
    groups = group_tensors(map_tensors([one.spec for one in found], config, "safetensors"))
    assert not any("fused" in str(group.role) for group in groups)


@pytest.mark.parametrize("part", ["mlp.act_fn.beta", "mlp.act_fn.alpha_p", "self_attn.q_proj.bias"])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (2, 3, 4)])
def test_every_axis_has_a_word_and_no_word_lacks_its_axis(
    part: str, shape: tuple[int, ...]
) -> None:
    (one,) = understood({"model_type": "apertus"}, **{f"model.layers.0.{part}": shape})
    assert len(one.axes) == len(shape)


def test_a_key_that_is_the_value_too_is_not_halved() -> None:
    config = {
        "model_type": "deepseek_v4", "hidden_size": 32, "num_attention_heads": 4, "head_dim": 8,
    }  # fmt: skip
    (one,) = understood(config, **{"model.layers.0.attn.wkv.weight": (8, 32)})
    assert (one.role.detail, one.splits, one.layout.warnings) == ("kv_fused", None, ())


def test_a_bias_of_a_state_space_is_a_bias() -> None:
    names = {
        "mamba.dt_proj_bias": (2, 64),
        "mamba.dt_proj_weight": (2, 64, 8),
        "mamba.dt_bias": (4,),
    }
    found = understood(
        {"model_type": "zamba"},
        **{f"model.layers.0.{name}": shape for name, shape in names.items()},
    )
    assert [one.role.role for one in found] == ["bias", "ssm", "ssm"]


def test_blocks_of_another_family_are_not_turned_by_a_wrong_configuration() -> None:
    names = {
        "model.layers.0.self_attn.q_proj.weight": (64, 64),
        "h.0.attn.c_attn.weight": (64, 192),
    }
    config = {"model_type": "gpt2", "n_embd": 64, "n_head": 4}
    assert [one.layout.orient for one in understood(config, **names)] == ["out_in", "in_out"]


def test_rows_in_pairs_of_unknown_width_are_not_passed_off_as_halves() -> None:
    names = {f"layers.0.attention.w{part}.weight": (64, 64) for part in "qkvo"}
    told = {"dim": 64, "n_heads": 4, "n_kv_heads": 4}
    assert [one.layout.parts[0].paired for one in understood(told, **names)] == [16, 16, 0, 0]
    silent = understood({}, **names)
    assert [one.layout.known for one in silent] == [False, False, True, True]
    assert all("pairs" in str(one.layout.warnings[0]) for one in silent[:2])
