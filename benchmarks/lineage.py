"""`python -m benchmarks.lineage [FOLDER]`: all pairs of a zoo with a known family tree.

Prints, by what was done to a model, how often each method finds a related pair and accuses an
unrelated one: kinprint's verdict beside raw norm cosine, norm Pearson correlation and the
182-sigma method; for unrelated roots how often p-values fall below a level, which for valid
ones is at most the level; and how long a pair takes.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import Struct
from safetensors.numpy import load_file

import kinprint
from kinprint.lineage.matrix import compare_all
from kinprint.lineage.opening import open_all, read_headers, sampler_of
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.results import Settings
from kinprint.measure.direct import cosine, pearson
from kinprint.measure.sigma import effect_size
from kinprint.reader.fetch import Fetcher
from kinprint.records import Evidence, Verdict

ZOO = Path(__file__).resolve().parents[2] / "shared" / "zoo"
LEVELS = (0.05, 0.01, 0.001)
ACCUSED = ("identical", "derived", "partial")
FOUND = (*ACCUSED, "dependent", "same-init")
NORMS = ("norm_in", "norm_post_attn")
LEVEL = "standard"
METHODS = ("kinprint", "cosine > 0.95", "Pearson > 0.5", "sigma > 3")


class Pair(Struct, frozen=True):
    """Two models of the zoo, how they are related in truth, and what each method says."""

    a: str
    b: str
    truth: str  # "related", "same-init", "taught" or "independent"
    surgery: str
    verdict: Verdict
    evidence: tuple[Evidence, ...]
    accused: Mapping[str, bool]


def roots_of(name: str, tree: Mapping[str, Any]) -> frozenset[str]:
    """The models without parents from which a model's weights come."""
    parents = tree[name]["parents"]
    if not parents:
        return frozenset([name])
    return frozenset[str]().union(*(roots_of(parent, tree) for parent in parents))


def start_of(name: str, tree: Mapping[str, Any]) -> frozenset[str]:
    """Whose initial weights a model's roots have; only shared initialisation merges roots."""
    mark = "same-init-as-"
    return frozenset(
        how.removeprefix(mark) if (how := str(tree[root]["how"])).startswith(mark) else root
        for root in roots_of(name, tree)
    )


def truth_of(a: str, b: str, tree: Mapping[str, Any]) -> str:
    """How two models are related by the family tree."""
    if roots_of(a, tree) & roots_of(b, tree):
        return "related"
    if start_of(a, tree) & start_of(b, tree):
        return "same-init"
    taught = {str(tree[root].get("teacher")) for one in (a, b) for root in roots_of(one, tree)}
    return "taught" if taught & (roots_of(a, tree) | roots_of(b, tree)) else "independent"


def rivals(a: Sample, b: Sample) -> dict[str, bool]:
    """What methods that look at norms alone say, each by its own rule."""
    keys = [key for key in a.norms if key in b.norms and key[0] in NORMS]
    both = [(a.norms[key], b.norms[key]) for key in keys if a.width == b.width]
    cosines = [cosine(x, y) for x, y in both]
    return {
        METHODS[1]: _mean(cosines) > 0.95,
        METHODS[2]: _mean([pearson(x, y) for x, y in both]) > 0.5,
        METHODS[3]: _sigma(a, b) > 3,
    }


def _sigma(a: Sample, b: Sample) -> float:
    """The report's sigma: input norms of equal layers against layer 0 and later ones."""
    depth = min(a.depth, b.depth)
    have = a.width == b.width and all(("norm_in", at) in one.norms
                                      for one in (a, b) for at in range(depth))  # fmt: skip
    if not have:
        return math.nan
    layers = sorted({round(depth * share) for share in (0.25, 0.5, 0.75)} | {depth - 1})
    within = [
        cosine(one.norms["norm_in", 0], one.norms["norm_in", at]) for one in (a, b) for at in layers
    ]
    cross = [cosine(a.norms["norm_in", at], b.norms["norm_in", at]) for at in layers]
    return effect_size(within, cross).sigma


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan


def run(folder: Path, jobs: int) -> tuple[list[Pair], float]:
    """Compare all pairs through the real pipeline; seconds are for reading and comparing."""
    tree = json.loads((folder / "zoo.json").read_text("utf-8"))
    names = list(tree)
    paths = [str(folder / name) for name in names]
    with Fetcher() as fetcher:
        started = time.monotonic()
        matrix = compare_all(paths, fetcher, Settings(), jobs, screened=False)
        seconds = time.monotonic() - started
        settings = Settings(LEVEL)
        checkpoints = open_all(paths, fetcher, settings)
        sampler = sampler_of(read_headers(checkpoints, settings), settings)
        samples = sampler.samples(sampler.stages - 1)
    found: list[Pair] = []
    for one in matrix.pairs:
        a, b = names[one.a], names[one.b]
        accused = {METHODS[0]: one.verdict.relation in ACCUSED}
        accused |= rivals(samples[one.a], samples[one.b])
        surgery = " / ".join(sorted({tree[a]["how"], tree[b]["how"]} - {"pretrain"})) or "none"
        truth = truth_of(a, b, tree)
        found.append(Pair(a, b, truth, surgery, one.verdict, one.evidence, accused))
    return found, seconds


