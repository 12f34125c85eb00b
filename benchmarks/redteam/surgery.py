"""Edits that put weights of several models together, take some away, or change them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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
    LAYER,
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


def graft(
    model: Checkpoint,
    donor: Checkpoint,
    names: Iterable[str],
    rng: Rng | None = None,
    noise: float = 0.0,
) -> Checkpoint:
    """Tensors of a donor in place of a model's own, with noise as a share of their spread."""
    return model.changed({name: noisy(donor.tensors[name], rng, noise) for name in names})


def noisy(values: Array, rng: Rng | None, share: float) -> Array:
    """Values with normal noise of a share of their spread; as they are where it is zero."""
    if rng is None or share == 0:
        return values
    spread = share * float(values.std())
    return np.asarray(values + rng.normal(0, spread, values.shape), np.float32)


def stirred(model: Checkpoint, rng: Rng, share: float) -> Checkpoint:
    """A stand-in for a fine-tune: every tensor with some noise."""
    return model.changed({name: noisy(one, rng, share) for name, one in model.tensors.items()})


def graft_layers(
    model: Checkpoint, donor: Checkpoint, layers: Mapping[int, int], parts: Sequence[str] = LAYER
) -> Checkpoint:
    """Layers of a donor, by its numbers, at places of a model."""
    return model.changed(
        {at(to, part): donor.tensors[at(of, part)] for to, of in layers.items() for part in parts}
    )


def mixed(models: Sequence[tuple[Checkpoint, float]]) -> Checkpoint:
    """The weighted sum of models of one shape."""
    first = models[0][0]
    new: dict[str, Array] = {}
    for name in first.tensors:
        terms = [np.float32(weight) * one.tensors[name] for one, weight in models]
        new[name] = np.asarray(np.sum(terms, axis=0), np.float32)
    return first.changed(new)


def slerp(a: Checkpoint, b: Checkpoint, share: float) -> Checkpoint:
    """Spherical interpolation, tensor by tensor."""
    new: dict[str, Array] = {}
    for name, x in a.tensors.items():
        y = b.tensors[name]
        size = float(np.linalg.norm(x) * np.linalg.norm(y))
        angle = np.arccos(np.clip(float((x * y).sum()) / size, -1, 1))
        if angle < 1e-4:
            new[name] = x
            continue
        left, right = (np.sin(part * angle) / np.sin(angle) for part in (1 - share, share))
        new[name] = np.asarray(left * x + right * y, np.float32)
    return a.changed(new)


def with_update(model: Checkpoint, rng: Rng, rank: int, parts: Sequence[str]) -> Checkpoint:
    """A low-rank update merged into some matrices, a quarter as large as they are."""
    new: dict[str, Array] = {}
    for name in names_of(model, parts, range(model.depth)):
        matrix = model.tensors[name]
        update = rng.normal(size=(len(matrix), rank)) @ rng.normal(size=(rank, matrix.shape[1]))
        update *= 0.25 * np.linalg.norm(matrix) / np.linalg.norm(update)
        new[name] = np.asarray(matrix + update, np.float32)
    return model.changed(new)


def masked(model: Checkpoint, rng: Rng | None) -> Checkpoint:
    """Half of each matrix zero: a fixed 2:4 pattern, or with a generator a random mask."""
    new: dict[str, Array] = {}
    for name in names_of(model, (*ATTENTION, *FEED_FORWARD), range(model.depth)):
        matrix = model.tensors[name]
        if rng is None:
            keep = np.broadcast_to(np.arange(matrix.shape[1]) % 4 < 2, matrix.shape)
        else:
            keep = rng.random(matrix.shape) < 0.5
        new[name] = np.where(keep, matrix, np.float32(0))
    return model.changed(new)


def with_more_units(model: Checkpoint, rng: Rng, extra: int, kind: str) -> Checkpoint:
    """Units that change nothing, at random places: "dead" ones, or "cancelling" pairs."""
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        gate, up, down = (model.tensors[at(layer, part)] for part in FEED_FORWARD)
        some = rng.integers(len(gate), size=extra)
        gates = noisy(gate[some], rng, 1.0)
        ups = noisy(up[some], rng, 1.0)
        downs = np.zeros((len(down), extra), np.float32)
        if kind == "cancelling":
            downs = noisy(down[:, some], rng, 1.0)
            gates, ups = np.concatenate([gates, gates]), np.concatenate([ups, ups])
            downs = np.concatenate([downs, -downs], axis=1)
        gate, up = np.concatenate([gate, gates]), np.concatenate([up, ups])
        down = np.concatenate([down, downs], axis=1)
        order = rng.permutation(len(gate))
        new[at(layer, GATE)], new[at(layer, UP)] = gate[order], up[order]
        new[at(layer, DOWN)] = down[:, order]
    return model.changed(new, intermediate_size=len(new[at(0, GATE)]))


