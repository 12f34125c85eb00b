"""Typical names of further architectures, each with what its tensors are."""

from __future__ import annotations

from typing import Any

import pytest

from kinprint.model.roles import RoleMap, assign_roles
from kinprint.records import TensorSpec

H, F, V, E = 64, 160, 512, 4
_SHAPES = {
    "embed": (V, H), "lm_head": (V, H), "q": (H, H), "k": (H, H), "v": (H, H), "o": (H, H),
    "qkv": (3 * H, H), "gate": (F, H), "up": (F, H), "down": (H, F), "gate_up": (2 * F, H),
    "router": (E, H), "pos_embed": (128, H),
}  # fmt: skip


def _shape(role: str, expert: bool) -> tuple[int, ...]:
    wrap, _, base = role.partition("_")
    if wrap in ("expert", "shared"):
        shape = _SHAPES[base]
        return shape if wrap == "shared" or expert else (E, *shape)
    return _SHAPES.get(role, (H,) if role.startswith("norm") or role == "bias" else (24, 24))


def roles_of(text: str, config: dict[str, Any]) -> tuple[RoleMap, dict[str, str]]:
    """Read lines of "name role"; the layer and the expert are numbers already."""
    wanted = {}
    for line in text.split("\n"):
        if line.strip():
            name, role = line.split()
            wanted[name] = role
    specs = [
        TensorSpec(
            name, "BF16", _shape(role, ".experts.1." in name or "expert_1" in name), "f", 0, 0
        )
        for name, role in wanted.items()
    ]
    return assign_roles(specs, config), wanted


def llama_like(prefix: str, extra: str = "", head: str = "lm_head") -> str:
    block = f"{prefix}layers.1."
    return f"""
{prefix}embed_tokens.weight embed
{prefix}norm.weight norm_final
{head}.weight lm_head
{block}input_layernorm.weight norm_in
{block}self_attn.q_proj.weight q
{block}self_attn.k_proj.weight k
{block}self_attn.v_proj.weight v
{block}self_attn.o_proj.weight o
{block}post_attention_layernorm.weight norm_post_attn
{extra.replace("@", block)}
"""


MLP = """
@mlp.gate_proj.weight gate
@mlp.up_proj.weight up
@mlp.down_proj.weight down
"""
QK = "\n@self_attn.q_norm.weight norm_q\n@self_attn.k_norm.weight norm_k\n"
MOE = """
@mlp.gate.weight router
@mlp.experts.1.gate_proj.weight expert_gate
@mlp.experts.1.up_proj.weight expert_up
@mlp.experts.1.down_proj.weight expert_down
"""
SHARED = """
@mlp.shared_experts.gate_proj.weight shared_gate
@mlp.shared_experts.up_proj.weight shared_up
@mlp.shared_experts.down_proj.weight shared_down
"""
MLA = """
@self_attn.q_a_proj.weight other
@self_attn.q_a_layernorm.weight norm_other
@self_attn.q_b_proj.weight q
@self_attn.kv_a_proj_with_mqa.weight other
@self_attn.kv_a_layernorm.weight norm_other
@self_attn.kv_b_proj.weight other
"""
FOUR_NORMS = """
@pre_feedforward_layernorm.weight norm_pre_ffn
@post_feedforward_layernorm.weight norm_post_ffn
"""


def bert_like(prefix: str, extra: str = "") -> str:
    block = f"{prefix}encoder.layer.1."
    return f"""
{prefix}embeddings.word_embeddings.weight embed
{prefix}embeddings.position_embeddings.weight pos_embed
{prefix}embeddings.LayerNorm.weight norm_other
{block}attention.self.query.weight q
{block}attention.self.query.bias bias
{block}attention.self.key.weight k
{block}attention.self.value.weight v
{block}attention.output.dense.weight o
{block}attention.output.LayerNorm.weight norm_post_attn
{block}attention.output.LayerNorm.bias bias
{block}intermediate.dense.weight up
{block}output.dense.weight down
{block}output.LayerNorm.weight norm_post_ffn
{extra}
"""


