"""`python -m benchmarks.calibration FOLDER`: what known strangers, twins and kin look like.

Trains families of small models (needs PyTorch; minutes on an accelerator, `--small` for a look
on a laptop), runs the battery on pairs whose relation is known, and writes `pairs.jsonl` with
the sizes of effects, the quality of matches and the verdict of each. `calibrated.toml` and the
limits in `verdict.py` are read off such runs; the seeds are fixed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sysconfig
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.calibration.families import MIXES, Known, families, gentle_families
from benchmarks.calibration.training import Shape
from kinprint.lineage.alignment.gram import gram_likeness
from kinprint.lineage.battery import run_battery
from kinprint.lineage.charge import Charge
from kinprint.lineage.pair import Pair
from kinprint.lineage.reading.sample import Sample
from kinprint.lineage.side import Side
from kinprint.lineage.tests.calibrated import neighbour_correlation
from kinprint.lineage.tests.menu import menu
from kinprint.lineage.verdict import decide

TOKENS = 2048
_TEXT = 12_000_000  # characters of each kind of text
SHAPES: tuple[tuple[Shape, int, int], ...] = (
    (Shape(64, 4, 4, 176, TOKENS), 24, 1000),
    (Shape(96, 6, 6, 256, TOKENS), 24, 1000),
    (Shape(128, 6, 4, 352, TOKENS), 24, 1500),
    (Shape(192, 5, 6, 512, TOKENS), 24, 1500),
    (Shape(256, 8, 4, 704, TOKENS), 16, 1500),
    (Shape(512, 6, 8, 1408, TOKENS), 8, 1500),
    (Shape(128, 6, 4, 512, TOKENS, gated=False), 24, 1500),
    (Shape(256, 6, 8, 1024, TOKENS, gated=False), 16, 1500),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--small", action="store_true", help="one tiny shape, few steps")
    parser.add_argument("--shapes", help="places in the list of shapes, such as 0,3")
    parser.add_argument("--gentle", action="store_true", help="twins and children by amount")
    asked = parser.parse_args()
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    shapes = list(SHAPES)
    if asked.shapes:
        shapes = [SHAPES[int(at)] for at in asked.shapes.split(",")]
    if asked.small:
        shapes = [(Shape(32, 2, 2, 64, 512), 2, 20)]
    texts = read_texts(shapes[0][0].tokens)
    asked.folder.mkdir(parents=True, exist_ok=True)
    with (asked.folder / "pairs.jsonl").open("w", encoding="utf-8") as file:
        for shape, strangers, steps in shapes:
            started = time.monotonic()
            first = 1 + 1000 * next(
                (at for at, one in enumerate(SHAPES) if one[0] == shape), len(SHAPES)
            )
            if asked.gentle:
                known = gentle_families(shape, texts, device, first + 500)
            else:
                known = families(shape, strangers, texts, steps, device, first)
            trained = time.monotonic()
            for row in judged(known):
                file.write(json.dumps({"shape": asdict(shape), "steps": steps, **row}) + "\n")
                file.flush()
            took = f"{trained - started:.0f} s training, {time.monotonic() - trained:.0f} s judging"
            print(f"{shape.name}: {len(known)} pairs, {took}", flush=True)


def read_texts(tokens: int) -> dict[str, Any]:
    """Python, C headers and prose found on this machine, as tokens of one small vocabulary."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    library, packages = (Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib"))
    kinds = {
        "python": ([library, packages], (".py",)),
        "headers": ([Path("/usr/include"), packages, Path("/usr/local")], (".h", ".hpp", ".cuh")),
        "prose": ([Path("/usr/share/doc"), packages, Path("/usr/share")],
                  (".md", ".rst", ".txt", "copyright", "METADATA")),
    }  # fmt: skip
    raw = {name: _text(*kinds[name]) for name in MIXES}
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=tokens, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator((text[:1_500_000] for text in raw.values()), trainer)
    found = {}
    for name, text in raw.items():
        lines = [text[at : at + 20_000] for at in range(0, len(text), 20_000)]
        ids = [one.ids for one in tokenizer.encode_batch(lines)]
        found[name] = np.concatenate([np.asarray(one, np.int64) for one in ids])
        print(f"{name}: {len(text):,} characters, {len(found[name]):,} tokens", flush=True)
    return found


def _text(folders: list[Path], ends: tuple[str, ...]) -> str:
    """Files of a kind, in the order of their names, up to a common length."""
    found: list[str] = []
    length = 0
    for folder in folders:
        for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
            if path.name.endswith(ends) and path.is_file() and path.stat().st_size < 400_000:
                found.append(path.read_text(encoding="utf-8", errors="ignore"))
                length += len(found[-1])
            if length > _TEXT:
                return "\n".join(found)[:_TEXT]
    return "\n".join(found)


def judged(known: list[Known]) -> list[dict[str, Any]]:
    """The battery on every pair, side by side; BLAS is told to use one core by the caller."""
    with ProcessPoolExecutor(os.cpu_count(), get_context("fork")) as pool:
        return list(pool.map(_judge, known, chunksize=2))


def _judge(one: Known) -> dict[str, Any]:
    sides = sorted((Side(one.one), Side(one.other)), key=lambda side: side.rank)
    started = time.process_time()
    evidence = run_battery(*sides)
    seconds = time.process_time() - started
    verdict = decide(evidence, Charge.for_menu(menu("standard")))
    quality = [each.alignment_quality for each in evidence if each.alignment_quality is not None]
    matching = Pair(*sides).alignment_from(sides[0]).feed_forwards
    gram = math.nan
    if matching is not None:
        gram = gram_likeness(sides[0].prepared, sides[1].prepared, matching)
    gains = min(neighbour_correlation(side) for side in (one.one, one.other))
    return {
        "truth": one.truth,
        "how": one.how,
        "roots": one.roots,
        "relation": verdict.relation,
        "log10_p": verdict.log10_p,
        "reasons": verdict.reasons,
        "quality": max(quality, default=matching.quality if matching else math.nan),
        "gram": gram,
        "neighbours": gains,
        "spreads": [_spread(side) for side in (one.one, one.other)],
        "tops": [_top(side) for side in (one.one, one.other)],
        "tests": {each.test: (each.log10_p, each.effect) for each in evidence
                  if each.status == "ok"},
        "silent": Counter(each.status for each in evidence if each.status != "ok"),
        "seconds": seconds,
    }  # fmt: skip


def _spread(side: Sample) -> float:
    """How far gains are from a constant: the mean over norms of deviation over mean."""
    return float(np.mean([one.std() / abs(one.mean()) for one in side.norms.values()]))


def _top(side: Sample) -> float:
    """The largest squared singular value of feed-forward inputs over that of random rows."""
    found = []
    for one in side.units.values():
        values = np.linalg.svd(one.up, compute_uv=False)
        edge = (1 + (one.up.shape[1] / one.up.shape[0]) ** 0.5) ** 2 * (one.up**2).sum()
        found.append(values[0] ** 2 / (edge / one.up.shape[1]))
    return float(np.mean(found))


if __name__ == "__main__":
    main()
