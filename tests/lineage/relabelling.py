"""Random elements of a model's whole symmetry group, applied to its sample.

A relabelled model computes the same function and is as likely as the one it was made from,
whatever the other model is: on such pairs every p-value must be valid.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from kinprint.lineage.reading.sample import Attention, Embedding, Sample, Units

Move = Callable[[np.ndarray], np.ndarray]


def relabelled(sample: Sample, rng: np.random.Generator, signs: bool = True) -> Sample:
    """The same model with channels, units, heads and experts renamed, signs flipped, planes turned.

    Rotary planes turn by quarters, or by halves where norms of q and k forbid more. Without
    `signs` only names change.
    """
    width = sample.width
    order = rng.permutation(width)
    rms = sample.facts.norm == "rms" and signs
    flips = _coins(width, rng) if rms else np.ones(width, np.float32)

    def move(rows: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(rows[..., order] * flips)

    quarters = sample.facts.qk_norm == "none"
    odd = bool(sample.facts.gated and sample.facts.odd_up) and signs
    residual = {role for role, _ in sample.norms} - {"norm_q", "norm_k"}
    experts: dict[tuple[int, int], Units] = {}
    routers = {}
    for layer, rows in sample.routers.items():
        to = rng.permutation(len(rows))
        routers[layer] = move(rows[to])
        for new, old in enumerate(to.tolist()):
            experts[layer, new] = _units(sample.experts[layer, old], move, odd, rng)

    def table(one: Embedding | None) -> Embedding | None:
        return None if one is None else Embedding(one.tokens, one.ids, move(one.rows))

    return replace(
        sample,
        name=f"{sample.name}*",
        key=hashlib.sha256(rng.bytes(16)).hexdigest(),
        norms={
            key: gain[order] if key[0] in residual else gain for key, gain in sample.norms.items()
        },
        norm_biases={key: bias[order] * flips for key, bias in sample.norm_biases.items()},
        units={layer: _units(one, move, odd, rng) for layer, one in sample.units.items()},
        attention={
            layer: _attention(one, move, signs, quarters, rng)
            for layer, one in sample.attention.items()
        },
        experts=experts,
        routers=routers,
        embedding=table(sample.embedding),
        head=table(sample.head),
    )


def _coins(n: int, rng: np.random.Generator) -> np.ndarray:
    return (rng.integers(2, size=n) * 2 - 1).astype(np.float32)


def _units(units: Units, move: Move, odd: bool, rng: np.random.Generator) -> Units:
    order = rng.permutation(len(units.index))
    coins = _coins(len(order), rng)[:, None] if odd else np.ones((len(order), 1), np.float32)
    return replace(
        units,
        up=move(units.up[order]) * coins,
        down=move(units.down[order]) * coins,
        gate=None if units.gate is None else move(units.gate[order]),
    )


def _attention(
    part: Attention, move: Move, signs: bool, quarters: bool, rng: np.random.Generator
) -> Attention:
    assert part.q is not None and part.k is not None and part.v is not None and part.o is not None
    groups, dims = part.v.shape[:2]
    inside = len(part.q) // groups
    q, k, v, o = (np.empty_like(rows) for rows in (part.q, part.k, part.v, part.o))
    for new, old in enumerate(rng.permutation(groups).tolist()):
        turn = _turning(part, signs, quarters, rng)
        k[new] = turn(move(part.k[old]))
        order, flips = rng.permutation(dims), _coins(dims, rng)[:, None]
        flips = flips if signs else np.ones_like(flips)
        v[new] = move(part.v[old][order]) * flips
        for to, source in enumerate(rng.permutation(inside).tolist()):
            q[new * inside + to] = turn(move(part.q[old * inside + source]))
            o[new * inside + to] = move(part.o[old * inside + source][order]) * flips
    return replace(part, q=q, k=k, v=v, o=o)


def _turning(part: Attention, signs: bool, quarters: bool, rng: np.random.Generator) -> Move:
    """A turn for each rotary plane of a group and a coin for each other row, as a function."""
    assert part.k is not None
    half, rows = part.rotated // 2, part.k.shape[1]
    steps = rng.integers(4, size=half) if quarters else 2 * rng.integers(2, size=half)
    turns = np.array([1, 1j, -1, -1j], np.complex64)[steps if signs else 0 * steps][:, None]
    coins = _coins(rows - 2 * half, rng)[:, None] if signs else np.ones((1, 1), np.float32)

    def turn(rows: np.ndarray) -> np.ndarray:
        planes = (rows[:half] + 1j * rows[half : 2 * half]) * turns
        return np.concatenate([planes.real, planes.imag, rows[2 * half :] * coins])

    return turn
