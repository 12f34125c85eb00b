"""Family trees of atlases whose truth is known; run by `python -m benchmarks.atlas`."""

from __future__ import annotations

import json
import resource
import tempfile
import time
from collections.abc import Collection, Iterable
from pathlib import Path

import numpy as np
from ml_dtypes import bfloat16

import kinprint
from benchmarks.redteam.checkpoint import Checkpoint, load
from benchmarks.redteam.layers import Q, V
from benchmarks.redteam.relabelling import shuffle_heads, shuffle_units
from benchmarks.redteam.storage import as_fp8, as_gguf, as_int8, cast
from benchmarks.redteam.surgery import (
    masked,
    mixed,
    slerp,
    stirred,
    synthetic,
    with_layers,
    with_update,
    without_heads,
)

ZOO = Path(__file__).resolve().parents[2] / "shared" / "zoo"
MODELS, FAMILIES = 2000, 100
Both = tuple[str, str]
Made = dict[str, tuple[Checkpoint, tuple[str, ...]]]


def zoo_tree() -> None:
    """The zoo, on which the rules were set."""
    truth = json.loads((ZOO / "zoo.json").read_text())
    edges = {(parent, name) for name, one in truth.items() for parent in one["parents"]}
    with tempfile.TemporaryDirectory() as folder:
        kinprint.Atlas(folder).build([ZOO])
        _score("the zoo", _tree(folder), edges)


def edited_tree() -> None:
    """Edits of models that have no descendants in the zoo; rules were revised on these once."""
    chance = np.random.default_rng(2024)
    base_d, base_g = (load(ZOO / name) for name in ("base-d", "base-g"))
    tune, tune_2 = stirred(base_d, chance, 0.15), stirred(base_d, chance, 0.15)
    lora = with_update(base_d, chance, 4, (Q, V))
    first = stirred(base_g, chance, 0.2)
    second = stirred(first, chance, 0.1)
    made: Made = {
        "d-tune": (tune, ("base-d",)),
        "d-tune-2": (tune_2, ("base-d",)),
        "d-lora": (lora, ("base-d",)),
        "d-pruned": (masked(base_d, chance), ("base-d",)),
        "d-int8": (as_int8(base_d), ("base-d",)),
        "d-tune-tuned": (stirred(tune, chance, 0.1), ("d-tune",)),
        "d-tune-2-shuffled": (
            shuffle_heads(shuffle_units(tune_2, chance), chance),
            ("d-tune-2",),
        ),
        "d-merge": (mixed([(tune, 0.5), (lora, 0.5)]), ("d-tune", "d-lora")),
        "g-tune": (first, ("base-g",)),
        "g-tune-tuned": (second, ("g-tune",)),
        "g-tune-tuned-cut": (
            with_layers(second, [at for at in range(second.depth) if at != 2]),
            ("g-tune-tuned",),
        ),
    }
    strangers = ("base-a", "base-b", "qwen-i", "neox-j", "moe-k")
    _score_edits("edited families", made, ("base-d", "base-g", *strangers), set())


def held_out_tree() -> None:
    """Three families that no rule was set on: trained children, and edits of all of them."""
    chance = np.random.default_rng(2025)
    names = ("base-b", "b-cpt", "qwen-i", "qwen-i-cpt", "neox-j")
    base_b, b_cpt, qwen_i, i_cpt, neox_j = (load(ZOO / name) for name in names)
    b_tune, i_tune, j_tune = (stirred(one, chance, 0.1) for one in (base_b, qwen_i, neox_j))
    made: Made = {
        "b-cpt-q8": (as_gguf(b_cpt, "Q8_0"), ("b-cpt",)),
        "b-cpt-lora": (with_update(b_cpt, chance, 8, (Q, V)), ("b-cpt",)),
        "b-tune": (b_tune, ("base-b",)),
        "b-tune-fp8": (as_fp8(b_tune), ("b-tune",)),
        "b-tune-heads": (without_heads(b_tune, [0]), ("b-tune",)),
        "b-slerp": (slerp(b_cpt, b_tune, 0.4), ("b-cpt", "b-tune")),
        "i-cpt-bf16": (cast(i_cpt, bfloat16), ("qwen-i-cpt",)),
        "i-cpt-pruned": (masked(i_cpt, chance), ("qwen-i-cpt",)),
        "i-tune": (i_tune, ("qwen-i",)),
        "i-merge": (mixed([(i_cpt, 0.3), (i_tune, 0.7)]), ("qwen-i-cpt", "i-tune")),
        "j-tune": (j_tune, ("neox-j",)),
        "j-tune-2": (stirred(neox_j, chance, 0.2), ("neox-j",)),
        "j-tune-tuned": (stirred(j_tune, chance, 0.05), ("j-tune",)),
    }
    trained = {("base-b", "b-cpt"), ("qwen-i", "qwen-i-cpt")}
    strangers = ("base-a", "base-d", "base-g", "moe-k")
    _score_edits("held-out families", made, (*names, *strangers), trained)