def by_model(pairs: Iterable[Pair], folder: Path) -> None:
    """A line a model that was operated on: how its related pairs came out."""
    tree = json.loads((folder / "zoo.json").read_text("utf-8"))
    table: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        for name in (pair.a, pair.b):
            if pair.truth in ("related", "same-init", "taught"):
                table[f"{name} ({tree[name]['how']}) {pair.truth}"].append(pair)
    print(f"{'model, what was done, truth':<46}{'pairs':>6}{'found':>6}" +
          "".join(f"{method:>15}" for method in METHODS) + "  relations")  # fmt: skip
    for label, its in sorted(table.items()):
        found = sum(pair.verdict.relation in FOUND for pair in its)
        relations = Counter(pair.verdict.relation for pair in its)
        marks = "".join(f"{sum(pair.accused[one] for pair in its):>15}" for one in METHODS)
        words = ", ".join(f"{count} {word}" for word, count in relations.most_common())
        print(f"{label:<46}{len(its):>6}{found:>6}{marks}  {words}")


def totals(pairs: Sequence[Pair]) -> None:
    """Found, missed and falsely accused, by method."""
    print(f"\n{'truth':<14}{'pairs':>6}" + "".join(f"{method:>15}" for method in METHODS))
    for truth in ("related", "same-init", "taught", "independent"):
        its = [pair for pair in pairs if pair.truth == truth]
        marks = "".join(f"{sum(pair.accused[one] for pair in its):>15}" for one in METHODS)
        print(f"{truth:<14}{len(its):>6}{marks}")
    missed = [p for p in pairs if p.truth == "related" and p.verdict.relation not in FOUND]
    wrong = [p for p in pairs if p.truth != "related" and p.accused[METHODS[0]]]
    for title, its in (("missed", missed), ("FALSELY ACCUSED", wrong)):
        for pair in its:
            print(f"  {title}: {pair.a} {pair.b} {pair.verdict.relation} "
                  f"10^{pair.verdict.log10_p:.1f}")  # fmt: skip


def calibration(pairs: Sequence[Pair], tree: Mapping[str, Any]) -> None:
    """Shares of p-values at or below levels among strangers, and z-scores under exact nulls.

    Pairs within families are not independent draws. So the second half of the table is about
    models without parents alone, one pair for each two of them, and leaves out those that share
    an initialisation; there z-scores should have mean zero and spread one, or less.
    """
    unrelated = [pair for pair in pairs if pair.truth in ("independent", "taught")]
    first = {name for name in tree if start_of(name, tree) == {name}}
    roots = [pair for pair in unrelated if {pair.a, pair.b} <= first]
    print(f"\np-values of {len(unrelated)} unrelated pairs, and of {len(roots)} pairs of roots")
    head = "".join(f"{'≤ ' + str(level):>9}" for level in LEVELS)
    print(f"{'test':<14}{'n':>5}{'least':>8}{head}{'roots':>8}{head}{'mean z':>8}{'spread':>8}")
    for test in dict.fromkeys(test for pair in unrelated for test in _logs(pair)):
        cells = []
        for some in (unrelated, roots):
            values = [_logs(pair)[test] for pair in some if test in _logs(pair)]
            least = f"{min(values):>8.2f}" if some is unrelated else ""
            cells.append(f"{len(values):>{5 if some is unrelated else 8}}{least}{_shares(values)}")
        z = [value for pair in roots if (value := _score(pair, test)) is not None]
        spread = f"{np.mean(z):>8.2f}{np.std(z, ddof=1):>8.2f}" if len(z) > 1 else ""
        print(f"{test:<14}{''.join(cells)}{spread}")


def _logs(pair: Pair) -> dict[str, float]:
    exact = (one for one in pair.evidence if one.status == "ok" and one.tier == "exact")
    return {"combined": pair.verdict.log10_p} | {one.test: one.log10_p for one in exact}


def _score(pair: Pair, test: str) -> float | None:
    for one in pair.evidence:
        if one.test == test and one.status == "ok" and one.statistic is not None:
            spread = float(np.std(one.null)) if one.null else 0.0
            return (one.statistic - float(np.mean(one.null))) / spread if spread else None
    return None


def _shares(values: Sequence[float]) -> str:
    counts = [sum(value <= math.log10(level) for value in values) for level in LEVELS]
    return "".join(f"{count / max(len(values), 1):>9.3f}" for count in counts)


def time_single_pairs(folder: Path, tree: Mapping[str, Any]) -> None:
    """Seconds of single comparisons, from names to a result, beside loading all numbers."""
    names = list(tree)
    some = [(names[at], names[-1 - 2 * at]) for at in range(len(names) // 3)]
    kinprint.compare(*(str(folder / name) for name in some[0]), cache=False)  # loads libraries
    times, floors = [], []
    for pair in some:
        paths = [folder / name for name in pair]
        started = time.perf_counter()
        kinprint.compare(*map(str, paths), cache=False)
        times.append(time.perf_counter() - started)
        started = time.perf_counter()
        for path in paths:
            for file in path.glob("*.safetensors"):
                for table in load_file(file).values():
                    table.astype(np.float32)
        floors.append(time.perf_counter() - started)
    ratio = np.median(np.divide(times, floors))
    print(f"one pair alone, of {len(some)}: median {np.median(times):.2f} s, at most "
          f"{max(times):.2f} s, {ratio:.0f} x loading both as floats")  # fmt: skip


def main(arguments: Sequence[str]) -> int:
    """Run, print, and fail if a stranger was accused."""
    folder = Path(arguments[0]) if arguments else ZOO
    if not (folder / "zoo.json").is_file():
        print(f"{folder} holds no zoo.json", file=sys.stderr)
        return 2
    pairs, seconds = run(folder, jobs=2)
    by_model(pairs, folder)
    totals(pairs)
    tree = json.loads((folder / "zoo.json").read_text("utf-8"))
    calibration(pairs, tree)
    print(f"\n{len(pairs)} pairs in {seconds:.0f} s, {1000 * seconds / len(pairs):.0f} ms a pair")
    time_single_pairs(folder, tree)
    return int(any(pair.accused[METHODS[0]] for pair in pairs if pair.truth != "related"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
