"""Pairs of models that no test may tell from strangers: only chance has dealt their labels.

Some are strangers outright, some hold the very same contents in another order with other
signs, so that every search for a basis, a layer or a partner succeeds. The second kind is the
harder one: whatever leaks from a search into a test shows there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from kinprint.lineage.reading.sample import Floats, Sample, Units
from tests.lineage.made import each_matrix, keyed, made, noisy
from tests.lineage.relabelling import relabelled

Draw = Callable[[np.random.Generator], tuple[Sample, Sample]]
SIZES = {"width": 24, "depth": 2, "units": 32, "tokens": 64}


def fresh(rng: np.random.Generator, **sizes: int) -> Sample:
    """A model of numbers of its own."""
    return made(int(rng.integers(1 << 60)), **(SIZES | sizes))


def trained(sample: Sample, share: float, rng: np.random.Generator) -> Sample:
    """The model with noise on every number."""
    return noisy(sample, share, int(rng.integers(1 << 60)))


def heavy(sample: Sample) -> Sample:
    """Numbers with heavy tails: a few of them rule every sum."""
    norms = {
        key: np.asarray(1 + 10 * (gain - 1) ** 3, np.float32) for key, gain in sample.norms.items()
    }
    return each_matrix(replace(sample, norms=norms), lambda rows: rows**3)


def headed(sample: Sample) -> Sample:
    """An output head of its own, which follows the embedding a little, as trained ones do."""
    embedding = sample.embedding
    assert embedding is not None
    rng = np.random.default_rng(list(bytes.fromhex(sample.key)))
    rows = 0.5 * embedding.rows + rng.normal(size=embedding.rows.shape)
    # Frequent tokens lie along one direction.
    rows += np.log1p(np.arange(len(rows)))[:, None] * rng.normal(size=sample.width)
    return replace(sample, head=replace(embedding, rows=rows.astype(np.float32)))


def featured(sample: Sample) -> Sample:
    """Rows drawn to a few directions that all models share, as trained ones are."""
    width = sample.width
    basis = np.linalg.qr(np.random.default_rng(7).normal(size=(width, width)))[0]
    scale = 0.05 + 3 * np.exp(-6 * np.arange(width) / width)
    mix = ((basis * scale) @ basis.T).astype(np.float32)
    return each_matrix(sample, lambda rows: rows @ mix)


def alike_layers(sample: Sample, share: float) -> Sample:
    """Later layers that have much of the first, unit by unit and head by head."""

    def beside(one: Any, first: Any, roles: tuple[str, ...]) -> Any:
        parts = {role: (getattr(one, role), getattr(first, role)) for role in roles}
        known = {
            role: np.asarray(np.sqrt(share) * x + np.sqrt(1 - share) * own, np.float32)
            for role, (own, x) in parts.items()
        }
        return replace(one, **known)

    units, heads = sample.units[0], sample.attention[0]
    return keyed(
        replace(
            sample,
            units={
                at: one if not at else beside(one, units, ("up", "down", "gate"))
                for at, one in sample.units.items()
            },
            attention={
                at: one if not at else beside(one, heads, ("q", "k", "v", "o"))
                for at, one in sample.attention.items()
            },
        )
    )


def with_experts(sample: Sample, rng: np.random.Generator, count: int = 4) -> Sample:
    """A mixture of experts instead of dense feed-forwards."""
    width, units = sample.width, 16

    def some(rows: int) -> Floats:
        return rng.normal(size=(rows, width)).astype(np.float32)

    experts = {
        (layer, expert): Units(np.arange(units), units, some(units), some(units), some(units))
        for layer in range(sample.depth)
        for expert in range(count)
    }
    routers = {layer: some(count) for layer in range(sample.depth)}
    return keyed(replace(sample, units={}, experts=experts, routers=routers))


def plain(sample: Sample) -> Sample:
    """Feed-forwards without gates, whose units have no coins."""
    units = {layer: replace(one, gate=None) for layer, one in sample.units.items()}
    return replace(sample, units=units, facts=replace(sample.facts, gated=False, odd_up=False))


def fewer_units(sample: Sample, rng: np.random.Generator) -> Sample:
    """A third of all units removed, the others in their order."""

    def kept(one: Units) -> Units:
        at = np.sort(rng.permutation(one.total)[: 2 * one.total // 3])
        gate = None if one.gate is None else one.gate[at]
        return Units(np.arange(len(at)), len(at), one.up[at], one.down[at], gate)

    return keyed(replace(sample, units={layer: kept(one) for layer, one in sample.units.items()}))


def narrower(sample: Sample, rng: np.random.Generator) -> Sample:
    """A third of all channels removed."""
    at = np.sort(rng.permutation(sample.width)[: 2 * sample.width // 3])
    norms = {key: gain[at] for key, gain in sample.norms.items()}
    smaller = replace(sample, width=len(at), norms=norms)
    return each_matrix(smaller, lambda rows: np.ascontiguousarray(rows[..., at]))


def turned(sample: Sample, rng: np.random.Generator) -> Sample:
    """Norms and tokens gone, the residual stream in another basis: a map must be fitted."""
    turn = np.linalg.qr(rng.normal(size=(sample.width, sample.width)))[0].astype(np.float32)
    bare = replace(sample, norms={}, embedding=None)
    return each_matrix(bare, lambda rows: rows @ turn)


def widened(sample: Sample, rng: np.random.Generator) -> Sample:
    """Every unit twice, and trained until copies hardly look like copies."""

    def twice(rows: Floats | None) -> Floats:
        assert rows is not None
        both = np.concatenate([rows, rows])
        return np.asarray(both + 0.7 * both.std() * rng.normal(size=both.shape), np.float32)

    def doubled(one: Units) -> Units:
        total = 2 * one.total
        return Units(np.arange(total), total, twice(one.up), twice(one.down), twice(one.gate))

    return keyed(
        replace(sample, units={layer: doubled(one) for layer, one in sample.units.items()})
    )


def repeated_channels(sample: Sample, rng: np.random.Generator) -> Sample:
    """Every channel twice, side by side, and trained until copies only look alike."""

    def twice(rows: Floats) -> Floats:
        noise = rng.normal(size=rows.shape) * rows.std()
        both = np.stack([rows, 0.9 * rows + 0.44 * noise], axis=-1)
        return both.reshape(*rows.shape[:-1], -1).astype(np.float32)

    norms = {key: np.asarray(1 + twice(gain - 1), np.float32) for key, gain in sample.norms.items()}
    return each_matrix(replace(sample, width=2 * sample.width, norms=norms), twice)


def _channels_repeated(rng: np.random.Generator) -> tuple[Sample, Sample]:
    one = fresh(rng)
    other = trained(one, 0.3, rng)
    return repeated_channels(relabelled(one, rng), rng), repeated_channels(other, rng)


def _scattered(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.random(shape) < 0.5


def _two_of_four(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    places = rng.random((*shape[:-1], shape[-1] // 4, 4)).argsort(axis=-1)
    return (places < 2).reshape(shape)


def _uneven(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Rows of very different density."""
    return rng.random(shape) < rng.uniform(0.1, 0.9, size=shape[:-1])[..., None]


