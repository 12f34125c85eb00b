"""The whole battery under its null: relabelled copies of trained models must look like strangers.

One model is relabelled by a random element of its symmetry group (channels and their signs,
units and theirs, key-value heads, value dimensions, quarter turns of rotary planes), which is
what independent initialisation does to labels. The combined p-value must then fall below a
level no more often than the level says, for any pair: here the worst one, a model against
itself. The suite draws a few with small slices of models; `python -m
tests.lineage.test_validity 10000` draws as many as one likes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from kinprint.demo import FOLDER
from kinprint.lineage.battery import run_battery
from kinprint.lineage.charge import Charge
from kinprint.lineage.opening import open_all, read_headers, sampler_of
from kinprint.lineage.reading.sample import Attention, Floats, Sample, Units
from kinprint.lineage.results import Settings
from kinprint.lineage.side import Side
from kinprint.lineage.tests.menu import menu
from kinprint.lineage.verdict import decide
from kinprint.reader.fetch import Fetcher

LEVELS = (0.05, 0.01, 0.001)
DEMO = FOLDER / "zoo"


def samples_of(*paths: Path) -> list[Sample]:
    """Models on disk as the battery sees them."""
    with Fetcher() as fetcher:
        checkpoints = open_all([str(path) for path in paths], fetcher, Settings())
        sampler = sampler_of(read_headers(checkpoints, Settings()), Settings())
        return sampler.samples(sampler.stages - 1)


def relabelled(one: Sample, random: np.random.Generator) -> Sample:
    """The same function under other names: a random element of a RMSNorm model's group."""
    order = random.permutation(one.width)
    signs = random.choice([-1.0, 1.0], one.width).astype(np.float32)

    def turned(rows: Floats) -> Floats:
        return np.ascontiguousarray(rows[..., order] * signs)

    embedding = one.embedding
    return replace(
        one,
        key=f"{one.key} {random.integers(1 << 62)}",
        norms={
            key: gains[order] if len(gains) == one.width else gains
            for key, gains in one.norms.items()
        },
        units={layer: _units(units, turned, random) for layer, units in one.units.items()},
        experts={at: _units(units, turned, random) for at, units in one.experts.items()},
        routers={layer: turned(rows) for layer, rows in one.routers.items()},
        attention={at: _heads(heads, turned, random) for at, heads in one.attention.items()},
        embedding=None if embedding is None else replace(embedding, rows=turned(embedding.rows)),
    )


def _units(units: Units, turned: object, random: np.random.Generator) -> Units:
    assert callable(turned)
    order = random.permutation(len(units.index))
    signs = random.choice([-1.0, 1.0], (len(order), 1)).astype(np.float32)
    gate = None if units.gate is None else turned(units.gate[order])
    up, down = turned(units.up[order]) * signs, turned(units.down[order]) * signs
    return replace(units, gate=gate, up=up, down=down)


def _heads(heads: Attention, turned: object, random: np.random.Generator) -> Attention:
    assert callable(turned)
    q, k, v, o = heads.q, heads.k, heads.v, heads.o
    assert q is not None and k is not None and v is not None and o is not None
    q, k, v, o = (turned(part) for part in (q, k, v, o))
    shared = len(q) // len(k)
    groups = random.permutation(len(k))
    queries = (groups[:, None] * shared + np.arange(shared)).reshape(-1)
    q, k, v, o = q[queries], k[groups], v[groups], o[queries]
    half = heads.rotated // 2
    for group in range(len(k)):
        mine = slice(group * shared, (group + 1) * shared)
        turns = random.integers(0, 4, half)
        for part in (q[mine], k[group : group + 1]):
            _turn_planes(part, half, turns)
        order = random.permutation(v.shape[1])
        signs = random.choice([-1.0, 1.0], (v.shape[1], 1)).astype(np.float32)
        v[group] = v[group][order] * signs
        o[mine] = o[mine][:, order] * signs
    return replace(heads, q=q, k=k, v=v, o=o)


def _turn_planes(heads: Floats, half: int, turns: np.ndarray) -> None:
    """Turn rotary planes by quarters, in place: rows j and j + half by turns[j]."""
    real, imaginary = heads[:, :half].copy(), heads[:, half : 2 * half].copy()
    for number, (x, y) in enumerate(
        [(real, imaginary), (-imaginary, real), (-real, -imaginary), (imaginary, -real)]
    ):
        at = np.flatnonzero(turns == number)
        heads[:, at], heads[:, half + at] = x[:, at], y[:, at]


