"""Files that contradict themselves: a warning and the rest compared, never a crash."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from benchmarks.redteam.cases.registry import UNTOLD, Pair, case, true
from benchmarks.redteam.checkpoint import Checkpoint
from benchmarks.redteam.layers import DOWN, EMBEDDING, GATE, IN, POST, UP, K, O, Q, V, at
from benchmarks.redteam.relabelling import Rng
from benchmarks.redteam.truth import Fact
from benchmarks.redteam.zoo import Zoo

Break = Callable[[Checkpoint], Checkpoint]


def _reshaped(name: str, *shape: int) -> Break:
    return lambda model: model.changed({name: np.resize(model.tensors[name], shape)})


def _transposed(name: str) -> Break:
    return lambda model: model.changed({name: np.ascontiguousarray(model.tensors[name].T)})


def _not_finite(name: str) -> Break:
    def change(model: Checkpoint) -> Checkpoint:
        values = model.tensors[name].copy()
        values.reshape(-1)[::7] = np.nan
        values.reshape(-1)[3] = np.inf
        return model.changed({name: values})

    return change


_BREAKS: dict[str, Break] = {
    "norm-too-short": _reshaped(at(2, IN), 96),
    "norm-too-long": _reshaped(at(2, POST), 256),
    "norm-a-matrix": _reshaped(at(2, IN), 1, 128),
    "gate-narrower": _reshaped(at(1, GATE), 352, 96),
    "up-fewer-units": _reshaped(at(1, UP), 300, 128),
    "down-transposed": _transposed(at(3, DOWN)),
    "q-fewer-rows": _reshaped(at(0, Q), 100, 128),
    "k-of-one-head": _reshaped(at(0, K), 32, 128),
    "v-wider": _reshaped(at(4, V), 64, 160),
    "o-a-cube": _reshaped(at(4, O), 4, 32, 128),
    "embedding-shorter": _reshaped(EMBEDDING, 1000, 128),
    "embedding-narrower": _reshaped(EMBEDDING, 4096, 64),
    "embedding-a-vector": _reshaped(EMBEDDING, 4096),
    "layer-missing": lambda model: model.without(
        [name for name in model.tensors if ".layers.3." in name]
    ),
    "gate-missing": lambda model: model.without([at(2, GATE)]),
    "empty-tensor": lambda model: model.changed({at(2, UP): np.zeros((0, 128), np.float32)}),
    "not-finite-norm": _not_finite(at(2, IN)),
    "not-finite-gate": _not_finite(at(2, GATE)),
    "not-finite-embedding": _not_finite(EMBEDDING),
    "config-other-width": lambda model: model.changed({}, hidden_size=256),
    "config-other-heads": lambda model: model.changed({}, num_attention_heads=3, head_dim=40),
    "config-more-layers": lambda model: model.changed({}, num_hidden_layers=9),
    "config-of-words": lambda model: model.changed({}, hidden_size="wide", head_dim=None),
    "tokenizer-broken": lambda model: replace(model, files={"tokenizer.json": b'{"model": 3'}),
}
_COPY = true(
    f"partial derived same-weights identical dependent {UNTOLD}",
    f"partial derived same-weights identical dependent {UNTOLD}",
    "partial derived same-weights identical",
    rest=Fact.OPEN,
)
_STRANGERS = true(UNTOLD, UNTOLD, UNTOLD)


def _register(name: str, change: Break) -> None:
    def against_itself(zoo: Zoo, seed: int, rng: Rng) -> Pair:
        return zoo.root(seed), change(zoo.root(seed))

    def against_a_stranger(zoo: Zoo, seed: int, rng: Rng) -> Pair:
        return zoo.root(seed), change(zoo.stranger(seed))

    against_itself.__doc__ = f"A model and its copy, {name.replace('-', ' ')}."
    against_a_stranger.__doc__ = f"Two strangers, the second with {name.replace('-', ' ')}."
    case(f"broken-{name}", _COPY)(against_itself)
    case(f"broken-stranger-{name}", _STRANGERS)(against_a_stranger)


for _name, _change in _BREAKS.items():
    _register(_name, _change)
