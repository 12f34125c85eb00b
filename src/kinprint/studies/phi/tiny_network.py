"""A residual network with RMSNorm, small enough to be trained here and now.

The initialisation study needs networks of which it is certain that they have nothing to do
with each other; training them on the spot leaves no doubt. Gradients are written by hand,
so that plain NumPy is enough.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

Array = NDArray[Any]
Weights = dict[str, Array]

ONES, RANDOM = "ones", "random"
_EPSILON = 1e-6  # under the root of the mean square
_DECAY = (0.9, 0.999)  # Adam's memories of the gradient and of its square (Kingma and Ba 2015)


class Shape(Struct, frozen=True):
    """How large the network is and how long it is trained."""

    width: int = 256
    hidden: int = 64
    blocks: int = 2
    inputs: int = 32
    classes: int = 16
    batch: int = 32
    steps: int = 300
    rate: float = 5e-4

    @property
    def norms(self) -> tuple[str, ...]:
        """Names of the norm vectors, first to last."""
        return (*(f"norm_{at}" for at in range(self.blocks)), "norm_final")


class Trained(Struct, frozen=True):
    """A network after training, and its loss at every step."""

    weights: Weights
    losses: tuple[float, ...]


class _Normed(Struct, frozen=True):
    """What the way back through a norm needs: the directions and what they were divided by."""

    unit: Array
    scale: Array


def fresh(shape: Shape, seed: int, start: str) -> Weights:
    """New weights: matrices always at random, norm vectors at one or normal about zero."""
    chance = np.random.default_rng([seed, 1])
    sizes = {"embed": (shape.inputs, shape.width), "read": (shape.width, shape.classes)}
    for at in range(shape.blocks):
        sizes[f"up_{at}"] = (shape.width, shape.hidden)
        sizes[f"down_{at}"] = (shape.hidden, shape.width)
    made: Weights = {
        name: (chance.normal(size=size) / np.sqrt(size[0])).astype(np.float32)
        for name, size in sizes.items()
    }
    for name in shape.norms:
        drawn = chance.normal(size=shape.width)
        made[name] = (np.ones(shape.width) if start == ONES else drawn).astype(np.float32)
    return made


def train(
    shape: Shape, seed: int, start: str = ONES, begun: Weights | None = None, data: int = 0
) -> Trained:
    """Train with Adam on examples that `data` alone decides, from `begun` or from nothing.

    All seeds see the same examples in the same order: networks share everything but the
    chance they began with, the hardest case for telling them apart.
    """
    weights = fresh(shape, seed, start) if begun is None else dict(begun)
    first = {name: np.zeros_like(value) for name, value in weights.items()}
    second = {name: np.zeros_like(value) for name, value in weights.items()}
    examples = _Task(shape, data)
    losses = []
    for step in range(1, shape.steps + 1):
        found, gradients = loss_and_gradients(shape, weights, *examples.draw())
        losses.append(found)
        # Python's floats leave float32 arrays in float32; NumPy's would widen them.
        rate = shape.rate * math.sqrt(1 - _DECAY[1] ** step) / (1 - _DECAY[0] ** step)
        for name, gradient in gradients.items():
            first[name] += (1 - _DECAY[0]) * (gradient - first[name])
            second[name] += (1 - _DECAY[1]) * (gradient**2 - second[name])
            weights[name] = weights[name] - rate * first[name] / (np.sqrt(second[name]) + 1e-8)
    return Trained(weights, tuple(losses))


def loss_and_gradients(
    shape: Shape, weights: Weights, inputs: Array, labels: NDArray[np.int64]
) -> tuple[float, Weights]:
    """Mean cross-entropy of a batch and its derivative by every weight."""
    stream = inputs @ weights["embed"]
    passed: list[tuple[_Normed, Array, Array]] = []
    for at in range(shape.blocks):
        normed = _normalise(stream)
        scaled = normed.unit * weights[f"norm_{at}"]
        active = np.tanh(scaled @ weights[f"up_{at}"])
        stream = stream + active @ weights[f"down_{at}"]
        passed.append((normed, scaled, active))
    last = _normalise(stream)
    scaled = last.unit * weights["norm_final"]
    chances = _softmax(scaled @ weights["read"])
    picked = chances[np.arange(len(labels)), labels]
    loss = float(-np.log(picked + 1e-12).mean())

    back = chances.copy()
    back[np.arange(len(labels)), labels] -= 1
    back /= len(labels)
    found: Weights = {"read": scaled.T @ back}
    behind = back @ weights["read"].T
    found["norm_final"], stream_back = _back_through(last, weights["norm_final"], behind)
    for at in reversed(range(shape.blocks)):
        normed, scaled, active = passed[at]
        found[f"down_{at}"] = active.T @ stream_back
        inner = (stream_back @ weights[f"down_{at}"].T) * (1 - active**2)
        found[f"up_{at}"] = scaled.T @ inner
        behind = inner @ weights[f"up_{at}"].T
        found[f"norm_{at}"], through = _back_through(normed, weights[f"norm_{at}"], behind)
        stream_back = stream_back + through
    found["embed"] = inputs.T @ stream_back
    return loss, found


def _normalise(stream: Array) -> _Normed:
    scale = np.sqrt((stream**2).mean(axis=1, keepdims=True) + _EPSILON)
    return _Normed(stream / scale, scale)


def _back_through(normed: _Normed, gains: Array, behind: Array) -> tuple[Array, Array]:
    """Derivatives by the gains and by the stream.

    With u = h/r and r² = mean(h²) + ε, du_i/dh_j = (δ_ij − u_i·u_j/d) / r, hence the mean.
    """
    by_gains = (behind * normed.unit).sum(axis=0)
    by_unit = behind * gains
    along = (by_unit * normed.unit).mean(axis=1, keepdims=True)
    return by_gains, (by_unit - normed.unit * along) / normed.scale


def _softmax(logits: Array) -> Array:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    found: Array = raised / raised.sum(axis=1, keepdims=True)
    return found


class _Task:
    """Examples without end: which class a fixed random network gives to random inputs."""

    def __init__(self, shape: Shape, data: int) -> None:
        rule = np.random.default_rng(2026)  # one rule to learn, whichever examples are drawn
        self._shape = shape
        self._first = rule.normal(size=(shape.inputs, 64)) / np.sqrt(shape.inputs)
        self._second = rule.normal(size=(64, shape.classes))
        self._chance = np.random.default_rng([data, 2])

    def draw(self) -> tuple[Array, NDArray[np.int64]]:
        """One batch: inputs and their classes."""
        inputs = self._chance.normal(size=(self._shape.batch, self._shape.inputs))
        labels = (np.tanh(inputs @ self._first) @ self._second).argmax(axis=1)
        return inputs.astype(np.float32), labels
