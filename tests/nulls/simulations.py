"""Each test run on many independent pairs of one world: log10 p-values of null draws.

The quick tests and the long sweep draw from the same functions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from kinprint.nulls.bits import equal_counts
from kinprint.nulls.blocks import block_log10_p, block_sizes, signed_log10_p
from kinprint.nulls.combination import fisher
from kinprint.nulls.exchangeability import trend
from kinprint.nulls.fixed_points import Pairs, fixed_point_log10_p, mutual_pairs
from kinprint.nulls.increasing import increasing_log10_p, longest_increasing
from kinprint.nulls.preparation import normal_scores
from kinprint.nulls.result import Floats
from kinprint.nulls.signs import quarter_log10_p, sign_log10_p
from tests.nulls import worlds

Simulation = Callable[[str, int, np.random.Generator], Floats]


def blocks(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """Labels of 33 units, a ragged block at the end."""
    scores = worlds.table(kind, 33, 24, rng)
    return block_log10_p(worlds.cut(scores, worlds.orders(repeats, 33, rng)), block_sizes(33))


def few_blocks(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """Labels of eight units, close to the floor."""
    return block_log10_p(worlds.cut(worlds.table(kind, 8, 24, rng), worlds.orders(repeats, 8, rng)))


def alike_layers(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """Three layers with the same content, labelled apart and pooled."""
    scores = worlds.table(kind, 12, 24, rng)
    cuts = [worlds.cut(scores, worlds.orders(repeats, 12, rng)) for _ in range(3)]
    return block_log10_p(np.concatenate(cuts, axis=1))


def signed(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """Labels and flips of 18 units."""
    n = 18
    labels = worlds.orders(repeats, n, rng)
    gate, up = worlds.table(kind, n, 24, rng), worlds.table(kind, n, 24, rng)
    coins = np.ones((repeats, 20))
    coins[:, :n] = rng.integers(2, size=(repeats, n)) * 2 - 1
    flipped = worlds.cut(up, labels) * coins.reshape(repeats, -1, 4, 1)
    return signed_log10_p(worlds.cut(gate, labels), flipped, block_sizes(n))


def signs(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """Units are matched by the size of their cosine; only then the coin is looked at."""
    scores = worlds.table(kind, 40, 24, rng)
    matched = scores[np.arange(40), np.abs(scores).argmax(axis=1)]
    return sign_log10_p(matched * (rng.integers(2, size=(repeats, 40)) * 2 - 1))


def turns(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """Six planes turned by quarters."""
    scores = worlds.table(kind, 6, 24, rng)
    c = scores.max(axis=1) + 1j * scores[:, 0]
    return quarter_log10_p(c * 1j ** rng.integers(4, size=(repeats, 6)))


def places(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """Fixed points of three layers, the second model with more units than the first."""
    return np.array([_fixed(layers) for layers in _layers(kind, repeats, rng)])


def signed_places(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """Fixed points that count only where the coin of the unit fell right."""
    found = []
    for layers in _layers(kind, repeats, rng):
        right = [rng.integers(2, size=len(one.first)) == 1 for one in layers]
        count = sum(
            int(((one.first == one.second) & coin).sum())
            for one, coin in zip(layers, right, strict=True)
        )
        shapes = [(one.reachable, one.size) for one in layers]
        found.append(fixed_point_log10_p(count, shapes, coins=True))
    return np.array(found)


def runs(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """Longest rising runs of three layers, by Fisher's method."""
    return np.array([_runs(layers) for layers in _layers(kind, repeats, rng)])


def places_or_runs(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """The better of two dependent tests, times two."""
    drawn = _layers(kind, repeats, rng)
    doubled = [min(_fixed(layers), _runs(layers)) + np.log10(2) for layers in drawn]
    return np.array([min(0.0, log10_p) for log10_p in doubled])


def bits(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """Small integers, often equal by chance."""
    whole = [np.round(np.clip(x, -50, 50) * 2) for x in worlds.contents(kind, 12, 40, rng)]
    a, b = (x.astype(np.int8) for x in whole)
    return block_log10_p([equal_counts(a[o], b) for o in worlds.orders(repeats, 12, rng)])


def sortedness(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """The self-test for sorted units, on sizes of shuffled units with many ties."""
    sizes = np.round(np.linalg.norm(worlds.contents(kind, 40, 8, rng)[0], axis=1))
    return np.array([trend(sizes[o]).log10_p for o in worlds.orders(repeats // 10, 40, rng)])


def gains(kind: str, repeats: int, rng: np.random.Generator) -> Floats:
    """Gains of layers that resemble each other, under one permutation of the channels."""
    a, b = worlds.contents(kind, 32, 6, rng)
    for x in (a, b):
        x += x[:, :1]
        x[:, 0] = 1.0
    scores = normal_scores(np.round(a, 1).T).T @ normal_scores(np.round(b, 1).T)
    return block_log10_p(worlds.cut(scores, worlds.orders(repeats, 32, rng)))


BY_WORLD: dict[str, Simulation] = {
    one.__name__: one
    for one in (
        blocks,
        few_blocks,
        alike_layers,
        signed,
        signs,
        turns,
        places,
        signed_places,
        runs,
        places_or_runs,
        bits,
        sortedness,
        gains,
    )
}


def independent_fisher(_: str, repeats: int, rng: np.random.Generator) -> Floats:
    """Five independent uniform p-values."""
    return np.array([fisher(list(row)) for row in np.log10(rng.uniform(size=(repeats, 5)))])


def _layers(kind: str, repeats: int, rng: np.random.Generator) -> list[list[Pairs]]:
    return _drawn_layers(kind, repeats, int(rng.integers(2**31)))


@lru_cache(maxsize=2)  # several tests look at the same draws
def _drawn_layers(kind: str, repeats: int, seed: int) -> list[list[Pairs]]:
    rng = np.random.default_rng(seed)
    scores = worlds.table(kind, 12, 24, rng)[:9]
    return [[mutual_pairs(scores[rng.permutation(9)]) for _ in range(3)] for _ in range(repeats)]


def _fixed(layers: list[Pairs]) -> float:
    count = sum(int((one.first == one.second).sum()) for one in layers)
    return fixed_point_log10_p(count, [(one.reachable, one.size) for one in layers])


def _runs(layers: list[Pairs]) -> float:
    each = [increasing_log10_p(longest_increasing(p.second), len(p.first)) for p in layers]
    return fisher(each)
