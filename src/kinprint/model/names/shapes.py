"""What shapes decide and what they contradict.

Names lie in a few known ways (a fused matrix called up, a router called gate); element
counts tell. Where a shape disagrees with the configuration, it is said and left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from kinprint.model.geometry import Geometry
from kinprint.model.names.patterns import Pattern
from kinprint.model.names.tables import Word

_WRAPS = ("", "expert_", "shared_")
_NORMS = frozenset({"norm_in", "norm_post_attn", "norm_pre_ffn", "norm_post_ffn", "norm_final"})
_MATRICES = frozenset(
    {"embed", "lm_head", "q", "k", "v", "o", "qkv", "gate", "up", "down", "gate_up", "router"}
)
# Settings that make a width differ between layers or between tokens and layers.
_VARYING = (
    "embedding_size", "word_embed_proj_dim", "emb_size", "global_head_dim", "d_embed",
    "per_layer_config", "num_global_key_value_heads", "block_configs", "expanded_dim",
    "attention_hidden_size",
    "bottleneck", "hidden_sizes", "true_hidden_size",
)  # fmt: skip
_EXPERTS = ("moe_num_experts", "num_experts", "num_local_experts", "n_routed_experts", "n_experts")

Found = dict[int, Word | None]


def expert_count(config: Mapping[str, Any], geometry: Geometry) -> int | None:
    """Number of experts, also from the nested settings that geometry does not read."""
    if geometry.experts is not None:
        return geometry.experts
    for name in ("ffn_config", "moe_config", "text_config"):
        inner = config.get(name)
        for key in _EXPERTS if isinstance(inner, Mapping) else ():
            if isinstance(inner, Mapping) and isinstance(value := inner.get(key), int):
                return value
    return None


def settle(patterns: Iterable[Pattern], found: Found, experts: int | None) -> int | None:
    """Correct the words of one stack by what its shapes and neighbours say.

    Returns the number of experts, which the router's shape tells where nothing else does.
    """
    members = [p for p in patterns if found.get(id(p)) is not None and _is_weight(p)]
    for pattern in members:
        word = _word(found, pattern)
        if word.role in ("gate", "up", "down", "gate_up") and _stacked(pattern):
            found[id(pattern)] = Word(f"expert_{word.role}")
    roles = {_word(found, pattern).role for pattern in members}
    sparse = any(role.startswith("expert_") for role in roles)
    for pattern in members:
        word = _word(found, pattern)
        if word == Word("router", "gate"):
            routing = sparse or (experts is not None and experts in pattern.shape)
            found[id(pattern)] = Word("router") if routing else Word("gate")
        elif word.role.startswith("shared_") and not sparse and "router" not in roles:
            found[id(pattern)] = replace(word, role=word.role.removeprefix("shared_"))
    for wrap in _WRAPS:
        _fuse(members, found, wrap)
    roles = {_word(found, pattern).role for pattern in members}
    if "norm_post_attn" not in roles:
        for pattern in members:
            if _word(found, pattern) == Word("norm_pre_ffn"):
                found[id(pattern)] = Word("norm_post_attn")
    for pattern in members:
        if _word(found, pattern).role == "router" and len(pattern.shape) == 2:
            return experts or min(pattern.shape)
    return experts


def contradiction(
    pattern: Pattern,
    role: str,
    shape: tuple[int, ...],
    geometry: Geometry,
    config: Mapping[str, Any],
) -> str | None:
    """What a tensor's shape should have been, if the configuration is right.

    Only what every architecture keeps is asked for: a norm is as long as the residual
    stream, a matrix has an axis of that width, heads divide the other axis of q, k and v,
    and a router has a row for each expert (or more: some experts do nothing).
    """
    hidden = geometry.hidden
    if not hidden or not _is_weight(pattern) or pattern.ending == Word("weight", "packed"):
        return None
    if pattern.dtype.startswith(("I", "U")) or _varies(config, hidden):
        return None
    if role in _NORMS and len(shape) == 1 and shape[0] % hidden:
        return f"{hidden} numbers"
    if role in _MATRICES and len(shape) == 2 and all(size % hidden for size in shape):
        return f"an axis of {hidden}"
    if len(shape) != 2:
        return None
    other = shape[0] if shape[1] == hidden else shape[1]
    heads = geometry.heads if role == "q" else geometry.kv_heads if role in ("k", "v") else None
    if heads and other % heads:
        return f"{heads} heads"
    if role == "router" and geometry.experts and other < geometry.experts:
        return f"{geometry.experts} experts"
    return None


def _varies(config: Mapping[str, Any], hidden: int) -> bool:
    inner = [value for value in config.values() if isinstance(value, Mapping)]
    return any(
        source.get(name) not in (None, False, hidden)
        for source in (config, *inner)
        for name in _VARYING
    )


def _fuse(members: Iterable[Pattern], found: Found, wrap: str) -> None:
    """Call a matrix gate_up if it has twice the elements of its down projection."""
    own = [p for p in members if _word(found, p).role.startswith(wrap)]
    totals = {
        role: sum(p.numbers for p in own if _word(found, p).role == f"{wrap}{role}")
        for role in ("gate", "up", "down", "gate_up")
    }
    if totals["gate"] or totals["gate_up"] or not totals["down"]:
        return
    if totals["up"] == 2 * totals["down"]:
        for pattern in own:
            if _word(found, pattern).role == f"{wrap}up":
                found[id(pattern)] = Word(f"{wrap}gate_up")


def _stacked(pattern: Pattern) -> bool:
    shape = pattern.shape
    return len(shape) >= 3 and shape[-1] > 1 and pattern.ending != Word("weight", "packed")


def _is_weight(pattern: Pattern) -> bool:
    return pattern.adapter is None and (pattern.ending is None or pattern.ending.role == "weight")


def _word(found: Found, pattern: Pattern) -> Word:
    word = found[id(pattern)]
    assert word is not None
    return word