def _score_edits(what: str, made: Made, known: Iterable[str], edges: set[Both]) -> None:
    """Score the tree of models that were made here and of some of the zoo."""
    edges = edges | {(parent, name) for name, (_, parents) in made.items() for parent in parents}
    with tempfile.TemporaryDirectory() as folder:
        for name, (model, _) in made.items():
            _write(model, Path(folder, "models", name))
        found = kinprint.Atlas(Path(folder, "atlas"))
        found.build([Path(folder, "models"), *(ZOO / name for name in known)])
        _score(what, _tree(found.place), edges)


def all_pairs(alike: bool = False) -> None:
    """Many small synthetic models: families of four, and strangers.

    A family is a base, two tunes and a tune of one of these. Weights of strangers differ in size,
    as those of many makers do; where they are `alike`, keys take strangers for likely relatives.
    """
    chance = np.random.default_rng(7)
    like = load(ZOO / "base-a")
    edges: set[Both] = set()
    with tempfile.TemporaryDirectory() as folder:
        models = Path(folder, "models")
        for number in range(MODELS - 3 * FAMILIES):
            base = synthetic(number, 64, 2, 96, 128, like)
            base = base if alike else _resized(base, chance)
            own = f"f{number}"
            _write(base, models / own)
            if number < FAMILIES:
                one, other = stirred(base, chance, 0.2), stirred(base, chance, 0.3)
                _write(one, models / f"{own}-a")
                _write(other, models / f"{own}-b")
                _write(stirred(one, chance, 0.1), models / f"{own}-a-a")
                edges |= {(own, f"{own}-a"), (own, f"{own}-b"), (f"{own}-a", f"{own}-a-a")}
        began = time.perf_counter()
        atlas = kinprint.Atlas(Path(folder, "atlas"))
        atlas.build([models], jobs=2)
        print(f"built in {time.perf_counter() - began:.0f} s", flush=True)
        found = _tree(atlas.place, jobs=2)
        _score(f"{MODELS} synthetic models", found, edges)
        names = [one.title for one in found.models]
        linked = {
            (names[one.a], names[one.b]) for one in (*found.document.edges, *found.document.links)
        }
        false = [both for both in linked if _root(both[0]) != _root(both[1])]
        print(f"planted linked pairs found {len(linked) - len(false)} of {6 * FAMILIES}")
        print(f"links between strangers: {len(false)}")


def _resized(model: Checkpoint, chance: np.random.Generator) -> Checkpoint:
    """The same with other sizes of weights, by role."""
    sizes: dict[str, float] = {}
    new = {}
    for name, values in model.tensors.items():
        role = name.rpartition(".layers.")[2].partition(".")[2]
        size = sizes.setdefault(role, float(np.exp(chance.normal(0, 0.5))))
        new[name] = np.asarray(values * size, np.float32)
    return model.changed(new)


def _root(name: str) -> str:
    return name.partition("-")[0]


def _write(model: Checkpoint, folder: Path) -> None:
    folder.mkdir(parents=True)
    model.save(model, folder)


def _tree(place: str | Path, jobs: int = 1) -> kinprint.FamilyTree:
    began = time.perf_counter()
    before = _processor()
    found = kinprint.Atlas(place).tree(jobs=jobs)
    took, processor = time.perf_counter() - began, _processor() - before
    most = max(
        resource.getrusage(who).ru_maxrss / 1024
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    print(f"\n{len(found.models)} models, {found.pairs} pairs, {found.compared} compared")
    print(
        f"{took:.0f} s (processes: {jobs}), {processor:.0f} s of processor time, "
        f"the largest process {most:.0f} MB"
    )
    return found


def _processor() -> float:
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in uses)


def _score(what: str, found: kinprint.FamilyTree, true: Collection[Both]) -> None:
    names = [one.title for one in found.models]
    edges = [((names[one.a], names[one.b]), one.basis) for one in found.edges]
    if len(edges) < 40:
        for both, basis in edges:
            right = both in true or (basis is None and both[::-1] in true)
            turned = both[::-1] in true
            word = "" if right else "WRONG DIRECTION" if turned else "NOT AN EDGE"
            print(f"  {both[0]:18} {basis or 'undecided':10} {both[1]:18} {word}")
    missed = [both for both in true if both not in dict(edges) and both[::-1] not in dict(edges)]
    print(f"{what}: edges missed {sorted(missed)[:12]}")
    either = {frozenset(both) for both in true}
    _print_f1("without direction", [frozenset(both) in either for both, _ in edges], len(true))
    told = [both in true for both, basis in edges if basis is not None]
    _print_f1("with direction", told, len(true))


def _print_f1(what: str, right: Iterable[bool], true: int) -> None:
    """Of edges that are shown, and for directions of those that have one."""
    found = list(right)
    precision, recall = sum(found) / max(len(found), 1), sum(found) / max(true, 1)
    score = 2 * precision * recall / max(precision + recall, 1e-12)
    print(
        f"{what}: {sum(found)} right of {len(found)} shown and {true} true; "
        f"precision {precision:.3f}, recall {recall:.3f}, F1 {score:.3f}",
        flush=True,
    )
