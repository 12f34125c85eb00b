"""What is done to finished models: merging, rounding, pruning, laundering, and attacks.

A model is a mapping of NumPy arrays, layers first, as `training.Shape.sizes` names them. Functions
return a new model and leave the given one as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.calibration.training import Shape

Model = dict[str, Any]
Draws = np.random.Generator


def merged(first: Model, second: Model, share: float) -> Model:
    """The average of two models; `share` is the first one's weight."""
    return {name: share * first[name] + (1 - share) * second[name] for name in first}


def rounded(model: Model, bits: int = 4, group: int = 32) -> Model:
    """Matrices of the layers on a grid of a few bits, one scale for a group of a row's numbers."""

    def on_grid(value: Any) -> Any:
        flat = value.reshape(-1, group)
        scale = np.abs(flat).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
        scale[scale == 0] = 1
        return (np.round(flat / scale) * scale).reshape(value.shape)

    return {name: on_grid(value) if value.ndim == 3 else value for name, value in model.items()}


def folded(model: Model) -> Model:
    """The same function with gains of one: they are multiplied into what they feed."""
    new = dict(model)
    for name, norm in (("q", "norm_in"), ("k", "norm_in"), ("v", "norm_in"),
                       ("gate", "norm_post_attn"), ("up", "norm_post_attn")):  # fmt: skip
        if name in new:
            new[name] = model[name] * model[norm][:, None, :]
    new["head"] = model["head"] * model["norm_final"]
    for norm in ("norm_in", "norm_post_attn", "norm_final"):
        new[norm] = np.ones_like(model[norm])
    return new


def laundered(shape: Shape, model: Model, draws: Draws) -> Model:
    """The same function with every symmetry drawn anew.

    Gains are folded and channels rotated; units permuted, flipped and rescaled; rotary planes
    turned and rescaled; value dimensions mixed; groups and query heads renamed.
    """
    new = folded(model)
    turn = orthogonal(shape.width, draws)
    for name in ("embed", "head", "q", "k", "v", "gate", "up"):
        if name in new:
            new[name] = new[name] @ turn
    for name in ("o", "down"):
        new[name] = turn.T @ new[name]
    layers = [_relabelled(shape, {name: new[name][at] for name in _LAYER if name in new}, draws)
              for at in range(shape.depth)]  # fmt: skip
    for name in layers[0]:
        new[name] = np.stack([layer[name] for layer in layers])
    return new


def permuted(shape: Shape, model: Model, draws: Draws) -> Model:
    """The same function with units, planes, values and heads redrawn, the residual as it was."""
    new = dict(model)
    layers = [_relabelled(shape, {name: model[name][at] for name in _LAYER if name in model}, draws)
              for at in range(shape.depth)]  # fmt: skip
    for name in layers[0]:
        new[name] = np.stack([layer[name] for layer in layers])
    return new


def fewer_units(shape: Shape, model: Model, share: float) -> Model:
    """A model without the units of smallest weights, the same number in each layer."""
    kept = round(shape.units * share)
    new = dict(model)
    size = np.linalg.norm(model["up"], axis=2) * np.linalg.norm(model["down"], axis=1)
    order = np.sort(np.argsort(-size, axis=1)[:, :kept], axis=1)
    for name in ("gate", "up"):
        if name in model:
            new[name] = np.take_along_axis(model[name], order[:, :, None], axis=1)
    new["down"] = np.take_along_axis(model["down"], order[:, None, :], axis=2)
    return new


def fewer_channels(shape: Shape, model: Model, share: float, draws: Draws) -> Model:
    """A model of which some residual channels were dropped."""
    kept = np.sort(draws.permutation(shape.width)[: round(shape.width * share)])
    new = {}
    for name, value in model.items():
        axis = -2 if name in ("o", "down") else -1
        new[name] = np.take(value, kept, axis=axis)
    return new


def fewer_layers(shape: Shape, model: Model, dropped: int) -> Model:
    """A model without one of its layers."""
    return {
        name: np.delete(value, dropped, axis=0) if name in (*_LAYER, *_NORMS) else value
        for name, value in model.items()
    }


def one_layer_taken(model: Model, donor: Model, layer: int) -> Model:
    """A model with the feed-forward and attention of one layer replaced by another model's."""
    new = {name: value.copy() for name, value in model.items()}
    for name in (*_LAYER, *_NORMS):
        if name in new:
            new[name][layer] = donor[name][layer]
    return new


def decoys(shape: Shape, model: Model, draws: Draws) -> Model:
    """Beside each unit two with its gate row, random up rows and opposite down columns."""
    new = dict(model)
    spread = model["up"].std(), model["down"].std()
    up = draws.normal(0, spread[0], model["up"].shape)
    down = draws.normal(0, spread[1], model["down"].shape)
    new["gate"] = np.concatenate([model["gate"]] * 3, axis=1)
    new["up"] = np.concatenate([model["up"], up, up], axis=1)
    new["down"] = np.concatenate([model["down"], down, -down], axis=2)
    return new


