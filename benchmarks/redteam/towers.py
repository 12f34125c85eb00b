"""Models of several towers, put together from trained text models and a vision tower."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.redteam.checkpoint import Array, Checkpoint
from benchmarks.redteam.layers import (
    DOWN,
    EMBEDDING,
    FINAL,
    GATE,
    IN,
    POST,
    UP,
    K,
    O,
    Q,
    V,
    at,
)
from benchmarks.redteam.surgery import synthetic
from benchmarks.redteam.zoo import Zoo

Tensors = dict[str, Array]
_PATCH, _IMAGE = 4, 32


def vision_tower(zoo: Zoo, seed: int, made: bool = False) -> Tensors:
    """A vision transformer in CLIP's names, without what comes before `encoder`.

    Its layers are those of a trained model with layer norms and plain feed-forwards where the
    zoo has one, else (or if asked for) random numbers with varying gains and biases.
    """
    rng = np.random.default_rng([seed, 77])
    width, units = 128, 352

    def draw(*shape: int, mean: float = 0.0, spread: float = 0.05) -> Array:
        return np.asarray(rng.normal(mean, spread, shape), np.float32)

    trained = None if made or "neox-j" not in zoo.names else zoo["neox-j"].tensors
    tensors: Tensors = {
        "embeddings.class_embedding": draw(width),
        "embeddings.patch_embedding.weight": draw(width, 3, _PATCH, _PATCH),
        "embeddings.position_embedding.weight": draw((_IMAGE // _PATCH) ** 2 + 1, width),
    }
    for name in ("pre_layrnorm", "post_layernorm"):
        tensors |= {f"{name}.weight": draw(width, mean=1, spread=0.2), f"{name}.bias": draw(width)}
    for layer in range(6):
        root = f"encoder.layers.{layer}"
        if trained is None:
            matrices = [draw(width, width) for _ in range(4)]
            tensors |= {
                f"{root}.mlp.fc1.weight": draw(units, width),
                f"{root}.mlp.fc1.bias": draw(units),
                f"{root}.mlp.fc2.weight": draw(width, units),
                f"{root}.mlp.fc2.bias": draw(width),
            }
            biases = [draw(width) for _ in range(4)]
            norms = [(draw(width, mean=1, spread=0.2), draw(width)) for _ in range(2)]
        else:
            old = f"gpt_neox.layers.{layer}"
            heads = trained[f"{old}.attention.query_key_value.weight"].reshape(4, 3, 32, width)
            shifts = trained[f"{old}.attention.query_key_value.bias"].reshape(4, 3, 32)
            matrices = [heads[:, one].reshape(width, width) for one in range(3)]
            biases = [shifts[:, one].reshape(width) for one in range(3)]
            matrices.append(trained[f"{old}.attention.dense.weight"])
            biases.append(trained[f"{old}.attention.dense.bias"])
            for new, known in (("fc1", "dense_h_to_4h"), ("fc2", "dense_4h_to_h")):
                for kind in ("weight", "bias"):
                    tensors[f"{root}.mlp.{new}.{kind}"] = trained[f"{old}.mlp.{known}.{kind}"]
            norms = [
                (trained[f"{old}.{name}.weight"], trained[f"{old}.{name}.bias"])
                for name in ("input_layernorm", "post_attention_layernorm")
            ]
        for name, matrix, bias in zip("qkv", matrices, biases, strict=False):
            tensors[f"{root}.self_attn.{name}_proj.weight"] = matrix
            tensors[f"{root}.self_attn.{name}_proj.bias"] = bias
        tensors[f"{root}.self_attn.out_proj.weight"] = matrices[3]
        tensors[f"{root}.self_attn.out_proj.bias"] = biases[3]
        for name, (gain, bias) in zip(("layer_norm1", "layer_norm2"), norms, strict=True):
            tensors |= {f"{root}.{name}.weight": gain, f"{root}.{name}.bias": bias}
    return tensors


_VISION: dict[str, Any] = {
    "model_type": "clip_vision_model", "hidden_size": 128, "intermediate_size": 352,
    "num_hidden_layers": 6, "num_attention_heads": 4, "image_size": _IMAGE, "patch_size": _PATCH,
    "hidden_act": "gelu",
}  # fmt: skip


def encoder_alone(vision: Tensors) -> Checkpoint:
    """A bare vision encoder as it is published by itself."""
    tensors = {f"vision_model.{name}": one for name, one in vision.items()}
    return Checkpoint(tensors, {**_VISION, "architectures": ["CLIPVisionModel"]})


def llava(text: Checkpoint, vision: Tensors, seed: int) -> Checkpoint:
    """A text model that sees, in LLaVA's names, with a projector of its own."""
    rng = np.random.default_rng([seed, 78])
    tensors: Tensors = {f"language_model.{name}": one for name, one in text.tensors.items()}
    tensors |= {f"vision_tower.vision_model.{name}": one for name, one in vision.items()}
    for name in ("linear_1", "linear_2"):
        tensors[f"multi_modal_projector.{name}.weight"] = np.asarray(
            rng.normal(0, 0.05, (text.width, text.width)), np.float32
        )
        tensors[f"multi_modal_projector.{name}.bias"] = np.zeros(text.width, np.float32)
    config = {
        "model_type": "llava",
        "architectures": ["LlavaForConditionalGeneration"],
        "text_config": dict(text.geometry),
        "vision_config": _VISION,
        "image_token_index": 5,
        "torch_dtype": "bfloat16",
    }
    return Checkpoint(tensors, config, text.files)


