"""Roles in GGUF files: llama.cpp's own names, and the list its converter works from."""

from __future__ import annotations

from kinprint.model.roles import TensorRole, assign_roles
from kinprint.records import Role, TensorSpec

NAMES = """
token_embd.weight embed
output.weight lm_head
output_norm.weight norm_final
rope_freqs.weight other
cls.output.weight other
blk.2.attn_norm.weight norm_in
blk.2.attn_q.weight q
blk.2.attn_q.bias bias
blk.2.attn_k.weight k
blk.2.attn_v.weight v
blk.2.attn_output.weight o
blk.2.attn_q_norm.weight norm_q
blk.2.attn_k_norm.weight norm_k
blk.2.post_attention_norm.weight norm_post_attn
blk.2.ffn_norm.weight norm_pre_ffn
blk.2.post_ffw_norm.weight norm_post_ffn
blk.2.ffn_gate.weight gate
blk.2.ffn_up.weight up
blk.2.ffn_down.weight down
blk.3.ffn_gate_inp.weight router
blk.3.exp_probs_b.bias bias
blk.3.ffn_gate_exps.weight expert_gate
blk.3.ffn_up_exps.weight expert_up
blk.3.ffn_down_exps.weight expert_down
blk.3.ffn_gate_shexp.weight shared_gate
blk.3.ffn_up_shexp.weight shared_up
blk.3.ffn_down_shexp.weight shared_down
blk.3.ffn_gate_inp_shexp.weight other
blk.3.attn_q_a.weight other
blk.3.attn_q_a_norm.weight norm_other
blk.3.attn_q_b.weight q
blk.3.attn_kv_a_mqa.weight other
blk.3.attn_k_b.weight other
blk.3.ssm_in.weight ssm
blk.3.ssm_a ssm
blk.3.ssm_conv1d.weight ssm
blk.3.attn_sinks.weight other
blk.3.indexer.attn_k.weight other
blk.3.indexer.attn_q_b.weight other
blk.3.indexer.k_norm.weight norm_other
blk.3.indexer.proj.weight other
blk.3.nextn.eh_proj.weight other
blk.3.time_mix_key.weight ssm
"""


def spec(name: str, *shape: int) -> TensorSpec:
    return TensorSpec(name, "F16", shape or (64, 64), "f", 0, 0)


def shape_of(role: str) -> tuple[int, ...]:
    return (4, 64, 64) if role.startswith("expert") else (64,) if "norm" in role else (64, 64)


def test_the_common_names() -> None:
    wanted = dict(line.split() for line in NAMES.strip().split("\n"))
    specs = [spec(name, *shape_of(role)) for name, role in wanted.items()]
    found = assign_roles(specs, {}, {"general.architecture": "llama"})
    assert {name: role.role for name, role in found.roles.items()} == wanted
    assert found.family == "gguf"
    assert found.warnings == ()
    assert found.roles["blk.3.ffn_up_exps.weight"] == TensorRole(Role.EXPERT_UP, layer=3, stacked=4)


def test_experts_that_old_files_keep_apart() -> None:
    found = assign_roles([spec("blk.1.ffn_gate.7.weight")], {}, {"general.architecture": "llama"})
    assert found.roles["blk.1.ffn_gate.7.weight"] == TensorRole(Role.EXPERT_GATE, layer=1, expert=7)