def thinned(one: Sample, layers: Sequence[int], units: int, tokens: int) -> Sample:
    """A slice of a model, so that a draw takes milliseconds; every symmetry stays."""
    embedding = one.embedding
    assert embedding is not None
    return replace(
        one,
        units={
            at: replace(
                whole,
                index=whole.index[:units],
                up=whole.up[:units],
                down=whole.down[:units],
                gate=None if whole.gate is None else whole.gate[:units],
            )
            for at, whole in one.units.items()
            if at in layers
        },
        attention={at: heads for at, heads in one.attention.items() if at in layers},
        embedding=replace(
            embedding,
            tokens=embedding.tokens[:tokens],
            ids=embedding.ids[:tokens],
            rows=embedding.rows[:tokens],
        ),
    )


def draw(pairs: Sequence[tuple[Sample, Sample]], draws: int, seed: int) -> dict[str, list[float]]:
    """log10 p-values of every test and of the verdict, over relabelled copies of a model."""
    random = np.random.default_rng(seed)
    fixed = [(one, Side(other)) for one, other in pairs]
    found: dict[str, list[float]] = {"combined": []}
    for at in range(draws):
        one, other = fixed[at % len(fixed)]
        evidence = run_battery(relabelled(one, random), other)
        found["combined"].append(decide(evidence, Charge.for_menu(menu())).log10_p)
        for item in evidence:
            if item.status == "ok":
                found.setdefault(item.test, []).append(item.log10_p)
    return found


def too_often(values: Sequence[float], level: float) -> float:
    """How many deviations the share at or below a level lies above the level."""
    count, n = sum(value <= math.log10(level) for value in values), len(values)
    return (count - n * level) / math.sqrt(n * level * (1 - level))


@pytest.fixture(scope="module")
def small() -> list[Sample]:
    found = samples_of(DEMO / "base-a", DEMO / "base-b", DEMO / "a-cpt")
    return [thinned(one, (1, 4), 32, 144) for one in found]


def test_a_relabelled_copy_has_the_same_inner_products(small: list[Sample]) -> None:
    """The relabelling is one: it permutes and flips, and changes no product between parts."""
    one = small[0]
    other = relabelled(one, np.random.default_rng(0))
    assert one.embedding is not None and other.embedding is not None
    for layer, units in one.units.items():
        for role in ("gate", "up", "down"):
            x, y = (one.embedding.rows @ getattr(units, role).T,
                    other.embedding.rows @ getattr(other.units[layer], role).T)  # fmt: skip
            assert np.allclose(np.sort(np.abs(x), axis=1), np.sort(np.abs(y), axis=1), atol=1e-4)


@pytest.mark.parametrize("draws", [45, pytest.param(90, marks=pytest.mark.slow)])
def test_the_battery_holds_its_level(small: list[Sample], draws: int) -> None:
    a, b, child = small
    found = draw([(a, a), (a, b), (child, a)], draws, seed=1)
    assert len(found) > 8
    for test, values in found.items():
        for level in LEVELS:
            # many tests and levels are looked at, so only gross excess fails here
            assert too_often(values, level) < 4.5, (test, level)
        assert min(values) > -6, test
    assert too_often(found["combined"], 0.05) < 2.5


def test_the_check_can_fail(small: list[Sample]) -> None:
    """Without relabelling, the same procedure rejects at once."""
    evidence = run_battery(small[0], Side(small[2]))
    assert decide(evidence, Charge.for_menu(menu())).log10_p < -6


def main(arguments: Sequence[str]) -> None:
    """Draw many, print shares at or below each level with their excess in deviations."""
    draws = int(arguments[0]) if arguments else 10_000
    a, b, child = samples_of(DEMO / "base-a", DEMO / "base-b", DEMO / "a-cpt")
    found = draw([(a, a), (a, b), (child, a)], draws, seed=0)
    for test, values in found.items():
        shares = [sum(v <= math.log10(level) for v in values) / len(values) for level in LEVELS]
        cells = "".join(
            f"  ≤ {level}: {share:.4f} ({too_often(values, level):+.1f})"
            for level, share in zip(LEVELS, shares, strict=True)
        )
        print(f"{test:<14}{len(values):>7}{cells}  least {min(values):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])
