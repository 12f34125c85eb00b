"""Small models with one thing wrong: every way in which a tensor or a setting may contradict.

A mutation takes the tensors and the configuration of a model and changes one of them. What it
names is what a warning has to name.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Array = NDArray[Any]
Tensors = dict[str, Array]
Config = dict[str, Any]


class Mutation(Struct, frozen=True):
    """A change of one model.

    Attributes
    ----------
    name : what is done to what.
    tensor : the tensor that is changed; empty for a setting.
    tensors, config : the model after it.
    """

    name: str
    tensor: str
    tensors: Tensors
    config: Config


def _transposed(x: Array) -> Array:
    return np.ascontiguousarray(x.T)


def _shorter(x: Array) -> Array:
    return np.ascontiguousarray(x[: max(len(x) - 3, 1)])


def _longer(x: Array) -> Array:
    return np.concatenate([x, x[:5]])


def _narrower(x: Array) -> Array:
    return np.ascontiguousarray(x[..., : max(x.shape[-1] - 3, 1)])


def _wider(x: Array) -> Array:
    return np.concatenate([x, x[..., :5]], axis=-1)


def _halved(x: Array) -> Array:
    return np.ascontiguousarray(x[: max(len(x) // 2, 1)])


def _doubled(x: Array) -> Array:
    return np.concatenate([x, x])


def _flat(x: Array) -> Array:
    return np.ascontiguousarray(x.reshape(-1))


def _another_axis(x: Array) -> Array:
    return np.ascontiguousarray(x[None])


def _three_axes(x: Array) -> Array:
    return x.reshape(2, -1, x.shape[-1]) if x.ndim == 2 and len(x) % 2 == 0 else x[None, None]


def _empty(x: Array) -> Array:
    return x[:0]


def _no_columns(x: Array) -> Array:
    return np.ascontiguousarray(x[..., :0])


def _scalar(x: Array) -> Array:
    return np.array(x.reshape(-1)[0])


def _one_number(x: Array) -> Array:
    return np.ascontiguousarray(x.reshape(-1)[:1])


def _filled(value: float) -> Callable[[Array], Array]:
    return lambda x: np.full_like(x, value)


def _one_bad(value: float) -> Callable[[Array], Array]:
    def change(x: Array) -> Array:
        some = x.copy()
        some.reshape(-1)[0] = value
        return some

    return change


def _huge(x: Array) -> Array:
    return np.asarray(x * 1e37, np.float32)


def _as(dtype: Any) -> Callable[[Array], Array]:
    return lambda x: np.ascontiguousarray(np.asarray(10 * x).astype(dtype))


CHANGES: Mapping[str, Callable[[Array], Array]] = {
    "transposed": _transposed,
    "three rows short": _shorter,
    "five rows long": _longer,
    "three columns short": _narrower,
    "five columns long": _wider,
    "half of its rows": _halved,
    "its rows twice": _doubled,
    "flat": _flat,
    "with another axis": _another_axis,
    "of three axes": _three_axes,
    "without rows": _empty,
    "without columns": _no_columns,
    "a single number": _scalar,
    "of one number": _one_number,
    "no number anywhere": _filled(np.nan),
    "one that is no number": _one_bad(np.nan),
    "one infinite number": _one_bad(np.inf),
    "infinite": _filled(-np.inf),
    "zero": _filled(0.0),
    "huge": _huge,
    "int8": _as(np.int8),
    "int64": _as(np.int64),
    "bool": _as(bool),
    "float8": _as(ml_dtypes.float8_e4m3fn),
    "float64": _as(np.float64),
}
SETTINGS: Mapping[str, tuple[Any, ...]] = {
    "hidden_size": (0, 1, 63, 128, -64, "64", None, 1e30, [64]),
    "num_hidden_layers": (0, 1, 5, 700, -1, "6", None, 10**12),
    "num_attention_heads": (0, 1, 3, 7, 64, 1000, -4, "4", None),
    "num_key_value_heads": (0, 1, 3, 4, 8, 1000, -2, None),
    "head_dim": (0, 1, 3, 7, 15, 32, 10**6, -16, None),
    "intermediate_size": (0, 1, 47, 10**9, -1, None),
    "vocab_size": (0, 1, 10**9, -1, None),
    "num_local_experts": (0, 1, 3, 9, 10**6, -1),
    "model_type": ("gpt2", "bert", "nothing", "", 7, None),
    "rope_scaling": (7, {"type": 3}, []),
    "partial_rotary_factor": (0.5, 0.3, 0, -1, 2),
    "tie_word_embeddings": (True, "yes"),
    "hidden_act": ("gelu", 7, None),
    "quantization_config": (7, {}, {"quant_method": "gptq"}, {"quant_method": "gptq", "bits": 99}),
}


_LAYER = re.compile(r"\.layers\.(?=\d)")
_PARTS = (
    "gate_proj", "up_proj", "down_proj", "q_proj", "k_proj", "v_proj", "o_proj", "experts.1.",
    "experts.2.w1", "layernorm", "block_sparse_moe.gate",
)  # fmt: skip


def mutations(tensors: Tensors, config: Config, layer: int = 1) -> Iterator[Mutation]:
    """Every mutation of the tensors of one layer, of those outside the layers, and of settings."""
    chosen = [name for name in tensors if ".layers." not in name or f".layers.{layer}." in name]
    for name in chosen:
        for what, change in CHANGES.items():
            changed = dict(tensors)
            changed[name] = change(tensors[name]).copy()
            yield Mutation(f"{name} {what}", name, changed, config)
        yield Mutation(f"{name} dropped", name, _without(tensors, name), config)
    yield from _of_layers(tensors, config, layer)
    for setting, values in SETTINGS.items():
        for value in values:
            if setting in config or setting not in ("num_local_experts",):
                other = copy.deepcopy(config)
                other[setting] = value
                yield Mutation(f"{setting} = {value!r}", "", tensors, other)
        missing = {key: kept for key, kept in config.items() if key != setting}
        if setting in config:
            yield Mutation(f"without {setting}", "", tensors, missing)
    yield Mutation("no settings", "", tensors, {})


def _without(tensors: Tensors, *names: str) -> Tensors:
    return {name: value for name, value in tensors.items() if name not in names}


def _of_layers(tensors: Tensors, config: Config, layer: int) -> Iterator[Mutation]:
    """Layers missing, out of their order, twice, or beyond the last; parts missing everywhere."""
    own = [name for name in tensors if f".layers.{layer}." in name]
    numbers = [int(_LAYER.split(name)[1].split(".")[0]) for name in tensors if _LAYER.search(name)]
    depth = 1 + max(numbers)

    def numbered(number: int) -> Tensors:
        mark, place = f".layers.{layer}.", f".layers.{number}."
        return {name.replace(mark, place): tensors[name] for name in own}

    yield Mutation(f"layer {layer} dropped", own[0], _without(tensors, *own), config)
    for number in (depth, depth + 40, 10**6):
        again = numbered(number)
        name = next(iter(again))
        yield Mutation(f"layer {layer} again as {number}", name, tensors | again, config)
    moved = _without(tensors, *own) | numbered(depth + 7)
    yield Mutation(f"layer {layer} moved", own[0], moved, config)
    wide = {name: _wider(tensors[name]) for name in own if tensors[name].ndim == 2}
    yield Mutation(f"layer {layer} wider", own[0], tensors | wide, config)
    for part in _PARTS:
        some = [name for name in tensors if part in name]
        if some:
            yield Mutation(f"{part} dropped everywhere", some[0], _without(tensors, *some), config)
