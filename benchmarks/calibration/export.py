"""Models of a collection as folders in the layout of the Hugging Face hub, or in one archive."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save, save_file

from benchmarks.calibration.families import Collection

_LAYER = {
    "q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj",
    "o": "self_attn.o_proj", "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj",
    "norm_in": "input_layernorm", "norm_post_attn": "post_attention_layernorm",
}  # fmt: skip
_OUTSIDE = {"embed": "model.embed_tokens", "head": "lm_head", "norm_final": "model.norm"}


def export(
    collection: Collection, names: Sequence[str], tokenizer: Any, path: Path, limit: int
) -> None:
    """Write models, a tokenizer and the family tree into a tar file of at most so many bytes."""
    left = limit
    tree = {}
    with tarfile.open(path, "w") as archive:
        _put(archive, "tokenizer.json", tokenizer.to_str().encode())
        for name in names:
            folder = name.replace(" ", "-").replace(",", "")
            weights = save(_tensors(collection.models[name]), {"format": "pt"})
            if len(weights) + 4096 > left:
                print(f"{path.name}: no room for {name}", flush=True)
                continue
            left -= len(weights) + 4096
            config = _config(collection, collection.models[name])
            _put(archive, f"{folder}/config.json", json.dumps(config, indent=1).encode())
            _put(archive, f"{folder}/model.safetensors", weights)
            tree[folder] = {"name": name, **collection.tree[name]}
        _put(archive, "tree.json", json.dumps(tree, indent=1).encode())


def write_models(collection: Collection, tokenizer: Any, folder: Path) -> dict[str, Path]:
    """Write every model into a folder of its own; the folders by the models' names."""
    written = {}
    for number, (name, model) in enumerate(collection.models.items()):
        place = written[name] = folder / str(number)
        place.mkdir(parents=True)
        save_file(_tensors(model), place / "model.safetensors", {"format": "pt"})
        (place / "config.json").write_text(json.dumps(_config(collection, model)))
        (place / "tokenizer.json").write_text(tokenizer.to_str())
    return written


def _tensors(model: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for part, value in model.items():
        tensor = torch.from_numpy(np.ascontiguousarray(value)).to(torch.bfloat16)
        if part in _OUTSIDE:
            found[f"{_OUTSIDE[part]}.weight"] = tensor
            continue
        for layer, rows in enumerate(tensor):
            found[f"model.layers.{layer}.{_LAYER[part]}.weight"] = rows.clone()
    return found


def _config(collection: Collection, model: Mapping[str, Any]) -> dict[str, Any]:
    shape = collection.plan.shape
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        "hidden_size": model["embed"].shape[1], "num_hidden_layers": len(model["norm_in"]),
        "num_attention_heads": shape.heads, "num_key_value_heads": shape.groups,
        "head_dim": shape.size, "intermediate_size": model["up"].shape[1],
        "vocab_size": shape.tokens, "tie_word_embeddings": False, "rope_theta": 10000.0,
        "rms_norm_eps": 1e-6, "hidden_act": "silu" if shape.gated else "gelu",
        "max_position_embeddings": 2048,
        "torch_dtype": "bfloat16",
    }  # fmt: skip


def _put(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    archive.addfile(entry, io.BytesIO(data))