def test_two_norm_blocks_call_the_second_one_after_attention() -> None:
    names = ["blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "blk.0.ffn_up.weight"]
    found = assign_roles([spec(names[0], 64), spec(names[1], 64), spec(names[2], 64, 64)], {})
    assert [found.roles[name].role for name in names] == ["norm_in", "norm_post_attn", "up"]


def test_falcon_swaps_its_norms() -> None:
    names = ["blk.0.attn_norm.weight", "blk.0.attn_norm_2.weight", "blk.0.ffn_up.weight"]
    metadata: dict[str, object] = {"general.architecture": "falcon"}
    found = assign_roles([spec(name, 64) for name in names], {}, metadata)
    assert [found.roles[name].role for name in names[:2]] == ["norm_pre_ffn", "norm_in"]


def test_what_an_architecture_means_by_a_shared_name() -> None:
    name = "token_embd_norm.weight"
    for kind, role in (("lfm2", "norm_final"), ("bloom", "norm_other")):
        found = assign_roles([spec(name, 64)], {}, {"general.architecture": kind})
        assert found.roles[name].role == role


def test_encoder_decoder_and_projector_files() -> None:
    both = assign_roles(
        [spec("enc.blk.0.attn_q.weight"), spec("dec.blk.0.attn_q.weight"),
         spec("dec.blk.0.cross_attn_q.weight"), spec("dec.output_norm.weight", 64)],
        {}, {"general.architecture": "t5"},
    )  # fmt: skip
    assert [(r.role, r.tower) for r in both.roles.values()] == [
        ("q", "encoder"), ("q", "decoder"), ("other", "decoder"), ("norm_final", "decoder"),
    ]  # fmt: skip
    vision = assign_roles(
        [spec("v.blk.0.attn_q.weight"), spec("v.blk.0.ln1.weight", 64), spec("mm.0.weight")],
        {}, {"general.architecture": "clip"},
    )  # fmt: skip
    assert [(r.role, r.tower) for r in vision.roles.values()][:2] == [
        ("q", "vision"), ("norm_in", "vision"),
    ]  # fmt: skip


# Names that only their neighbours or their family's declaration can explain.
_NEIGHBOURS = (
    "linear_attn.in_proj_qkv", "norm1", "norm2", "layer_norm_2", "feed_forward.down_proj",
    "feed_forward.up_proj", "mlp.gate", "feed_forward.gate", "mlp.linear_", "{bid}.mlp.w",
    "block_sparse_moe.up", "block_sparse_moe.down", "ff_proj", "moe.linear", "ffn.w3", "ln_mlp",
    "mixer.q", "mixer.k", "final_layernorm", "experts.mlp.w1", "self_attn.linear_attn", "embd_norm",
)  # fmt: skip


def test_the_converters_own_list_is_understood() -> None:
    """Every name llama.cpp converts from, one at a time and without a configuration."""
    from gguf import tensor_mapping as mapping

    wanted = {
        "ATTN_NORM": {"norm_in"}, "ATTN_QKV": {"qkv"}, "ATTN_Q": {"q"}, "ATTN_K": {"k"},
        "ATTN_V": {"v"}, "ATTN_OUT": {"o"}, "FFN_UP": {"up", "gate_up"}, "FFN_GATE": {"gate"},
        "FFN_DOWN": {"down"}, "FFN_UP_EXP": {"expert_up"}, "FFN_GATE_EXP": {"expert_gate"},
        "FFN_DOWN_EXP": {"expert_down"}, "FFN_UP_SHEXP": {"shared_up", "up"},
        "FFN_GATE_INP": {"router"}, "ATTN_Q_NORM": {"norm_q"}, "ATTN_K_NORM": {"norm_k"},
        "ATTN_POST_NORM": {"norm_post_attn"}, "FFN_NORM": {"norm_post_attn"},
        "FFN_POST_NORM": {"norm_post_ffn"}, "ATTN_OUT_NORM": {"norm_post_attn"},
    }  # fmt: skip
    wrong = {}
    for tensor, names in mapping.TensorNameMap.block_mappings_cfg.items():
        for pattern in names if tensor.name in wanted else ():
            if any(part in pattern for part in _NEIGHBOURS):
                continue
            name = pattern.replace("{bid}", "1").replace("{xid}", "2")
            name = name if name.endswith("weight") else f"{name}.weight"
            role = assign_roles([spec(name)], {}).roles[name]
            if role.role not in wanted[tensor.name] or role.layer != 1:
                wrong[name] = (tensor.name, role)
    assert wrong == {}
