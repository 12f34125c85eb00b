"""Small models of one family, and merges of them as a merging tool would write them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.redteam.checkpoint import Checkpoint
from kinprint.measure.merging import Precision, add_task_vectors, linear, rounded, task_vectors

Floats = NDArray[np.float32]
Tensors = dict[str, Floats]
LAYERS, WIDTH, UNITS, TOKENS = 4, 32, 48, 96
BF16 = Precision.BFLOAT16


def config(layers: int = LAYERS) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": WIDTH,
        "intermediate_size": UNITS, "num_hidden_layers": layers, "num_attention_heads": 4,
        "num_key_value_heads": 4, "vocab_size": TOKENS, "tie_word_embeddings": False,
    }  # fmt: skip


def shapes(layers: int = LAYERS) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (TOKENS, WIDTH)}
    for layer in range(layers):
        at = f"model.layers.{layer}"
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            found[f"{at}.self_attn.{name}.weight"] = (WIDTH, WIDTH)
        for name in ("gate_proj", "up_proj"):
            found[f"{at}.mlp.{name}.weight"] = (UNITS, WIDTH)
        found[f"{at}.mlp.down_proj.weight"] = (WIDTH, UNITS)
        for name in ("input_layernorm", "post_attention_layernorm"):
            found[f"{at}.{name}.weight"] = (WIDTH,)
    return {**found, "model.norm.weight": (WIDTH,), "lm_head.weight": (TOKENS, WIDTH)}


def drawn(seed: int, size: float = 0.02) -> Tensors:
    draws = np.random.default_rng(seed)
    found = {}
    for name, shape in shapes().items():
        values = draws.normal(0, size, shape).astype(np.float32)
        found[name] = rounded(values + (1 if "norm" in name else 0), BF16)
    return found


def tuned(base: Tensors, seed: int, size: float = 0.005) -> Tensors:
    draws = np.random.default_rng(seed)
    return {
        name: rounded(one + draws.normal(0, size, one.shape).astype(np.float32), BF16)
        for name, one in base.items()
    }


class Family(Struct, frozen=True):
    """A base, two tunes of it, and where they and a stranger are written."""

    folder: Path
    base: Tensors
    first: Tensors
    second: Tensors

    def write(self, name: str, tensors: Mapping[str, Any], layers: int = LAYERS) -> Path:
        model = Checkpoint(dict(tensors), config(layers), dtype=ml_dtypes.bfloat16)
        return model.write(self.folder / name)

    def each(self, make: Callable[[Floats, Floats, Floats], Floats]) -> Tensors:
        return {
            name: rounded(make(self.first[name], self.second[name], self.base[name]), BF16)
            for name in self.base
        }

    def average(self, weights: Sequence[float] = (0.3, 0.7)) -> Tensors:
        return self.each(lambda a, b, _: linear([a, b], weights, True, BF16))


def summed(a: Floats, b: Floats, base: Floats, weights: Sequence[float], **options: Any) -> Floats:
    vectors = task_vectors(base, [a, b], Precision.FLOAT32)
    return add_task_vectors(base, vectors, weights, Precision.FLOAT32, **options)


def largest(vector: Floats, density: float) -> Floats:
    """The largest numbers of a vector; of equal ones the first."""
    order = np.argsort(-np.abs(vector).ravel(), kind="stable")
    kept = np.zeros(vector.size, np.float32)
    kept[order[: int(density * vector.size)]] = 1
    return vector * kept.reshape(vector.shape)
