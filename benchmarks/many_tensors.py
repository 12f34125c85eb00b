"""A mixture of experts with ninety thousand tensors, as headers over holes: nothing to compute."""

from __future__ import annotations

import json
from itertools import accumulate
from math import prod
from pathlib import Path

LAYERS, EXPERTS, SHARDS = 60, 500, 160
HIDDEN, UNITS, VOCABULARY = 4096, 1024, 32_000
CONFIG: dict[str, object] = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "hidden_size": HIDDEN,
    "num_attention_heads": 32,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": UNITS,
    "vocab_size": VOCABULARY,
    "tie_word_embeddings": False,
}


def write_model(
    folder: Path, layers: int = LAYERS, experts: int = EXPERTS, files: int = SHARDS
) -> int:
    """Write the model into a folder; how many tensors it has."""
    shapes = tensor_shapes(layers, experts)
    names = list(shapes)
    size = -(-len(names) // files)
    shards = [names[start : start + size] for start in range(0, len(names), size)]
    homes: dict[str, str] = {}
    for number, members in enumerate(shards, 1):
        file = f"model-{number:05d}-of-{len(shards):05d}.safetensors"
        write_shard(folder / file, {name: shapes[name] for name in members})
        homes |= dict.fromkeys(members, file)
    config = CONFIG | {"num_hidden_layers": layers, "num_experts": experts}
    (folder / "config.json").write_text(json.dumps(config))
    index = {"metadata": {"total_size": 2 * sum(map(prod, shapes.values()))}, "weight_map": homes}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=2))
    return len(shapes)


def tensor_shapes(layers: int, experts: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes as this architecture has them."""
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (VOCABULARY, HIDDEN)}
    heads = {"q": (4096, HIDDEN), "k": (512, HIDDEN), "v": (512, HIDDEN), "o": (HIDDEN, 4096)}
    units = {"gate": (UNITS, HIDDEN), "up": (UNITS, HIDDEN), "down": (HIDDEN, UNITS)}
    for layer in range(layers):
        block = f"model.layers.{layer}"
        shapes |= {f"{block}.self_attn.{part}_proj.weight": one for part, one in heads.items()}
        shapes |= {f"{block}.self_attn.{part}_norm.weight": (128,) for part in "qk"}
        shapes |= {
            f"{block}.{place}_layernorm.weight": (HIDDEN,) for place in ("input", "post_attention")
        }
        shapes[f"{block}.mlp.gate.weight"] = (experts, HIDDEN)
        for expert in range(experts):
            path = f"{block}.mlp.experts.{expert}"
            shapes |= {f"{path}.{part}_proj.weight": one for part, one in units.items()}
    return shapes | {"model.norm.weight": (HIDDEN,), "lm_head.weight": (VOCABULARY, HIDDEN)}


def write_shard(file: Path, shapes: dict[str, tuple[int, ...]]) -> None:
    """A header, and a hole as long as its tensors in sixteen bits."""
    ends = list(accumulate(2 * prod(shape) for shape in shapes.values()))
    places = zip([0, *ends[:-1]], ends, strict=True)
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    for (name, shape), place in zip(shapes.items(), places, strict=True):
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": place}
    raw = json.dumps(header, separators=(",", ":")).encode()
    with file.open("wb") as stream:
        stream.write(len(raw).to_bytes(8, "little") + raw)
        stream.truncate(8 + len(raw) + ends[-1])
