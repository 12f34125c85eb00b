"""Small models as files, and what is read of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from kinprint.lineage.opening import open_all, read_headers, sampler_of
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.reading.sampler import Sampler
from kinprint.lineage.results import Settings
from kinprint.reader.fetch import Fetcher

Array = NDArray[Any]
LAYERS, WIDTH, UNITS, HEADS, GROUPS, SIZE, VOCABULARY = 3, 64, 48, 4, 2, 16, 96
LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": WIDTH,
    "num_attention_heads": HEADS, "num_key_value_heads": GROUPS, "head_dim": SIZE,
    "num_hidden_layers": LAYERS, "intermediate_size": UNITS, "vocab_size": VOCABULARY,
    "rms_norm_eps": 1e-5, "hidden_act": "silu",
}  # fmt: skip


def llama(seed: int = 0, **sizes: int) -> dict[str, Array]:
    """Tensors of a small Llama with numbers that are all different."""
    chance = np.random.default_rng(seed)
    width, units = sizes.get("width", WIDTH), sizes.get("units", UNITS)

    def some(*shape: int) -> Array:
        return chance.normal(size=shape).astype(np.float32)

    found = {"model.embed_tokens.weight": some(VOCABULARY, width), "model.norm.weight": some(width)}
    for layer in range(sizes.get("layers", LAYERS)):
        root = f"model.layers.{layer}"
        found |= {
            f"{root}.input_layernorm.weight": some(width),
            f"{root}.post_attention_layernorm.weight": some(width),
            f"{root}.self_attn.q_proj.weight": some(HEADS * SIZE, width),
            f"{root}.self_attn.k_proj.weight": some(GROUPS * SIZE, width),
            f"{root}.self_attn.v_proj.weight": some(GROUPS * SIZE, width),
            f"{root}.self_attn.o_proj.weight": some(width, HEADS * SIZE),
            f"{root}.mlp.gate_proj.weight": some(units, width),
            f"{root}.mlp.up_proj.weight": some(units, width),
            f"{root}.mlp.down_proj.weight": some(width, units),
        }
    return found


def stored(folder: Path, tensors: dict[str, Array], config: dict[str, Any] | None = None) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(LLAMA if config is None else config))
    return str(folder)


def sampled(
    names: list[str],
    fetcher: Fetcher,
    level: str = "standard",
    budget: int | None = None,
    base: str | None = None,
    seed: int = 0,
) -> Sampler:
    settings = Settings(level, budget=budget, base=base, seed=seed)
    return sampler_of(read_headers(open_all(names, fetcher, settings), settings), settings)


def final(sampler: Sampler) -> list[Sample]:
    return sampler.samples(sampler.stages - 1)


def mixture(experts: int = 4, layers: int = LAYERS) -> tuple[dict[str, Array], dict[str, Any]]:
    raw = {name: one for name, one in llama(layers=layers).items() if ".mlp." not in name}
    chance = np.random.default_rng(5)
    for layer in range(layers):
        root = f"model.layers.{layer}.block_sparse_moe"
        raw[f"{root}.gate.weight"] = chance.normal(size=(experts, WIDTH)).astype(np.float32)
        for expert in range(experts):
            for name, shape in (
                ("w1", (UNITS, WIDTH)),
                ("w2", (WIDTH, UNITS)),
                ("w3", (UNITS, WIDTH)),
            ):
                values = chance.normal(size=shape).astype(np.float32)
                raw[f"{root}.experts.{expert}.{name}.weight"] = values
    config = LLAMA | {"model_type": "mixtral", "num_local_experts": experts}
    config["num_hidden_layers"] = layers
    return raw, config | {"architectures": ["MixtralForCausalLM"], "num_experts_per_tok": 2}
