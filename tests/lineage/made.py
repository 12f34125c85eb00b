"""Small samples made of random numbers, and what may be done to them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
from msgspec.structs import replace

from kinprint.lineage.reading.sample import Attention, Embedding, Floats, Sample, Units
from kinprint.model.symmetries import Facts

LLAMA = Facts(
    norm="rms", gated=True, odd_up=True, rope="half", rotary=8, head_dim=8, qk_norm="none",
    head_bias=False, fixed_positions=False, plain_values=True, free_experts=True, one_width=True,
)  # fmt: skip
HEADS, GROUPS = 4, 2


def made(seed: int, width: int = 32, depth: int = 3, units: int = 48, tokens: int = 80) -> Sample:
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
        Sample(
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


def keyed(sample: Sample) -> Sample:
    """The sample with a key of its own contents."""
    embedding = sample.embedding
    told = b"" if embedding is None else embedding.rows.tobytes()
    feed_forwards = (*sample.units.values(), *sample.experts.values())
    told += b"".join(one.up.tobytes() for one in feed_forwards)
    return replace(sample, key=hashlib.sha256(told).hexdigest())


def each_matrix(sample: Sample, change: Callable[[Floats], Floats]) -> Sample:
    """The model with a change made to every matrix; norms stay, as they are no matrices."""

    def units(one: Units) -> Units:
        gate = None if one.gate is None else change(one.gate)
        return replace(one, up=change(one.up), down=change(one.down), gate=gate)

    def heads(one: Attention) -> Attention:
        q, k, v, o = (
            None if part is None else change(part) for part in (one.q, one.k, one.v, one.o)
        )
        return replace(one, q=q, k=k, v=v, o=o)

    def table(one: Embedding | None) -> Embedding | None:
        return None if one is None else replace(one, rows=change(one.rows))

    return keyed(
        replace(
            sample,
            units={layer: units(one) for layer, one in sample.units.items()},
            experts={at: units(one) for at, one in sample.experts.items()},
            routers={layer: change(rows) for layer, rows in sample.routers.items()},
            attention={layer: heads(one) for layer, one in sample.attention.items()},
            embedding=table(sample.embedding),
            head=table(sample.head),
        )
    )


def noisy(sample: Sample, share: float, seed: int) -> Sample:
    """The model trained on: every number keeps its value but for some noise."""
    rng = np.random.default_rng(seed)

    def stir(rows: Floats) -> Floats:
        scale = share * float(rows.std())
        return (rows + scale * rng.normal(size=rows.shape)).astype(np.float32)

    norms = {key: stir(gain) for key, gain in sample.norms.items()}
    named = replace(sample, name=f"{sample.name} trained on", norms=norms)
    return each_matrix(named, stir)
