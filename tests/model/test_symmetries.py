"""Axes and groups: words for every role, and groups only where all they need is known."""

from __future__ import annotations

from typing import Any

import pytest

from kinprint.model.symmetries import (
    Facts,
    axes_of,
    facts_of,
    group_named,
    groups,
    planes_of,
    refusal,
)  # fmt: skip
from tests.model.architectures import ARCHITECTURES

DENSE = {"embed", "norm_in", "norm_post_attn", "q", "k", "v", "o", "gate", "up", "down"}
LLAMA: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "rms_norm_eps": 1e-6,
    "rope_theta": 1e4,
}  # fmt: skip


def names(config: dict[str, Any], roles: set[str] = DENSE) -> set[str]:
    facts = facts_of(config, roles)
    return {group.name for group in groups() if refusal(group, facts) is None}


def test_axes_follow_the_orientation() -> None:
    assert axes_of("down") == ("residual", "unit")
    assert axes_of("down", orient="in_out") == ("unit", "residual")
    assert axes_of("expert_gate", 3) == ("expert", "unit", "residual")
    assert axes_of("expert_gate", 3, "in_out") == ("expert", "residual", "unit")
    assert axes_of("expert_gate", 2) == ("unit", "residual")
    assert axes_of("v") == ("kv_head.value_dim", "residual")


def test_axes_of_biases_are_those_of_their_owner() -> None:
    assert axes_of("bias", 1, detail="q.bias") == ("kv_head.head.head_position",)
    assert axes_of("bias", 1, detail="down.bias") == ("residual",)
    assert axes_of("bias", 2, detail="expert_up.bias") == ("expert", "unit")
    assert axes_of("bias", 1, detail="expert_up.bias") == ("unit",)
    assert axes_of("bias", 1, detail="e_score_correction_bias") == ("expert",)
    assert axes_of("bias", 1) == ("none",)
    assert axes_of("bias", 1, detail="q") == axes_of("bias", 1, detail="q.bias")


def test_axes_of_parts_of_latent_attention() -> None:
    assert axes_of("k", detail="mla_kv_b") == ("kv_head.head_position", "latent")
    assert axes_of("v", detail="mla_kv_b") == ("kv_head.value_dim", "latent")
    assert axes_of("other", 3, detail="mla_v_b") == ("kv_head", "value_dim", "latent")
    assert axes_of("k/v", detail="mla_kv_a") == ("latent", "residual")
    assert axes_of("q", detail="mla_q_b") == ("kv_head.head_position", "query_latent")


def test_unknown_axes_have_no_groups() -> None:
    assert axes_of("other", 3) == ("none",) * 3
    moved = {member.role for group in groups() for member in group.members}
    assert not moved & {"other", "ssm"}


@pytest.mark.parametrize("word", ["vocabulary", "position", "kv_head.head_position", "layer"])
def test_some_levels_are_never_permuted(word: str) -> None:
    level = word.split(".")[-1]
    assert not any(g.kind == "permutation" and g.level == level for g in groups())


def test_units_move_together() -> None:
    moved = {(m.role, m.axis) for m in group_named("unit").members}
    assert {("gate", 0), ("up", 0), ("down", 1)} <= moved
    flipped = {m.role for m in group_named("unit_sign").members}
    assert {"up", "down"} <= flipped
    assert "gate" not in flipped


def test_a_llama_has_the_groups_of_the_methods() -> None:
    assert names(LLAMA) == {
        "residual", "residual_sign", "unit", "unit_sign", "value_dim", "value_sign", "kv_head",
        "head", "plane_sign", "plane_quarter", "expert",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "roles", "lost"),
    [
        ({"model_type": "gpt_oss"}, set(), {"unit_sign"}),
        ({"model_type": "phimoe"}, set(), {"residual_sign"}),
        ({"model_type": "marian"}, set(), {"residual", "residual_sign"}),
        ({"model_type": "chameleon"}, {"norm_q", "norm_k"}, {"plane_sign", "plane_quarter"}),
        ({"model_type": "qwen3"}, {"norm_q", "norm_k"}, {"plane_quarter"}),
        ({"n_group": 8}, set(), {"expert"}),
        ({"alibi": True}, set(), {"head", "kv_head", "plane_sign"}),
        ({"kv_lora_rank": 8}, set(), {"plane_sign"}),
        ({"attention_k_eq_v": True}, set(), {"value_dim", "value_sign"}),
        ({"embedding_size": 32}, set(), {"residual", "residual_sign"}),
        ({"model_type": "squeezebert"}, set(), {"unit", "unit_sign"}),
        ({"model_type": "doge"}, set(), {"value_dim", "value_sign", "kv_head"}),
        ({"model_type": "minimax"}, set(), {"plane_sign", "plane_quarter", "value_dim"}),
        ({"model_type": "minimax_m1"}, set(), {"plane_sign", "plane_quarter", "value_dim"}),
        ({"model_type": "step3p5"}, set(), {"plane_sign", "plane_quarter", "unrotated_sign"}),
        ({"model_type": "prophetnet"}, set(), {"head", "kv_head"}),
        ({"model_type": "roformer", "rotary_value": True}, set(), {"value_dim"}),
    ],
)
def test_what_a_model_lacks(changes: dict[str, Any], roles: set[str], lost: set[str]) -> None:
    assert names(LLAMA | changes, DENSE | roles).isdisjoint(lost)