def bart_like(stack: str, post_norm: bool, cross: bool, positions: bool = True) -> str:
    block = f"{stack}layers.1."
    lines = f"""
{block}self_attn.q_proj.weight q
{block}self_attn.k_proj.weight k
{block}self_attn.v_proj.weight v
{block}self_attn.out_proj.weight o
{block}fc1.weight up
{block}fc2.weight down
{block}self_attn_layer_norm.weight {"norm_post_attn" if post_norm else "norm_in"}
{block}final_layer_norm.weight {"norm_post_ffn" if post_norm else "norm_post_attn"}
"""
    if positions:
        lines += f"{stack}embed_positions.weight pos_embed\n"
    if not post_norm:
        lines += f"{stack}layer_norm.weight norm_final\n"
    if cross:
        lines += f"{block}encoder_attn.q_proj.weight other\n"
        lines += f"{block}encoder_attn_layer_norm.weight other\n"
    return lines


def t5_like(gated: bool) -> str:
    lines = "shared.weight embed\n"
    for stack, last in (("encoder", 1), ("decoder", 2)):
        block = f"{stack}.block.1.layer."
        lines += f"""
{stack}.final_layer_norm.weight norm_final
{block}0.SelfAttention.q.weight q
{block}0.SelfAttention.k.weight k
{block}0.SelfAttention.v.weight v
{block}0.SelfAttention.o.weight o
{block}0.SelfAttention.relative_attention_bias.weight other
{block}0.layer_norm.weight norm_in
{block}{last}.layer_norm.weight norm_post_attn
{block}{last}.DenseReluDense.wo.weight down
"""
        if gated:
            lines += f"{block}{last}.DenseReluDense.wi_0.weight gate\n"
            lines += f"{block}{last}.DenseReluDense.wi_1.weight up\n"
        else:
            lines += f"{block}{last}.DenseReluDense.wi.weight up\n"
    return (
        lines
        + """
decoder.block.1.layer.1.EncDecAttention.q.weight other
decoder.block.1.layer.1.layer_norm.weight other
"""
    )


def clip_tower(stack: str) -> str:
    return f"""
{stack}encoder.layers.1.layer_norm1.weight norm_in
{stack}encoder.layers.1.layer_norm2.weight norm_post_attn
{stack}encoder.layers.1.self_attn.q_proj.weight q
{stack}encoder.layers.1.self_attn.k_proj.weight k
{stack}encoder.layers.1.self_attn.v_proj.weight v
{stack}encoder.layers.1.self_attn.out_proj.weight o
{stack}encoder.layers.1.mlp.fc1.weight up
{stack}encoder.layers.1.mlp.fc2.weight down
"""


def vit_like(prefix: str) -> str:
    block = f"{prefix}encoder.layer.1."
    return f"""
{block}attention.attention.query.weight q
{block}attention.attention.key.weight k
{block}attention.attention.value.weight v
{block}attention.output.dense.weight o
"""


