"""`python -m benchmarks.calibration.beyond FOLDER`: what fine-tunes of one base have in common.

Trains roots, tunes each several times apart (the same text in another order, in the same order at
another rate, another text, adapters), and makes what is related beyond the root: continued,
scaled, averaged, noised, quantised, cut. Writes what `measure.updates` gives for each part of each
pair, one row a part, to `beyond-*.csv`. Plans whose name starts with `aside` set no limit. Needs
PyTorch and an accelerator.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch
from msgspec import Struct
from msgspec.structs import replace

from benchmarks.calibration.families import PLANS, TOKENS, Plan
from benchmarks.calibration.surgery import Model
from benchmarks.calibration.texts import read_texts
from benchmarks.calibration.training import Course, Parameters, Recipe, initial, pick, train
from kinprint.measure.drift import Floats, log_size
from kinprint.measure.spectra import noise_ratio
from kinprint.measure.updates import Updates, overlap, updates

ROOTS = {"64": 6, "128": 6, "256": 4, "512": 2, "aside-64": 4, "aside-128": 4, "aside-256": 3}
PARTS = {
    "norms": ("norm_in", "norm_post_attn"),
    "attention": ("q", "k", "v", "o"),
    "feed-forward": ("gate", "up", "down"),
}
_ACROSS = ("o", "down")  # read along their inputs, as samples have them
_ROWS = (0, 16)  # of each tensor that are compared; 0 for all
_MOST = 256  # rows and columns that tell a spectrum


class Tune(Struct, frozen=True):
    """One way of tuning a root: its length and rate as shares of the root's, text and order."""

    name: str
    length: float
    rate: float
    mix: int
    order: int
    rank: int = 0
    seed: int = 0


