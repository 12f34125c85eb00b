"""Small models with several towers: pictures beside text, an encoder beside a decoder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.lineage.stored_models import LLAMA, Array, llama, stored

WIDTH, UNITS, LAYERS = 48, 96, 3
VISION: dict[str, Any] = {
    "model_type": "clip_vision_model", "hidden_size": WIDTH, "num_attention_heads": 4,
    "num_hidden_layers": LAYERS, "intermediate_size": UNITS, "hidden_act": "quick_gelu",
    "layer_norm_eps": 1e-5,
}  # fmt: skip
LLAVA = {
    "model_type": "llava", "architectures": ["LlavaForConditionalGeneration"],
    "text_config": LLAMA, "vision_config": VISION,
}  # fmt: skip
T5 = {
    "model_type": "t5", "d_model": 64, "num_layers": 3, "num_decoder_layers": 3, "num_heads": 4,
    "d_kv": 16, "d_ff": 128, "feed_forward_proj": "gated-gelu", "vocab_size": 96,
}  # fmt: skip


def vision(seed: int, root: str = "vision_model.") -> dict[str, Array]:
    """A tower for pictures, as CLIP names it."""
    chance = np.random.default_rng(seed)

    def some(*shape: int) -> Array:
        return chance.normal(size=shape).astype(np.float32)

    found = {
        f"{root}embeddings.patch_embedding.weight": some(WIDTH, 3, 4, 4),
        f"{root}embeddings.position_embedding.weight": some(17, WIDTH),
    }
    for name in ("pre_layrnorm", "post_layernorm"):
        found |= {f"{root}{name}.{kind}": some(WIDTH) for kind in ("weight", "bias")}
    for layer in range(LAYERS):
        for name, shape in (
            ("layer_norm1", (WIDTH,)), ("layer_norm2", (WIDTH,)),
            ("self_attn.q_proj", (WIDTH, WIDTH)), ("self_attn.k_proj", (WIDTH, WIDTH)),
            ("self_attn.v_proj", (WIDTH, WIDTH)), ("self_attn.out_proj", (WIDTH, WIDTH)),
            ("mlp.fc1", (UNITS, WIDTH)), ("mlp.fc2", (WIDTH, UNITS)),
        ):  # fmt: skip
            place = f"{root}encoder.layers.{layer}.{name}"
            found |= {f"{place}.weight": some(*shape), f"{place}.bias": some(shape[0])}
    return found


def llava(text: int, pictures: int) -> dict[str, Array]:
    """A language model and a tower for pictures, each by its seed."""
    of_text = {
        name.replace("model.", "language_model.model.", 1): values
        for name, values in llama(text).items()
    }
    return of_text | vision(pictures, "vision_tower.vision_model.")


def pipeline(folder: Path, pictures: int, text: int) -> str:
    """A pipeline of several models: what makes pictures, a text encoder, and convolutions."""
    chance = np.random.default_rng(pictures)

    def some(*shape: int) -> Array:
        return chance.normal(size=shape).astype(np.float32)

    transformer = {
        f"transformer_blocks.{layer}.attn.{role}.weight": some(32, 32)
        for layer in range(3)
        for role in ("to_q", "to_k", "to_v", "to_out.0")
    }
    convolutions = {
        f"{side}_blocks.{block}.resnets.0.conv1.weight": some(8, 8, 3, 3)
        for side in ("encoder.down", "decoder.up")
        for block in range(2)
    }
    sizes = {"num_layers": 3, "num_attention_heads": 2, "attention_head_dim": 16}
    stored(folder / "transformer", transformer, {"_class_name": "Transformer2DModel"} | sizes)
    stored(folder / "vae", convolutions, {"_class_name": "AutoencoderKL"})
    config = VISION | {"model_type": "clip_text_model"}
    stored(folder / "text_encoder", vision(text, "text_model."), config)
    (folder / "model_index.json").write_text(json.dumps({"_class_name": "Pipeline"}))
    return str(folder)


def diffusion(
    folder: Path, seed: int, gated: bool, taken: int | None = None, shuffled: bool = False
) -> str:
    """A transformer that makes pictures, with feed-forwards of another seed if one is given.

    Gated ones have up and gate in one matrix, in this order.
    """
    chance, source = np.random.default_rng(seed), np.random.default_rng([taken or seed, 1])
    width, units = 64, 192
    tensors: dict[str, Array] = {}
    for layer in range(4):
        root = f"transformer_blocks.{layer}"
        for role in ("to_q", "to_k", "to_v", "to_out.0"):
            tensors[f"{root}.attn.{role}.weight"] = _normal(chance, width, width)
        first = _normal(source, 1 + gated, units, width)
        last = _normal(source, width, units)
        order = chance.permutation(units) if shuffled else np.arange(units)
        tensors[f"{root}.ff.net.0.proj.weight"] = first[:, order].reshape(-1, width)
        tensors[f"{root}.ff.net.2.weight"] = np.ascontiguousarray(last[:, order])
    sizes = {"num_layers": 4, "num_attention_heads": 4, "attention_head_dim": 16}
    return stored(folder, tensors, {"_class_name": "SD3Transformer2DModel"} | sizes)


def _normal(chance: np.random.Generator, *shape: int) -> Array:
    return chance.normal(size=shape).astype(np.float32)


def t5(encoder: int, decoder: int | None) -> dict[str, Array]:
    """An encoder and, with a seed, a decoder."""
    seeds = {"encoder": encoder} | ({} if decoder is None else {"decoder": decoder})
    width, units = 64, 128
    found: dict[str, Array] = {}
    for side, seed in seeds.items():
        chance = np.random.default_rng([seed, side == "decoder"])

        def some(*shape: int, chance: np.random.Generator = chance) -> Array:
            return chance.normal(size=shape).astype(np.float32)

        found.setdefault("shared.weight", some(96, width))
        found[f"{side}.final_layer_norm.weight"] = some(width)
        for layer in range(3):
            kinds = ["SelfAttention", *(["EncDecAttention"] if side == "decoder" else [])]
            root = f"{side}.block.{layer}.layer"
            for at, kind in enumerate(kinds):
                found |= {
                    f"{root}.{at}.{kind}.{role}.weight": some(width, width) for role in "qkvo"
                }
                found[f"{root}.{at}.layer_norm.weight"] = some(width)
            dense = f"{root}.{len(kinds)}"
            found |= {
                f"{dense}.DenseReluDense.{name}.weight": some(units, width)
                for name in ("wi_0", "wi_1")
            }
            found[f"{dense}.DenseReluDense.wo.weight"] = some(width, units)
            found[f"{dense}.layer_norm.weight"] = some(width)
    return found