def test_what_is_not_known_is_not_offered() -> None:
    unknown = names({"model_type": "never_seen", "rope_theta": 1e4, "hidden_size": 64})
    assert unknown.isdisjoint({"plane_sign", "value_dim", "residual_sign", "unit_sign"})
    assert "unit" in unknown
    assert "not known" in str(refusal(group_named("plane_sign"), Facts()))


def test_planes_of_both_habits() -> None:
    facts = Facts(rope="half", rotary=4, head_dim=8)
    assert planes_of(facts) == ((0, 2), (1, 3))
    assert planes_of(Facts(rope="interleaved", rotary=4, head_dim=8)) == ((0, 1), (2, 3))
    assert planes_of(Facts(rope="none", rotary=4, head_dim=8)) == ()


def test_a_share_that_is_not_stated_leaves_planes_unknown() -> None:
    neox = LLAMA | {"model_type": "gpt_neox"}
    assert facts_of(neox, DENSE).rotary is None
    assert facts_of(neox | {"rotary_pct": 0.25}, DENSE).rotary == 4


def test_a_share_stated_for_the_whole_is_not_the_texts() -> None:
    """A model of sound may rotate a part of its own heads, and its text model whole ones."""
    outer: dict[str, Any] = {"rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.25}}
    text = LLAMA | {"rope_parameters": {"rope_theta": 1e4}}
    outer |= {"model_type": "x", "text_config": text, "head_dim": 40}
    facts = facts_of(outer, DENSE)
    assert (facts.rotary, facts.head_dim) == (16, 16)


def test_gates_of_attention_and_inner_norms_move_with_what_they_scale() -> None:
    assert axes_of("other", detail="attn_output_gate") == ("kv_head.head.value_dim", "residual")
    assert axes_of("norm_other", 1, detail="norm_ffn_inner") == ("unit",)
    wide = axes_of("norm_other", 1, detail="norm_attn_inner", wide=True)
    assert wide == ("kv_head.head.value_dim",)
    assert axes_of("norm_other", 1, detail="norm_attn_inner") == ("none",)
    for group in ("value_sign", "unit_sign"):
        gains = {"attn_output_gate", "norm_attn_inner.wide", "norm_ffn_inner"}
        assert gains.isdisjoint(member.role for member in group_named(group).members)
    assert axes_of("other", 3, "in_out", detail="mla_k_b") == ("kv_head", "latent", "head_position")


@pytest.mark.parametrize(
    ("family", "rope"),
    [("glm4v", "interleaved"), ("glm4v_moe", "half"), ("roformer", "interleaved"),
     ("glm_ocr", "interleaved"), ("nanochat", "half"), ("big_bird", "none"),
     ("openai_privacy_filter", "interleaved"), ("minimax", "unknown"),
     ("paddleocr_vl_text", "half"), ("step3p5", "half"), ("qwen3_tts_talker", "half"),
     ("qwen3_vl_vision", "half"), ("minicpmv", "half"), ("Dream", "half"), ("ouro", "half"),
     ("dinov2_with_registers", "none"), ("moonvit", "interleaved")],
)  # fmt: skip
def test_habits_of_rotary_embedding(family: str, rope: str) -> None:
    assert facts_of(LLAMA | {"model_type": family}, DENSE).rope == rope


def test_norms_of_many_architectures_are_told_apart() -> None:
    wrong = []
    for entry, model in ARCHITECTURES.items():
        text = [t for t in model["tensors"] if "norm_kind" in t and "tower" not in t]
        facts = facts_of(
            model["config"] | {"model_type": model["model_type"]},
            {t["role_truth"] for t in model["tensors"]},
        )
        for tensor in text:
            role = tensor["role_truth"]
            kind = tensor["norm_kind"]["kind"].removesuffix("norm")
            found = facts.qk_norm if role in ("norm_q", "norm_k") else facts.norm
            if role != "norm_other" and found is not None and found != kind:
                wrong.append((entry, tensor["name"], kind, found))
    assert not wrong
