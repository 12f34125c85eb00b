"""Where shapes and the configuration disagree: said, and left alone.

Only what every architecture keeps is asked for, so that a warning means something: the
width of the residual stream, heads, experts, the feed-forward width, the vocabulary and
the number of layers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from typing import Any

from kinprint.model.geometry import Geometry
from kinprint.model.names.patterns import Pattern
from kinprint.model.names.tables import PACKED
from kinprint.model.names.words import FEED_FORWARD
from kinprint.records import Role
from kinprint.text import Message, message

_NORMS = frozenset(
    {Role.NORM_IN, Role.NORM_POST_ATTN, Role.NORM_PRE_FFN, Role.NORM_POST_FFN, Role.NORM_FINAL}
)
_TOKENS = frozenset({Role.EMBED, Role.LM_HEAD})
_MATRICES = FEED_FORWARD | _TOKENS | {Role.Q, Role.K, Role.V, Role.O, Role.QKV, Role.ROUTER}
# Settings that make a width differ between layers or between tokens and layers.
_VARYING = (
    "embedding_size", "word_embed_proj_dim", "emb_size", "global_head_dim", "d_embed",
    "per_layer_config", "num_global_key_value_heads", "block_configs", "expanded_dim",
    "attention_hidden_size", "input_embedding_size", "output_embedding_size",
    "bottleneck", "depths", "hidden_sizes", "true_hidden_size",
)  # fmt: skip
_FEED_FORWARD_SIZE = re.compile(
    r"intermediate|ffn|d_ff|n_inner|ff_dim|ff_size|mlp_dim|feed_forward"
)
# Settings by which a model computes its feed-forward width or adds tokens to its table.
_COMPUTED = ("block_auto_adjust_ff_dim", "ffn_dim_multiplier", "additional_vocab_size")
_PADDED_TO, _FEW = 1024, 0.02  # rows that padding goes to, and the share of tokens that it adds
_LAYERS = re.compile(r"layers|depth|n_layer|block_count")
# Layers that predict further tokens follow the others and are counted apart.
_FURTHER_LAYERS = re.compile(r"nextn|mtp|num_predict_layers")


def contradiction(
    pattern: Pattern,
    role: Role,
    shape: tuple[int, ...],
    geometry: Geometry,
    config: Mapping[str, Any],
) -> Message | None:
    """What a tensor's shape should have been, if the configuration is right.

    A norm is as long as the residual stream, a matrix has an axis of that width, heads
    divide the other axis of q, k and v, a router has a row for each expert (or more: some
    experts do nothing), and there is a row for each token (or a few more: tables are padded).
    """
    hidden = geometry.hidden
    if not hidden or not pattern.is_weight or pattern.ending == PACKED:
        return None
    if pattern.dtype.startswith(("I", "U")) or _varies(config, hidden):
        return None
    if role in _NORMS and len(shape) == 1 and shape[0] % hidden:
        return message("note.wanted.numbers", size=hidden)
    if role in _MATRICES and len(shape) == 2 and all(size % hidden for size in shape):
        return message("note.wanted.axis", size=hidden)
    if len(shape) != 2:
        return None
    other = shape[0] if shape[1] == hidden else shape[1]
    heads = _heads(role, geometry)
    if heads and other % heads:
        return message("note.wanted.heads", size=heads)
    if role is Role.ROUTER and geometry.experts and other < geometry.experts:
        return message("note.wanted.experts", size=geometry.experts)
    if any(name in source for source in _parts(config) for name in _COMPUTED):
        return None
    if role in _TOKENS and geometry.vocabulary and not _is_table(other, geometry.vocabulary):
        return message("note.wanted.tokens", size=geometry.vocabulary)
    # Four times the stream is what models take that have no setting of their own.
    if role in FEED_FORWARD and hidden in shape and other != 4 * hidden:
        return _feed_forward(other, config)
    return None


def _is_table(rows: int, tokens: int) -> bool:
    """Whether a table may be of so many tokens: of no more than padding adds to them.

    Tables are padded to a multiple of a power of two, up to 128 for each of eight devices, or by
    a few rows.
    """
    multiple = min(rows & -rows, _PADDED_TO)
    return 0 <= rows - tokens < max(multiple, _FEW * tokens)


def allowed_numbers(
    pattern: Pattern,
    role: Role,
    shape: tuple[int, ...],
    tensors: int,
    geometry: Geometry,
    config: Mapping[str, Any],
) -> int:
    """How many numbers of tensors of one shape have a place in the configured model.

    Stricter than a contradiction: one axis is the residual stream's, the other no longer than
    fused or gated matrices have it, and there are as many experts as are configured. Who fills a
    place with more than the model has does not count for more.
    """
    numbers = tensors * prod(shape)
    hidden = geometry.hidden
    packed = pattern.ending == PACKED or pattern.dtype.startswith(("I", "U"))
    if not hidden or packed or not pattern.is_weight:
        return numbers
    if contradiction(pattern, role, shape, geometry, config) is not None:
        return 0
    if role in _TOKENS or _varies(config, hidden):
        return numbers
    if hidden not in shape:
        return 0
    if role in _NORMS:
        return min(numbers, hidden)
    heads = geometry.heads or 1
    width = max(hidden, heads * (geometry.head_dim or hidden // heads))
    experts = geometry.experts or 1 if role.of_experts else 1
    other = 3 * width
    if role in FEED_FORWARD or role.of_experts or role.shared:
        other = 2 * (geometry.feed_forward or 4 * hidden)
    return min(numbers, experts * hidden * other)


def _heads(role: Role, geometry: Geometry) -> int | None:
    if role is Role.Q:
        return geometry.heads
    return geometry.kv_heads if role in (Role.K, Role.V) else None


def layer_contradiction(
    counts: Iterable[int], geometry: Geometry, config: Mapping[str, Any], complete: bool
) -> Message | None:
    """What is wrong with the number of layers; `counts` has one for each stack of the text.

    Unless all tensors are known, there may be more.

    Layers that all share one set of weights are stored once, which contradicts nothing, and
    any number of layers that the configuration gives will do: stacks may be named apart.
    """
    found = max(counts, default=0)
    wanted = geometry.layers
    known = {value for name, value in _sizes(config) if _LAYERS.search(name)}
    if not wanted or found <= 1 or found in {wanted, *known}:
        return None
    if found < wanted and not complete:
        return None
    further = sum(value for name, value in _sizes(config) if _FURTHER_LAYERS.search(name))
    if wanted < found <= wanted + further:
        return None
    return message("note.layers", found=found, wanted=wanted)


def _feed_forward(size: int, config: Mapping[str, Any]) -> Message | None:
    """Hold a width against all that the configuration names, since models mix several."""
    wanted = {value for name, value in _sizes(config) if _FEED_FORWARD_SIZE.search(name)}
    if not wanted or any(size % one == 0 or one % size == 0 for one in wanted):
        return None
    first, *others = sorted(wanted)
    sizes: object = first
    for other in others:
        sizes = message("note.wanted.or", first=sizes, second=other)
    return message("note.wanted.feed-forward", sizes=sizes)


def _sizes(config: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Every size that a configuration or one of its parts gives, also those in lists."""
    for source in _parts(config):
        for name, value in source.items():
            for one in value if isinstance(value, list | tuple) else (value,):
                if isinstance(one, int) and not isinstance(one, bool) and one > 0:
                    yield str(name), one


def _varies(config: Mapping[str, Any], hidden: int) -> bool:
    return any(
        source.get(name) not in (None, False, hidden)
        for source in _parts(config)
        for name in _VARYING
    )


def _parts(config: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    return (config, *(part for part in config.values() if isinstance(part, Mapping)))
