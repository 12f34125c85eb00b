"""Merges of the zoo, made by mergekit itself: what is said of them, and whether recipes come back.

    python -m benchmarks.merges [ZOO] [--python PYTHON]

PYTHON is an interpreter that has mergekit (LGPL; kinprint neither holds nor needs it). Every merge
is made by mergekit, told by `kinprint.unmerge` with a stranger among the candidates, and made once
more by mergekit from the recipe that was told. What is no merge of the given models is told too.
The command fails where a method is named that was not used.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from msgspec import Struct, field

import kinprint
from benchmarks.redteam.checkpoint import Array, load
from kinprint import MergeMethod

ZOO = Path(__file__).resolve().parents[2] / "shared" / "zoo"
BASE, SFT, CPT, REATTN, STRANGER = "base-a", "a-sft", "a-cpt", "a-reattn", "base-b"
_SCRIPT = """
import json, logging, sys
logging.disable(logging.WARNING)
from mergekit.config import MergeConfiguration
from mergekit.merge import run_merge
from mergekit.options import MergeOptions
for config, out in json.load(sys.stdin):
    options = MergeOptions(copy_tokenizer=False, quiet=True, write_model_card=False, random_seed=7)
    run_merge(MergeConfiguration.model_validate(config), out, options)
"""


class Case(Struct, frozen=True):
    """A merge: its method, parents with their parameters, and what else its recipe says."""

    name: str
    method: str
    parents: Mapping[str, Mapping[str, float]]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    dtype: str | tuple[str, str] = "bfloat16"
    slices: Sequence[tuple[str, int, int]] = ()
    base: str | None = None
    expected: MergeMethod | None = None

    def config(self, zoo: Path) -> dict[str, Any]:
        """The recipe for mergekit."""
        found: dict[str, Any] = {"merge_method": self.method}
        found["dtype"], *out = (self.dtype,) if isinstance(self.dtype, str) else self.dtype
        if self.base is not None:
            found["base_model"] = str(zoo / self.base)
        if self.slices:
            found["slices"] = [
                {"sources": [{"model": str(zoo / name), "layer_range": [first, last]}]}
                for name, first, last in self.slices
            ]
        else:
            found["models"] = [
                {"model": str(zoo / name), "parameters": dict(own)}
                for name, own in self.parents.items()
            ]
        if self.parameters:
            found["parameters"] = dict(self.parameters)
        if out:
            found["out_dtype"] = out[0]
        return found

    @property
    def known_base(self) -> str | None:
        """The base that is given to unmerge: slerp's is one of its parents."""
        return None if self.method == "slerp" else self.base


def _pair(a: float, b: float, *densities: float) -> dict[str, dict[str, float]]:
    own: list[dict[str, float]] = [{"weight": a}, {"weight": b}]
    for one, density in zip(own, densities, strict=False):
        one["density"] = density
    return dict(zip((SFT, CPT), own, strict=True))


