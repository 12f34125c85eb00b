"""Small portraits made of random numbers, and what may be done to them."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np

from kinprint.model.symmetries import Facts
from kinprint.studies.lineage.portrait import Attention, Embedding, Floats, Portrait, Units

LLAMA = Facts(
    norm="rms", gated=True, odd_up=True, rope="half", rotary=8, head_dim=8, qk_norm="none",
    head_bias=False, fixed_positions=False, plain_values=True, free_experts=True, one_width=True,
)  # fmt: skip
HEADS, GROUPS = 4, 2


def made(seed: int, width: int = 32, depth: int = 3, units: int = 48, tokens: int = 80) -> Portrait:
    """A model of independent random numbers, with gains that vary."""
    rng = np.random.default_rng(seed)

    def draw(*shape: int) -> Floats:
        return rng.normal(size=shape).astype(np.float32)

    norms = {
        (role, layer): 1 + 0.2 * draw(width)
        for layer in range(depth)
        for role in ("norm_in", "norm_post_attn")
    }
    return keyed(
        Portrait(
            name=f"made {seed}",
            key="",
            width=width,
            depth=depth,
            facts=LLAMA,
            norms={**norms, ("norm_final", -1): 1 + 0.2 * draw(width)},
            units={
                layer: Units(
                    np.arange(units),
                    units,
                    draw(units, width),
                    draw(units, width),
                    draw(units, width),
                )
                for layer in range(depth)
            },
            attention={
                layer: Attention(
                    draw(HEADS, 8, width),
                    draw(GROUPS, 8, width),
                    draw(GROUPS, 8, width),
                    draw(HEADS, 8, width),
                    rotated=8,
                )
                for layer in range(depth)
            },
            embedding=Embedding(
                tuple(b"%d" % at for at in range(tokens)), np.arange(tokens), draw(tokens, width)
            ),
        )
    )


def keyed(portrait: Portrait) -> Portrait:
    """The portrait with a key of its own contents."""
    embedding = portrait.embedding
    told = b"" if embedding is None else embedding.rows.tobytes()
    told += b"".join(one.up.tobytes() for one in portrait.units.values())
    return replace(portrait, key=hashlib.sha256(told).hexdigest())


def noisy(portrait: Portrait, share: float, seed: int) -> Portrait:
    """The model trained on: every number keeps its value but for some noise."""
    rng = np.random.default_rng(seed)

    def stir(rows: Floats | None) -> Floats | None:
        if rows is None:
            return None
        scale = share * float(rows.std())
        return (rows + scale * rng.normal(size=rows.shape)).astype(np.float32)

    def kept(rows: Floats | None) -> Floats:
        found = stir(rows)
        assert found is not None
        return found

    embedding = portrait.embedding
    return keyed(
        replace(
            portrait,
            name=f"{portrait.name} trained on",
            norms={key: kept(gain) for key, gain in portrait.norms.items()},
            units={
                layer: replace(one, up=kept(one.up), down=kept(one.down), gate=stir(one.gate))
                for layer, one in portrait.units.items()
            },
            attention={
                layer: replace(one, q=stir(one.q), k=stir(one.k), v=stir(one.v), o=stir(one.o))
                for layer, one in portrait.attention.items()
            },
            embedding=None if embedding is None else replace(embedding, rows=kept(embedding.rows)),
        )
    )