def qwen_vl(text: Checkpoint, vision: Tensors, seed: int) -> Checkpoint:
    """The same in Qwen2-VL's names: q, k and v of the vision tower in one tensor."""
    rng = np.random.default_rng([seed, 79])
    tensors: Tensors = dict(text.tensors)
    tensors["visual.patch_embed.proj.weight"] = vision["embeddings.patch_embedding.weight"]
    for layer in range(6):
        old, new = f"encoder.layers.{layer}", f"visual.blocks.{layer}"
        for kind in ("weight", "bias"):
            parts = [vision[f"{old}.self_attn.{one}_proj.{kind}"] for one in "qkv"]
            tensors[f"{new}.attn.qkv.{kind}"] = np.concatenate(parts)
            tensors[f"{new}.attn.proj.{kind}"] = vision[f"{old}.self_attn.out_proj.{kind}"]
            for one in ("fc1", "fc2"):
                tensors[f"{new}.mlp.{one}.{kind}"] = vision[f"{old}.mlp.{one}.{kind}"]
            for one in "12":
                tensors[f"{new}.norm{one}.{kind}"] = vision[f"{old}.layer_norm{one}.{kind}"]
    tensors["visual.merger.mlp.0.weight"] = np.asarray(
        rng.normal(0, 0.05, (text.width, 128)), np.float32
    )
    config = {
        **text.geometry,
        "model_type": "qwen2_vl",
        "architectures": ["Qwen2VLForConditionalGeneration"],
        "vision_config": {
            "model_type": "qwen2_vl", "depth": 6, "embed_dim": 128, "num_heads": 4,
            "mlp_ratio": 2.75, "patch_size": _PATCH, "hidden_size": text.width,
        },
    }  # fmt: skip
    return Checkpoint(tensors, config, text.files)


def unrelated(zoo: Zoo, seed: int) -> Checkpoint:
    """Random weights of the zoo's sizes, for stacks that must be nobody's."""
    return synthetic(seed + 500, 128, 6, 352, 4096, zoo.root(0))


def t5(encoder: Checkpoint, decoder: Checkpoint, seed: int, encoder_seed: int) -> Checkpoint:
    """An encoder-decoder in T5's names whose stacks are those of two text models.

    T5 has as many key heads as query heads: those that a stack lacks are random, drawn by the
    seed of the encoder there and by that of the pair elsewhere. So are cross-attention and the
    decoder's part of the embedding.
    """
    tensors: Tensors = {"shared.weight": decoder.tensors[EMBEDDING]}
    tensors |= _t5_stack("encoder", encoder, np.random.default_rng([encoder_seed, 80]))
    tensors |= _t5_stack("decoder", decoder, np.random.default_rng([seed, 81]))
    config = {
        "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 128,
        "d_kv": 32, "d_ff": 352, "num_layers": 6, "num_decoder_layers": 6, "num_heads": 4,
        "vocab_size": len(decoder.tensors[EMBEDDING]), "feed_forward_proj": "gated-silu",
        "is_encoder_decoder": True, "tie_word_embeddings": True, "torch_dtype": "bfloat16",
        "layer_norm_epsilon": 1e-6,
    }  # fmt: skip
    return Checkpoint(tensors, config, decoder.files)


def _t5_stack(name: str, model: Checkpoint, rng: np.random.Generator) -> Tensors:
    def heads(part: str, layer: int) -> Array:
        own = model.tensors[at(layer, part)]
        more = rng.normal(0, own.std(), (128 - len(own), own.shape[1]))
        return np.concatenate([own, more.astype(np.float32)])

    def draw(*shape: int) -> Array:
        return np.asarray(rng.normal(0, 0.05, shape), np.float32)

    last = 2 if name == "decoder" else 1
    tensors: Tensors = {f"{name}.final_layer_norm.weight": model.tensors[FINAL]}
    tensors[f"{name}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = draw(32, 4)
    for layer in range(model.depth):
        root = f"{name}.block.{layer}.layer"
        tensors |= {
            f"{root}.0.layer_norm.weight": model.tensors[at(layer, IN)],
            f"{root}.0.SelfAttention.q.weight": model.tensors[at(layer, Q)],
            f"{root}.0.SelfAttention.k.weight": heads(K, layer),
            f"{root}.0.SelfAttention.v.weight": heads(V, layer),
            f"{root}.0.SelfAttention.o.weight": model.tensors[at(layer, O)],
            f"{root}.{last}.layer_norm.weight": model.tensors[at(layer, POST)],
            f"{root}.{last}.DenseReluDense.wi_0.weight": model.tensors[at(layer, GATE)],
            f"{root}.{last}.DenseReluDense.wi_1.weight": model.tensors[at(layer, UP)],
            f"{root}.{last}.DenseReluDense.wo.weight": model.tensors[at(layer, DOWN)],
        }
        if name == "decoder":
            for part in "qkvo":
                tensors[f"{root}.1.EncDecAttention.{part}.weight"] = draw(128, 128)
            tensors[f"{root}.1.layer_norm.weight"] = 1 + draw(128)
    return tensors