_M = MergeMethod
_PLAIN: dict[str, dict[str, float]] = {SFT: {}, CPT: {}}
_THREE = {SFT: {"weight": 0.2}, CPT: {"weight": 0.3}, REATTN: {"weight": 0.5}}
_THREE_TIES = {
    SFT: {"weight": 0.5, "density": 0.5},
    CPT: {"weight": 0.3, "density": 0.5},
    REATTN: {"weight": 0.2, "density": 0.3},
}
_FILTERS = [
    {"filter": "self_attn", "value": [0, 0.5, 0.3, 0.7, 1]},
    {"filter": "mlp", "value": [1, 0.5, 0.7, 0.3, 0]},
    {"value": 0.5},
]
_LONG = "float32", "bfloat16"  # computed in one format, written in the other
CASES = (
    Case("linear", "linear", _pair(0.3, 0.7), expected=_M.LINEAR),
    Case("linear in float32", "linear", _pair(0.3, 0.7), dtype="float32", expected=_M.LINEAR),
    Case("linear in float16", "linear", _pair(0.3, 0.7), dtype="float16", expected=_M.LINEAR),
    Case("linear 1 : 2", "linear", _pair(1, 2), dtype=_LONG, expected=_M.LINEAR),
    Case("linear, not normalised", "linear", _pair(0.6, 0.6), {"normalize": False},
         expected=_M.LINEAR),
    Case("linear of three", "linear", _THREE, dtype=_LONG, expected=_M.LINEAR),
    Case("slerp", "slerp", _PLAIN, {"t": 0.4}, base=SFT, expected=_M.SLERP),
    Case("slerp in float32", "slerp", _PLAIN, {"t": 0.4}, "float32", base=SFT, expected=_M.SLERP),
    Case("slerp by layer and filter", "slerp", _PLAIN, {"t": _FILTERS}, base=SFT,
         expected=_M.SLERP),
    Case("task arithmetic", "task_arithmetic", _pair(0.8, 0.6), base=BASE,
         expected=_M.TASK_ARITHMETIC),
    Case("task arithmetic, lambda 0.7", "task_arithmetic", _pair(0.5, 0.5), {"lambda": 0.7},
         dtype=_LONG, base=BASE, expected=_M.TASK_ARITHMETIC),
    Case("TIES", "ties", _pair(0.5, 0.3, 0.5, 0.6), base=BASE, expected=_M.TIES),
    Case("TIES, lambda 1.2", "ties", _pair(0.5, 0.3, 0.4, 0.7), {"lambda": 1.2}, dtype=_LONG,
         base=BASE, expected=_M.TIES),
    Case("TIES in float32, int8 mask", "ties", _pair(1, 0.5, 0.5, 0.5), {"int8_mask": True},
         "float32", base=BASE, expected=_M.TIES),
    Case("TIES, not normalised", "ties", _pair(0.5, 0.3, 0.5, 0.5), {"normalize": False},
         base=BASE, expected=_M.TIES),
    Case("TIES of three", "ties", _THREE_TIES, base=BASE, expected=_M.TIES),
    Case("DARE linear", "dare_linear", _pair(0.5, 0.5, 0.5, 0.6), base=BASE,
         expected=_M.DARE_LINEAR),
    Case("DARE linear in float32", "dare_linear", _pair(0.4, 0.6, 0.3, 0.5), dtype="float32",
         base=BASE, expected=_M.DARE_LINEAR),
    Case("DARE linear, not rescaled", "dare_linear", _pair(0.5, 0.5, 0.5, 0.6),
         {"rescale": False}, dtype=_LONG, base=BASE, expected=_M.DARE_LINEAR),
    Case("DARE TIES", "dare_ties", _pair(0.5, 0.5, 0.5, 0.6), base=BASE, expected=_M.DARE_TIES),
    Case("DARE TIES via float32", "dare_ties", _pair(0.5, 0.3, 0.7, 0.7), dtype=_LONG, base=BASE,
         expected=_M.DARE_TIES),
    Case("passthrough", "passthrough", _PLAIN, slices=((SFT, 0, 4), (CPT, 2, 6)),
         expected=_M.PASSTHROUGH),
    # Methods that unmerge does not know: it may say "another merge" or nothing.
    Case("model stock", "model_stock", _PLAIN, base=BASE),
    Case("breadcrumbs", "breadcrumbs", _pair(0.5, 0.5, 0.5, 0.6), base=BASE),
    Case("DELLA", "della_linear",
         {name: {**own, "epsilon": 0.2} for name, own in _pair(0.5, 0.5, 0.5, 0.6).items()},
         dtype=_LONG, base=BASE),
    Case("nuslerp", "nuslerp", _pair(0.5, 0.5)),
    Case("Karcher mean", "karcher", _PLAIN),
)  # fmt: skip


def made(python: str, jobs: Sequence[tuple[Mapping[str, Any], Path]]) -> None:
    """Let mergekit carry recipes out, all in one process."""
    asked = json.dumps([(dict(config), str(out)) for config, out in jobs])
    subprocess.run([python, "-c", _SCRIPT], input=asked, text=True, check=True)


def equal_share(one: Path, other: Path) -> float:
    """The share of numbers of two models that are equal."""
    a, b = load_tensors(one), load_tensors(other)
    same = sum(int((a[name] == b[name]).sum()) for name in a)
    return same / sum(int(values.size) for values in a.values())


def load_tensors(folder: Path) -> dict[str, Array]:
    from safetensors.numpy import load_file

    found: dict[str, Array] = {}
    for path in sorted(folder.glob("*.safetensors")):
        found |= {name: one.astype(np.float32) for name, one in load_file(path).items()}
    return found


