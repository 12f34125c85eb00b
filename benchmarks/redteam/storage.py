"""The same weights stored otherwise: number formats, names, files, fused tensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from msgspec.structs import replace

from benchmarks.redteam.checkpoint import Array, Checkpoint
from benchmarks.redteam.layers import (
    ATTENTION,
    DOWN,
    EMBEDDING,
    FEED_FORWARD,
    FINAL,
    GATE,
    HEAD,
    IN,
    POST,
    UP,
    K,
    O,
    Q,
    V,
    at,
    names_of,
)
from benchmarks.redteam.relabelling import Rng

_BLOCK = 128  # rows and columns that share a scale in DeepSeek's fp8
_GGUF = {
    IN: "attn_norm", POST: "ffn_norm", Q: "attn_q", K: "attn_k", V: "attn_v", O: "attn_output",
    GATE: "ffn_gate", UP: "ffn_up", DOWN: "ffn_down",
}  # fmt: skip


def cast(model: Checkpoint, dtype: Any) -> Checkpoint:
    """The same numbers in another format, as near as it can hold them."""
    return replace(model, dtype=dtype)


def unrounded(model: Checkpoint, rng: Rng) -> Checkpoint:
    """A master in single precision whose bf16 rounding a model is: digits below its grid."""
    new: dict[str, Array] = {}
    for name, values in model.tensors.items():
        steps = np.ldexp(1.0, np.frexp(values)[1] - 8)
        near = values + steps * rng.uniform(-0.5, 0.5, values.shape)
        kept = near.astype(ml_dtypes.bfloat16).astype(np.float32) == values
        new[name] = np.where(kept, near, values).astype(np.float32)
    return replace(model.changed(new), dtype=np.float32)


def as_fp8(model: Checkpoint) -> Checkpoint:
    """Matrices of the layers in e4m3 with a scale for each block of 128 × 128."""
    new: dict[str, Array] = {}
    for name in names_of(model, (*ATTENTION, *FEED_FORWARD), range(model.depth)):
        matrix = model.tensors[name]
        rows, columns = (-(-size // _BLOCK) for size in matrix.shape)
        scales = np.ones((rows, columns), np.float32)
        codes = np.empty(matrix.shape, ml_dtypes.float8_e4m3fn)
        for row in range(rows):
            for column in range(columns):
                block = np.s_[
                    row * _BLOCK : (row + 1) * _BLOCK, column * _BLOCK : (column + 1) * _BLOCK
                ]
                largest = max(float(np.abs(matrix[block]).max()), 1e-12) / 448
                scales[row, column] = np.float32(ml_dtypes.bfloat16(largest * 1.004))
                codes[block] = (matrix[block] / scales[row, column]).astype(codes.dtype)
        new[name] = codes
        new[name.replace(".weight", ".weight_scale_inv")] = scales.astype(ml_dtypes.bfloat16)
    settings = {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": [_BLOCK, _BLOCK]}
    return model.changed(new, quantization_config=settings)


def as_int8(model: Checkpoint) -> Checkpoint:
    """Matrices of the layers as whole numbers of eight bits with a scale for each row."""
    new: dict[str, Array] = {}
    for name in names_of(model, (*ATTENTION, *FEED_FORWARD), range(model.depth)):
        matrix = model.tensors[name]
        scales = np.abs(matrix).max(axis=1, keepdims=True) / 127
        scales = scales.astype(ml_dtypes.bfloat16).astype(np.float32)
        new[name] = np.clip(np.rint(matrix / scales), -127, 127).astype(np.int8)
        new[name.replace(".weight", ".weight_scale")] = scales.astype(ml_dtypes.bfloat16)
    weights = {"num_bits": 8, "type": "int", "symmetric": True, "strategy": "channel"}
    settings = {
        "quant_method": "compressed-tensors",
        "format": "int-quantized",
        "config_groups": {"group_0": {"weights": weights, "targets": ["Linear"]}},
    }
    return model.changed(new, quantization_config=settings)


def as_gguf(model: Checkpoint, kind: str) -> Checkpoint:
    """One GGUF file with matrices in a block format such as "Q8_0", and norms in single."""

    def save(one: Checkpoint, folder: Path) -> None:
        _write_gguf(one, folder / "model.gguf", kind)

    return replace(model, save=save)


def renamed(model: Checkpoint, known: bool) -> Checkpoint:
    """The same tensors under other names, structured ones or mere numbers."""
    names: dict[str, str] = {}
    parts = {
        Q: "att.query", K: "att.key", V: "att.value", O: "att.merge", GATE: "mix.a", UP: "mix.b",
        DOWN: "mix.c", IN: "ln_first", POST: "ln_second",
    }  # fmt: skip
    for layer in range(model.depth):
        names |= {at(layer, part): f"net.stage.{layer}.{new}.w" for part, new in parts.items()}
    names |= {EMBEDDING: "net.wordtable.w", FINAL: "net.ln_last.w", HEAD: "net.out.w"}
    if not known:
        names = {old: f"tensor_{number:04}" for number, old in enumerate(sorted(names))}
    tensors = {names[old]: one for old, one in model.tensors.items()}
    config = {
        "model_type": "net",
        **{
            key: value
            for key, value in model.geometry.items()
            if key not in ("model_type", "architectures")
        },
    }
    return replace(model, tensors=tensors, config=config)


def in_prefix(model: Checkpoint, prefix: str) -> Checkpoint:
    """The same tensors below another first part of their names."""
    tensors = {prefix + name.removeprefix("model."): one for name, one in model.tensors.items()}
    return replace(model, tensors=tensors)


def fused(model: Checkpoint) -> Checkpoint:
    """q, k and v in one tensor, gate and up in another, as Phi-3 has them."""
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        q, k, v = (model.tensors[at(layer, part)] for part in (Q, K, V))
        gate, up = (model.tensors[at(layer, part)] for part in (GATE, UP))
        new[at(layer, "self_attn.qkv_proj")] = np.concatenate([q, k, v])
        new[at(layer, "mlp.gate_up_proj")] = np.concatenate([gate, up])
    gone = names_of(model, (Q, K, V, GATE, UP), range(model.depth))
    return model.without(gone).changed(
        new, model_type="phi3", architectures=["Phi3ForCausalLM"], pad_token_id=0
    )


def ternary(model: Checkpoint) -> Checkpoint:
    """Matrices of the layers on a grid of three values, as BitNet has them."""
    new: dict[str, Array] = {}
    for name in names_of(model, (*ATTENTION, *FEED_FORWARD), range(model.depth)):
        matrix = model.tensors[name]
        scale = np.abs(matrix).mean()
        new[name] = (np.clip(np.rint(matrix / scale), -1, 1) * 0.0625).astype(np.float32)
    return model.changed(new)


def _write_gguf(model: Checkpoint, path: Path, kind: str) -> None:
    import gguf
    from gguf import quants

    writer = gguf.GGUFWriter(path, "llama")
    config = model.geometry
    writer.add_block_count(model.depth)
    writer.add_context_length(int(config["max_position_embeddings"]))
    writer.add_embedding_length(model.width)
    writer.add_feed_forward_length(int(config["intermediate_size"]))
    writer.add_head_count(int(config["num_attention_heads"]))
    writer.add_head_count_kv(int(config["num_key_value_heads"]))
    writer.add_layer_norm_rms_eps(float(config["rms_norm_eps"]))
    writer.add_rope_dimension_count(int(config["head_dim"]))
    writer.add_vocab_size(int(config["vocab_size"]))
    vocabulary: dict[str, int] = json.loads(model.files["tokenizer.json"])["model"]["vocab"]
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(vocabulary, key=lambda token: vocabulary[token]))
    heads = {Q: int(config["num_attention_heads"]), K: int(config["num_key_value_heads"])}
    form = gguf.GGMLQuantizationType[kind]

    def add(name: str, values: Array) -> None:
        if values.ndim == 1:
            writer.add_tensor(name, np.ascontiguousarray(values, np.float32))
            return
        packed = quants.quantize(np.ascontiguousarray(values, np.float32), form)
        writer.add_tensor(name, packed, raw_dtype=form)

    add("token_embd.weight", model.tensors[EMBEDDING])
    add("output_norm.weight", model.tensors[FINAL])
    for layer in range(model.depth):
        for part, short in _GGUF.items():
            values = model.tensors[at(layer, part)]
            if part in heads:
                values = _interleaved(values, heads[part])
            add(f"blk.{layer}.{short}.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _interleaved(matrix: Array, heads: int) -> Array:
    """Rows of q or k with the halves of a head taken in turn, as llama.cpp stores them."""
    halves = matrix.reshape(heads, 2, len(matrix) // heads // 2, matrix.shape[1])
    return np.ascontiguousarray(halves.swapaxes(1, 2).reshape(matrix.shape))


def interleaved(model: Checkpoint) -> Checkpoint:
    """q and k with interleaved rotary planes and Meta's names, as Llama was first published."""
    config = model.geometry
    heads = {Q: int(config["num_attention_heads"]), K: int(config["num_key_value_heads"])}
    parts = {
        Q: "attention.wq", K: "attention.wk", V: "attention.wv", O: "attention.wo",
        GATE: "feed_forward.w1", UP: "feed_forward.w3", DOWN: "feed_forward.w2",
        IN: "attention_norm", POST: "ffn_norm",
    }  # fmt: skip
    tensors: dict[str, Array] = {
        "tok_embeddings.weight": model.tensors[EMBEDDING],
        "norm.weight": model.tensors[FINAL],
        "output.weight": model.tensors.get(HEAD, model.tensors[EMBEDDING]),
    }
    for layer in range(model.depth):
        for part, new in parts.items():
            values = model.tensors[at(layer, part)]
            if part in heads:
                values = _interleaved(values, heads[part])
            tensors[f"layers.{layer}.{new}.weight"] = values
    params = {
        "dim": model.width, "n_layers": model.depth, "n_heads": heads[Q], "n_kv_heads": heads[K],
        "vocab_size": int(config["vocab_size"]), "norm_eps": float(config["rms_norm_eps"]),
    }  # fmt: skip
    files = {**model.files, "params.json": json.dumps(params).encode()}
    return replace(model, tensors=tensors, config=None, files=files)