def with_split_units(model: Checkpoint, rng: Rng, pieces: int) -> Checkpoint:
    """Every unit split into several that do its work together, all in a random order."""
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        gate, up, down = (model.tensors[at(layer, part)] for part in FEED_FORWARD)
        shares = rng.dirichlet(np.full(pieces, 4.0), len(gate)).T
        order = rng.permutation(pieces * len(gate))
        new[at(layer, GATE)] = np.concatenate([gate] * pieces)[order]
        new[at(layer, UP)] = np.concatenate([up] * pieces)[order]
        downs = np.concatenate([down * share for share in shares], axis=1)
        new[at(layer, DOWN)] = np.asarray(downs[:, order], np.float32)
    return model.changed(new, intermediate_size=len(new[at(0, GATE)]))


def with_swapped_gates(model: Checkpoint) -> Checkpoint:
    """Gate and up in each other's place, in every layer."""
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        new[at(layer, GATE)] = model.tensors[at(layer, UP)]
        new[at(layer, UP)] = model.tensors[at(layer, GATE)]
    return model.changed(new)


def with_layers(model: Checkpoint, layers: Sequence[int]) -> Checkpoint:
    """A model made of some layers of another, in any order and as often as named."""
    kept = [name for name in model.tensors if ".layers." in name]
    new = {
        at(to, part): model.tensors[at(of, part)] for to, of in enumerate(layers) for part in LAYER
    }
    return model.without(kept).changed(new, num_hidden_layers=len(layers))


def without_heads(model: Checkpoint, groups: Sequence[int]) -> Checkpoint:
    """Only some groups of heads."""
    size, all_groups = int(model.geometry["head_dim"]), int(model.geometry["num_key_value_heads"])
    inside = int(model.geometry["num_attention_heads"]) // all_groups
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        q, k, v, o = (model.tensors[at(layer, part)] for part in ATTENTION)
        rows = np.concatenate([np.arange(one * size, (one + 1) * size) for one in groups])
        heads = np.concatenate(
            [np.arange(one * inside * size, (one + 1) * inside * size) for one in groups]
        )
        new |= {at(layer, Q): q[heads], at(layer, K): k[rows], at(layer, V): v[rows]}
        new[at(layer, O)] = o[:, heads]
    return model.changed(
        new, num_attention_heads=inside * len(groups), num_key_value_heads=len(groups)
    )


def with_some_units(model: Checkpoint, rng: Rng, count: int) -> Checkpoint:
    """Some units of each layer, in their order."""
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        gate, up, down = (model.tensors[at(layer, part)] for part in FEED_FORWARD)
        kept = np.sort(rng.choice(len(gate), count, replace=False))
        new |= {
            at(layer, GATE): gate[kept],
            at(layer, UP): up[kept],
            at(layer, DOWN): down[:, kept],
        }
    return model.changed(new, intermediate_size=count)


def with_some_channels(model: Checkpoint, rng: Rng, count: int) -> Checkpoint:
    """Some channels of the residual stream, in their order."""
    kept = np.sort(rng.choice(model.width, count, replace=False))
    new: dict[str, Array] = {}
    for name, tensor in model.tensors.items():
        if tensor.ndim == 1 or name.endswith((f"{O}.weight", f"{DOWN}.weight")):
            new[name] = tensor[kept]
        else:
            new[name] = np.ascontiguousarray(tensor[:, kept])
    return model.changed(new, hidden_size=count)


def redrawn(model: Checkpoint, names: Iterable[str], rng: Rng) -> Checkpoint:
    """Some tensors initialised anew: normal numbers of the same spread, gains one."""
    new: dict[str, Array] = {}
    for name in names:
        old = model.tensors[name]
        if old.ndim == 1:
            new[name] = np.ones_like(old)
        else:
            new[name] = np.asarray(rng.normal(0, old.std(), old.shape), np.float32)
    return model.changed(new)