def weight_error(case: Case, found: kinprint.Unmerged) -> float | None:
    """The largest error of a weight, as far as normalised weights tell; of slerp, of its way."""
    recipe = found.recipe
    if recipe is None or recipe.settings is None or not recipe.parents:
        return None
    if case.method == "slerp":
        return abs(float(recipe.settings.t or 0.0) - float(case.parameters["t"]))
    true = np.array([own["weight"] for own in case.parents.values()], float)
    told = np.array(recipe.settings.weights[: len(true)])
    if recipe.normalize:
        true, told = true / true.sum(), told / told.sum()
    true = true * float(case.parameters.get("lambda", 1.0))
    return float(np.abs(told * recipe.scale - true).max())


class Row(Struct, frozen=True):
    """What was said of a case."""

    name: str
    said: str
    right: bool
    error: float | None = None
    share: float | None = None
    again: float | None = None
    seconds: float = 0.0


def merges(zoo: Path, folder: Path, python: str) -> Iterator[Row]:
    """Make every merge, tell it, and make it again."""
    made(python, [(case.config(zoo), folder / str(at)) for at, case in enumerate(CASES)])
    told, again = [], []
    for at, case in enumerate(CASES):
        parents = [*case.parents, STRANGER]
        base = None if case.known_base is None else zoo / case.known_base
        started = time.monotonic()
        found = kinprint.unmerge(folder / str(at), [zoo / name for name in parents], base=base)
        told.append((found, time.monotonic() - started))
        if found.recipe is not None:
            again.append((yaml.safe_load(found.recipe.yaml), folder / f"again-{at}"))
    made(python, again)
    for at, (case, (found, seconds)) in enumerate(zip(CASES, told, strict=True)):
        out = folder / f"again-{at}"
        methods = tuple(found.methods)
        right = (not methods) if case.expected is None else methods[:1] == (case.expected,)
        yield Row(
            case.name, " or ".join(methods) or found.outcome, right,
            weight_error(case, found), found.share,
            equal_share(folder / str(at), out) if out.exists() else None, seconds,
        )  # fmt: skip


def others(zoo: Path, folder: Path) -> Iterator[Row]:
    """Children that no merge of the given models made."""
    cases: list[tuple[str, Path, tuple[str, ...], str | None]] = [
        ("tune of one parent", zoo / CPT, (BASE, SFT), None),
        ("tune of the base", zoo / CPT, (SFT, REATTN), BASE),
        ("a parent is missing", folder / "0", (SFT, STRANGER), BASE),
        ("stranger", zoo / STRANGER, (SFT, CPT), BASE),
    ]
    draws = np.random.default_rng(5)
    trained = {
        name: one + draws.normal(0, 0.003 * float(one.std()), one.shape).astype(np.float32)
        for name, one in load_tensors(folder / "0").items()
    }
    load(zoo / BASE).changed(trained).write(folder / "trained")
    cases.append(("trained after the merge", folder / "trained", (SFT, CPT), BASE))
    for name, path, parents, base in cases:
        started = time.monotonic()
        under = None if base is None else zoo / base
        found = kinprint.unmerge(path, [zoo / one for one in parents], base=under)
        said = " or ".join(found.methods) or found.outcome
        yield Row(name, said, not found.methods, seconds=time.monotonic() - started)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merges")
    parser.add_argument("zoo", nargs="?", type=Path, default=ZOO)
    parser.add_argument("--python", default=sys.executable)
    asked = parser.parse_args()
    wrong = 0
    print("| merge | said | weights off by | given bit by bit | mergekit again | seconds |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for rows in (merges(asked.zoo, folder, asked.python), others(asked.zoo, folder)):
            for row in rows:
                wrong += not row.right
                numbers = [
                    "–" if one is None else f"{one:.{digits}f}"
                    for one, digits in ((row.error, 4), (row.share, 6), (row.again, 6))
                ]
                mark = "" if row.right else " (WRONG)"
                print(
                    f"| {row.name} | {row.said}{mark} | {' | '.join(numbers)} | {row.seconds:.1f} |"
                )
                sys.stdout.flush()
    print(f"\n{wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
