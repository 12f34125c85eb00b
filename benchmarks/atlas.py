"""How well an atlas finds what a model is built on: the zoo, merges of it, synthetic models.

    python -m benchmarks.atlas zoo      every model of the zoo against an atlas of all others
    python -m benchmarks.atlas merges   merges of models of the zoo, made here
    python -m benchmarks.atlas keys     search among 1e3, 1e4 and 1e5 synthetic keys
    python -m benchmarks.atlas tree     the family tree of the zoo against its truth
    python -m benchmarks.atlas edited   the same for families on which rules were revised once
    python -m benchmarks.atlas held-out the same for families that no rule was set on
    python -m benchmarks.atlas pairs    all pairs of 2,000 synthetic models, some of them relatives
    python -m benchmarks.atlas add      fingerprints of two 100B replicas over a slow network
    python -m benchmarks.atlas alike    the same where keys take all strangers for likely relatives

The zoo lies beside the checkout (../shared/zoo).
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from benchmarks.commands import run
from benchmarks.families import all_pairs, edited_tree, held_out_tree, zoo_tree
from benchmarks.network import mirror_of_replicas
from benchmarks.redteam.checkpoint import load, write_folder
from kinprint.atlas.fingerprint import Fingerprint, fingerprint
from kinprint.atlas.identify import Identified, identify_model
from kinprint.atlas.keys import FIRST, SECOND, TowerKeys
from kinprint.atlas.search import nearest, search
from kinprint.atlas.store import Atlas, Index, index_schema
from kinprint.reader.fetch import Fetcher

ZOO = Path(__file__).resolve().parents[2] / "shared" / "zoo"
_TREES: dict[str, Callable[[], None]] = {
    "tree": zoo_tree,
    "edited": edited_tree,
    "held-out": held_out_tree,
    "pairs": all_pairs,
    "alike": partial(all_pairs, alike=True),
}
_HUNDRED = ("upstage/Solar-Open-100B", "zai-org/GLM-4.5-Air")
Array = NDArray[Any]
Tensors = dict[str, Array]


def main() -> None:
    asked = sys.argv[1:] or ["zoo", "merges", "keys", "add", *_TREES]
    with tempfile.TemporaryDirectory() as folder:
        if {"zoo", "merges"} & set(asked):
            atlas, prints = _atlas_of_zoo(Path(folder))
            if "zoo" in asked:
                _zoo(atlas, prints)
            if "merges" in asked:
                _merges(atlas, Path(folder) / "merges")
    if "keys" in asked:
        _keys()
    if "add" in asked:
        _add()
    for name, measure in _TREES.items():
        if name in asked:
            measure()


def _atlas_of_zoo(folder: Path) -> tuple[Atlas, dict[str, Fingerprint]]:
    atlas = Atlas(str(folder / "atlas"))
    prints = {}
    for name in json.loads((ZOO / "zoo.json").read_text()):
        with Fetcher() as fetcher:
            prints[name] = fingerprint(str(ZOO / name), fetcher)
        atlas.add(prints[name])
    return atlas, prints


def _name(place: str) -> str:
    return place.rstrip("/").rpartition("/")[2]


def _zoo(atlas: Atlas, prints: dict[str, Fingerprint]) -> None:
    truth = json.loads((ZOO / "zoo.json").read_text())

    def ancestors(name: str) -> set[str]:
        parents = truth[name]["parents"]
        return {name, *(one for parent in parents for one in ancestors(parent))}

    def kin(one: str, other: str) -> bool:
        return bool(ancestors(one) & ancestors(other))

    index, _ = atlas.index()
    hits: dict[str, list[tuple[int, bool]]] = defaultdict(list)
    strangers, firsts, complete, derived = 0, 0, 0, 0
    for name, one in prints.items():
        found = identify_model(one, atlas)
        linked = [_name(each.entry.ref.name) for each in _linked(found)]
        parents = [_name(each.entry.ref.name) for each in found.parents]
        # A common initialisation is a link, and no parent.
        told = [each for each in linked if not kin(name, each)]
        wrong = [each for each in told if "tie-a" not in (name, each)] + [
            each for each in parents if not kin(name, each)
        ]
        strangers += len(wrong)
        true = set(truth[name]["parents"])
        if true:
            ranked = [
                _name(match.entry.ref.name)
                for match in search(one.towers, atlas, index, len(prints))[0]
                if _name(match.entry.ref.name) != name
            ]
            rank = 1 + min(ranked.index(each) for each in true)
            relative = kin(name, ranked[0])
            hits[truth[name]["how"]].append((rank, relative))
            derived += 1
            firsts += bool(parents) and parents[0] in true
            complete += true <= set(parents)
        print(f"{name:14} parents {parents}  true {sorted(true)}  wrong {wrong}", flush=True)
    print(f"\nof {derived} derived models: true parent first {firsts}, set complete {complete}")
    print(f"strangers reported: {strangers}\n\nthe true parent by keys alone, by kind of surgery")
    print(f"{'kind':14}{'@1':>6}{'@5':>6}{'@20':>6}   a relative first")
    everything = [one for some in hits.values() for one in some]
    for kind, some in (*hits.items(), ("all", everything)):
        at = [sum(rank <= most for rank, _ in some) / len(some) for most in (1, 5, 20)]
        related = sum(first for _, first in some) / len(some)
        print(f"{kind:14}" + "".join(f"{one:6.2f}" for one in at) + f"{related:10.2f}")


def _linked(found: Identified) -> Iterator[Any]:
    yield from (*found.parents, *found.descendants, *found.relatives)


def _merges(atlas: Atlas, folder: Path) -> None:
    names = ("base-a", "a-sft", "a-cpt", "base-b", "b-cpt")
    a, sft, cpt, b, b_cpt = (load(ZOO / name).tensors for name in names)

    def each(make: Callable[[str], Array]) -> Tensors:
        return {name: make(name) for name in a}

    def from_layers(name: str, layers: Iterable[int]) -> bool:
        return any(f"layers.{layer}." in name for layer in layers)

    recipes: dict[str, tuple[set[str], Tensors]] = {
        "linear 50/50": ({"a-sft", "a-cpt"}, each(lambda n: 0.5 * sft[n] + 0.5 * cpt[n])),
        "linear 70/30": ({"a-sft", "a-cpt"}, each(lambda n: 0.7 * sft[n] + 0.3 * cpt[n])),
        "linear 90/10": ({"a-sft", "a-cpt"}, each(lambda n: 0.9 * sft[n] + 0.1 * cpt[n])),
        "slerp": ({"base-a", "a-cpt"}, each(lambda n: _slerp(a[n], cpt[n], 0.5))),
        "task arithmetic": ({"a-sft", "a-cpt"}, each(lambda n: sft[n] + cpt[n] - a[n])),
        "strangers 50/50": ({"base-a", "base-b"}, each(lambda n: 0.5 * a[n] + 0.5 * b[n])),
        "strangers 60/40": ({"a-cpt", "b-cpt"}, each(lambda n: 0.6 * cpt[n] + 0.4 * b_cpt[n])),
        "passthrough": (
            {"base-a", "base-b"},
            each(lambda n: (b if from_layers(n, (3, 4, 5)) else a)[n]),
        ),
        "one layer": (
            {"a-cpt", "b-cpt"},
            each(lambda n: (b_cpt if from_layers(n, (2,)) else cpt)[n]),
        ),
        "TIES": (
            {"a-sft", "a-cpt"},
            each(lambda n: a[n] + _trimmed(sft[n] - a[n], cpt[n] - a[n])),
        ),
        "DARE": (
            {"a-sft", "a-cpt"},
            each(
                lambda n: a[n] + 0.5 * _dropped(sft[n] - a[n], 1) + 0.5 * _dropped(cpt[n] - a[n], 2)
            ),
        ),
    }
    print("\nmerges: the set of parents")
    for kind, (true, tensors) in recipes.items():
        place = folder / kind.replace("/", "-")
        place.mkdir(parents=True)
        write_folder(replace(load(ZOO / "base-a"), tensors=tensors), place)
        with Fetcher() as fetcher:
            found = identify_model(fingerprint(str(place), fetcher), atlas)
        parents = {_name(one.entry.ref.name): one.weight for one in found.parents}
        verdict = "exact" if set(parents) == true else "complete" if true <= set(parents) else "NO"
        shown = ", ".join(
            name if weight is None else f"{name} {weight:.2f}" for name, weight in parents.items()
        )
        print(f"{kind:18}{verdict:10}{shown}", flush=True)


def _trimmed(*updates: Array, density: float = 0.5) -> Array:
    """Updates as TIES joins them: the largest of each, of those the ones with the usual sign."""
    kept = [
        np.where(np.abs(one) >= np.quantile(np.abs(one), 1 - density), one, 0.0) for one in updates
    ]
    sign = np.sign(sum(kept))
    agreed = np.stack([np.where(np.sign(one) == sign, one, 0.0) for one in kept])
    return np.asarray(agreed.sum(axis=0) / np.maximum((agreed != 0).sum(axis=0), 1), np.float32)


def _dropped(update: Array, seed: int, density: float = 0.5) -> Array:
    """An update as DARE takes it: numbers at random, made larger for those that are left out."""
    kept = np.random.default_rng([seed, update.size]).random(update.shape) < density
    return np.asarray(np.where(kept, update / density, 0.0), np.float32)


def _slerp(x: Array, y: Array, t: float) -> Array:
    cosine = float((x * y).sum() / np.linalg.norm(x) / np.linalg.norm(y))
    angle = np.arccos(np.clip(cosine, -1, 1))
    if angle < 1e-4:
        return (1 - t) * x + t * y
    found = (np.sin((1 - t) * angle) * x + np.sin(t * angle) * y) / np.sin(angle)
    return np.asarray(found, np.float32)


def _keys() -> None:
    """Synthetic keys: independent ones, and among them some with a planted relative."""
    print("\nsearch by first keys, one query on one core")
    print(f"{'models':>8}{'seconds':>10}{'planted first':>15}{'memory':>12}")
    chance = np.random.default_rng(0)
    for count in (1_000, 10_000, 100_000):
        keys = np.clip(chance.normal(0, 40, (count, sum(FIRST))), -127, 127).astype(np.int8)
        rows = pa.Table.from_pylist([], schema=index_schema())
        at = np.arange(count, dtype=np.int64)
        index = Index(rows, at, at, keys)
        planted = chance.choice(count, 100, replace=False)
        took, first = [], 0
        for number in planted:
            own = keys[number].astype(np.float64)
            child = np.clip(
                0.7 * own + np.sqrt(1 - 0.49) * chance.normal(0, 40, own.shape), -127, 127
            )
            towers = [TowerKeys("", 1, 1, child.astype(np.int8), np.zeros(sum(SECOND), np.int8))]
            began = time.perf_counter()
            order = nearest(towers, index, 20)
            took.append(time.perf_counter() - began)
            first += int(order[0]) == int(number)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{count:8}{np.median(took):10.4f}{first:11}/100{used:9.0f} MB", flush=True)


def _add() -> None:
    """Replicas of the length and layout of two models; their numbers are reconstructions."""
    print("\nadding a replica of 100 billion weights, 50 ms a request, whole commands")
    print(f"{'model':26}{'MB':>7}{'requests':>10}{'seconds':>9}{'cpu s':>8}{'memory':>9}")
    with mirror_of_replicas(_HUNDRED) as endpoint, tempfile.TemporaryDirectory() as home:
        for name in _HUNDRED:
            cost = run(endpoint, home, "atlas", "add", name, "--atlas", f"{home}/atlas")
            read = cost.traffic
            print(
                f"{name:26}{read.bytes / 1e6:7.2f}{len(read.requests):10}{cost.seconds:9.2f}"
                f"{cost.cpu_seconds:8.2f}{cost.peak_bytes / 1e6:6.0f} MB",
                flush=True,
            )


if __name__ == "__main__":
    main()
