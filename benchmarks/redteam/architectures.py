"""Models of random weights in the layouts of other architectures than LLaMA's."""

from __future__ import annotations

import numpy as np

from benchmarks.redteam.checkpoint import Array, Checkpoint

_WIDTH, _UNITS, _LAYERS, _TOKENS = 128, 256, 3, 512
_SETTINGS = {"hidden_size": _WIDTH, "num_hidden_layers": _LAYERS, "vocab_size": _TOKENS}


class _Drawing:
    """Tensors of one model, drawn one after the other."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng([seed, 91])
        self.tensors: dict[str, Array] = {}

    def draw(self, name: str, *shape: int, bias: bool = False) -> None:
        """A weight, and its bias where there is one."""
        self.tensors[f"{name}.weight"] = self._normal(0.05, shape)
        if bias:
            self.tensors[f"{name}.bias"] = self._normal(0.05, shape[:1])

    def norm(self, name: str, width: int = _WIDTH, *, bias: bool = False) -> None:
        """Gains around one, and their bias where there is one."""
        self.tensors[f"{name}.weight"] = np.exp(self._normal(0.2, (width,)))
        if bias:
            self.tensors[f"{name}.bias"] = self._normal(0.05, (width,))

    def attention(self, name: str, *matrices: str) -> None:
        """Square matrices with biases."""
        for one in matrices:
            self.draw(f"{name}.{one}", _WIDTH, _WIDTH, bias=True)

    def _normal(self, spread: float, shape: tuple[int, ...]) -> Array:
        return np.asarray(self._rng.normal(0, spread, shape), np.float32)


def speech_model(seed: int) -> Checkpoint:
    """Whisper's layout: convolutions, an encoder with computed positions, cross-attention."""
    made = _Drawing(seed)
    made.draw("model.encoder.conv1", _WIDTH, 80, 3, bias=True)
    made.draw("model.encoder.conv2", _WIDTH, _WIDTH, 3, bias=True)
    angles = np.arange(300)[:, None] / 10000 ** (np.arange(_WIDTH // 2) / (_WIDTH // 2 - 1))
    positions = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    made.tensors["model.encoder.embed_positions.weight"] = positions.astype(np.float32)
    made.draw("model.decoder.embed_positions", 128, _WIDTH)
    made.draw("model.decoder.embed_tokens", _TOKENS, _WIDTH)
    for tower in ("encoder", "decoder"):
        for layer in range(_LAYERS):
            root = f"model.{tower}.layers.{layer}"
            for block in ("self_attn", "encoder_attn")[: 1 if tower == "encoder" else 2]:
                made.attention(f"{root}.{block}", "q_proj", "k_proj", "v_proj", "out_proj")
                made.norm(f"{root}.{block}_layer_norm", bias=True)
            made.draw(f"{root}.fc1", _UNITS, _WIDTH, bias=True)
            made.draw(f"{root}.fc2", _WIDTH, _UNITS, bias=True)
            made.norm(f"{root}.final_layer_norm", bias=True)
        made.norm(f"model.{tower}.layer_norm", bias=True)
    heads = {f"{tower}_attention_heads": 4 for tower in ("encoder", "decoder")}
    depths = {f"{tower}_layers": _LAYERS for tower in ("encoder", "decoder")}
    config = {"model_type": "whisper", "d_model": _WIDTH, "vocab_size": _TOKENS, **heads, **depths}
    return Checkpoint(made.tensors, config, dtype=np.float32)


def latent_model(seed: int) -> Checkpoint:
    """DeepSeek-V2's layout: keys and values go through a narrow projection."""
    made, heads, rank, rotated = _Drawing(seed), 4, 32, 16
    made.draw("model.embed_tokens", _TOKENS, _WIDTH)
    made.norm("model.norm")
    for layer in range(_LAYERS):
        root = f"model.layers.{layer}"
        made.norm(f"{root}.input_layernorm")
        made.norm(f"{root}.post_attention_layernorm")
        made.draw(f"{root}.self_attn.q_proj", heads * 48, _WIDTH)
        made.draw(f"{root}.self_attn.kv_a_proj_with_mqa", rank + rotated, _WIDTH)
        made.norm(f"{root}.self_attn.kv_a_layernorm", rank)
        made.draw(f"{root}.self_attn.kv_b_proj", heads * 64, rank)
        made.draw(f"{root}.self_attn.o_proj", _WIDTH, heads * 32)
        for name in ("gate_proj", "up_proj"):
            made.draw(f"{root}.mlp.{name}", _UNITS, _WIDTH)
        made.draw(f"{root}.mlp.down_proj", _WIDTH, _UNITS)
    config = {
        "model_type": "deepseek_v2", "num_attention_heads": heads, "q_lora_rank": None,
        "kv_lora_rank": rank, "qk_rope_head_dim": rotated, "qk_nope_head_dim": 32,
        "v_head_dim": 32, "intermediate_size": _UNITS, "hidden_act": "silu",
        "first_k_dense_replace": _LAYERS, **_SETTINGS,
    }  # fmt: skip
    return Checkpoint(made.tensors, config, dtype=np.float32)


def state_space_model(seed: int) -> Checkpoint:
    """Mamba-2's layout; the decay rates of its heads are those that it starts with."""
    made, heads, states = _Drawing(seed), 64, 16
    inner = 2 * _WIDTH
    made.draw("backbone.embeddings", _TOKENS, _WIDTH)
    made.norm("backbone.norm_f")
    for layer in range(_LAYERS):
        root = f"backbone.layers.{layer}"
        made.norm(f"{root}.norm")
        made.norm(f"{root}.mixer.norm", inner)
        made.draw(f"{root}.mixer.in_proj", 2 * inner + 2 * states + heads, _WIDTH)
        made.draw(f"{root}.mixer.conv1d", inner + 2 * states, 1, 4, bias=True)
        made.draw(f"{root}.mixer.out_proj", _WIDTH, inner)
        rates = np.log(np.arange(1, heads + 1, dtype=np.float32))
        made.tensors |= {f"{root}.mixer.A_log": rates, f"{root}.mixer.D": np.ones_like(rates)}
    config = {
        "model_type": "mamba2", "state_size": states, "num_heads": heads, "head_dim": 4,
        "expand": 2, "n_groups": 1, "conv_kernel": 4, **_SETTINGS,
    }  # fmt: skip
    return Checkpoint(made.tensors, config, dtype=np.float32)


def encoder_model(seed: int) -> Checkpoint:
    """BERT's layout: learnt tables of positions and of segments."""
    made, table = _Drawing(seed), "bert.embeddings"
    for name, rows in (("word", _TOKENS), ("position", 128), ("token_type", 2)):
        made.draw(f"{table}.{name}_embeddings", rows, _WIDTH)
    made.norm(f"{table}.LayerNorm", bias=True)
    for layer in range(_LAYERS):
        root = f"bert.encoder.layer.{layer}"
        made.attention(f"{root}.attention.self", "query", "key", "value")
        made.attention(f"{root}.attention.output", "dense")
        made.draw(f"{root}.intermediate.dense", _UNITS, _WIDTH, bias=True)
        made.draw(f"{root}.output.dense", _WIDTH, _UNITS, bias=True)
        for norm in ("attention.output", "output"):
            made.norm(f"{root}.{norm}.LayerNorm", bias=True)
    config = {
        "model_type": "bert", "num_attention_heads": 4, "intermediate_size": _UNITS,
        "hidden_act": "gelu", **_SETTINGS,
    }  # fmt: skip
    return Checkpoint(made.tensors, config, dtype=np.float32)
