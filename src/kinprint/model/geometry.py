"""A model's dimensions, from its configuration: how many layers, heads, channels, experts.

Configurations name the same thing in many ways; the tables below are data. What a
configuration does not say stays None: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from msgspec import Struct

# Names for a size, the most telling first. A name that gave one size gives no other: some
# models call their width hidden_dim, others the width of their feed-forward.
_NAMES: dict[str, tuple[str, ...]] = {
    "layers": (
        "num_hidden_layers", "n_layer", "num_layers", "n_layers", "encoder_layers",
        "decoder_layers", "num_decoder_layers", "decoder_num_hidden_layers", "layers",
    ),
    "hidden": (
        "hidden_size", "n_embd", "d_model", "dim", "emb_dim", "embed_dim", "hidden_dim",
        "model_dim",
    ),
    "heads": (
        "num_attention_heads", "n_head", "num_heads", "n_heads", "encoder_attention_heads",
        "decoder_attention_heads", "num_decoder_attention_heads", "attention_heads",
        "decoder_num_attention_heads",
    ),
    "kv_heads": (
        "num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num", "n_kv_heads",
    ),
    "head_dim": ("head_dim", "d_kv", "attention_head_dim", "d_head", "dim_head"),
    "feed_forward": (
        "intermediate_size", "n_inner", "ffn_dim", "d_ff", "ffn_hidden_size", "encoder_ffn_dim",
        "decoder_ffn_dim", "dim_ff", "dff", "d_inner", "feed_forward_size", "hidden_dim",
    ),
    "experts": (
        "num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts", "n_experts",
    ),
    "experts_active": ("num_experts_per_tok", "moe_topk", "moe_k", "num_experts_per_token"),
    "vocabulary": ("vocab_size", "padded_vocab_size", "n_vocab"),
}  # fmt: skip
# Models whose `num_layers` have two attentions each, as `num_hidden_layers` counts them.
_IN_HALVES = ("longcat_flash",)
# Parts of a configuration that describe the language model, from the outside inwards.
_NESTED = (
    "text_config",
    "llm_config",
    "language_config",
    "thinker_config",
    "talker_config",
    "vlm_config",
    "decoder",
)
_GGUF: dict[str, str] = {
    "layers": "block_count",
    "hidden": "embedding_length",
    "heads": "attention.head_count",
    "kv_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "feed_forward": "feed_forward_length",
    "experts": "expert_count",
    "experts_active": "expert_used_count",
    "vocabulary": "vocab_size",
}


class Geometry(Struct, frozen=True):
    """Sizes of a model; None where the configuration is silent."""

    family: str | None = None
    architecture: str | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    feed_forward: int | None = None
    experts: int | None = None
    experts_active: int | None = None
    vocabulary: int | None = None
    tied: bool | None = None


def geometry_of(config: Mapping[str, Any], gguf: Mapping[str, object] | None = None) -> Geometry:
    """Dimensions from a config.json, or from a GGUF file's own metadata."""
    return _from_config(config) if config else _from_gguf(gguf or {})


def _from_config(config: Mapping[str, Any]) -> Geometry:
    *_, inner = text_parts(config)
    sizes: dict[str, Any] = dict.fromkeys(_NAMES)
    used: set[str] = set()
    for field, names in _NAMES.items():
        for source, name in product((inner, config), names):
            value = None if name in used else _whole(source.get(name))
            if value is not None:
                sizes[field] = value
                used.add(name)
                break
    if inner.get("model_type") in _IN_HALVES and "num_hidden_layers" not in used:
        sizes["layers"] = sizes["layers"] and 2 * sizes["layers"]
    listed = config.get("architectures")
    first = listed[0] if isinstance(listed, list) and listed else None
    # either level may say so: the other's word is often a default that nobody meant
    said = [part.get("tie_word_embeddings") for part in (config, inner)]
    tied = [word for word in said if isinstance(word, bool)]
    return Geometry(
        family=_text(config.get("model_type")),
        architecture=_text(first),
        tied=any(tied) if tied else None,
        **sizes,
    )


def unusable_sizes(config: Mapping[str, Any]) -> dict[str, str]:
    """What is written where a size should be and can be none, by its name.

    Text, fractions and numbers below zero: `0`, `-1` and `null` are usual for none, and a list
    gives each layer a size of its own.
    """
    *_, inner = text_parts(config)
    written = {
        name: value
        for names in _NAMES.values()
        for name, source in product(names, (config, inner))
        if (value := source.get(name)) is not None
    }
    return {
        name: repr(value)
        for name, value in written.items()
        if isinstance(value, str | float | int)
        and _whole(value) is None
        and (isinstance(value, str) or value not in (0, -1))
    }


def text_parts(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The configuration and the parts in it that lead to the language model's own."""
    parts = [config]
    while len(parts) <= len(_NESTED):
        found = (parts[-1].get(name) for name in _NESTED)
        inner = next((part for part in found if isinstance(part, Mapping)), None)
        if inner is None:
            break
        parts.append(inner)
    return parts


def _from_gguf(metadata: Mapping[str, object]) -> Geometry:
    family = _text(metadata.get("general.architecture"))
    if family is None:
        return Geometry()
    sizes: dict[str, Any] = {
        field: _whole(metadata.get(f"{family}.{key}")) for field, key in _GGUF.items()
    }
    tokens = metadata.get("tokenizer.ggml.tokens")
    if sizes["vocabulary"] is None and isinstance(tokens, list):
        sizes["vocabulary"] = len(tokens)
    return Geometry(family=family, **sizes)


def _whole(value: object) -> int | None:
    """A size, or None for what cannot be one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    fits = isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**40
    return value if fits and isinstance(value, int) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