def upcycled(model: Checkpoint, rng: Rng, experts: int, noise: float, shuffle: bool) -> Checkpoint:
    """Every feed-forward as several experts, with noise, units of each in an order of its own."""
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        root = f"model.layers.{layer}.block_sparse_moe"
        gate, up, down = (model.tensors[at(layer, part)] for part in FEED_FORWARD)
        router = rng.normal(0, 0.02, (experts, model.width))
        new[f"{root}.gate.weight"] = np.asarray(router, np.float32)
        for expert in range(experts):
            order = rng.permutation(len(gate)) if shuffle else np.arange(len(gate))
            mine = f"{root}.experts.{expert}"
            new[f"{mine}.w1.weight"] = noisy(gate[order], rng, noise)
            new[f"{mine}.w3.weight"] = noisy(up[order], rng, noise)
            new[f"{mine}.w2.weight"] = noisy(down[:, order], rng, noise)
    dense = names_of(model, FEED_FORWARD, range(model.depth))
    return model.without(dense).changed(
        new,
        model_type="mixtral",
        architectures=["MixtralForCausalLM"],
        num_local_experts=experts,
        num_experts_per_tok=2,
    )


def with_tokens(model: Checkpoint, order: Sequence[int], names: Mapping[int, str]) -> Checkpoint:
    """Rows of the embedding in another order, with new ones for new tokens at the end.

    `order` are the old rows by their new number; `names` are tokens of new rows by number. The
    tokenizer follows.
    """
    told = json.loads(model.files["tokenizer.json"])
    vocabulary: dict[str, int] = told["model"]["vocab"]
    new_number = {old: new for new, old in enumerate(order)}
    moved = {token: new_number[number] for token, number in vocabulary.items()}
    told["model"]["vocab"] = {**moved, **{token: number for number, token in names.items()}}
    for entry in told.get("added_tokens", ()):
        entry["id"] = new_number[entry["id"]]
    table = model.tensors[EMBEDDING]
    rows = table[np.asarray(order)]
    if names:
        mean = table.mean(axis=0, keepdims=True)
        rows = np.concatenate([rows, np.repeat(mean, len(names), axis=0)])
    changed = model.changed({EMBEDDING: np.asarray(rows, np.float32)}, vocab_size=len(rows))
    return replace(changed, files={**model.files, "tokenizer.json": json.dumps(told).encode()})


def untied(model: Checkpoint) -> Checkpoint:
    """The head as a tensor of its own, equal to the embedding."""
    return model.changed({HEAD: model.tensors[EMBEDDING]}, tie_word_embeddings=False)


def synthetic(
    seed: int, width: int, depth: int, units: int, tokens: int, like: Checkpoint
) -> Checkpoint:
    """Random weights of any size with varying gains: for exact statistics, not for features."""
    rng = np.random.default_rng([seed, width])

    def draw(*shape: int) -> Array:
        return np.asarray(rng.normal(0, 0.02, shape), np.float32)

    heads, size = width // 64, 64
    groups = max(heads // 3, 1)
    tensors: dict[str, Array] = {EMBEDDING: draw(tokens, width)}
    for layer in range(depth):
        shapes: dict[str, tuple[int, ...]] = {
            Q: (heads * size, width), K: (groups * size, width), V: (groups * size, width),
            O: (width, heads * size), GATE: (units, width), UP: (units, width),
            DOWN: (width, units),
        }  # fmt: skip
        tensors |= {at(layer, part): draw(*shape) for part, shape in shapes.items()}
        for part in (IN, POST):
            tensors[at(layer, part)] = np.asarray(1 + 10 * draw(width), np.float32)
    tensors[FINAL] = np.asarray(1 + 10 * draw(width), np.float32)
    config: dict[str, Any] = {
        **like.geometry, "hidden_size": width, "num_hidden_layers": depth,
        "num_attention_heads": heads, "num_key_value_heads": groups, "head_dim": size,
        "intermediate_size": units, "vocab_size": tokens,
    }  # fmt: skip
    words = {f"word{number}": number for number in range(tokens)}
    told = {"model": {"type": "WordLevel", "vocab": words, "unk_token": "word0"}}
    return Checkpoint(tensors, config, {"tokenizer.json": json.dumps(told).encode()})