TUNES = (
    Tune("short", 0.1, 0.15, 1, 1),
    Tune("short, other order", 0.1, 0.15, 1, 2),
    Tune("short, same order, other rate", 0.1, 0.3, 1, 1),
    Tune("short, same order, longer", 0.2, 0.15, 1, 1),
    Tune("short, other text", 0.1, 0.15, 0, 3),
    Tune("small", 0.05, 0.02, 1, 11),
    Tune("small, other order", 0.05, 0.02, 1, 12),
    Tune("small, other text", 0.05, 0.02, 0, 13),
    Tune("long", 0.5, 0.5, 1, 4),
    Tune("long, other order", 0.5, 0.5, 1, 5),
    Tune("long, other text", 0.5, 0.5, 0, 6),
    Tune("adapter", 0.1, 0.5, 1, 7, rank=8, seed=1),
    Tune("adapter, other order", 0.1, 0.5, 1, 8, rank=8, seed=2),
    Tune("adapter, same order", 0.1, 0.5, 1, 7, rank=8, seed=3),
    Tune("adapter, same seed", 0.1, 0.5, 1, 9, rank=8, seed=1),
    Tune("adapter, other text", 0.1, 0.5, 0, 10, rank=8, seed=4),
    Tune("adapter, other rank", 0.1, 0.5, 1, 14, rank=16, seed=5),
)
FURTHER = (
    ("short", Tune("continued on its text", 0.1, 0.15, 1, 21)),
    ("short", Tune("continued on another text", 0.1, 0.15, 0, 22)),
    ("short", Tune("continued for long", 0.3, 0.3, 0, 23)),
    ("small", Tune("continued on its text", 0.05, 0.02, 1, 24)),
    ("small", Tune("continued by a long tune", 0.1, 0.15, 0, 25)),
    ("long", Tune("continued by a short tune", 0.1, 0.15, 0, 26)),
    ("adapter", Tune("continued by another adapter", 0.1, 0.5, 0, 27, rank=8, seed=6)),
    ("adapter", Tune("continued by a full tune", 0.1, 0.15, 0, 28)),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plans", default="64")
    parser.add_argument("--characters", type=int, default=12_000_000)
    parser.add_argument("--steps", type=int, help="of roots, in place of the plan's")
    parser.add_argument("--save", type=int, default=0, help="roots to write out and not to judge")
    parser.add_argument("--until", type=float, default=1e9, help="seconds: no plan begins later")
    asked = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    asked.folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    arrays, _ = read_texts(TOKENS, asked.characters)
    texts = {name: torch.from_numpy(ids).to(device) for name, ids in arrays.items()}
    for name in asked.plans.split(","):
        if time.monotonic() - begun > asked.until:
            print(f"{name}: left out", flush=True)
            continue
        plan = replace(PLANS[name], roots=asked.save or ROOTS.get(name, 2))
        plan = replace(plan, steps=asked.steps or plan.steps)
        if asked.save:
            _save(plan, texts, device, asked.folder / f"{name}.npz")
            print(f"{name}: written at {time.monotonic() - begun:.0f} s", flush=True)
            continue
        drifts: list[dict[str, Any]] = []
        rows = list(_rows(plan, texts, device, drifts))
        for kind, table in (("beyond", rows), ("drift", drifts)):
            path = asked.folder / f"{kind}-{name}.csv"
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.DictWriter(file, list(table[0]))
                writer.writeheader()
                writer.writerows(table)
        print(f"{name}: {len(rows)} rows at {time.monotonic() - begun:.0f} s", flush=True)


def _rows(
    plan: Plan, texts: Mapping[str, Any], device: str, drifts: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    roots, tuned, further = _trained(plan, texts, device)
    for at in range(plan.roots):
        base = _model(roots, at)
        models = {name: _model(weights, at) for name, weights in tuned.items()}
        pairs: list[tuple[str, str, Model, Model]] = [
            ("apart", f"{one} | {other}", models[one], models[other])
            for one, other in combinations(models, 2)
        ]
        pairs += [
            ("continued", f"{parent} | {how}", models[parent], _model(weights, at))
            for parent, how, weights in further
        ]
        pairs += [
            (kind, f"{parent} | {how}", models[parent], made)
            for parent in ("short", "small", "long", "adapter")
            for kind, how, made in _made(base, models[parent], models["short, other text"], at)
        ]
        drifts += [
            _drift(plan.name, at, how, *(_cast(one) for one in (parent, child)))
            for how, parent, child in (
                *((f"root | {name}", base, model) for name, model in models.items()),
                *((how, a, b) for kind, how, a, b in pairs if kind != "apart"),
            )
        ]
        base = _cast(base)
        pairs = [(kind, how, _cast(a), _cast(b)) for kind, how, a, b in pairs]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            judged = [
                pool.submit(_judged, base, a, b, rows, plan.name, at, kind, how)
                for kind, how, a, b in pairs
                for rows in _ROWS
            ]
            yield from (row for one in judged for row in one.result())


def _trained(
    plan: Plan, texts: Mapping[str, Any], device: str
) -> tuple[Parameters, dict[str, Parameters], list[tuple[str, str, Parameters]]]:
    """Roots, what was tuned of them by name, and what was trained further of that."""
    seeds = [plan.first + 70_000 + at for at in range(plan.roots)]
    courses = [Course(plan.mixes[at % 2], seed) for at, seed in enumerate(seeds)]
    start = initial(plan.shape, seeds, plan.recipe, device)
    roots = _published(train(plan.shape, start, courses, texts, plan.recipe, plan.steps)[0])
    tuned = {one.name: _tuned(plan, roots, one, texts) for one in TUNES}
    further = [
        (parent, one.name, _tuned(plan, tuned[parent], one, texts)) for parent, one in FURTHER
    ]
    return roots, tuned, further


def _save(plan: Plan, texts: Mapping[str, Any], device: str, path: Path) -> None:
    """Write two layers of all models, the upper half of each number."""
    roots, tuned, further = _trained(plan, texts, device)
    models = {"root": roots, **tuned, **{f"{one} | {how}": each for one, how, each in further}}
    layers = [1, plan.shape.depth - 1]
    np.savez(
        path,
        **{
            f"{name}/{part}": (value[:, layers].float().cpu().numpy().view(np.uint32) >> 16).astype(
                np.uint16
            )
            for name, weights in models.items()
            for part, value in weights.items()
            if value.dim() > 3 or (value.dim() == 3 and part.startswith("norm"))
        },
    )


def _tuned(plan: Plan, parents: Parameters, how: Tune, texts: Mapping[str, Any]) -> Parameters:
    recipe: Recipe = replace(plan.recipe, rate=plan.recipe.rate * how.rate, rank=how.rank)
    places = range(plan.roots)
    courses = [
        Course(plan.mixes[how.mix], plan.first + 900 * how.order + at, 100 * how.seed + at)
        for at in places
    ]
    steps = max(round(plan.steps * how.length), 8)
    found, loss = train(plan.shape, pick(parents, list(places)), courses, texts, recipe, steps)
    print(f"{plan.name} {how.name}: {steps} steps, loss {np.mean(loss):.2f}", flush=True)
    return _published(found)


def _made(base: Model, a: Model, other: Model, seed: int) -> Iterator[tuple[str, str, Model]]:
    """What is made of a tuned model without training."""
    draws = np.random.default_rng(seed)
    for scale in (0.5, 2.0):
        yield "scaled", f"{scale:g}", {n: base[n] + scale * (a[n] - base[n]) for n in a}
    yield "averaged", "with another", {n: 0.5 * (a[n] + other[n]) for n in a}
    yield "averaged", "three tenths", {n: 0.3 * a[n] + 0.7 * other[n] for n in a}
    for size in (0.3, 1.0):
        yield "noised", f"{size:g} of the update", {
            n: a[n] + draws.normal(size=a[n].shape) * size * (a[n] - base[n]).std() for n in a
        }  # fmt: skip
    for bits in (8, 4):
        yield "quantised", f"{bits} bits", {
            n: value if n.startswith("norm") else _quantised(value, bits) for n, value in a.items()
        }  # fmt: skip


def _quantised(value: Any, bits: int) -> Any:
    """Whole multiples of a step for each 32 neighbours."""
    blocks = value.reshape(-1, 32)
    top = 2 ** (bits - 1) - 1
    steps = np.abs(blocks).max(axis=1, keepdims=True) / top + 1e-12
    return (np.rint(blocks / steps) * steps).reshape(value.shape)


def _judged(
    base: Model, a: Model, b: Model, count: int, plan: str, root: int, kind: str, how: str
) -> list[dict[str, Any]]:
    """One row a part."""
    facts = {"plan": plan, "root": root, "kind": kind, "how": how, "rows": count}
    found = []
    for component, names in PARTS.items():
        present = [name for name in names if name in base]
        for layer in range(len(base["norm_in"])):
            tensors = [
                tuple(_some(one[name][layer], name, count) for one in (a, b, base))
                for name in present
            ]
            found.append({**facts, "part": component, "layer": layer, **_row(tensors)})
    for component in ("embed", "head"):
        tensors = [tuple(_some(one[component], component, count) for one in (a, b, base))]
        found.append({**facts, "part": component, "layer": -1, **_row(tensors)})
    return found


def _drift(plan: str, root: int, how: str, parent: Model, child: Model) -> dict[str, Any]:
    """By how much a child has drifted farther than its parent, and in which share of matrices."""
    read = {"q": "norm_in", "k": "norm_in", "v": "norm_in", "gate": "norm_post_attn",
            "up": "norm_post_attn", "o": "", "down": ""}  # fmt: skip
    found = []
    for name, norm in read.items():
        for layer in range(len(parent["norm_in"]) if name in parent else 0):
            both = [
                _sizes(
                    one[name][layer].T if name in _ACROSS else one[name][layer],
                    one[norm][layer] if norm else None,
                )
                for one in (parent, child)
            ]
            if both[0] is not None and both[1] is not None:
                found.append(np.subtract(both[1], both[0]))
    table = np.array(found)
    names = ("gains", "kurtosis", "size", "spectrum")
    return {
        "plan": plan, "root": root, "how": how,
        **{name: float(f"{value:.5g}") for name, value in zip(names, table.mean(0), strict=True)},
        **{f"{name}_up": float(f"{value:.4g}")
           for name, value in zip(names, (table > 0).mean(0), strict=True)},
    }  # fmt: skip


def _sizes(rows: Floats, gain: Floats | None = None) -> tuple[float, float, float, float] | None:
    """What training has made of a matrix behind a gain; None where it is degenerate.

    The spread of the logarithms of its columns' lengths, the logarithm of the mean fourth power
    over the squared mean square, that of the mean square, and the largest singular value as a
    share of what independent numbers have.
    """
    size = log_size(rows, gain)
    if size is None:
        return None
    values = rows.astype(np.float64) * (1.0 if gain is None else gain.astype(np.float64))
    squares = np.square(values)
    fourth = float(np.log(np.square(squares).mean())) - 2 * size
    height, width = (max(1, length // _MOST) for length in values.shape)
    spectrum = noise_ratio(values[::height, ::width][:_MOST, :_MOST])
    return float(np.log(squares.mean(axis=0)).std() / 2), fourth, size, spectrum


def _some(value: Any, name: str, count: int) -> Any:
    rows = np.atleast_2d(value.T if name in _ACROSS else value)
    return rows if not count or len(rows) <= count else rows[:: len(rows) // count][:count]


def _row(tensors: Sequence[tuple[Any, Any, Any]]) -> dict[str, Any]:
    found = sum((updates(*three) for three in tensors), Updates())
    spaces = [
        one for a, b, c in tensors if len(c) > 1 and (one := overlap(a - c, b - c)) is not None
    ]
    sizes = found.sizes
    numbers = {
        "cosine": found.cosine,
        "b_on_a": found.of_b_on_a,
        "a_on_b": found.of_a_on_b,
        "apart": found.apart,
        "in_common": found.in_common,
        "changed_a": found.changed_a / max(found.numbers, 1),
        "changed_b": found.changed_b / max(found.numbers, 1),
        "changed": found.changed,
        "size_a": sizes[0],
        "size_b": sizes[1],
        "rounded": found.rounded,
        "overlap": float(np.mean([one.share for one in spaces])) if spaces else None,
        "beyond": float(np.mean([one.beyond for one in spaces])) if spaces else None,
        "rank_a": max((one.ranks[0] for one in spaces), default=None),
        "rank_b": max((one.ranks[1] for one in spaces), default=None),
    }
    return {
        name: value if value is None else float(f"{value:.5g}") for name, value in numbers.items()
    }


def _published(weights: Parameters) -> Parameters:
    """Weights as they would be published and read again, in 16 bits."""
    return {name: value.to(torch.bfloat16).float() for name, value in weights.items()}


def _cast(model: Model) -> Model:
    return {
        name: torch.from_numpy(np.ascontiguousarray(value, np.float32))
        .to(torch.bfloat16).float().numpy()
        for name, value in model.items()
    }  # fmt: skip


def _model(weights: Parameters, at: int) -> Model:
    return {name: value[at].float().cpu().numpy() for name, value in weights.items()}


if __name__ == "__main__":
    main()
