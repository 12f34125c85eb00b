"""Edits that leave a model's function as it is: other numbers, signs and bases, the same answers.

`launder` draws every one of them anew. `arrange` and `arrange_rotated` choose them so that a model
looks like another one that it has nothing to do with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.redteam.checkpoint import Array, Checkpoint, Floats
from benchmarks.redteam.layers import (
    ATTENTION,
    DOWN,
    EMBEDDING,
    FEED_FORWARD,
    FINAL,
    GATE,
    HEAD,
    IN,
    POST,
    UP,
    K,
    O,
    Q,
    V,
    at,
    gains,
)
from kinprint.nulls.preparation import normal_scores

Rng = np.random.Generator


def shuffle_units(
    model: Checkpoint,
    rng: Rng,
    *,
    permute: bool = True,
    flip: bool = True,
    rescale: bool = True,
    layers: Sequence[int] | None = None,
) -> Checkpoint:
    """Feed-forward units in another order, with other signs and scales of up and down."""
    new: dict[str, Array] = {}
    for layer in range(model.depth) if layers is None else layers:
        gate, up, down = (model.tensors[at(layer, part)] for part in FEED_FORWARD)
        count = len(gate)
        order = rng.permutation(count) if permute else np.arange(count)
        signs = rng.choice([-1.0, 1.0], count) if flip else np.ones(count)
        scales = np.exp(rng.normal(0, 0.3, count)) if rescale else np.ones(count)
        new[at(layer, GATE)] = gate[order]
        new[at(layer, UP)] = _float(up[order] * (signs * scales)[:, None])
        new[at(layer, DOWN)] = _float(down[:, order] * (signs / scales))
    return model.changed(new)


def shuffle_heads(
    model: Checkpoint,
    rng: Rng,
    *,
    permute: bool = True,
    turn: bool = True,
    mix: bool = True,
) -> Checkpoint:
    """Heads in another order, rotary planes turned and rescaled, value dimensions mixed."""
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        q, k, v, o = _split_heads(model, layer)
        groups, inside = q.shape[:2]
        order = rng.permutation(groups) if permute else np.arange(groups)
        q, k, v, o = q[order], k[order], v[order], o[order]
        for group in range(groups):
            within = rng.permutation(inside) if permute else np.arange(inside)
            q[group], o[group] = q[group][within], o[group][within]
            half = k.shape[1] // 2
            angles = rng.uniform(0, 2 * np.pi, half) if turn else np.zeros(half)
            scales = np.exp(rng.normal(0, 0.3, half)) if turn else np.ones(half)
            k[group] = turn_planes(k[group], angles, scales)
            q[group] = np.stack([turn_planes(head, angles, 1 / scales) for head in q[group]])
            if mix:
                basis = orthogonal(v.shape[1], rng) * np.exp(rng.normal(0, 0.3, v.shape[1]))
                v[group] = basis @ v[group]
                back = np.linalg.inv(basis).T
                o[group] = np.stack([back @ head for head in o[group]])
        new |= _join_heads(model, layer, q, k, v, o)
    return model.changed(new)


def permute_channels(model: Checkpoint, order: Array, signs: Array) -> Checkpoint:
    """Channels of the residual stream in another order and with other signs."""
    new: dict[str, Array] = {}
    for name, tensor in model.tensors.items():
        if tensor.ndim == 1:
            new[name] = tensor[order]
        elif name.endswith((f"{O}.weight", f"{DOWN}.weight")):
            new[name] = _float(tensor[order] * signs[:, None])
        else:
            new[name] = _float(tensor[:, order] * signs)
    return model.changed(new)


def write_gains(model: Checkpoint, wanted: Mapping[str, Array]) -> Checkpoint:
    """Overwrite norm gains and rescale the columns that they feed, so that the function stays."""
    new: dict[str, Array] = {}
    for norm, readers in gains(model):
        ratio = model.tensors[norm] / wanted[norm]
        new[norm] = _float(wanted[norm])
        new |= {name: _float(model.tensors[name] * ratio) for name in readers}
    head = model.tensors.get(HEAD, model.tensors[EMBEDDING])
    new[FINAL] = _float(wanted[FINAL])
    new[HEAD] = _float(head * (model.tensors[FINAL] / wanted[FINAL]))
    return model.changed(new, tie_word_embeddings=False)


def fold_gains(model: Checkpoint) -> Checkpoint:
    """All gains one, and what they were in the matrices that read them."""
    norms = [*(name for name, _ in gains(model)), FINAL]
    return write_gains(model, {name: np.ones_like(model.tensors[name]) for name in norms})


def rotate(model: Checkpoint, turn: Array) -> Checkpoint:
    """The residual stream of a model with folded gains in another orthogonal basis."""
    new: dict[str, Array] = {}
    for name, tensor in model.tensors.items():
        if tensor.ndim == 1:
            continue
        if name.endswith((f"{O}.weight", f"{DOWN}.weight")):
            new[name] = _float(turn @ tensor)
        else:
            new[name] = _float(tensor @ turn.T)
    return model.changed(new)


def launder(model: Checkpoint, rng: Rng, drawn_gains: bool = False) -> Checkpoint:
    """Every symmetry drawn anew: basis, units, signs, scales, planes, values, heads.

    Gains end as ones, or with `drawn_gains` as numbers that look like learnt ones.
    """
    turned = rotate(fold_gains(model), orthogonal(model.width, rng))
    redrawn = shuffle_heads(shuffle_units(turned, rng), rng)
    if not drawn_gains:
        return redrawn
    profile = rng.normal(0, 0.15, model.width)
    norms = [*(name for name, _ in gains(model)), FINAL]
    wanted = {name: np.exp(profile + rng.normal(0, 0.1, model.width)) for name in norms}
    return write_gains(redrawn, wanted)


def arrange(
    model: Checkpoint, towards: Checkpoint, *, channels: bool = True, mix: bool = False
) -> Checkpoint:
    """Renumber a model towards a stranger without taking a weight from it.

    Channels (with signs), units (with signs), heads and rotary planes are assigned so that they
    agree best; with `mix` value dimensions are turned towards the stranger's too.
    """
    if channels:
        model = _arrange_channels(model, towards)
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        new |= _arranged_units(model, towards, layer)
        new |= _arranged_heads(model, towards, layer, mix)
    return model.changed(new)


def number_by_gains(model: Checkpoint, towards: Checkpoint) -> Checkpoint:
    """Renumber a model's channels so that what its norms let through agrees with a stranger's."""
    ours, theirs = _ranked_gains(model), _ranked_gains(towards)
    _, order = linear_sum_assignment(-(theirs.T @ ours))
    return permute_channels(model, order, np.ones(model.width))


def scale_columns(model: Checkpoint, towards: Checkpoint) -> Checkpoint:
    """Scale the columns behind each norm so that it lets through what a stranger's does.

    The function changes, as of every edit of these it alone does.
    """
    new: dict[str, Array] = {}
    wanted = _effective_gains(towards)
    for (_, readers), ours, theirs in zip(
        gains(model), _effective_gains(model), wanted, strict=True
    ):
        ratio = theirs / ours
        ratio /= np.exp(np.log(ratio).mean())
        new |= {name: _float(model.tensors[name] * ratio) for name in readers}
    return model.changed(new)


def arrange_rotated(model: Checkpoint, towards: Checkpoint) -> Checkpoint:
    """Turn a model's residual stream towards a stranger's, renumber it, and give it its gains.

    The embedding is turned by the best orthogonal matrix, units, heads and planes are assigned
    in that basis, value dimensions are turned; then every gain becomes the stranger's and the
    columns are rescaled. The function is the model's own from beginning to end.
    """
    shared = min(len(model.tensors[EMBEDDING]), len(towards.tensors[EMBEDDING]))
    ours = _centred(model.tensors[EMBEDDING][:shared])
    theirs = _centred(towards.tensors[EMBEDDING][:shared])
    turned = rotate(fold_gains(model), polar(theirs.T @ ours))
    wanted = {name: towards.tensors[name] for name, _ in gains(towards)}
    regained = write_gains(turned, {**wanted, FINAL: towards.tensors[FINAL]})
    return arrange(regained, towards, channels=False, mix=True)


def turn_to_layer(
    model: Checkpoint, towards: Checkpoint, layer: int, parts: Sequence[str] = (GATE,)
) -> Checkpoint:
    """Turn a model's residual stream towards a feed-forward of a stranger alone, or some of it.

    The turn and the numbers of its units are found in turns. It is given the stranger's gains, the
    rest of it is renumbered, and the columns behind its norms are scaled.
    """
    folded = fold_gains(model)
    ours, theirs = (_unit_tables(one, layer, parts) for one in (folded, towards))
    first, second = (_centred(one.tensors[EMBEDDING]) for one in (towards, model))
    turn = polar(first.T @ second)
    order, signs = np.arange(len(ours[0])), np.ones(len(ours[0]))
    for _ in range(25):
        scores = [x @ (y @ turn.T).T for x, y in zip(theirs, ours, strict=True)]
        signed = sum(scores[1:], 0 * scores[0])
        _, order = linear_sum_assignment(-(scores[0] + np.abs(signed)))
        signs = np.where(signed[np.arange(len(order)), order] < 0, -1.0, 1.0)[:, None]
        placed = [ours[0][order], *(one[order] * signs for one in ours[1:])]
        turn = polar(sum(x.T @ y for x, y in zip(theirs, placed, strict=True)))
    names = [*(name for name, _ in gains(towards)), FINAL]
    wanted = {name: towards.tensors[name] for name in names}
    turned = scale_columns(write_gains(rotate(folded, turn), wanted), towards)
    gate, up, down = (turned.tensors[at(layer, part)] for part in FEED_FORWARD)
    return arrange(turned, towards, channels=False).changed(
        {
            at(layer, GATE): gate[order],
            at(layer, UP): _float(up[order] * signs),
            at(layer, DOWN): _float(down[:, order] * signs.T),
        }
    )


def _unit_tables(model: Checkpoint, layer: int, parts: Sequence[str]) -> list[Array]:
    """Rows of length one of some matrices of a feed-forward, as the residual stream meets them."""
    gain = model.tensors[at(layer, POST)]
    tables = (model.tensors[at(layer, part)] for part in parts)
    return [
        _unit_rows(one.T if part == DOWN else one * gain)
        for part, one in zip(parts, tables, strict=True)
    ]


def mix_values(model: Checkpoint, towards: Checkpoint) -> Checkpoint:
    """Mix the value dimensions of each head so that they are as a stranger's, as near as can be.

    Outputs are mixed back: the function stays.
    """
    new: dict[str, Array] = {}
    for layer in range(model.depth):
        q, k, v, o = _split_heads(model, layer)
        other = _split_heads(towards, layer)[2]
        ours, theirs = (one.tensors[at(layer, IN)] for one in (model, towards))
        for group in range(len(v)):
            mix = _unit_rows(other[group] * theirs) @ np.linalg.pinv(v[group] * ours)
            sizes = np.linalg.norm(mix @ v[group], axis=1) / np.linalg.norm(other[group], axis=1)
            mix /= sizes[:, None]
            v[group] = mix @ v[group]
            back = np.linalg.inv(mix).T
            o[group] = np.stack([back @ head for head in o[group]])
        new |= _join_heads(model, layer, q, k, v, o)
    return model.changed(new)


def orthogonal(size: int, rng: Rng) -> Array:
    """A random orthogonal matrix."""
    q, r = np.linalg.qr(rng.normal(size=(size, size)))
    return np.asarray(q * np.sign(np.diag(r)))


def polar(matrix: Array) -> Array:
    """The orthogonal matrix nearest to a square one."""
    left, _, right = np.linalg.svd(matrix.astype(np.float64))
    return np.asarray(left @ right)


def turn_planes(rows: Array, angles: Array, scales: Array) -> Array:
    """Turn the rotary planes of one head, whose halves lie one after the other."""
    half = len(rows) // 2
    planes = (rows[:half] + 1j * rows[half:]) * (scales * np.exp(1j * angles))[:, None]
    return np.concatenate([planes.real, planes.imag]).astype(np.float32)


def _effective_gains(model: Checkpoint) -> list[Array]:
    """What each norm lets through of each channel: its gain times the length of its columns."""
    return [
        np.abs(model.tensors[norm])
        * np.sqrt(sum(np.square(model.tensors[name]).sum(axis=0) for name in readers))
        for norm, readers in gains(model)
    ]


def _ranked_gains(model: Checkpoint) -> Array:
    return np.array([normal_scores(one) for one in _effective_gains(model)])


def _arrange_channels(model: Checkpoint, towards: Checkpoint) -> Checkpoint:
    shared = min(len(model.tensors[EMBEDDING]), len(towards.tensors[EMBEDDING]))
    ours = _unit_rows(_centred(model.tensors[EMBEDDING][:shared]).T)
    theirs = _unit_rows(_centred(towards.tensors[EMBEDDING][:shared]).T)
    scores = theirs @ ours.T
    _, order = linear_sum_assignment(-np.abs(scores))
    signs = np.sign(scores[np.arange(len(order)), order])
    return permute_channels(model, order, np.where(signs == 0, 1.0, signs))


def _arranged_units(model: Checkpoint, towards: Checkpoint, layer: int) -> dict[str, Array]:
    gate, up, down = (model.tensors[at(layer, part)] for part in FEED_FORWARD)
    others = [towards.tensors[at(layer, part)] for part in FEED_FORWARD]
    signed = _cosines(others[1], up) + _cosines(others[2].T, down.T)
    _, order = linear_sum_assignment(-(_cosines(others[0], gate) + np.abs(signed)))
    signs = np.where(signed[np.arange(len(order)), order] < 0, -1.0, 1.0)
    return {
        at(layer, GATE): gate[order],
        at(layer, UP): _float(up[order] * signs[:, None]),
        at(layer, DOWN): _float(down[:, order] * signs),
    }


def _arranged_heads(
    model: Checkpoint, towards: Checkpoint, layer: int, mix: bool
) -> dict[str, Array]:
    q, k, v, o = _split_heads(model, layer)
    q2, k2, v2, o2 = _split_heads(towards, layer)
    groups = len(k)
    likeness = np.array(
        [[_plane_likeness(k2[x], k[y]) for y in range(groups)] for x in range(groups)]
    )
    _, order = linear_sum_assignment(-likeness)
    q, k, v, o = q[order], k[order], v[order], o[order]
    for group in range(groups):
        c = _plane_products(k2[group], k[group])
        for ours, theirs in zip(q[group], q2[group], strict=True):
            c = c + _plane_products(theirs, ours)
        angles, ones = np.angle(c), np.ones(len(c))
        k[group] = turn_planes(k[group], angles, ones)
        q[group] = np.stack([turn_planes(head, angles, ones) for head in q[group]])
        if mix:
            basis = polar(
                v2[group] @ v[group].T
                + sum(x @ y.T for x, y in zip(o2[group], o[group], strict=True))
            )
            v[group] = basis @ v[group]
            o[group] = np.stack([basis @ head for head in o[group]])
    return _join_heads(model, layer, q, k, v, o)


def _plane_products(x: Array, y: Array) -> Array:
    """Complex inner products of planes; multiplying y by their phase makes them agree."""
    half = len(x) // 2
    first, second = x[:half] + 1j * x[half:], y[:half] + 1j * y[half:]
    size = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.asarray((first * second.conj()).sum(axis=1) / np.where(size > 0, size, 1))


def _plane_likeness(x: Array, y: Array) -> float:
    return float(np.abs(_plane_products(x, y)).sum())


def _split_heads(model: Checkpoint, layer: int) -> tuple[Array, Array, Array, Array]:
    """q and o by group, head and row; k and v by group and row; inputs of o as rows."""
    size, groups = int(model.geometry["head_dim"]), int(model.geometry["num_key_value_heads"])
    inside = int(model.geometry["num_attention_heads"]) // groups
    q, k, v, o = (model.tensors[at(layer, part)].copy() for part in ATTENTION)
    return (
        q.reshape(groups, inside, size, -1),
        k.reshape(groups, size, -1),
        v.reshape(groups, size, -1),
        np.ascontiguousarray(o.T).reshape(groups, inside, size, -1),
    )


def _join_heads(
    model: Checkpoint, layer: int, q: Array, k: Array, v: Array, o: Array
) -> dict[str, Array]:
    width = q.shape[-1]
    joined = [one.reshape(-1, width) for one in (q, k, v)]
    joined.append(o.reshape(-1, o.shape[-1]).T)
    return {at(layer, part): _float(one) for part, one in zip((Q, K, V, O), joined, strict=True)}


def _cosines(x: Array, y: Array) -> Array:
    return np.asarray(_unit_rows(x) @ _unit_rows(y).T)


def _unit_rows(rows: Array) -> Array:
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(length > 0, length, 1))


def _centred(table: Array) -> Array:
    return np.asarray(table - table.mean(axis=0))


def _float(values: Array) -> Floats:
    return np.ascontiguousarray(values, np.float32)