def split(shape: Shape, model: Model, draws: Draws) -> Model:
    """Each unit as three whose up rows add up to three times its own."""
    new = dict(model)
    noise = draws.normal(0, model["up"].std(), (2, *model["up"].shape))
    parts = (noise[0], noise[1], -noise[0] - noise[1])
    new["gate"] = np.concatenate([model["gate"]] * 3, axis=1)
    new["up"] = np.concatenate([model["up"] + part for part in parts], axis=1)
    new["down"] = np.concatenate([model["down"] / 3] * 3, axis=2)
    return new


def swapped(shape: Shape, model: Model, draws: Draws) -> Model:
    """Gate and up exchanged; the function changes."""
    return {**model, "gate": model["up"], "up": model["gate"]}


def half_flipped(shape: Shape, model: Model, draws: Draws) -> Model:
    """The up rows of half of the units negated, their down columns not; the function changes."""
    signs = np.where(draws.random(model["up"].shape[:2]) < 0.5, -1.0, 1.0)
    return {**model, "up": model["up"] * signs[:, :, None]}


def rewritten(shape: Shape, model: Model, draws: Draws) -> Model:
    """Other gains, and the columns that read them divided accordingly: the same function."""
    new = dict(model)
    for norm, readers in (("norm_in", "qkv"), ("norm_post_attn", ("gate", "up"))):
        gains = np.exp(draws.normal(0, 0.3, model[norm].shape))
        for name in readers:
            if name in new:
                new[name] = model[name] * (model[norm] / gains)[:, None, :]
        new[norm] = gains
    return new


ATTACKS: dict[str, Callable[[Shape, Model, Draws], Model]] = {
    "decoys": decoys,
    "split": split,
    "swapped": swapped,
    "half flipped": half_flipped,
    "rewritten gains": rewritten,
}


def orthogonal(width: int, draws: Draws) -> Any:
    """A random orthogonal matrix."""
    basis, triangle = np.linalg.qr(draws.normal(size=(width, width)))
    return (basis * np.sign(np.diag(triangle))).astype(np.float32)


_LAYER = ("q", "k", "v", "o", "gate", "up", "down")
_NORMS = ("norm_in", "norm_post_attn")


def _relabelled(shape: Shape, layer: Model, draws: Draws) -> Model:
    """One layer with units, planes, values and heads redrawn."""
    new = {}
    units = layer["up"].shape[0]
    order = draws.permutation(units)
    if shape.gated:
        factor = np.where(draws.random(units) < 0.5, -1, 1) * np.exp(draws.normal(0, 0.5, units))
        new["gate"] = layer["gate"][order]
    else:
        factor = np.ones(units)
    new["up"] = layer["up"][order] * factor[:, None]
    new["down"] = layer["down"][:, order] / factor
    inside, half = shape.heads // shape.groups, shape.size // 2
    q = layer["q"].reshape(shape.groups, inside, 2, half, -1)
    k = layer["k"].reshape(shape.groups, 2, half, -1)
    angle = draws.uniform(0, 2 * np.pi, (shape.groups, half))
    size = np.exp(draws.normal(0, 0.3, (shape.groups, half)))
    q = _turned(q, angle[:, None], size[:, None])
    k = _turned(k, angle, 1 / size)
    v = layer["v"].reshape(shape.groups, shape.size, -1)
    o = layer["o"].T.reshape(shape.groups, inside, shape.size, -1)
    mixes = [orthogonal(shape.size, draws) * np.exp(draws.normal(0, 0.3, shape.size))
             for _ in range(shape.groups)]  # fmt: skip
    v = np.stack([mix @ rows for mix, rows in zip(mixes, v, strict=True)])
    o = np.stack([np.linalg.inv(mix).T @ rows for mix, rows in zip(mixes, o, strict=True)])
    groups = draws.permutation(shape.groups)
    heads = np.stack([draws.permutation(inside) for _ in range(shape.groups)])
    q, o = (np.stack([part[group][heads[group]] for group in groups]) for part in (q, o))
    new["q"] = q.reshape(layer["q"].shape)
    new["k"] = k[groups].reshape(layer["k"].shape)
    new["v"] = v[groups].reshape(layer["v"].shape)
    new["o"] = o.reshape(-1, layer["o"].shape[0]).T
    return new


def _turned(rows: Any, angle: Any, size: Any) -> Any:
    """Planes (the third axis from the end has their two rows) turned and stretched."""
    cos, sin = (np.cos(angle) * size)[..., None], (np.sin(angle) * size)[..., None]
    left, right = rows[..., 0, :, :], rows[..., 1, :, :]
    return np.stack([cos * left - sin * right, sin * left + cos * right], axis=-3)
