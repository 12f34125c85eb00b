"""`python -m benchmarks.calibration FOLDER`: what known strangers, twins and kin look like.

Trains families of small models (needs PyTorch; minutes on an accelerator, `--plans toy` for a look
on a laptop), measures the invariants of pairs whose relation is known, and writes one row a pair
and way of reading to `pairs-*.csv`. `invariants.json` is made of such tables by
`python -m benchmarks.calibration.shipping`. Plans whose name starts with `aside` are never used to
set a limit. Seeds are fixed; the text is what the machine has. `--verdicts` has `kinprint compare`
judge the pairs instead, `--seeds` makes families that no limit was set by: then `verdicts-*.csv`
say what people would be told, and a table counts it.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import pickle
import shutil
import tempfile
import time
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import zip_longest
from multiprocessing import get_context
from pathlib import Path
from typing import Any

_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_GRAM_PAIRS = 16 * 256  # over the width: pairs of a kind that are aligned by Gram matrices too
_ROOTS = 4  # that are written out
_FIRST = ("pupil", "twin, other order", "continued, laundered", "hot", "merge 50%, laundered",
          "twin, other data", "continued", "rounded, laundered", "tuned, laundered")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plans", default="toy", help="names of plans, such as 64,128,aside-64")
    parser.add_argument(
        "--export", default="", help="plans whose models are written out, such as 64:15 for 15 MB"
    )
    parser.add_argument("--until", type=float, default=1e9, help="seconds: no plan begins later")
    parser.add_argument("--characters", type=int, default=24_000_000, help="of each kind of text")
    parser.add_argument(
        "--processor", type=int, default=128,
        help="width up to which pairs are judged on the processor, while others are trained",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=0, help="added to those of the plans")
    parser.add_argument("--verdicts", action="store_true", help="compare the pairs with kinprint")
    asked = parser.parse_args()
    import torch
    from msgspec.structs import replace

    from benchmarks.calibration.families import PLANS, TOKENS, grown
    from benchmarks.calibration.texts import read_texts

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = True
    asked.folder.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    arrays, tokenizer = read_texts(TOKENS, asked.characters)
    texts = {name: torch.from_numpy(ids).to(device) for name, ids in arrays.items()}
    print(f"texts: {time.monotonic() - begun:.0f} s", flush=True)
    shelf = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    threads = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    sizes = {name: int(size) * 1_000_000 for name, size in
             (each.split(":") for each in asked.export.split(",") if each)}  # fmt: skip
    waiting: list[tuple[str, list[Future[Any]]]] = []
    try:
        with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
            for name in asked.plans.split(","):
                plan, at = PLANS[name], time.monotonic()
                plan = replace(plan, first=plan.first + asked.seeds)
                if at - begun > asked.until:
                    print(f"{name}: left out", flush=True)
                    continue
                collection = grown(plan, texts, device)
                losses = [one["loss"] for one in collection.tree.values() if one["how"] == "root"]
                print(
                    f"{name}: {len(collection.models)} models, {len(collection.pairs)} pairs, "
                    f"loss {min(losses):.2f} to {max(losses):.2f}, "
                    f"{time.monotonic() - at:.0f} s", flush=True,
                )  # fmt: skip
                if name in sizes:
                    _export(collection, tokenizer, asked.folder / f"{name}.tar", sizes[name])
                with (asked.folder / f"tree-{name}.json").open("w", encoding="utf-8") as file:
                    json.dump(collection.tree, file)
                if asked.verdicts:
                    waiting.append((name, _compared(collection, tokenizer, shelf, pool, name)))
                elif plan.shape.width <= asked.processor:
                    waiting.append((name, _shelved(collection, shelf, pool, name)))
                else:
                    _on_accelerator(collection, asked.folder / f"pairs-{name}.csv", device)
                    print(f"{name}: judged at {time.monotonic() - begun:.0f} s", flush=True)
                for each in [each for each in waiting if all(one.done() for one in each[1])]:
                    _collect(asked.folder, *waiting.pop(waiting.index(each)), asked.verdicts)
            for each in waiting:
                _collect(asked.folder, *each, asked.verdicts)
            print(f"all judged at {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        shutil.rmtree(shelf)
        os.environ.update({name: value for name, value in threads.items() if value is not None})


def _shelved(collection: Any, shelf: Path, pool: ProcessPoolExecutor, name: str) -> list[Any]:
    """Lay models where other processes find them, and have the pairs judged there."""
    from benchmarks.calibration.judging import READINGS, judge_files

    folder = shelf / name
    folder.mkdir()
    places = {}
    for at, (model, weights) in enumerate(collection.models.items()):
        places[model] = folder / f"{at}.pickle"
        places[model].write_bytes(pickle.dumps(weights, protocol=5))
    size = collection.plan.shape.size
    return [
        pool.submit(judge_files, collection.plan.name, known, places[known.first],
                    places[known.second], size, READINGS)
        for known in collection.pairs
    ]  # fmt: skip


def _compared(
    collection: Any, tokenizer: Any, shelf: Path, pool: ProcessPoolExecutor, name: str
) -> list[Any]:
    """Write models as they are published, and have the pairs compared in other processes."""
    from benchmarks.calibration.export import write_models
    from benchmarks.calibration.verdicts import verdict

    places = write_models(collection, tokenizer, shelf / name)
    return [
        pool.submit(verdict, name, known, places[known.first], places[known.second])
        for known in collection.pairs
    ]


def _collect(folder: Path, name: str, futures: list[Future[Any]], verdicts: bool) -> None:
    from benchmarks.calibration.verdicts import tally

    found = [one.result() for one in futures]
    if verdicts:
        _write(folder / f"verdicts-{name}.csv", found)
        print(f"{name}:\n{tally(found)}", flush=True)
        return
    _write(folder / f"pairs-{name}.csv", [row for rows in found for row in rows])
    print(f"{name}: judged on the processor", flush=True)


def _on_accelerator(collection: Any, path: Path, device: str) -> None:
    """Judge all pairs here; only some of a kind by Gram matrices, which take longest."""
    from collections import Counter
    from functools import cache

    from benchmarks.calibration.judging import Prepared, described, judged

    if device == "cuda":
        import cupy as arrays
    else:
        import numpy as arrays
    size = collection.plan.shape.size
    prepared = cache(lambda name: Prepared(collection.models[name], size, arrays))
    seen: Counter[tuple[str, str]] = Counter()
    rows = []
    for known in collection.pairs:
        kind = known.kind, known.how
        seen[kind] += 1
        few = seen[kind] > _GRAM_PAIRS // collection.plan.shape.width
        readings = ("tokens", "some rows") if few else ("whole", "tokens", "no tokens", "some rows")
        rows += [
            {"plan": collection.plan.name, **described(known), **row}
            for row in judged(prepared(known.first), prepared(known.second), readings)
        ]
    _write(path, rows)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


def _export(collection: Any, tokenizer: Any, path: Path, limit: int) -> None:
    from benchmarks.calibration.export import export

    by_kind: dict[str, list[str]] = {how: [] for how in _FIRST}
    for name, facts in collection.tree.items():
        by_kind.setdefault(facts["how"], []).append(name)
    roots = by_kind.pop("root")[:_ROOTS]
    rounds = zip_longest(*by_kind.values())
    names = [*roots, *(name for each in rounds for name in each if name is not None)]
    export(collection, names, tokenizer, path, limit)


if __name__ == "__main__":
    main()
