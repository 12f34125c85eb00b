"""Names of the tensors of a Llama-like model, and which of them are which part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from benchmarks.redteam.checkpoint import Checkpoint

EMBEDDING, HEAD, FINAL = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"
Q, K, V, O = (f"self_attn.{one}_proj" for one in "qkvo")  # noqa: E741
GATE, UP, DOWN = (f"mlp.{one}_proj" for one in ("gate", "up", "down"))
IN, POST = "input_layernorm", "post_attention_layernorm"
ATTENTION, FEED_FORWARD, NORMS = (Q, K, V, O), (GATE, UP, DOWN), (IN, POST)
LAYER = (*NORMS, *ATTENTION, *FEED_FORWARD)
READERS = {IN: (Q, K, V), POST: (GATE, UP)}
"""Matrices whose columns a norm feeds."""


def at(layer: int, part: str) -> str:
    """The full name of a tensor of a layer."""
    return f"model.layers.{layer}.{part}.weight"


def names_of(model: Checkpoint, parts: Iterable[str], layers: Iterable[int]) -> list[str]:
    """Full names of some parts of some layers, as far as the model has them."""
    wanted = list(parts)
    names = (at(layer, part) for layer in layers for part in wanted)
    return [name for name in names if name in model.tensors]


def gains(model: Checkpoint) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every norm of the layers, with the matrices that read what it puts out."""
    for layer in range(model.depth):
        for norm, readers in READERS.items():
            yield at(layer, norm), tuple(names_of(model, readers, [layer]))