CASES: dict[str, tuple[str, str]] = {
    "granite": ("granite", llama_like("model.", MLP)),
    "gemma3n": (
        "gemma3n",
        llama_like("model.language_model.", MLP + QK + FOUR_NORMS + """
@altup.correction_coefs.weight other
@laurel.linear_left.weight other
@per_layer_input_gate.weight other
@post_per_layer_input_norm.weight norm_other
""") + "model.language_model.embed_tokens_per_layer.weight other\n"
        "model.embed_vision.embedding.weight other\n"
        "model.vision_tower.timm_model.blocks.1.1.attn.query.proj.weight other\n",
    ),
    "vaultgemma": ("vaultgemma", llama_like("model.", MLP).replace(
        "post_attention_layernorm", "pre_feedforward_layernorm")),
    "olmoe": ("olmoe", llama_like("model.", MOE + QK)),
    "olmo3": ("olmo3", llama_like("model.", MLP + QK + """
@post_feedforward_layernorm.weight norm_post_ffn""").replace(
        "model.layers.1.input_layernorm.weight norm_in", "")),
    "exaone4": ("exaone4", llama_like("model.", MLP + QK + """
@post_feedforward_layernorm.weight norm_post_ffn""").replace(
        "model.layers.1.input_layernorm.weight norm_in", "")),
    "deepseek_v2": ("deepseek_v2", llama_like("model.", MOE + SHARED + MLA).replace(
        "model.layers.1.self_attn.q_proj.weight q\n", "")),
    "ernie4_5_moe": ("ernie4_5_moe", llama_like("model.", MOE + SHARED + """
@mlp.moe_statics.e_score_correction_bias bias""")),
    "dots1": ("dots1", llama_like("model.", MOE + SHARED + QK)),
    "qwen3_vl": ("qwen3_vl", llama_like("model.language_model.", MLP + QK) + """
model.visual.blocks.1.attn.qkv.weight other
model.visual.deepstack_merger_list.1.linear_fc1.weight other
model.visual.merger.norm.weight other
"""),
    "qwen3_vl_moe": ("qwen3_vl_moe", llama_like("model.language_model.", """
@mlp.gate.weight router
@mlp.experts.gate_up_proj expert_gate_up
@mlp.experts.down_proj expert_down
""")),
    "qwen2_5_omni": ("qwen2_5_omni", llama_like("thinker.model.", MLP, "thinker.lm_head") + """
thinker.audio_tower.layers.1.self_attn.q_proj.weight other
thinker.visual.blocks.1.attn.q.weight other
talker.model.layers.1.self_attn.q_proj.weight other
token2wav.code2wav_dit_model.transformer_blocks.1.attn.to_q.weight other
"""),
    "internvl": ("internvl_chat", llama_like("language_model.model.", MLP, "language_model.lm_head")
        + "mlp1.1.weight other\nvision_model.encoder.layers.1.attn.qkv.weight other\n"),
    "mllama": ("mllama", llama_like("language_model.model.", MLP, "language_model.lm_head") + """
language_model.model.layers.3.cross_attn.q_proj.weight other
language_model.model.layers.3.cross_attn_attn_gate other
vision_model.transformer.layers.1.self_attn.q_proj.weight other
"""),
    "afmoe": ("afmoe", llama_like("model.", QK + SHARED + """
@self_attn.gate_proj.weight other
@pre_mlp_layernorm.weight norm_pre_ffn
@post_mlp_layernorm.weight norm_post_ffn
@mlp.router.gate.weight router
@mlp.expert_bias bias
@mlp.experts.1.gate_proj.weight expert_gate
@mlp.experts.1.up_proj.weight expert_up
@mlp.experts.1.down_proj.weight expert_down
""")),
    "hunyuan_moe": ("hunyuan_v1_moe", llama_like("model.", """
@self_attn.query_layernorm.weight norm_q
@self_attn.key_layernorm.weight norm_k
@mlp.gate.wg.weight router
@mlp.shared_mlp.gate_proj.weight shared_gate
@mlp.experts.1.gate_proj.weight expert_gate
""")),
    "granitemoe": ("granitemoeshared", llama_like("model.", """
@block_sparse_moe.input_linear.weight expert_gate_up
@block_sparse_moe.output_linear.weight expert_down
@block_sparse_moe.router.layer.weight router
@shared_mlp.input_linear.weight shared_gate_up
@shared_mlp.output_linear.weight shared_down
""")),
    "minimax_m2": ("minimax_m2", llama_like("model.", QK + """
@block_sparse_moe.gate.weight router
@block_sparse_moe.e_score_correction_bias bias
@block_sparse_moe.experts.1.w1.weight expert_gate
@block_sparse_moe.experts.1.w2.weight expert_down
@block_sparse_moe.experts.1.w3.weight expert_up
""")),
    "lfm2_moe": ("lfm2_moe", """
model.embed_tokens.weight embed
model.embedding_norm.weight norm_final
model.layers.1.operator_norm.weight norm_in
model.layers.1.ffn_norm.weight norm_post_attn
model.layers.1.conv.in_proj.weight ssm
model.layers.1.conv.conv.weight ssm
model.layers.1.conv.out_proj.weight ssm
model.layers.1.feed_forward.gate.weight router
model.layers.1.feed_forward.expert_bias bias
model.layers.1.feed_forward.experts.1.w1.weight expert_gate
model.layers.1.feed_forward.experts.1.w2.weight expert_down
model.layers.1.feed_forward.experts.1.w3.weight expert_up
"""),
    "apertus": ("apertus", llama_like("model.", QK + """
@mlp.up_proj.weight up
@mlp.down_proj.weight down
@mlp.act_fn.alpha_p other
""").replace("input_layernorm", "attention_layernorm").replace(
        "post_attention_layernorm", "feedforward_layernorm")),
    "bitnet": ("bitnet", llama_like("model.", MLP + """
@self_attn.attn_sub_norm.weight norm_other
@mlp.ffn_sub_norm.weight norm_other""")),
    "phi": ("phi", llama_like("model.", """
@mlp.fc1.weight up
@mlp.fc2.weight down""").replace("o_proj", "dense").replace(
        "model.layers.1.post_attention_layernorm.weight norm_post_attn", "").replace(
        "model.norm", "model.final_layernorm")),
    "exaone": ("exaone", """
transformer.wte.weight embed
transformer.ln_f.weight norm_final
transformer.h.1.ln_1.weight norm_in
transformer.h.1.ln_2.weight norm_post_attn
transformer.h.1.attn.attention.q_proj.weight q
transformer.h.1.attn.attention.k_proj.weight k
transformer.h.1.attn.attention.out_proj.weight o
transformer.h.1.mlp.c_fc_0.weight gate
transformer.h.1.mlp.c_fc_1.weight up
transformer.h.1.mlp.c_proj.weight down
"""),
    "gpt_neo": ("gpt_neo", """
transformer.wpe.weight pos_embed
transformer.h.1.attn.attention.q_proj.weight q
transformer.h.1.attn.attention.out_proj.weight o
transformer.h.1.attn.attention.bias other
transformer.h.1.mlp.c_fc.weight up
transformer.h.1.mlp.c_proj.weight down
"""),
    "openai-gpt": ("openai-gpt", """
tokens_embed.weight embed
positions_embed.weight pos_embed
h.1.attn.bias other
h.1.attn.c_attn.weight qkv
h.1.attn.c_proj.weight o
h.1.ln_1.weight norm_post_attn
h.1.mlp.c_fc.weight up
h.1.ln_2.weight norm_post_ffn
"""),
    "olmo_original": ("hf_olmo", """
model.transformer.wte.weight embed
model.transformer.ff_out.weight lm_head
model.transformer.ln_f.weight norm_final
model.transformer.blocks.1.attn_norm.weight norm_in
model.transformer.blocks.1.ff_norm.weight norm_post_attn
model.transformer.blocks.1.att_proj.weight qkv
model.transformer.blocks.1.attn_out.weight o
model.transformer.blocks.1.ff_proj.weight gate_up
model.transformer.blocks.1.ff_out.weight down
"""),
    "recurrent_gemma": ("recurrent_gemma", """
model.final_norm.weight norm_final
model.layers.1.temporal_pre_norm.weight norm_in
model.layers.1.channel_pre_norm.weight norm_post_attn
model.layers.1.temporal_block.q_proj.weight q
model.layers.1.temporal_block.o_proj.weight o
model.layers.0.temporal_block.linear_x.weight ssm
model.layers.0.temporal_block.rg_lru.recurrent_param ssm
model.layers.1.mlp_block.gate_proj.weight gate
model.layers.1.mlp_block.down_proj.weight down
"""),
    "mamba": ("mamba", """
backbone.embeddings.weight embed
backbone.norm_f.weight norm_final
backbone.layers.1.norm.weight norm_in
backbone.layers.1.mixer.A_log ssm
backbone.layers.1.mixer.D ssm
backbone.layers.1.mixer.out_proj.weight ssm
"""),
    "rwkv": ("rwkv", """
rwkv.embeddings.weight embed
rwkv.ln_out.weight norm_final
head.weight lm_head
rwkv.blocks.1.ln1.weight norm_in
rwkv.blocks.1.ln2.weight norm_post_attn
rwkv.blocks.1.attention.key.weight ssm
rwkv.blocks.1.attention.receptance.weight ssm
rwkv.blocks.1.attention.time_decay ssm
rwkv.blocks.1.feed_forward.key.weight up
rwkv.blocks.1.feed_forward.value.weight down
"""),
    "falcon_h1": ("falcon_h1", llama_like("model.", """
@mamba.A_log ssm
@mamba.in_proj.weight ssm
@feed_forward.gate_proj.weight gate
@feed_forward.up_proj.weight up
@feed_forward.down_proj.weight down
""").replace("post_attention_layernorm", "pre_ff_layernorm").replace(
        "model.norm", "model.final_layernorm")),
    "meta": ("", """
tok_embeddings.weight embed
output.weight lm_head
norm.weight norm_final
layers.1.attention.wq.weight q
layers.1.attention.wk.weight k
layers.1.attention.wv.weight v
layers.1.attention.wo.weight o
layers.1.attention_norm.weight norm_in
layers.1.ffn_norm.weight norm_post_attn
layers.1.feed_forward.w1.weight gate
layers.1.feed_forward.w2.weight down
layers.1.feed_forward.w3.weight up
"""),
    "gpt_oss_original": ("", """
embedding.weight embed
unembedding.weight lm_head
norm.scale norm_final
block.1.attn.norm.scale norm_in
block.1.attn.qkv.weight qkv
block.1.attn.out.weight o
block.1.attn.sinks other
block.1.mlp.norm.scale norm_post_attn
block.1.mlp.gate.weight router
block.1.mlp.mlp1_weight.blocks expert_gate_up
block.1.mlp.mlp1_weight.scales other
block.1.mlp.mlp1_bias bias
block.1.mlp.mlp2_weight.blocks expert_down
"""),
    "modernbert": ("modernbert", """
model.embeddings.tok_embeddings.weight embed
model.embeddings.norm.weight norm_other
model.final_norm.weight norm_final
model.layers.1.attn_norm.weight norm_in
model.layers.1.attn.Wqkv.weight qkv
model.layers.1.attn.Wo.weight o
model.layers.1.mlp_norm.weight norm_post_attn
model.layers.1.mlp.Wi.weight gate_up
model.layers.1.mlp.Wo.weight down
head.dense.weight other
head.norm.weight norm_other
decoder.weight lm_head
"""),
    "electra": ("electra", bert_like("electra.", """
electra.embeddings_project.weight other
generator_predictions.dense.weight other
generator_predictions.LayerNorm.weight norm_other
generator_lm_head.weight lm_head
""")),
    "rembert": ("rembert", bert_like("rembert.", """
rembert.encoder.embedding_hidden_mapping_in.weight other
cls.predictions.dense.weight other
cls.predictions.LayerNorm.weight norm_other
cls.predictions.decoder.weight lm_head
""")),
    "xlm-roberta": ("xlm-roberta", bert_like("roberta.", """
lm_head.dense.weight other
lm_head.layer_norm.weight norm_other
lm_head.decoder.weight lm_head
""")),
    "minilm": ("bert", bert_like("", "pooler.dense.weight other\n")),
    "mpnet": ("mpnet", """
embeddings.word_embeddings.weight embed
encoder.relative_attention_bias.weight other
encoder.layer.1.attention.attn.q.weight q
encoder.layer.1.attention.attn.k.weight k
encoder.layer.1.attention.attn.v.weight v
encoder.layer.1.attention.attn.o.weight o
encoder.layer.1.attention.LayerNorm.weight norm_post_attn
encoder.layer.1.intermediate.dense.weight up
encoder.layer.1.output.dense.weight down
encoder.layer.1.output.LayerNorm.weight norm_post_ffn
"""),
    "deberta-v2": ("deberta-v2", bert_like("deberta.", """
deberta.encoder.rel_embeddings.weight other
deberta.encoder.LayerNorm.weight norm_other
lm_predictions.lm_head.dense.weight other
""").replace("self.query", "self.query_proj").replace("self.key", "self.key_proj").replace(
        "self.value", "self.value_proj")),
    "deberta": ("deberta", """
deberta.encoder.layer.1.attention.self.in_proj.weight qkv
deberta.encoder.layer.1.attention.self.q_bias bias
deberta.encoder.layer.1.attention.self.pos_proj.weight other
deberta.encoder.layer.1.attention.output.LayerNorm.weight norm_post_attn
"""),
    "distilbert": ("distilbert", """
distilbert.embeddings.word_embeddings.weight embed
distilbert.transformer.layer.1.attention.q_lin.weight q
distilbert.transformer.layer.1.attention.out_lin.weight o
distilbert.transformer.layer.1.sa_layer_norm.weight norm_post_attn
distilbert.transformer.layer.1.ffn.lin1.weight up
distilbert.transformer.layer.1.ffn.lin2.weight down
distilbert.transformer.layer.1.output_layer_norm.weight norm_post_ffn
vocab_transform.weight other
vocab_layer_norm.weight norm_other
vocab_projector.weight lm_head
"""),
    "xlm": ("xlm", """
transformer.embeddings.weight embed
transformer.attentions.1.q_lin.weight q
transformer.attentions.1.out_lin.weight o
transformer.layer_norm1.1.weight norm_post_attn
transformer.ffns.1.lin1.weight up
transformer.ffns.1.lin2.weight down
transformer.layer_norm2.1.weight norm_post_ffn
pred_layer.proj.weight lm_head
"""),
    "xlnet": ("xlnet", """
transformer.word_embedding.weight embed
transformer.layer.1.rel_attn.q q
transformer.layer.1.rel_attn.o o
transformer.layer.1.rel_attn.r other
transformer.layer.1.rel_attn.layer_norm.weight norm_post_attn
transformer.layer.1.ff.layer_1.weight up
transformer.layer.1.ff.layer_2.weight down
transformer.layer.1.ff.layer_norm.weight norm_post_ffn
lm_loss.weight lm_head
"""),
    "esm": ("esm", """
esm.encoder.layer.1.attention.LayerNorm.weight norm_in
esm.encoder.layer.1.LayerNorm.weight norm_post_attn
esm.encoder.layer.1.attention.self.query.weight q
esm.encoder.layer.1.attention.output.dense.weight o
esm.encoder.layer.1.intermediate.dense.weight up
esm.encoder.layer.1.output.dense.weight down
esm.encoder.emb_layer_norm_after.weight norm_final
"""),
    "megatron-bert": ("megatron-bert", """
bert.encoder.layer.1.attention.ln.weight norm_in
bert.encoder.layer.1.ln.weight norm_post_attn
bert.encoder.layer.1.attention.self.query.weight q
bert.encoder.ln.weight norm_final
"""),
    "t5": ("t5", t5_like(gated=False)),
    "mt5": ("mt5", t5_like(gated=True) + "lm_head.weight lm_head\n"),
    "bart": ("bart", "model.shared.weight embed\n"
        + bart_like("model.encoder.", True, False) + bart_like("model.decoder.", True, True)),
    "mbart": ("mbart", "model.shared.weight embed\n"
        + bart_like("model.encoder.", False, False) + bart_like("model.decoder.", False, True)),
    "marian": ("marian", "final_logits_bias other\n" + bart_like("model.decoder.", True, True)),
    "whisper": ("whisper", "model.encoder.conv1.weight other\nproj_out.weight lm_head\n"
        + bart_like("model.encoder.", False, False) + bart_like("model.decoder.", False, True)),
    "xglm": ("xglm", bart_like("model.", False, False, positions=False)),
    "opt-350m": ("opt", bart_like("model.decoder.", True, False)
        + "model.decoder.project_in.weight other\n"),
    "clip": ("clip", clip_tower("text_model.") + """
text_model.embeddings.token_embedding.weight embed
text_model.embeddings.position_embedding.weight pos_embed
text_model.final_layer_norm.weight norm_final
vision_model.encoder.layers.1.self_attn.q_proj.weight other
vision_model.post_layernorm.weight other
visual_projection.weight other
text_projection.weight other
"""),
    "siglip_vision_model": ("siglip_vision_model", clip_tower("vision_model.")
        + "vision_model.post_layernorm.weight norm_final\n"),
    "vit": ("vit", vit_like("vit.") + """
vit.encoder.layer.1.layernorm_before.weight norm_in
vit.encoder.layer.1.layernorm_after.weight norm_post_attn
vit.encoder.layer.1.intermediate.dense.weight up
vit.encoder.layer.1.output.dense.weight down
vit.layernorm.weight norm_final
"""),
    "dinov2": ("dinov2", vit_like("") + """
encoder.layer.1.norm1.weight norm_in
encoder.layer.1.norm2.weight norm_post_attn
encoder.layer.1.mlp.fc1.weight up
encoder.layer.1.mlp.fc2.weight down
encoder.layer.1.layer_scale1.lambda1 other
layernorm.weight norm_final
"""),
    "timm": ("", """
blocks.1.norm1.weight norm_in
blocks.1.attn.qkv.weight qkv
blocks.1.attn.proj.weight o
blocks.1.norm2.weight norm_post_attn
blocks.1.mlp.fc1.weight up
blocks.1.mlp.fc2.weight down
norm.weight norm_final
pos_embed pos_embed
"""),
    "xlm-roberta-xl": ("xlm-roberta-xl", """
roberta.encoder.layer.1.attention.self_attn_layer_norm.weight norm_in
roberta.encoder.layer.1.attention.self.query.weight q
roberta.encoder.layer.1.attention.output.dense.weight o
roberta.encoder.layer.1.LayerNorm.weight norm_post_attn
roberta.encoder.layer.1.intermediate.dense.weight up
roberta.encoder.LayerNorm.weight norm_final
"""),
    "gte": ("new", """
new.embeddings.word_embeddings.weight embed
new.encoder.layer.1.attention.qkv_proj.weight qkv
new.encoder.layer.1.attention.o_proj.weight o
new.encoder.layer.1.attn_ln.weight norm_post_attn
new.encoder.layer.1.mlp.up_gate_proj.weight gate_up
new.encoder.layer.1.mlp.down_proj.weight down
new.encoder.layer.1.mlp_ln.weight norm_post_ffn
"""),
    "nomic": ("nomic_bert", """
emb_ln.weight norm_other
encoder.layers.1.attn.Wqkv.weight qkv
encoder.layers.1.attn.out_proj.weight o
encoder.layers.1.norm1.weight norm_post_attn
encoder.layers.1.mlp.fc11.weight up
encoder.layers.1.mlp.fc12.weight gate
encoder.layers.1.mlp.fc2.weight down
encoder.layers.1.norm2.weight norm_post_ffn
"""),
    "reformer": ("reformer", """
reformer.encoder.layers.1.attention.layer_norm.weight norm_in
reformer.encoder.layers.1.attention.self_attention.query.weight q
reformer.encoder.layers.1.attention.output.dense.weight o
reformer.encoder.layers.1.feed_forward.layer_norm.weight norm_post_attn
reformer.encoder.layers.1.feed_forward.dense.dense.weight up
reformer.encoder.layers.1.feed_forward.output.dense.weight down
"""),
    "cpmant": ("cpmant", """
cpmant.input_embedding.weight embed
cpmant.encoder.output_layernorm.weight norm_final
cpmant.encoder.layers.1.self_att.layernorm_before_attention.weight norm_in
cpmant.encoder.layers.1.self_att.self_attention.project_q.weight q
cpmant.encoder.layers.1.self_att.self_attention.attention_out.weight o
cpmant.encoder.layers.1.ffn.layernorm_before_ffn.weight norm_post_attn
cpmant.encoder.layers.1.ffn.ffn.w_in.w_0.weight gate
cpmant.encoder.layers.1.ffn.ffn.w_in.w_1.weight up
cpmant.encoder.layers.1.ffn.ffn.w_out.weight down
"""),
    "whisper_original": ("", """
decoder.token_embedding.weight embed
decoder.positional_embedding pos_embed
decoder.ln.weight norm_final
decoder.blocks.1.attn_ln.weight norm_in
decoder.blocks.1.attn.query.weight q
decoder.blocks.1.attn.out.weight o
decoder.blocks.1.cross_attn.query.weight other
decoder.blocks.1.cross_attn_ln.weight other
decoder.blocks.1.mlp_ln.weight norm_post_attn
decoder.blocks.1.mlp.0.weight up
decoder.blocks.1.mlp.2.weight down
"""),
    "t5gemma": ("t5gemma", "\n".join(
        llama_like(f"model.{stack}.", MLP + FOUR_NORMS).replace("lm_head.weight lm_head", "")
        for stack in ("encoder", "decoder")
    ).replace("input_layernorm", "pre_self_attn_layernorm").replace(
        "post_attention_layernorm", "post_self_attn_layernorm")
        + "model.decoder.layers.1.pre_cross_attn_layernorm.weight other\n"),
    "jetmoe": ("jetmoe", """
model.layers.1.self_attention.kv_proj.weight other
model.layers.1.self_attention.experts.input_linear.weight q
model.layers.1.self_attention.experts.output_linear.weight o
model.layers.1.mlp.input_linear.weight expert_gate_up
model.layers.1.mlp.output_linear.weight expert_down
model.layers.1.mlp.router.layer.weight router
"""),
    "ouro": ("ouro", llama_like("model.", MLP + """
@input_layernorm_2.weight norm_post_attn
@post_attention_layernorm_2.weight norm_post_ffn
""").replace("post_attention_layernorm.weight norm_post_attn",
        "post_attention_layernorm.weight norm_pre_ffn")),
    "step3p5": ("step3p5", llama_like("model.", """
@self_attn.g_proj.weight other
@moe.gate.weight router
@moe.router_bias bias
@moe.gate_proj.weight expert_gate
@moe.up_proj.weight expert_up
@moe.down_proj.weight expert_down
@share_expert.gate_proj.weight shared_gate
@share_expert.down_proj.weight shared_down
""")),
    "arctic": ("arctic", llama_like("model.", """
@block_sparse_moe.gate.weight router
@block_sparse_moe.experts.1.w1.weight expert_gate
@block_sparse_moe.experts.1.w2.weight expert_down
@residual_mlp.w1.weight gate
@residual_mlp.w2.weight down
@residual_layernorm.weight norm_pre_ffn
""")),
    "minimax_text": ("minimax", llama_like("model.", """
@block_sparse_moe.gate.weight router
@block_sparse_moe.experts.1.w1.weight expert_gate
""").replace("layers.1.self_attn.q_proj.weight q", "layers.2.self_attn.qkv_proj.weight qkv")
        + "model.layers.2.self_attn.output_gate.weight other\n"
        "model.layers.2.self_attn.norm.weight norm_other\n"),
    "switch": ("switch_transformers", """
encoder.block.1.layer.1.mlp.router.classifier.weight router
encoder.block.1.layer.1.mlp.experts.expert_1.wi.weight expert_up
encoder.block.1.layer.1.mlp.experts.expert_1.wo.weight expert_down
encoder.block.1.layer.0.SelfAttention.q.weight q
"""),
    "megatron": ("", """
embedding.word_embeddings.weight embed
output_layer.weight lm_head
decoder.final_layernorm.weight norm_final
decoder.layers.1.self_attention.linear_qkv.weight qkv
decoder.layers.1.self_attention.linear_proj.weight o
decoder.layers.1.self_attention.linear_qkv.layer_norm_weight norm_in
decoder.layers.1.mlp.linear_fc1.layer_norm_weight norm_post_attn
decoder.layers.1.mlp.linear_fc1.weight gate_up
decoder.layers.1.mlp.linear_fc2.weight down
"""),
    "deepseek_original": ("", """
embed.weight embed
head.weight lm_head
layers.1.attn.wq_a.weight other
layers.1.attn.wq_b.weight q
layers.1.attn.wq_b.scale other
layers.1.attn.wkv_a.weight other
layers.1.attn.wo.weight o
layers.1.attn_norm.weight norm_in
layers.1.ffn_norm.weight norm_post_attn
layers.1.ffn.gate.weight router
layers.1.ffn.experts.1.w1.weight expert_gate
layers.1.ffn.shared_experts.w2.weight shared_down
"""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_typical_names_of_an_architecture(name: str) -> None:
    kind, text = CASES[name]
    config = {"model_type": kind, "hidden_size": H} if kind else {}
    result, wanted = roles_of(text, config)
    got = {tensor: role.role for tensor, role in result.roles.items()}
    assert got == wanted
    assert not [line for line in result.warnings if line.startswith("unknown")]


@pytest.mark.parametrize("name", CASES)
def test_names_alone_say_the_same_where_they_can(name: str) -> None:
    """Without a configuration most of the core must still be known."""
    _, text = CASES[name]
    result, wanted = roles_of(text, {})
    right = sum(result.roles[tensor].role == role for tensor, role in wanted.items())
    assert right >= 0.7 * len(wanted)
