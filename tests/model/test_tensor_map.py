"""Roles, layouts and axes put together: what tables give must hold for every name and shape."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kinprint.model.inspection import group_tensors
from kinprint.model.names.patterns import Patterns, read_patterns
from kinprint.model.names.tables import Tables, load_tables
from kinprint.model.tensor_map import MappedTensor, map_tensors
from kinprint.records import Role, TensorSpec

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


_STACKS = ("model.layers.0", "model.layers.1", "_orig_mod.model.layers.1", "h.3", "x")
_MODULES = (
    "mlp.experts", "experts", "mlp.shared_experts", "mlp.experts._orig_mod", "mixer",
    "mlp.experts.3", "mlp.experts.4", "mlp.experts.4.", "mlp.experts._orig_mod.5.w2",
)  # fmt: skip
_COPIES = ("0", "1", "2", "007", "1234567890", "expert_2", "*", "?", "w1")
_PARTS = ("gate_proj", "down_proj", "mixer", "_orig_mod", "lora_A", "4")
_ENDS = ("weight", "bias", "scale", "weight_scale_inv", "A_log", "5")


@st.composite
def numbered_tensors(draw: st.DrawFn) -> list[TensorSpec]:
    """Tensors whose names differ by many things, and most of them by one number alone."""
    families = [draw(st.sampled_from(some)) for some in (_STACKS, _MODULES, _PARTS, _ENDS)]
    names = []
    for _ in range(draw(st.integers(1, 4))):
        changed = draw(st.integers(0, 3))
        some = (_STACKS, _MODULES, _PARTS, _ENDS)[changed]
        families[changed] = draw(st.sampled_from(some))
        stack, module, part, end = families
        copies = draw(st.lists(st.sampled_from(_COPIES), min_size=1, unique=True))
        names += [f"{stack}.{module}.{copy}.{part}.{end}" for copy in copies]
    kinds = st.sampled_from(
        [("BF16", (64, 32)), ("BF16", (64, 32)), ("F32", (64, 32)), ("BF16", (64,))]
    )
    shuffled = draw(st.permutations(sorted(set(names))))
    return [TensorSpec(name, *draw(kinds), "f", 0, 0) for name in shuffled]


@given(numbered_tensors())
def test_a_series_says_of_a_tensor_what_its_own_name_does(specs: list[TensorSpec]) -> None:
    found = read_patterns(specs, load_tables())
    assert sorted(place for one in found.series for place in one.members) == [*range(len(specs))]
    assert sum(pattern.tensors for pattern in found.patterns) == len(specs)
    for series in found.series:
        assert series.members == sorted(series.members)
        assert len({(specs[at].shape, specs[at].dtype) for at in series.members}) == 1
        for one in series.apart():
            (alone,) = read_patterns([specs[one.members[0]]], load_tables()).series
            assert (alone.pattern.text, alone.pattern.parts) == (
                series.pattern.text,
                series.pattern.parts,
            )
            assert (alone.layer, alone.experts) == (one.layer, one.experts)


@given(numbered_tensors())
def test_tensors_mean_in_series_what_they_mean_one_by_one(specs: list[TensorSpec]) -> None:
    config = {"model_type": "qwen3_moe", "hidden_size": 64, "num_experts": 8}

    def apart(tensors: Sequence[TensorSpec], tables: Tables) -> Patterns:
        found = read_patterns(tensors, tables)
        return Patterns(found.patterns, [part for one in found.series for part in one.apart()])

    together = map_tensors(specs, config, "safetensors")
    with mock.patch("kinprint.model.roles.read_patterns", apart):
        singly = map_tensors(specs, config, "safetensors")
    assert together.tensors == singly.tensors
    unknown = [one.role for one in together.tensors if one.spec.name in together.unknown]
    assert all(role.role is Role.OTHER and role.detail is role.tower is None for role in unknown)
    assert together.unknown == singly.unknown
    in_order = [spec.name for spec in specs if spec.name in together.unknown]
    assert together.unknown == tuple(in_order)
    assert (together.family, together.tied) == (singly.family, singly.tied)
    assert set(map(str, together.warnings)) == set(map(str, singly.warnings))
    groups, each = (
        {(one.pattern, one.dtype, one.shape, str(one.role), one.count) for one in group_tensors(it)}
        for it in (together, singly)
    )
    assert groups == each


def test_experts_of_a_layer_are_one_series() -> None:
    names = [
        f"model.layers.{layer}.mlp.experts.{expert}.{part}_proj.weight"
        for layer in range(2)
        for expert in range(5)
        for part in ("gate", "down")
    ]
    specs = [TensorSpec(name, "BF16", (8, 8), "f", 0, 0) for name in names]
    found = map_tensors(specs, {"model_type": "qwen3_moe"}, "safetensors")
    assert [times for _, times in found.kinds] == [5, 5, 5, 5]
    assert [one.role.expert for one in found.tensors] == 2 * [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert [(one.pattern, one.count) for one in group_tensors(found)] == [
        (f"model.layers.*.mlp.experts.*.{part}_proj.weight", 10) for part in ("down", "gate")
    ]