def _squares(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    rows, columns = shape[-2:]
    kept = rng.random((-(-rows // 8), -(-columns // 8))) < 0.5
    whole = np.kron(kept, np.ones((8, 8), bool))[:rows, :columns]
    return np.broadcast_to(whole, shape)


def _whole_rows(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return np.broadcast_to((rng.random(shape[:-1]) < 0.5)[..., None], shape)


MASKS: dict[str, Callable[[tuple[int, ...], np.random.Generator], np.ndarray]] = {
    "scattered": _scattered,
    "two of four": _two_of_four,
    "uneven": _uneven,
    "squares": _squares,
    "rows": _whole_rows,
}


def pruned(sample: Sample, mask: str, seed: int) -> Sample:
    """All matrices with zeros where a mask has them; the same seed gives the same mask."""
    rng = np.random.default_rng(seed)
    kept = MASKS[mask]
    return each_matrix(sample, lambda rows: np.asarray(rows * kept(rows.shape, rng), np.float32))


def with_massive_channels(sample: Sample, places: Sequence[int]) -> Sample:
    """A few channels far larger than the rest, in gains, embedding and matrices.

    Their embedding columns follow the tokens, as those of trained models do.
    """
    at = list(places)
    norms = {key: gain.copy() for key, gain in sample.norms.items()}
    for gain in norms.values():
        gain[at] = 20 + 3 * (gain[at] - 1)

    def enlarged(rows: Floats) -> Floats:
        larger = rows.copy()
        larger[..., at] *= 30
        return larger

    larger = each_matrix(replace(sample, norms=norms), enlarged)
    embedding = larger.embedding
    assert embedding is not None
    rows = embedding.rows.copy()
    rows[:, at] += 30 * np.sin(np.arange(len(rows), dtype=np.float32))[:, None]
    return keyed(replace(larger, embedding=replace(embedding, rows=rows)))


def _massive(rng: np.random.Generator) -> tuple[Sample, Sample]:
    """Strangers with massive channels at the same places."""
    places = (2, 41)
    one, other = (headed(fresh(rng, width=96)) for _ in range(2))
    return with_massive_channels(one, places), with_massive_channels(other, places)


def _one_mask(mask: str, share: float | None) -> Draw:
    """Two models pruned alike: strangers, or the same contents under other names."""

    def draw(rng: np.random.Generator) -> tuple[Sample, Sample]:
        one = headed(fresh(rng))
        other = headed(fresh(rng)) if share is None else trained(one, share, rng)
        seed = int(rng.integers(1 << 60))
        return pruned(relabelled(one, rng), mask, seed), pruned(other, mask, seed)

    return draw


def _renamed(content: Callable[[Sample], Sample], share: float, **sizes: int) -> Draw:
    def draw(rng: np.random.Generator) -> tuple[Sample, Sample]:
        one = content(fresh(rng, **sizes))
        return relabelled(one, rng), trained(one, share, rng)

    return draw


def _strangers(content: Callable[[Sample], Sample]) -> Draw:
    return lambda rng: (relabelled(content(fresh(rng)), rng), content(fresh(rng)))


def _cut(change: Callable[[Sample, np.random.Generator], Sample]) -> Draw:
    def draw(rng: np.random.Generator) -> tuple[Sample, Sample]:
        one = fresh(rng, units=48)
        return relabelled(one, rng), change(trained(one, 0.3, rng), rng)

    return draw


def _experts(rng: np.random.Generator) -> tuple[Sample, Sample]:
    one = with_experts(fresh(rng), rng)
    return relabelled(one, rng), trained(one, 0.5, rng)


def upcycled(
    sample: Sample, rng: np.random.Generator, count: int = 4, share: float = 0.2
) -> Sample:
    """Experts made of the feed-forward of each layer, their units shuffled, and trained on."""

    def expert(one: Units) -> Units:
        order = rng.permutation(one.total)

        def moved(rows: Floats) -> Floats:
            noise = share * rows.std() * rng.normal(size=rows.shape)
            return np.asarray(rows[order] + noise, np.float32)

        assert one.gate is not None
        return Units(one.index, one.total, moved(one.up), moved(one.down), moved(one.gate))

    experts = {
        (layer, number): expert(one)
        for layer, one in sample.units.items()
        for number in range(count)
    }
    routers = {
        layer: rng.normal(size=(count, sample.width)).astype(np.float32) for layer in sample.units
    }
    return keyed(replace(sample, units={}, experts=experts, routers=routers))


def _upcycled(rng: np.random.Generator) -> tuple[Sample, Sample]:
    one = fresh(rng)
    return upcycled(relabelled(one, rng), rng), upcycled(trained(one, 0.3, rng), rng)


def _coinless(rng: np.random.Generator) -> tuple[Sample, Sample]:
    one = fresh(rng)
    return relabelled(one, rng), plain(trained(one, 0.3, rng))


def _in_another_basis(rng: np.random.Generator) -> tuple[Sample, Sample]:
    one = fresh(rng, units=64)
    bare = replace(one, norms={}, embedding=None)
    return relabelled(bare, rng), turned(trained(one, 0.2, rng), rng)


def _narrow_basis(rng: np.random.Generator) -> tuple[Sample, Sample]:
    """Fewer channels, and neither gains nor tokens to tell which: a map must be fitted."""
    one = replace(fresh(rng, units=64), norms={}, embedding=None)
    return relabelled(one, rng), narrower(trained(one, 0.2, rng), rng)


def _both_widened(rng: np.random.Generator) -> tuple[Sample, Sample]:
    one = fresh(rng, width=48)
    return widened(relabelled(one, rng), rng), widened(trained(one, 0.3, rng), rng)


PAIRS: dict[str, Draw] = {
    "strangers": _strangers(lambda one: one),
    "strangers, heavy tails": _strangers(heavy),
    "strangers, shared features": _strangers(featured),
    "strangers, correlated layers": _strangers(lambda one: alike_layers(one, 0.3)),
    "strangers, with heads": _strangers(headed),
    "strangers, heads with heavy tails": _strangers(lambda one: heavy(headed(one))),
    "same contents, renamed": _renamed(lambda one: one, 0.0),
    "same heads, renamed": _renamed(headed, 0.0),
    "trained heads, renamed": _renamed(headed, 0.5),
    "trained copy, renamed": _renamed(lambda one: one, 1.0),
    "heavy tails, renamed": _renamed(heavy, 0.5),
    "shared features, renamed": _renamed(featured, 0.5),
    "plain feed-forwards, renamed": _renamed(plain, 0.5),
    "experts, renamed": _experts,
    "other has no coins, renamed": _coinless,
    "fewer units, renamed": _cut(fewer_units),
    "fewer channels, renamed": _cut(narrower),
    "another basis, renamed": _in_another_basis,
    "fewer channels without tokens, renamed": _narrow_basis,
    "widened alike, renamed": _both_widened,
    "channels repeated alike, renamed": _channels_repeated,
    "experts of shuffled copies, renamed": _upcycled,
    "massive channels": _massive,
    **{f"one mask, {mask}": _one_mask(mask, None) for mask in MASKS},
    **{f"one mask, {mask}, renamed": _one_mask(mask, 0.3) for mask in MASKS},
}
